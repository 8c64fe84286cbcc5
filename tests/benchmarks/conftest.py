"""Fixtures of the tests of benchmarks."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _restores_sigterm() -> Iterator[None]:
    """Restore the handler of SIGTERM: a benchmark sets one, as it is a process of its own."""
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)
