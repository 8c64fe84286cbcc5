"""Who caused a change: in the feed, in inboxes, and in new claims."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from redsched import origin
from redsched.errors import InvalidRequest
from redsched.model import Aggregate
from redsched.origin import Origin
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from tests.support.builders.cells import active, call_of, claim_on, fields_of, member, open_host
from tests.support.builders.placements import arrive, move_to

MAKER, MOVER = Origin("cli:alice", "make-1"), Origin("ci", "move-2")
NAMES = ("actor", "request_id")


@pytest.fixture(autouse=True)
def leave() -> Iterator[None]:
    """Restore the origin after each test."""
    token = origin.enter(origin.UNKNOWN)
    yield
    origin.leave(token)


async def stored(raw: Any, cell: CellStore, claim_id: str) -> tuple[str | None, ...]:
    fields = await fields_of(raw, cell.keys.claim(claim_id))
    return tuple(fields.get(name) for name in NAMES)


async def in_feed(cell: CellStore) -> list[tuple[str, str, str]]:
    """Return the op of each change, and who caused it."""
    changes = await cell.feed.read("0-0", 1000)
    return [(one.op, one.fields.get("actor", ""), one.fields.get("request_id", "")) for one in changes]


async def test_what_nobody_caused_has_no_fields_for_it(cell: CellStore, raw: Any) -> None:
    await open_host(cell, VCPU=8)
    await active(cell, VCPU=2)
    assert await stored(raw, cell, "a") == (None, None)
    assert not [one for one in await cell.feed.read("0-0", 1000) if one.fields.keys() & set(NAMES)]
    assert [one.origin for one in await cell.hosts.inbox("h1")] == []


async def test_a_claim_keeps_who_made_it_and_each_change_has_its_own(cell: CellStore, raw: Any) -> None:
    await open_host(cell, VCPU=8)
    await open_host(cell, "h2", VCPU=8)
    origin.enter(MAKER)
    first = await active(cell, VCPU=2)
    origin.enter(MOVER)
    target = await move_to(cell, "a", first, "h2")
    assert [one.origin for one in await cell.hosts.inbox("h2")] == [MOVER]
    await arrive(cell, "a", target)
    origin.enter(Origin("", "end-3"))
    await cell.claims.release("h2", "a")
    assert await stored(raw, cell, "a") == ("cli:alice", "make-1")
    assert [one.origin for one in await cell.hosts.inbox("h2")] == [Origin("", "end-3")]
    found = [one for one in await in_feed(cell) if one[0] not in ("report", "attest", "up")]
    assert [one[1:] for one in found if one[0] == "claimed"] == [("cli:alice", "make-1"), ("ci", "move-2")]
    assert ("ending", "", "end-3") in found


async def test_members_of_a_shared_call_keep_their_own(cell: CellStore, raw: Any) -> None:
    await open_host(cell, VCPU=8)
    call = call_of(await cell.tick(), *(member(name, "h1", VCPU=1) for name in "abc"))
    origins = (Origin("x", "r1"), origin.UNKNOWN, Origin("", "r3"))
    origin.enter(Origin("not", "this"))
    assert (await cell.claims.place(replace(call, origins=origins))).outcome is Outcome.OK
    assert [await stored(raw, cell, name) for name in "abc"] == [("x", "r1"), (None, None), (None, "r3")]
    claimed = [one[1:] for one in await in_feed(cell) if one[0] == "claimed"]
    assert claimed == [("x", "r1"), ("", ""), ("", "r3")]
    assert [one.origin for one in await cell.hosts.inbox("h1")] == list(origins)


async def test_members_of_one_request_have_its_origin(cell: CellStore, raw: Any) -> None:
    await open_host(cell, VCPU=8)
    origin.enter(MAKER)
    await cell.claims.place(call_of(await cell.tick(), *(member(name, "h1", VCPU=1) for name in "ab")))
    assert {await stored(raw, cell, name) for name in "ab"} == {("cli:alice", "make-1")}


async def test_declarations_have_it_and_reports_do_not(cell: CellStore) -> None:
    origin.enter(Origin("agent:h1"))
    await open_host(cell, VCPU=8)
    origin.enter(MAKER)
    await cell.declared.put_aggregate(Aggregate("fast", {}, frozenset({"h1"})))
    found = await in_feed(cell)
    assert {one[1] for one in found if one[0] == "report"} == {""}
    assert {one[1] for one in found if one[0] in ("declared", "membership")} == {"cli:alice"}


@pytest.mark.parametrize("bad", [Origin("a\nb"), Origin("x" * 256), Origin("", "a b"), Origin("", "x" * 65)])
async def test_what_may_be_no_origin_is_refused_before_anything_is_sent(cell: CellStore, bad: Origin) -> None:
    await open_host(cell, VCPU=8)
    origin.enter(bad)
    with pytest.raises(InvalidRequest, match=r"the actor|the request id"):
        await claim_on(cell, VCPU=1)
