"""Work that goes on behind its caller: it is waited for, and not for ever."""

import asyncio

from redsched.tasks import Later


async def for_ever() -> None:
    await asyncio.Event().wait()


async def test_stopping_waits_for_what_has_begun() -> None:
    """Work that ends in time is done, and no task is kept of it."""
    later, done = Later("work"), asyncio.Event()

    async def work() -> None:
        done.set()

    later.begin(work())
    await later.stop(within_s=60.0)
    assert done.is_set()
    assert not list(later)


async def test_what_does_not_end_in_time_is_cancelled() -> None:
    """So that whoever closes is not held by a store that does not answer."""
    later = Later("work")
    later.begin(for_ever())
    [task] = later
    await later.stop(within_s=0.01)
    await asyncio.wait([task], timeout=10.0)
    assert task.cancelled()
