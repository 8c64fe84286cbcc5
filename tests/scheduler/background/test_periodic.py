"""Periodic work continues after an error, which is logged."""

import asyncio
import logging
from collections.abc import Iterator

import structlog
from structlog.testing import capture_logs

from redsched.aio import end
from redsched.errors import StoreUnavailable
from redsched.scheduler.background.periodic import repeat
from tests.support.waiting import patience_s


async def test_an_error_is_reported_and_ends_nothing() -> None:
    """An expected error is logged at the given level, a bug with its traceback; the next round runs all the same."""
    rounds: Iterator[Exception] = iter((StoreUnavailable("gone"), ValueError("a defect")))
    through = asyncio.Event()

    async def work() -> None:
        for error in rounds:
            raise error
        through.set()

    with capture_logs() as logs:
        log = structlog.get_logger("test").bind(cell="c1")
        task = asyncio.create_task(repeat(work, 0.0, log, "sweep", logging.INFO))
        await asyncio.wait_for(through.wait(), patience_s(30))
        await end(task)
    foreseen, defect = logs
    assert foreseen == {"cell": "c1", "event": "sweep", "log_level": "info", "problem": "gone"}
    assert (defect["event"], defect["log_level"], defect["exc_info"]) == ("sweep", "error", True)


async def test_the_first_round_has_its_own_time() -> None:
    """Work that is done now and then need not be done at the start."""
    done = asyncio.Event()

    async def work() -> None:
        done.set()

    task = asyncio.create_task(repeat(work, 0.0, structlog.get_logger("test"), "check", first_s=3600.0))
    await asyncio.wait([task], timeout=0.05)
    await end(task)
    assert not done.is_set()
