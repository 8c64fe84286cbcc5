"""Run one coroutine of a command that needs the store with a Scheduler. See `fleet.py` for all others."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
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
    read_only: bool = False,
) -> Result:
    """Run `work` with a Scheduler on the store at `url`, or that of the settings or the context.

    `read_only`: as in `Scheduler.connect`. Raises InvalidRequest without a store.
    """
    return run(_with_scheduler(store_settings(url), work, read_only))


async def _with_scheduler(
    settings: Settings, work: Callable[[Scheduler], Awaitable[Result]], read_only: bool
) -> Result:
    async with opened_scheduler(settings, read_only=read_only) as scheduler:
        return await work(scheduler)


@asynccontextmanager
async def opened_scheduler(
    settings: Settings, *, on_demand: bool = False, read_only: bool = False, plan_apart: bool = False
) -> AsyncIterator[Scheduler]:
    """Open a Scheduler on the store of settings; its first reply has the time that a person waits."""
    async with Scheduler.connect(
        settings.redis_url,
        settings,
        on_demand=on_demand,
        read_only=read_only,
        plan_apart=plan_apart,
        first_reply_s=first_reply_s(settings),
    ) as scheduler:
        yield scheduler
