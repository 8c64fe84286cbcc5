"""Run one coroutine of a command with a Scheduler."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from redsched.cli.context import checked_url, first_reply_s, run, settings_for
from redsched.scheduler import Scheduler
from redsched.settings import Settings

Result = TypeVar("Result")


def with_scheduler(
    url: str,
    work: Callable[[Scheduler], Awaitable[Result]],
    *,
    on_demand: bool = False,
    read_only: bool = False,
    plan_limit_s: float = 0.0,
) -> Result:
    """Run `work` with a Scheduler on the store at `url`, or that of the settings. Raises InvalidRequest without one.

    `on_demand` and `read_only`: as in `Scheduler.connect`, for commands that need no background tasks, or only read.
    `plan_limit_s` is the time for plans of commands that make them in forks.
    """
    settings = settings_for(url)
    if plan_limit_s:
        settings = settings.model_copy(update={"plan_limit_s": plan_limit_s})
    return run(_with_scheduler(checked_url(settings), settings, work, on_demand, read_only, bool(plan_limit_s)))


async def _with_scheduler(
    url: str,
    settings: Settings,
    work: Callable[[Scheduler], Awaitable[Result]],
    on_demand: bool,
    read_only: bool,
    plan_apart: bool,
) -> Result:
    async with Scheduler.connect(
        url,
        settings,
        on_demand=on_demand,
        read_only=read_only,
        plan_apart=plan_apart,
        first_reply_s=first_reply_s(settings),
    ) as scheduler:
        return await work(scheduler)
