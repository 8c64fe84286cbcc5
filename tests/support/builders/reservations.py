"""Hosts that keep something for a request that waits, from outside a running loop."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from redsched.scheduler import Scheduler
from redsched.store.codec.outcomes import Outcome
from tests.support.builders.cells import usual_settings


@contextmanager
def reserved(url: str, host: str, amounts: Mapping[str, int]) -> Iterator[None]:
    """Keep amounts of a host for the request `big` of the project `web` until the block ends."""

    async def change(begin: bool) -> Outcome:
        async with Scheduler.connect(url, usual_settings(), on_demand=True) as scheduler:
            cell = scheduler.cells.named("c1").store.reservations
            put = cell.put(host, "r1", amounts, 3_600_000, 0, 9, "big", "web") if begin else cell.end(host, "r1")
            return await put

    assert asyncio.run(change(begin=True)) is Outcome.OK
    try:
        yield
    finally:
        asyncio.run(change(begin=False))
