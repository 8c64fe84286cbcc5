"""Run one coroutine of a command on its fleet: a Scheduler on the store, or the same calls over the REST API."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from redsched.cli.context import run
from redsched.cli.where import Where, settings_of
from redsched.settings import Settings

if TYPE_CHECKING:
    from redsched.client import AsyncClient
    from redsched.scheduler import Scheduler

Fleet: TypeAlias = "Scheduler | AsyncClient"
"""What a command works on. Both have the operations of `redsched.operations`."""

RETRY_S = 2.0
"""How long a command tries again to reach an API: a person waits, and can try again."""

Result = TypeVar("Result")


def with_fleet(
    where: Where,
    work: Callable[[Fleet], Awaitable[Result]],
    *,
    on_demand: bool = False,
    read_only: bool = False,
    plan_limit_s: float = 0.0,
) -> Result:
    """Run `work` on the fleet that `where` names. Raises InvalidRequest, and NotFound for an unknown context.

    `on_demand` and `read_only`: as in `Scheduler.connect`, for commands that need no background tasks, or only read.
    `plan_limit_s` is the time for plans of commands that make them in forks; an API has its own.
    """
    settings = settings_of(where)
    if plan_limit_s:
        settings = settings.model_copy(update={"plan_limit_s": plan_limit_s})
    return run(_with_fleet(settings, work, on_demand, read_only, bool(plan_limit_s)))


async def _with_fleet(
    settings: Settings, work: Callable[[Fleet], Awaitable[Result]], on_demand: bool, read_only: bool, plan_apart: bool
) -> Result:
    async with opened(settings, on_demand=on_demand, read_only=read_only, plan_apart=plan_apart) as fleet:
        return await work(fleet)


@asynccontextmanager
async def opened(
    settings: Settings, *, on_demand: bool = False, read_only: bool = False, plan_apart: bool = False
) -> AsyncIterator[Fleet]:
    """Open the fleet of `settings_of`."""
    if settings.api:
        async with opened_remote(settings) as remote:
            yield remote
        return
    from redsched.cli.scheduler import opened_scheduler  # loads the client of the store, which an API does not need

    async with opened_scheduler(settings, on_demand=on_demand, read_only=read_only, plan_apart=plan_apart) as scheduler:
        yield scheduler


@asynccontextmanager
async def opened_remote(settings: Settings) -> "AsyncIterator[AsyncClient]":
    """Open the fleet over the API of settings."""
    from redsched.cli.refusals import in_words_of_commands
    from redsched.client import AsyncClient
    from redsched.rest.endpoint import checked_url

    checked_url(
        settings.api, settings.api_insecure, "set REDSCHED_API_INSECURE=true, or `redsched context set --insecure`"
    )
    client = AsyncClient(
        settings.api,
        token_file=settings.token_file,
        ca=settings.api_ca,
        cert=settings.api_cert,
        key=settings.api_key,
        insecure=settings.api_insecure,
        retry_s=RETRY_S,
    )
    async with client:
        with in_words_of_commands(settings):
            yield client
