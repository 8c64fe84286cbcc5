"""`redsched functions install` and `show`: the functions of the store that people call with redis-cli."""

from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer

from redsched.cli.fleet import first_reply_s, store_settings, store_url
from redsched.cli.options import Url
from redsched.cli.output import tables
from redsched.cli.running import run
from redsched.settings import Settings
from redsched.store.client.function_library import library
from redsched.store.commands.functions import FunctionCommands, Installation, Installed
from redsched.store.store import Store

Result = TypeVar("Result")


def install(
    force: Annotated[
        bool, typer.Option("--force", help="Replace a newer version too, or a library of the same name.")
    ] = False,
    url: Url = "",
) -> None:
    """Install the functions for redis-cli on each primary that has an older version or none.

    Installing needs the login of an administrator of the store. Replicas get the functions from their primary.
    """
    for one in _run(url, lambda functions: functions.install(force=force)):
        print(_said(one))


def show(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    url: Url = "",
) -> None:
    """Show which version of the functions each primary has, and how to call them."""
    found = _run(url, lambda functions: functions.show())
    if as_json:
        primaries = [{"primary": one.primary, "version": one.version} for one in found]
        return tables.show_json({"release": library().version, "primaries": primaries})
    for one in found:
        print(f"{one.primary} has {_version(one.version)}; this release has version {library().version}")
    if any(one.version != library().version for one in found):
        print("`redsched functions install` installs what is missing or older")
    for line in max((one.lines for one in found), key=len, default=()):
        print(line)
    return None


def _run(url: str, call: Callable[[FunctionCommands], Awaitable[Result]]) -> Result:
    settings = store_settings(url)
    return run(_call(store_url(settings), settings, call))


async def _call(url: str, settings: Settings, call: Callable[[FunctionCommands], Awaitable[Result]]) -> Result:
    # No cell is opened: the functions belong to the servers, which may have no cell yet.
    no_cells = settings.model_copy(update={"cells": ()})
    async with Store.connect(url, no_cells, read_only=True, first_reply_s=first_reply_s(settings)) as store:
        return await call(store.functions)


def _said(one: Installed) -> str:
    match one.done:
        case Installation.UNCHANGED:
            return f"{one.primary} has version {library().version} already: nothing was changed"
        case Installation.INSTALLED:
            return f"{one.primary} has version {library().version} now; it had none"
        case Installation.REPLACED:
            return f"{one.primary} has version {library().version} now; it had {_version(one.before)}"


def _version(version: int | None) -> str:
    return f"version {version}" if version else "none of redsched's functions"
