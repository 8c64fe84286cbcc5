"""Repeat work for as long as a scheduler runs, even if one run fails."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from redsched import origin
from redsched.errors import RedschedError
from redsched.origin import SCHEDULER

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger


async def repeat(
    work: Callable[[], Awaitable[object]],
    every_s: float,
    log: "FilteringBoundLogger",
    what: str,
    level: int = logging.WARNING,
    first_s: float = 0.0,
) -> None:
    """Run `work` about every `every_s` seconds, first after `first_s`. Errors are logged as `what`; the loop continues.

    Call it in a task of its own: all that it does has the origin SCHEDULER. `level` is the log level
    of expected errors (RedschedError). Jitter keeps schedulers that started together apart.
    """
    origin.enter(SCHEDULER)
    pause_s = first_s
    while True:
        await asyncio.sleep(pause_s * random.uniform(0.8, 1.2))
        pause_s = every_s
        try:
            await work()
        except RedschedError as error:
            log.log(level, what, problem=error.detail)
        except Exception:  # a defect must not end the loop silently
            log.exception(what)
