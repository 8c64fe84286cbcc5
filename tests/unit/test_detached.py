"""Tasks that requests share do not keep the origin of the request that happened to start them."""

import asyncio

from redsched import aio, origin
from redsched.origin import SCHEDULER, UNKNOWN, Origin
from redsched.scheduler.background.periodic import repeat


async def current() -> Origin:
    return origin.current()


async def test_shared_work_has_no_origin_and_work_for_one_caller_has_its_own() -> None:
    seen: list[Origin] = []

    async def look() -> None:
        seen.append(origin.current())

    caller = Origin("ci", "r1")
    token = origin.enter(caller)
    try:
        assert await aio.detached(current(), "shared") == UNKNOWN
        shared, own = aio.BackgroundTasks("shared"), aio.BackgroundTasks("own", inherits=True)
        shared.begin(look())
        await shared.stop(10)
        own.begin(look())
        await own.stop(10)
        assert seen == [UNKNOWN, caller]
    finally:
        origin.leave(token)


async def test_what_a_scheduler_repeats_is_its_own_doing() -> None:
    seen = asyncio.get_running_loop().create_future()

    async def look() -> None:
        if not seen.done():
            seen.set_result(origin.current())

    task = aio.detached(repeat(look, 1, None, "look"), "look")  # type: ignore[arg-type]  # nothing is logged
    assert await asyncio.wait_for(seen, 10) == SCHEDULER
    await aio.end(task)
    assert origin.current() == UNKNOWN
