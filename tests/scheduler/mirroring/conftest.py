"""Schedulers over cells a and b: one that mirrors both, and one that mirrors a only."""

from collections.abc import AsyncIterator

import pytest

from redsched.scheduler import Scheduler
from tests.scheduler.mirroring.mirrored import BOTH, settings_of, summarize


@pytest.fixture
async def full(two_cells: Scheduler) -> Scheduler:
    """A scheduler that mirrors a (a1 with 8 VCPU) and b (b1 with 4, b2 with 2). Its cells have summaries."""
    await summarize(two_cells)
    return two_cells


@pytest.fixture
async def partial(full: Scheduler, clean_store: str) -> AsyncIterator[Scheduler]:
    """A scheduler that mirrors a only, on the store of `full`."""
    async with Scheduler.connect(clean_store, settings_of(BOTH, "a")) as opened:
        yield opened
