"""Tests mirror the modules; `tests.support` holds what several of them need."""
