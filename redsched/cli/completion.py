"""Shell completion: names of hosts, claims and declared objects, read from the store while the user types.

A shell shows all output, so no errors are printed. Without a store, or after TIMEOUT_S, no names are offered.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import redirect_stderr, suppress
from io import StringIO

import typer
import uvloop

from redsched.cli.context import checked_url, settings_for
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.codec.keys import Kind
from redsched.store.store import Store

TIMEOUT_S = 2.0
MAX_NAMES = 1000
"""The most names that are offered."""
HOSTS_AT_ONCE = 500
"""The most hosts whose claims are read in one round trip."""

Read = Callable[[CellStore], AsyncIterator[Iterable[str]]]
Complete = Callable[[typer.Context, str], list[str]]


def _completion(read: Read) -> Complete:
    """Return typer's callback for the names that start with the typed text."""

    def complete(context: typer.Context, incomplete: str) -> list[str]:
        found: set[str] = set()
        with suppress(Exception), redirect_stderr(StringIO()):
            settings = settings_for(context.params.get("url") or "")
            uvloop.run(_collect(checked_url(settings), settings, read, incomplete, found))
        return sorted(found)[:MAX_NAMES]

    return complete


async def _collect(url: str, settings: Settings, read: Read, prefix: str, found: set[str]) -> None:
    async with asyncio.timeout(TIMEOUT_S), Store.connect(url, settings, read_only=True) as store:
        for cell in settings.cells:
            async for names in read(store.cell(cell)):
                found.update(name for name in names if name.startswith(prefix))
                if len(found) >= MAX_NAMES:
                    return


async def _hosts(cell: CellStore) -> AsyncIterator[Iterable[str]]:
    yield await cell.hosts.names()


async def _claims(cell: CellStore) -> AsyncIterator[Iterable[str]]:
    yield await cell.claims.shelved_ids()
    names = await cell.hosts.names()
    for first in range(0, len(names), HOSTS_AT_ONCE):
        for ids in await cell.hosts.claim_ids_of(names[first : first + HOSTS_AT_ONCE]):
            yield ids


def _declared(kind: Kind) -> Read:
    async def read(cell: CellStore) -> AsyncIterator[Iterable[str]]:
        yield await cell.declared.names(kind)

    return read


hosts = _completion(_hosts)
"""Completes names of hosts."""
claims = _completion(_claims)
"""Completes ids of claims that hold amounts or are shelved."""
quotas = _completion(_declared(Kind.QUOTA))
"""Completes names of projects that have a quota."""
aggregates = _completion(_declared(Kind.AGGREGATE))
"""Completes names of aggregates."""
server_groups = _completion(_declared(Kind.SERVER_GROUP))
"""Completes names of server groups."""
shared_pools = _completion(_declared(Kind.POOL))
"""Completes names of shared pools."""

OF_NOUNS = {"aggregate": aggregates, "server-group": server_groups, "shared-pool": shared_pools}


def declared(context: typer.Context, incomplete: str) -> list[str]:
    """Complete names of the declared objects of the command's noun or its plural."""
    noun = (context.parent and context.parent.info_name) or ""
    return OF_NOUNS[noun.removesuffix("s")](context, incomplete)
