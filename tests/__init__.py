"""Tests mirror the modules; `tests.support` holds what several of them need."""

import os

from tests.support import guard

if guard.GUARDED in os.environ:  # a process that a test has started
    guard.install()
