"""How replies become plain data: the Python side of reading, against a test double, because no script is involved."""

from collections.abc import AsyncIterator
from typing import Any

import fakeredis
import pytest

from redsched.model import ClaimStatus, EndReason
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.client.script_client import ScriptClient
from redsched.store.codec.keys import Keys
from redsched.store.commands.feed import FEED_START
from redsched.store.topology.router import router_to

KEYS = Keys("c1")
CLAIM = {"host": "h1", "state": "claimed", "token": "1-a.1", "amount.VCPU": "2", "expires_at_ms": "50"}


@pytest.fixture
async def double() -> AsyncIterator[Any]:
    async with fakeredis.FakeAsyncRedis(decode_responses=True, protocol=2) as client:
        yield client


@pytest.fixture
async def reads(double: Any) -> CellStore:
    url = "unix:///nowhere"
    return CellStore("c1", url, ScriptClient(url, Settings(), router_to(url, Settings())), double, double)


async def entry(double: Any, seq: int, **fields: str) -> str:
    head = {"seq": str(seq), "kind": "host", "name": "h1", "version": str(seq), "op": "claimed", "more": "0"}
    return str(await double.xadd(KEYS.changes, head | fields, id=f"{seq}-0"))


async def test_a_cell_without_meta_has_no_clock(reads: CellStore) -> None:
    """New or wiped: no clock is made up for it."""
    assert (await reads.feed.poll(FEED_START, 10)).clock is None
    assert await reads.feed.end() == await reads.feed.end()
    assert (await reads.feed.end()).entry_id == FEED_START


async def test_a_poll_continues_after_the_entry_it_names(reads: CellStore, double: Any) -> None:
    """Each entry comes once, up to the requested number, with its own fields separate from the common head."""
    await double.hset(KEYS.meta, mapping={"epoch": "1-a", "seq": "3", "settled": "1"})
    for seq in (1, 2, 3):
        await entry(double, seq, **{"claimed.VCPU": str(seq)})
    first = await reads.feed.poll(FEED_START, 2)
    assert [one.seq for one in first.changes] == [1, 2]
    assert first.clock is not None
    assert (first.clock.epoch, first.clock.seq, first.clock.settled) == ("1-a", 3, True)
    rest = await reads.feed.poll(first.changes[-1].entry_id, 2)
    assert [(one.seq, dict(one.fields)) for one in rest.changes] == [(3, {"claimed.VCPU": "3"})]
    assert (await reads.feed.end()).entry_id == "3-0"


async def test_claims_are_read_with_what_they_have(reads: CellStore, double: Any) -> None:
    """A living claim has amounts and a lease, an ended one its end reason; unknown ids are left out."""
    await double.hset(KEYS.claim("a"), mapping=CLAIM)
    ended = {"host": "h1", "state": "ended", "token": "1-a.2", "end_reason": "expired"}
    await double.hset(KEYS.claim("b"), mapping=ended)
    found = await reads.claims.read(["a", "b", "c"])
    assert sorted(found) == ["a", "b"]
    assert (found["a"].slots, found["a"].expires_at_ms) == ({"VCPU": 2}, 50)
    assert (found["b"].state, found["b"].end_reason, found["b"].slots) == (ClaimStatus.ENDED, EndReason.EXPIRED, {})
    assert await reads.audit.claim_ids() in (["a", "b"], ["b", "a"])
    assert await reads.audit.has_any(["gone", "b"])
    assert not await reads.audit.has_any(["gone"])


async def test_due_claims_come_oldest_first_and_in_pages(reads: CellStore, double: Any) -> None:
    """A claim that no longer exists is among them."""
    await double.hset(KEYS.claim("a"), mapping=CLAIM)
    await double.zadd(KEYS.deadlines, {"a": 10, "gone": 20, "later": 99})
    assert await reads.due.expired(50, 0, 10) == ["a", "gone"]
    assert await reads.due.expired(50, 1, 10) == ["gone"]
    assert (await reads.feed.poll(FEED_START, 1)).next_deadline_ms == 10


async def test_living_claims_come_by_pages_of_hosts(
    reads: CellStore, double: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ended claims that a host's set still names are left out; a page without claims is still a page."""
    monkeypatch.setattr("redsched.store.commands.claims.HOSTS_AT_ONCE", 2)
    ended = {"host": "h1", "state": "ended", "token": "1-a.2", "end_reason": "expired"}
    for claim_id, host, fields in (("a", "h1", CLAIM), ("b", "h1", ended), ("c", "h2", CLAIM), ("d", "h5", CLAIM)):
        await double.hset(KEYS.claim(claim_id), mapping=fields)
        await double.sadd(KEYS.claims(host), claim_id)
    pages = [page async for page in reads.claims.unended_on(["h1", "h2", "h3", "h4", "h5"])]
    assert [sorted(claim.claim_id for claim in page) for page in pages] == [["a", "c"], [], ["d"]]
