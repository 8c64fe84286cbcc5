"""The context of a command: its settings, the URL of its store, and the cells in it.

Imports no scheduler, whose modules would double the time that agents take to start, and their memory; and the client of
the store only where it is used, since a command over the API needs none.
"""

import asyncio
import gc
import os
import pwd
import signal
import sys
import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from pydantic import ValidationError

from redsched import aio, logs, origin
from redsched.errors import InvalidRequest
from redsched.model.tokens import Token
from redsched.origin import Origin
from redsched.settings import Settings, load
from redsched.store.topology.password import FILE_SETTING, has_password

PASSWORD_SHOWN = (
    "redsched: warning: --url has a password, which every user of this machine can read in the list of processes: set "
    f"REDSCHED_REDIS_URL instead, or leave it out and name a file with it in {FILE_SETTING}"
)

MAX_AHEAD_YEARS = 100
MAX_AHEAD_MS = MAX_AHEAD_YEARS * 366 * 86_400_000
"""How far an epoch may be ahead above which an operator starts one."""

FIRST_REPLY_S = 2.0
"""How long a command waits until a store answers at all, unless REDSCHED_REPLY_TIMEOUT_S is set."""

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""The signals that end a command."""

Result = TypeVar("Result")


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


def run(work: Coroutine[Any, Any, Result]) -> Result:
    """Run the work of a command and return its result. What it changes is recorded as done by this user."""
    token = origin.enter(Origin(f"cli:{_user()}"))
    try:
        return run_loop(work)
    finally:
        origin.leave(token)


def run_loop(work: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine, on uvloop if it is installed: what uses the store is installed with it."""
    with _restored_signal_handlers():
        try:
            import uvloop
        except ModuleNotFoundError:
            return asyncio.run(work)
        return uvloop.run(work)


@contextmanager
def _restored_signal_handlers() -> Iterator[None]:
    """Restore the handlers of SIGNALS after the block: uvloop leaves those of a closed loop, which do nothing."""
    before = {one: signal.getsignal(one) for one in SIGNALS}
    try:
        yield
    finally:
        for one, handler in before.items():
            if signal.getsignal(one) is not handler:
                signal.signal(one, handler)


def _user() -> str:
    """Return the name of the user who runs this process; the number of one without a name."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())


def declare(settings: Settings) -> Sequence[str]:
    """Declare those cells of `settings` that are new, and return their names."""
    return run(_declare(checked_url(settings), settings))


def start_above(settings: Settings, above: str) -> Mapping[str, str]:
    """Start epochs above a given one in the cells of `settings` that have none, and return the epochs of all.

    Raises InvalidRequest for an epoch that is malformed, or so late that it must be a slip: no epoch can go back.
    """
    seen = Token.parse(f"{above}.0")
    if seen.epoch_ms > time.time() * 1000 + MAX_AHEAD_MS:
        raise InvalidRequest(
            f"epoch {above} is more than {MAX_AHEAD_YEARS} years ahead, and the epochs of a cell only grow: pass one "
            "that `redsched status` shows"
        )
    return run(_start_above(checked_url(settings), settings, above))


def check_answers(settings: Settings) -> None:
    """Raise StoreUnavailable unless the store of `settings` can be used; in seconds if it hangs."""
    run(_check_answers(checked_url(settings), settings))


def upgrade(settings: Settings) -> None:
    """Shut releases beside which this one cannot run out of the cells of `settings`."""
    run(_upgrade(checked_url(settings), settings))


def checked_url(settings: Settings) -> str:
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


async def _start_above(url: str, settings: Settings, above: str) -> Mapping[str, str]:
    from redsched.store.store import Store

    async with Store.connect(url, settings, first_reply_s=first_reply_s(settings)) as store:
        answers = await aio.gather(store.cell(name).raise_epoch(above) for name in settings.cells)
    return {name: answer.epoch for name, answer in zip(settings.cells, answers, strict=True)}


async def _check_answers(url: str, settings: Settings) -> None:
    from redsched.store.store import Store

    no_cells = settings.model_copy(update={"cells": ()})
    async with Store.connect(url, no_cells, read_only=True, first_reply_s=first_reply_s(settings)):
        pass  # connecting checks the servers


async def _upgrade(url: str, settings: Settings) -> None:
    from redsched.store.store import Store

    async with Store.connect(url, settings, upgrade=True, first_reply_s=first_reply_s(settings)):
        pass  # connecting upgrades the cells


async def _declare(url: str, settings: Settings) -> Sequence[str]:
    from redsched.store.store import Store

    # The store is used and not a Scheduler, whose first tick would create an unsettled cell.
    async with Store.connect(url, settings, first_reply_s=first_reply_s(settings)) as store:
        answers = await aio.gather(store.cell(name).init() for name in settings.cells)
    return [name for name, answer in zip(settings.cells, answers, strict=True) if answer.outcome == "OK"]
