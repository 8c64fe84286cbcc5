"""The feed is trimmed: old entries are removed, at every hundredth one."""

from typing import Any

import pytest

from redsched.store.cell import CellStore
from tests.support.builders.cells import claim_on, open_host

EVERY = 100


@pytest.mark.parametrize("keep_s", ["0", None])
async def test_old_changes_are_removed(cell: CellStore, raw: Any, keep_s: str | None) -> None:
    """All full nodes of the stream are older than `keep_s` of 0, and none is older than the default of a minute."""
    if keep_s is not None:
        await raw.hset(cell.keys.meta, "keep_s", keep_s)
    await open_host(cell, VCPU=3 * EVERY)
    first = (await cell.tick()).seq
    for number in range(first + 1, 2 * EVERY + 1):
        await claim_on(cell, f"c{number}")
    assert (await cell.tick()).seq == 2 * EVERY
    entries = await raw.xlen(cell.keys.changes)
    assert entries == 2 * EVERY if keep_s is None else 0 < entries < EVERY
