"""The fleet of a command: which one it is, its settings, and the Scheduler or the client of the API for it.

Its options, the variables of the environment, and the context in use: the first of these that names one decides. Each
of them may name one store or one API, and not both.

Loads neither a scheduler nor the client of the store before it opens one: they would double the time that agents and
commands over the API take to start.
"""

import gc
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar

import typer
from pydantic import ValidationError

from redsched import logs
from redsched.cli import contexts
from redsched.cli.running import run
from redsched.errors import InvalidRequest
from redsched.settings import Settings, load
from redsched.store.topology.password import FILE_SETTING, has_password

if TYPE_CHECKING:
    from redsched.client import AsyncClient
    from redsched.scheduler import Scheduler

Fleet: TypeAlias = "Scheduler | AsyncClient"
"""What a command works on. Both have the operations of `redsched.operations`."""

NOWHERE = (
    "no fleet is named: set REDSCHED_REDIS_URL (`redsched up` prints the line) or REDSCHED_API, give --url or --api, "
    f"or make a context: `{contexts.EXAMPLE}`"
)
PASSWORD_SHOWN = (
    "redsched: warning: --url has a password, which every user of this machine can read in the list of processes: set "
    f"REDSCHED_REDIS_URL instead, or leave it out and name a file with it in {FILE_SETTING}"
)

FIRST_REPLY_S = 2.0
"""How long a command waits until a store answers at all, unless REDSCHED_REPLY_TIMEOUT_S is set."""

RETRY_S = 2.0
"""How long a command tries again to reach an API: a person waits, and can try again."""

Opened = TypeVar("Opened")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Where:
    """The options that name a fleet."""

    url: Annotated[
        str, typer.Option("--url", help="URL of the store. Default: REDSCHED_REDIS_URL.", show_default=False)
    ] = ""
    api: Annotated[
        str,
        typer.Option(
            "--api",
            metavar="URL",
            help="URL of the API to use. Default: REDSCHED_API.",
            show_default=False,
        ),
    ] = ""
    token_file: Annotated[
        str,
        typer.Option(
            "--token-file",
            metavar="FILE",
            help="File with the token for the API. Default: REDSCHED_TOKEN_FILE.",
            show_default=False,
        ),
    ] = ""
    context: Annotated[
        str,
        typer.Option(
            "--context",
            metavar="NAME",
            help="Fleet by its name in `redsched context list`. Default: REDSCHED_CONTEXT, or the one in use.",
            show_default=False,
        ),
    ] = ""


ANYWHERE = Where()
"""No option is given."""


def settings_of(where: Where) -> Settings:
    """Return the settings with either the store or the API; `context` is set only if they are from that.

    Raises InvalidRequest, and NotFound for a context.
    """
    given = {"--url": where.url, "--api": where.api, "--context": where.context}
    named = [option for option, value in given.items() if value]
    if len(named) > 1:
        raise InvalidRequest(f"{' and '.join(named)} each name a fleet: give one of them")
    settings = settings_for(where.url)
    found = _chosen(where, settings)
    if not where.token_file:
        return found
    if not found.api:
        raise InvalidRequest("--token-file is for an API, and this command uses the store: give --api too")
    return found.model_copy(update={"token_file": where.token_file})


def store_settings(url: str) -> Settings:
    """Return the settings of a command that needs the store: at `url`, or as the environment or the context has it.

    Raises InvalidRequest if only an API is named, and NotFound for a context.
    """
    settings = settings_for(url)
    if not settings.redis_url:
        settings = _chosen(ANYWHERE, settings)
    if not settings.redis_url:
        raise InvalidRequest(f"this command needs access to the store, and {settings.api} is an API: give --url")
    return settings


def _chosen(where: Where, settings: Settings) -> Settings:
    if where.url:
        return settings.model_copy(update={"api": "", "context": ""})
    if where.api:
        return settings.model_copy(update={"api": where.api, "redis_url": "", "context": ""})
    if where.context:
        return _in_context(settings, where.context)
    if settings.redis_url and settings.api:
        raise InvalidRequest("REDSCHED_REDIS_URL and REDSCHED_API are both set: unset one, or give --url or --api")
    if settings.redis_url or settings.api:
        return settings.model_copy(update={"context": ""})
    if name := settings.context or contexts.read().current:
        return _in_context(settings, name)
    raise InvalidRequest(NOWHERE)


def _in_context(settings: Settings, name: str) -> Settings:
    """Return the settings of a fleet, with the name of the context that they are from."""
    return settings.model_copy(update={**contexts.read().get(name).model_dump(), "context": name})


def settings_for(url: str = "", is_service: bool = False, given: Mapping[str, str] | None = None) -> Settings:
    """Load the settings, with the store at `url` if given, and configure logging. Raises InvalidRequest.

    `given`: settings that options of the command give, by name; empty ones are left to the environment.
    Services log their progress at the default level. Other commands print their results, so they log warnings only.
    """
    # What `main` has imported without collections stays: it is neither collected nor traversed from now on.
    gc.freeze()
    gc.enable()
    settings = _load({name: text for name, text in (given or {}).items() if text})
    is_chosen = is_service or "log_level" in settings.model_fields_set
    logs.configure(settings.log_level if is_chosen else "warning", settings.log_format == "json")
    if url and has_password(url):
        print(PASSWORD_SHOWN, file=sys.stderr)
    return settings.model_copy(update={"redis_url": url}) if url else settings


def store_url(settings: Settings) -> str:
    """Return the store's URL. Raises InvalidRequest if none is configured."""
    if not settings.redis_url:
        raise InvalidRequest(
            "no store is configured: set REDSCHED_REDIS_URL (`redsched up` prints the line) or pass --url, "
            "such as redis://localhost:6379"
        )
    return settings.redis_url


def first_reply_s(settings: Settings) -> float:
    """Return how long a command waits until the store answers at all: a person waits, and can try again."""
    return settings.reply_timeout_s if "reply_timeout_s" in settings.model_fields_set else FIRST_REPLY_S


def _load(given: Mapping[str, str]) -> Settings:
    try:
        return load(**given)
    except ValidationError as error:
        raise InvalidRequest(_setting_problem(error)) from error
    except InvalidRequest as error:
        raise InvalidRequest(f"{error}: correct or unset it in the environment") from error


def _setting_problem(error: ValidationError) -> str:
    first = error.errors()[0]
    name = f"REDSCHED_{str(first['loc'][0]).upper()}" if first["loc"] else "the settings"
    return f"{name}: {first['msg']}, not {str(first['input'])[:80]!r}: correct or unset it in the environment"


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
    return run(
        _work_on(opened(settings, on_demand=on_demand, read_only=read_only, plan_apart=bool(plan_limit_s)), work)
    )


def opened(
    settings: Settings, *, on_demand: bool = False, read_only: bool = False, plan_apart: bool = False
) -> AbstractAsyncContextManager[Fleet]:
    """Return the fleet of `settings_of`, to be opened."""
    if settings.api:
        return opened_remote(settings)
    return _scheduler(settings, on_demand=on_demand, read_only=read_only, plan_apart=plan_apart)


@asynccontextmanager
async def opened_remote(settings: Settings) -> "AsyncIterator[AsyncClient]":
    """Open the fleet over the API of settings."""
    from redsched.cli.refusals import in_words_of_commands
    from redsched.client import AsyncClient
    from redsched.rest import checked_url

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


def with_scheduler(url: str, work: "Callable[[Scheduler], Awaitable[Result]]", *, read_only: bool = False) -> Result:
    """Run `work` with a Scheduler on the store at `url`, or that of the settings or the context.

    `read_only`: as in `Scheduler.connect`. Raises InvalidRequest without a store.
    """
    return run(_work_on(_scheduler(store_settings(url), read_only=read_only), work))


def _scheduler(
    settings: Settings, on_demand: bool = False, read_only: bool = False, plan_apart: bool = False
) -> "AbstractAsyncContextManager[Scheduler]":
    """Return a Scheduler on the store of settings; its first reply has the time that a person waits."""
    from redsched.scheduler import Scheduler

    return Scheduler.connect(
        settings.redis_url,
        settings,
        on_demand=on_demand,
        read_only=read_only,
        plan_apart=plan_apart,
        first_reply_s=first_reply_s(settings),
    )


async def _work_on(fleet: AbstractAsyncContextManager[Opened], work: Callable[[Opened], Awaitable[Result]]) -> Result:
    async with fleet as one:
        return await work(one)
