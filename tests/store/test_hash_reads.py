"""Many hashes are read in one pipeline, over a connection that other reads use afterwards."""

import pytest

from redsched.errors import RedschedError
from redsched.settings import Settings
from redsched.store.store import Store
from tests.support.builders.cells import raw_client


async def test_hashes_come_in_the_order_of_their_keys(clean_store: str) -> None:
    """An unknown id is left out."""
    async with Store.connect(clean_store, Settings()) as store, raw_client(clean_store) as raw:
        cell = store.cell("c1")
        for name in ("a", "b"):
            await raw.hset(cell.keys.gang(name), mapping={"waiting": name})
        assert await cell.audit.gang_hashes(["b", "gone", "a"]) == {"b": {"waiting": "b"}, "a": {"waiting": "a"}}


async def test_after_a_refused_read_the_next_one_gets_its_own_replies(clean_store: str) -> None:
    """A key of another type in the middle of a page leaves no unread replies on the connection."""
    settings = Settings(pool_size=1)
    async with Store.connect(clean_store, settings) as store, raw_client(clean_store) as raw:
        cell = store.cell("c1")
        await raw.hset(cell.keys.gang("a"), mapping={"waiting": "1"})
        await raw.set(cell.keys.gang("text"), "no hash")
        with pytest.raises(RedschedError, match="WRONGTYPE"):
            await cell.audit.gang_hashes(["a", "text", "a", "a"])
        assert await cell.audit.gang_hashes(["b"]) == {}
