"""The cell under test, settled and empty; each script call may touch only the keys that it declares."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from redsched.store.cell import CellStore
from tests.support.builders.cells import declared_keys_cell, open_host, raw_client


@pytest.fixture
async def new_cell(clean_store: str) -> AsyncIterator[CellStore]:
    """A cell that was not declared new."""
    async with declared_keys_cell(clean_store) as cell:
        yield cell


@pytest.fixture
async def cell(new_cell: CellStore) -> CellStore:
    """A cell that was declared new, and so is settled."""
    await new_cell.init()
    return new_cell


@pytest.fixture
async def three_hosts(cell: CellStore) -> None:
    """h1, h2 and h3 of the cell, open for claims."""
    for name in ("h1", "h2", "h3"):
        await open_host(cell, name)


@pytest.fixture
async def raw(clean_store: str) -> AsyncIterator[Any]:
    """A client that may access all keys."""
    async with raw_client(clean_store) as client:
        yield client
