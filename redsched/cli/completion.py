"""Shell completion: names of hosts, claims and declared objects, read from the fleet while the user types.

A shell shows all output, so no errors are printed. Without a fleet, or after TIMEOUT_S, no names are offered.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import redirect_stderr, suppress
from dataclasses import fields
from io import StringIO
from typing import TYPE_CHECKING

import typer

from redsched.cli.fleet import Where, settings_of
from redsched.cli.output.formats import natural
from redsched.cli.running import run_loop
from redsched.settings import Settings

if TYPE_CHECKING:
    from redsched.store.cell import CellStore

TIMEOUT_S = 2.0
MAX_NAMES = 1000
"""The most names that are offered."""
HOSTS_AT_ONCE = 500
"""The most hosts whose claims are read in one round trip."""

NAME_FIELDS = {"claims": "claim_id", "quotas": "project"}
"""The fields with the names of objects, by their group of operations; `name` for all others."""
Read = Callable[["CellStore"], AsyncIterator[Iterable[str]]]
Complete = Callable[[typer.Context, str], list[str]]


def _completion(read: Read, names: str) -> Complete:
    """Return typer's callback for the names that start with the typed text. `names`: their group of operations."""

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        found: set[str] = set()
        with suppress(Exception), redirect_stderr(StringIO()):
            options = {one.name: context.params.get(one.name) or "" for one in fields(Where)}
            settings = settings_of(Where(**options))
            names_of = _remote(settings, names) if settings.api else _stored(settings, read)
            run_loop(_collect(names_of, incomplete, found))
        return sorted(found, key=natural)[:MAX_NAMES]

    return complete


async def _collect(names_of: AsyncIterator[Iterable[str]], prefix: str, found: set[str]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        async for names in names_of:
            found.update(name for name in names if name.startswith(prefix))
            if len(found) >= MAX_NAMES:
                return


async def _stored(settings: Settings, read: Read) -> AsyncIterator[Iterable[str]]:
    from redsched.store.store import Store

    async with Store.connect(settings.redis_url, settings, read_only=True) as store:
        for cell in settings.cells:
            async for names in read(store.cell(cell)):
                yield names


async def _remote(settings: Settings, names: str) -> AsyncIterator[Iterable[str]]:
    from redsched.cli.fleet import opened_remote

    async with opened_remote(settings) as remote:
        async for one in getattr(remote, names).list(limit=MAX_NAMES):
            yield (getattr(one, NAME_FIELDS.get(names, "name")),)


async def _hosts(cell: "CellStore") -> AsyncIterator[Iterable[str]]:
    yield await cell.hosts.names()


async def _claims(cell: "CellStore") -> AsyncIterator[Iterable[str]]:
    yield await cell.claims.shelved_ids()
    names = await cell.hosts.names()
    for first in range(0, len(names), HOSTS_AT_ONCE):
        for ids in await cell.hosts.claim_ids_of(names[first : first + HOSTS_AT_ONCE]):
            yield ids


def _declared(kind: str) -> Read:
    async def read(cell: "CellStore") -> AsyncIterator[Iterable[str]]:
        from redsched.store.codec.keys import Kind

        yield await cell.declared.names(Kind[kind])

    return read


hosts = _completion(_hosts, "hosts")
"""Completes names of hosts."""
claims = _completion(_claims, "claims")
"""Completes ids of claims that hold amounts or are shelved."""
quotas = _completion(_declared("QUOTA"), "quotas")
"""Completes names of projects that have a quota."""
aggregates = _completion(_declared("AGGREGATE"), "aggregates")
"""Completes names of aggregates."""
server_groups = _completion(_declared("SERVER_GROUP"), "server_groups")
"""Completes names of server groups."""
shared_pools = _completion(_declared("POOL"), "shared_pools")
"""Completes names of shared pools."""

OF_NOUNS = {"aggregate": aggregates, "server-group": server_groups, "shared-pool": shared_pools}


def declared(context: typer.Context, incomplete: str) -> list[str]:
    """Complete names of the declared objects of the command's noun or its plural."""
    noun = (context.parent and context.parent.info_name) or ""
    return OF_NOUNS[noun.removesuffix("s")](context, incomplete)
