"""Reads that take one round trip, over a connection that other reads use afterwards: many hashes, a poll."""

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


async def test_a_poll_that_is_refused_keeps_its_connection(clean_store: str) -> None:
    """The replies after the refusal are read too, so that the next poll gets its own."""
    settings = Settings(pool_size=1)
    async with Store.connect(clean_store, settings) as store, raw_client(clean_store) as raw:
        cell = store.cell("c1")
        await cell.init()
        await cell.feed.poll("0", 10)
        before = (await raw.info("stats"))["total_connections_received"]
        await raw.set(cell.keys.deadlines, "no sorted set")
        for _ in range(3):
            with pytest.raises(RedschedError, match="WRONGTYPE"):
                await cell.feed.poll("0", 10)
        await raw.delete(cell.keys.deadlines)
        assert (await cell.feed.poll("0", 10)).clock is not None
        assert (await raw.info("stats"))["total_connections_received"] == before
