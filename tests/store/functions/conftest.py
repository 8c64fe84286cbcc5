"""A cell on a server with the functions, and a call of them as a person with the rights of a reader makes it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from redsched.store.access.roles import StoreRole
from redsched.store.cell import CellStore
from redsched.store.store import Store
from tests.support.builders.cells import raw_client
from tests.support.store_users import url_as

Ask = Callable[..., Awaitable[list[str]]]


@pytest.fixture
async def raw(clean_store: str) -> AsyncIterator[Any]:
    """A client that may do everything; a server of the session keeps functions when it is emptied."""
    async with raw_client(clean_store) as client:
        await client.function_flush()
        yield client
        await client.function_flush()


@pytest.fixture
async def store(clean_store: str, raw: Any) -> AsyncIterator[Store]:
    """A store with a cell and with the functions."""
    async with Store.connect(clean_store) as opened:
        await opened.cell("c1").init()
        await raw.hset(opened.cell("c1").keys.meta, "jump_s", "600")
        await opened.functions.install()
        yield opened


@pytest.fixture
def cell(store: Store) -> CellStore:
    return store.cell("c1")


@pytest.fixture
async def reader(clean_store: str, cell: CellStore) -> AsyncIterator[Any]:
    """A client with the rights of a reader of the cell."""
    async with raw_client(url_as(clean_store, StoreRole.READER, cells=(cell.name,))) as client:
        yield client


@pytest.fixture
def ask(cell: CellStore, reader: Any) -> Ask:
    """Return a function that calls a function as a reader, and returns its lines. Raises the server's error."""

    async def lines(name: str, *arguments: str) -> list[str]:
        reply = await reader.execute_command("FCALL_RO", name, 1, cell.keys.meta, *arguments)
        return list(map(str, reply))

    return lines
