"""Run one coroutine of a command that needs the store with a Scheduler. See `fleet.py` for all others."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from redsched.cli.context import first_reply_s, run
from redsched.cli.where import store_settings
from redsched.scheduler import Scheduler
from redsched.settings import Settings

Result = TypeVar("Result")


def with_scheduler(
    url: str,
    work: Callable[[Scheduler], Awaitable[Result]],
    *,
    on_demand: bool = False,
    read_only: bool = False,
) -> Result:
    """Run `work` with a Scheduler on the store at `url`, or that of the settings or the context.

    Raises InvalidRequest without one.

    `on_demand` and `read_only`: as in `Scheduler.connect`, for commands that need no background tasks, or only read.
    """
    settings = store_settings(url)
    return run(_with_scheduler(settings.redis_url, settings, work, on_demand, read_only))


async def _with_scheduler(
    url: str,
    settings: Settings,
    work: Callable[[Scheduler], Awaitable[Result]],
    on_demand: bool,
    read_only: bool,
) -> Result:
    async with Scheduler.connect(
        url,
        settings,
        on_demand=on_demand,
        read_only=read_only,
        first_reply_s=first_reply_s(settings),
    ) as scheduler:
        return await work(scheduler)
