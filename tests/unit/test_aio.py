"""Background and concurrent tasks: stopping waits for them, but only for a limited time."""

import asyncio

import pytest

from redsched.aio import BackgroundTasks, TimeLimit, end, finish, gather


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


async def test_what_is_ended_has_ended_though_the_caller_is_cancelled_again() -> None:
    begun, may_end, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def closing() -> None:
        await may_end.wait()
        ended.set()

    async def work() -> None:
        begun.set()
        try:
            await for_ever()
        finally:
            await finish(closing())

    caller = asyncio.ensure_future(end(asyncio.ensure_future(work())))
    await begun.wait()
    for _ in range(10):
        caller.cancel()
        await asyncio.sleep(0)
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert ended.is_set()


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


async def test_a_time_limit_ends_what_takes_longer() -> None:
    """Each operation has the whole time from its own beginning, and one timer serves all."""
    limit, ended = TimeLimit(0.2), list[str]()

    async def work(name: str, ends: bool = False) -> None:
        try:
            with limit.limited():
                await (asyncio.sleep(0) if ends else for_ever())
            ended.append(name)
        except TimeoutError:
            ended.append(f"{name} is late")

    async def later() -> None:
        await asyncio.sleep(0.1)
        await work("second")

    loop = asyncio.get_running_loop()
    began_s = loop.time()
    await asyncio.gather(work("first"), work("short", ends=True), later())
    assert ended == ["short", "first is late", "second is late"]
    assert loop.time() - began_s >= 0.3 - 0.01  # a timer has whole milliseconds
    await work("third")  # the timer had ended
    assert ended[-1] == "third is late"


async def test_a_cancellation_within_a_time_limit_is_no_timeout() -> None:
    limit = TimeLimit(60.0)

    async def work() -> None:
        with limit.limited():
            await for_ever()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()


async def test_a_cancellation_at_the_same_time_as_the_limit_remains_one() -> None:
    limit = TimeLimit(0.0)

    async def work() -> None:
        with limit.limited():
            asyncio.get_running_loop().call_soon(task.cancel)
            await for_ever()

    task = asyncio.create_task(work())
    await asyncio.wait([task])
    assert task.cancelled()


async def test_an_error_within_a_time_limit_is_passed_on() -> None:
    limit = TimeLimit(60.0)
    with pytest.raises(ValueError, match="this one"), limit.limited():
        raise ValueError("this one")
