"""Background and concurrent tasks: stopping waits for them, but only for a limited time."""

import asyncio

import pytest

from redsched.aio import BackgroundTasks, end, gather


async def for_ever() -> None:
    await asyncio.Event().wait()


async def test_stopping_waits_for_what_has_begun() -> None:
    """Work that ends in time is completed, and its task is not kept."""
    later, done = BackgroundTasks("work"), asyncio.Event()

    async def work() -> None:
        done.set()

    later.begin(work())
    await later.stop(within_s=60.0)
    assert done.is_set()
    assert not list(later)


async def test_what_does_not_end_in_time_is_cancelled() -> None:
    """Otherwise a store that does not reply would block the process that closes."""
    later = BackgroundTasks("work")
    later.begin(for_ever())
    [task] = later
    await later.stop(within_s=0.01)
    await asyncio.wait([task], timeout=10.0)
    assert task.cancelled()


async def test_what_is_begun_together_is_answered_in_its_order() -> None:
    first = asyncio.Event()

    async def one() -> int:
        await first.wait()
        return 1

    async def other() -> int:
        first.set()
        return 2

    assert await gather([one(), other()]) == [1, 2]


async def test_nothing_continues_of_what_was_begun_together_when_one_fails() -> None:
    ended = asyncio.Event()

    async def waiting() -> None:
        try:
            await for_ever()
        finally:
            ended.set()

    async def failing() -> None:
        await asyncio.sleep(0)
        raise ValueError("failed")

    with pytest.raises(ValueError, match="failed"):
        await gather([waiting(), failing()])
    assert ended.is_set()


async def test_nothing_continues_of_what_was_begun_together_when_it_is_cancelled() -> None:
    """This also holds if a cancellation gets lost, as can happen before Python 3.12."""
    tries, begun = 0, asyncio.Event()

    async def stubborn() -> None:
        nonlocal tries
        begun.set()
        while tries < 2:
            try:
                await for_ever()
            except asyncio.CancelledError:
                tries += 1

    task = asyncio.ensure_future(gather([for_ever(), stubborn()]))
    await begun.wait()
    await end(task)
    assert (task.cancelled(), tries) == (True, 2)


async def test_what_is_cancelled_at_the_end_has_ended_when_that_returns() -> None:
    """A cancelled task may hold a connection until it has handled the cancellation, and its pool is closed next."""
    later, ended = BackgroundTasks("work"), list[str]()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            ended.append("in order")

    later.begin(work())
    await later.stop(within_s=0.01)
    assert ended == ["in order"]
