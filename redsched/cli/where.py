"""Which fleet a command is about: a store or an API, by its options, the environment, or a context.

The first of these that names one decides: the options, the variables of the environment, and the context in use. Each
of them may name one store or one API, and not both.
"""

from dataclasses import dataclass
from typing import Annotated

import typer

from redsched.cli import contexts
from redsched.cli.context import settings_for
from redsched.errors import InvalidRequest
from redsched.settings import Settings

NOWHERE = (
    "no fleet is named: set REDSCHED_REDIS_URL (`redsched up` prints the line) or REDSCHED_API, give --url or --api, "
    f"or make a context: `{contexts.EXAMPLE}`"
)


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
