"""`redsched init` and `upgrade`: commands for the store as a whole, which use no scheduler."""

import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Annotated

import typer

from redsched import aio
from redsched.cli.fleet import first_reply_s, store_settings, store_url
from redsched.cli.options import Url
from redsched.cli.running import run
from redsched.errors import InvalidRequest
from redsched.model.tokens import Token
from redsched.model.validation import check_name
from redsched.settings import Settings
from redsched.store.commands.schema import SCHEMA
from redsched.store.store import Store

MAX_AHEAD_YEARS = 100
MAX_AHEAD_MS = MAX_AHEAD_YEARS * 366 * 86_400_000
"""How far an epoch may be ahead above which an operator starts one."""


def init(
    url: Url = "",
    above: Annotated[
        str,
        typer.Option(
            "--above",
            metavar="EPOCH",
            help="Start an epoch above this one in cells that exist, because the store's clock was wrong once.",
            show_default=False,
        ),
    ] = "",
    cell: Annotated[
        str, typer.Option("--cell", help="Only this cell. Default: all of REDSCHED_CELLS.", show_default=False)
    ] = "",
) -> None:
    """Declare the cells new, so that no scheduler waits for hosts that never existed.

    Cells that exist already are not changed, except by --above: then their hosts attest what they hold.
    """
    settings = store_settings(url)
    if cell:
        settings = settings.model_copy(update={"cells": (check_name("cell", cell),)})
    if above:
        for name, epoch in _start_above(settings, above).items():
            print(f"cell {name} has epoch {epoch}, which is above {above}")
        return
    new = declare(settings)
    for name in settings.cells:
        print(f"cell {name} is {'declared' if name in new else 'not changed: it exists already'}")


def upgrade(url: Url = "") -> None:
    """Lock out of the cells older releases that cannot run beside this one.

    Stop their processes first.
    """
    settings = store_settings(url)
    run(_connected(_store(settings, upgrade=True)))
    for name in settings.cells:
        print(f"cell {name} has schema {SCHEMA.number}; releases older than schema {SCHEMA.beside} are refused")


def declare(settings: Settings) -> Sequence[str]:
    """Declare those cells of `settings` that are new, and return their names."""
    return run(_declare(settings))


async def _declare(settings: Settings) -> Sequence[str]:
    # The store is used and not a Scheduler, whose first tick would create an unsettled cell.
    async with _store(settings) as store:
        answers = await aio.gather(store.cell(name).init() for name in settings.cells)
    return [name for name, answer in zip(settings.cells, answers, strict=True) if answer.outcome == "OK"]


def check_answers(settings: Settings) -> None:
    """Raise StoreUnavailable unless the store of `settings` can be used; in seconds if it hangs."""
    run(_connected(_store(settings.model_copy(update={"cells": ()}), read_only=True)))


def _store(settings: Settings, **options: bool) -> AbstractAsyncContextManager[Store]:
    return Store.connect(store_url(settings), settings, first_reply_s=first_reply_s(settings), **options)


async def _connected(store: AbstractAsyncContextManager[Store]) -> None:
    async with store:
        pass  # connecting checks the servers, or upgrades the cells


def _start_above(settings: Settings, above: str) -> Mapping[str, str]:
    """Start epochs above a given one in the cells of `settings` that have none, and return the epochs of all.

    Raises InvalidRequest for an epoch that is malformed, or so late that it must be a slip: no epoch can go back.
    """
    seen = Token.parse(f"{above}.0")
    if seen.epoch_ms > time.time() * 1000 + MAX_AHEAD_MS:
        raise InvalidRequest(
            f"epoch {above} is more than {MAX_AHEAD_YEARS} years ahead, and the epochs of a cell only grow: pass one "
            "that `redsched status` shows"
        )
    return run(_raised(settings, above))


async def _raised(settings: Settings, above: str) -> Mapping[str, str]:
    async with _store(settings) as store:
        answers = await aio.gather(store.cell(name).raise_epoch(above) for name in settings.cells)
    return {name: answer.epoch for name, answer in zip(settings.cells, answers, strict=True)}
