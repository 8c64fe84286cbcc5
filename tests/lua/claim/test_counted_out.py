"""Whatever ends a claim, the same script subtracts it from its group and its shared pools, exactly once."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from redsched.model import Candidate, EndReason
from redsched.store.cell import CellStore
from redsched.store.codec.claim_codec import counting_objects
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import Member, ReleaseMode
from redsched.store.codec.wire import Reply
from tests.support.builders.cells import (
    HOUR_S,
    accepted_claim,
    active,
    call_of,
    claim_on,
    ended,
    ending,
    fields_of,
    make_due,
    member,
    nothing_written,
    open_host,
)
from tests.support.builders.counted_claims import SEAT, ask, counts, group, open_in, pool, seats

THINGS = ("server-group:web", "quota:project", "pool:lic")


def both(claim_id: str, host: str = "h1") -> Member:
    """A member of the group that needs 1 VCPU and 3 seats."""
    return Member(claim_id, (Candidate(host, {"VCPU": 1, SEAT: 3}),), "web")


async def placed(cell: CellStore, claim_id: str = "a", host: str = "h1") -> str:
    """Claim it and return its token."""
    answer = await ask(cell, both(claim_id, host))
    assert answer.outcome is Outcome.OK
    return answer.placed[0].token


@pytest.fixture
async def cell(cell: CellStore) -> CellStore:
    """A host, a group that counts by rack, and 10 seats."""
    await open_in(cell, "h1", "az1", rack="r1")
    await group(cell, count_by=("label:rack",))
    await pool(cell)
    return cell


Ending = Callable[[CellStore, Any, str], Awaitable[Any]]


async def _expire(cell: CellStore, raw: Any, token: str) -> None:
    await make_due(raw, cell, "a")
    assert await cell.claims.reconcile(["a"]) == 1


ENDINGS: dict[str, Ending] = {
    "release": lambda cell, raw, token: cell.claims.release("h1", "a", token),
    "release, objects known": lambda cell, raw, token: cell.claims.release("h1", "a", token, objects=THINGS),
    "release by force": lambda cell, raw, token: cell.claims.release("h1", "a", how=ReleaseMode.FORCE),
    "fail": lambda cell, raw, token: cell.claims.fail("h1", "a", token, by_host=False),
    "fail by host": lambda cell, raw, token: cell.claims.fail("h1", "a", token, by_host=True, objects=THINGS[:1]),
    "gone": lambda cell, raw, token: cell.claims.gone("h1", "a", token, EndReason.RELEASED, {"VCPU": 2}),
    "expire": _expire,
    "forget": lambda cell, raw, token: cell.hosts.forget("h1", force=True),
}


@pytest.mark.parametrize("way", ENDINGS)
async def test_every_end_counts_a_claim_out(cell: CellStore, raw: Any, way: str) -> None:
    """In one script, with one group of feed entries; a repeated call changes nothing."""
    await open_in(cell, "h2", "az2")
    await ask(cell, both("other", "h2"))
    token = await placed(cell)
    seq = (await cell.tick()).seq
    await ENDINGS[way](cell, raw, token)
    assert await counts(raw, cell) == {"members": 1, "host=h2": 1, "zone=az2": 1}
    assert await seats(raw, cell) == 3
    entries = [one for one in await cell.feed.read("0-0", 100) if one.seq > seq]
    assert [(one.kind, one.more) for one in entries if one.kind == "host"] == [("host", 2)]
    assert {one.kind: dict(one.fields) for one in entries if one.kind != "host"} == {
        "server-group": {"members": "1", "count.host=h1": "", "count.zone=az1": "", "count.label:rack=r1": ""},
        "pool": {"claimed.CUSTOM_SEAT": "3"},
    }
    assert sorted(one.more for one in entries) == [0, 1, 2]
    for one in entries[1:]:
        key = {"server-group": cell.keys.server_group("web"), "pool": cell.keys.pool("lic")}[one.kind]
        assert await raw.hget(key, "version") == str(one.version)
    if way not in ("expire", "forget"):
        async with nothing_written(raw):
            await ENDINGS[way](cell, raw, token)


@pytest.mark.parametrize("way", ["release", "fail"])
async def test_what_is_ending_counts_until_its_host_says_that_it_is_gone(cell: CellStore, raw: Any, way: str) -> None:
    token = await placed(cell)
    await cell.claims.accept("h1", "a", token, HOUR_S)
    before = (await counts(raw, cell), await seats(raw, cell))
    assert (await ENDINGS[way](cell, raw, token)).outcome is Outcome.ENDING
    assert (await counts(raw, cell), await seats(raw, cell)) == before
    await cell.claims.gone("h1", "a", token, EndReason.RELEASED, {})
    assert (await counts(raw, cell), await seats(raw, cell)) == ({"members": 0}, 0)


async def test_a_lease_that_ran_out_while_starting_counts_until_it_is_gone(cell: CellStore, raw: Any) -> None:
    token = await placed(cell)
    await cell.claims.accept("h1", "a", token, HOUR_S)
    await _expire(cell, raw, token)
    assert (await seats(raw, cell), (await counts(raw, cell))["members"]) == (3, 1)


async def calls_of(cell: CellStore, work: Callable[[], Awaitable[Any]]) -> list[str]:
    """Return the names of the scripts that run while `work` does."""
    seen: list[str] = []
    run = cell._cell.run

    async def noted(
        script: str, keys: Sequence[str] = (), arguments: Sequence[str | int] = (), *more: Any, **named: Any
    ) -> Reply:
        seen.append(script)
        return await run(script, keys, arguments, *more, **named)

    cell._cell.run = noted  # type: ignore[method-assign]
    await work()
    return seen


async def test_who_knows_what_a_claim_counts_in_saves_a_call(cell: CellStore, raw: Any) -> None:
    claims = [await placed(cell, name) for name in "ab"]
    claim = (await cell.claims.read("a"))["a"]
    objects = counting_objects(claim.server_group, claim.slots, project=claim.project)
    assert objects == THINGS
    assert await calls_of(cell, lambda: cell.claims.release("h1", "a", claims[0], objects=objects)) == ["release"]
    assert await calls_of(cell, lambda: cell.claims.release("h1", "b", claims[1])) == ["release", "release"]


async def test_a_batch_of_due_claims_is_ended_with_all_that_they_count_in(cell: CellStore, raw: Any) -> None:
    """The feed reports all of it together: one entry for each claim, and one for each object that counts several."""
    await group(cell, "other")
    await placed(cell, "a")
    await placed(cell, "b")
    await ask(cell, Member("c", (Candidate("h1", {"VCPU": 1}),), "other"))
    plain = replace(call_of(await cell.tick(), member("plain", "h1")), project="")
    assert (await cell.claims.place(plain)).outcome is Outcome.OK
    for name in ("a", "b", "c", "plain"):
        await make_due(raw, cell, name)
    seq = (await cell.tick()).seq
    due = ["a", "plain", "b", "c"]
    assert await cell.claims.reconcile(due) == 4
    assert (await counts(raw, cell), await counts(raw, cell, "other")) == ({"members": 0}, {"members": 0})
    assert await seats(raw, cell) == 0
    entries = [one for one in await cell.feed.read("0-0", 100) if one.seq > seq]
    assert [one.more for one in entries] == [6, 5, 4, 3, 2, 1, 0]
    assert [one.fields["claims"] for one in entries if one.kind == "host"] == ["3", "2", "1", "0"]
    assert sorted(one.kind for one in entries[4:]) == ["pool", "server-group", "server-group"]
    assert [one.fields["claimed.CUSTOM_SEAT"] for one in entries if one.kind == "pool"] == ["0"]
    async with nothing_written(raw):
        assert await cell.claims.reconcile(due) == 0


async def test_a_forgotten_host_takes_all_its_claims_out_at_once(cell: CellStore, raw: Any) -> None:
    for name in "abc":
        await placed(cell, name)
    seq = (await cell.tick()).seq
    assert (await cell.hosts.forget("h1")).outcome is Outcome.IN_USE
    assert (await cell.hosts.forget("h1", force=True)).outcome is Outcome.OK
    entries = [one for one in await cell.feed.read("0-0", 100) if one.seq > seq]
    assert [one.more for one in entries] == [2, 1, 0]
    assert (await counts(raw, cell), await seats(raw, cell)) == ({"members": 0}, 0)


async def test_a_group_and_a_pool_that_nobody_declares_go_with_their_last_claim(cell: CellStore, raw: Any) -> None:
    for name in "ab":
        await placed(cell, name)
    await cell.declared.delete_group("web", force=True)
    await cell.declared.delete_pool("lic", force=True)
    await cell.claims.release("h1", "a")
    assert (await seats(raw, cell), (await counts(raw, cell))["members"]) == (3, 1)
    seq = (await cell.tick()).seq
    await cell.claims.release("h1", "b")
    assert not await raw.exists(cell.keys.pool("lic"), cell.keys.server_group("web"))
    entries = [one for one in await cell.feed.read("0-0", 100) if one.seq > seq and one.kind != "host"]
    assert {(one.kind, one.op) for one in entries} == {("server-group", "removed"), ("pool", "removed")}


async def test_counts_that_are_no_longer_there_are_not_made_again(cell: CellStore, raw: Any) -> None:
    await placed(cell)
    await raw.delete(cell.keys.pool("lic"), cell.keys.server_group("web"))
    assert (await cell.claims.release("h1", "a")).outcome is Outcome.OK
    assert not await raw.exists(cell.keys.pool("lic"), cell.keys.server_group("web"))


@pytest.mark.parametrize("value", ["nan", "-1", "abc"])
async def test_damaged_counts_keep_no_claim_from_ending(cell: CellStore, raw: Any, value: str) -> None:
    token = await placed(cell)
    await raw.hset(cell.keys.pool("lic"), "claimed.CUSTOM_SEAT", value)
    await raw.hset(cell.keys.server_group("web"), mapping={"members": value, "count.host=h1": value, "version": value})
    assert (await cell.claims.release("h1", "a", token)).outcome is Outcome.OK
    assert (await counts(raw, cell)).get("zone=az1") is None
    assert (await ask(cell, both("b"))).outcome is Outcome.FULL


# Claims, starting and failures of a host


async def host_counts(raw: Any, cell: CellStore, host: str = "h1") -> tuple[int, int, int]:
    """Return the claims, starting and failures of a host."""
    fields = await fields_of(raw, cell.keys.host(host))
    claims, starting, failures = (int(fields.get(one, 0)) for one in ("claims", "starting", "failures"))
    return claims, starting, failures


async def test_a_host_counts_its_claims_and_those_not_active_yet(cell: CellStore, raw: Any) -> None:
    await claim_on(cell, "claimed")
    await accepted_claim(cell, "starting")
    await active(cell, "active")
    await ending(cell, "ending")
    await ended(cell, "ended")
    assert await host_counts(raw, cell) == (4, 2, 0)
    token = (await cell.claims.read(["starting"]))["starting"].token
    seq = (await cell.tick()).seq
    await cell.claims.release("h1", "starting")
    assert await host_counts(raw, cell) == (4, 1, 0)
    await cell.claims.gone("h1", "starting", token, EndReason.RELEASED, {})
    assert await host_counts(raw, cell) == (3, 1, 0)
    entries = [dict(one.fields) for one in await cell.feed.read("0-0", 100) if one.seq > seq]
    assert [{name: one[name] for name in ("claims", "starting") if name in one} for one in entries] == [
        {"starting": "1"},
        {"claims": "3"},
    ]
    await cell.claims.gone(
        "h1", "claimed", (await cell.claims.read(["claimed"]))["claimed"].token, EndReason.RELEASED, {}
    )
    assert await host_counts(raw, cell) == (2, 0, 0)


async def test_confirming_is_in_the_feed(cell: CellStore, raw: Any) -> None:
    placed = await accepted_claim(cell, "a")
    clock = await cell.tick()
    version = int(await raw.hget(cell.keys.host("h1"), "version"))
    assert (await cell.claims.confirm("h1", "a", placed.token)).outcome is Outcome.OK
    (entry,) = [one for one in await cell.feed.read("0-0", 100) if one.seq > clock.seq]
    assert (entry.op, dict(entry.fields), entry.version) == ("active", {"claim": "a", "starting": "0"}, version + 1)
    assert (await cell.tick()).seq == clock.seq + 1
    assert await raw.hget(cell.keys.host("h1"), "version") == str(version + 1)


async def test_failures_of_its_own_count_until_a_host_confirms(cell: CellStore, raw: Any) -> None:
    """A failure that anyone else reports says nothing about the host."""
    for name in "ab":
        token = (await accepted_claim(cell, name)).token
        await cell.claims.fail("h1", name, token, by_host=True)
        await cell.claims.fail("h1", name, token, by_host=True)
    by_caller = await claim_on(cell, "c")
    await cell.claims.fail("h1", "c", by_caller.token, by_host=False)
    assert await host_counts(raw, cell) == (0, 0, 2)
    (entry, *_) = [one for one in await cell.feed.read("0-0", 100) if one.op == "failed"]
    assert entry.fields["failures"] == "1"
    seq = (await cell.tick()).seq
    await active(cell, "d")
    assert await host_counts(raw, cell) == (1, 0, 0)
    assert [one.fields.get("failures") for one in await cell.feed.read("0-0", 100) if one.seq > seq] == [None, "0"]


async def test_two_hosts_count_apart(cell: CellStore, raw: Any) -> None:
    await open_host(cell, "h2")
    await claim_on(cell, "a", "h1")
    await active(cell, "b", "h2")
    assert (await host_counts(raw, cell), await host_counts(raw, cell, "h2")) == ((1, 1, 0), (1, 0, 0))
