"""What a scheduler does again and again for as long as it lives, whatever comes of one round."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from structlog.typing import FilteringBoundLogger

from redsched.errors import RedschedError


async def repeat(
    work: Callable[[], Awaitable[object]],
    every_s: float,
    log: FilteringBoundLogger,
    what: str,
    level: int = logging.WARNING,
    first_s: float = 0.0,
) -> None:
    """Do the work about every so many seconds, first after `first_s`. An error is logged as `what` and ends nothing.

    `level`: of those that are foreseen. Schedulers that began together do not stay together: that is the jitter's.
    """
    pause_s = first_s
    while True:
        await asyncio.sleep(pause_s * random.uniform(0.8, 1.2))
        pause_s = every_s
        try:
            await work()
        except RedschedError as error:
            log.log(level, what, problem=error.detail)
        except Exception:  # a defect must not end it without a word
            log.exception(what)
