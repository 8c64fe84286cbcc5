"""attest.lua: in a new epoch restored claims count again in their group and pools, and ended ones no longer count."""

from dataclasses import replace
from typing import Any

import pytest

from redsched.model import Candidate, ClaimStatus, EndReason, GroupPolicy, Token
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import JournaledClaim, Member, ReleaseMode
from tests.support.builders.cells import active, claimed, fields_of, new_epoch, nothing_written, open_host, report_of
from tests.support.builders.counted_claims import SEAT, ask, causes, counts, drawing, given, group, open_in, pool, seats
from tests.support.builders.placements import ended, held_claim, settle

HELD_AMOUNTS = {"VCPU": 1, SEAT: 3}
APART = GroupPolicy.ANTI_AFFINITY


async def placed(cell: CellStore, claim_id: str = "a", host: str = "h1") -> JournaledClaim:
    """Make a claim in the group with 3 seats; return it as its host's journal has it."""
    member = Member(claim_id, (Candidate(host, HELD_AMOUNTS),), "web")
    answer = await ask(cell, member)
    assert answer.outcome is Outcome.OK
    return held(answer.placed[0].token, claim_id)


COUNTED = {"zone": "az1", "label:rack": "r1"}


def held(token: str, claim_id: str = "a", state: ClaimStatus = ClaimStatus.ACTIVE, **words: Any) -> JournaledClaim:
    values = {"amounts": HELD_AMOUNTS, "group": "web", "counted": COUNTED} | words
    return held_claim(claim_id, token, state, **values)


def later_token(one: JournaledClaim) -> str:
    token = Token.parse(one.token)
    return str(replace(token, seq=token.seq + 1000))


@pytest.fixture
async def cell(cell: CellStore) -> CellStore:
    """A host, a group that counts by rack, and 10 seats."""
    await open_in(cell, "h1", "az1", rack="r1")
    await group(cell, count_by=("label:rack",))
    await pool(cell)
    return cell


ONE = {"members": 1, "host=h1": 1, "zone=az1": 1, "label:rack=r1": 1}


async def back_to_before(cell: CellStore, raw: Any, work: Any) -> Any:
    """Undo in the store all that `work` wrote, as a failover would, and start a new epoch."""
    kept = {key: await raw.dump(key) async for key in raw.scan_iter()}
    done = await work
    await raw.flushall()
    for key, value in kept.items():
        await raw.restore(key, 0, value)
    await new_epoch(cell)
    return done


async def test_work_that_the_store_has_forgotten_counts_again(cell: CellStore, raw: Any) -> None:
    """In the same script as the host, and reported together in the feed; attesting once more changes nothing."""
    journal = await back_to_before(cell, raw, placed(cell))
    assert (await counts(raw, cell), await seats(raw, cell)) == ({}, 0)
    seq = (await cell.tick()).seq
    assert (await cell.hosts.attest("h1", "", held=[journal])).outcome is Outcome.OK
    assert (await counts(raw, cell), await seats(raw, cell), await claimed(raw, cell)) == (ONE, 3, 1)
    claim = (await cell.claims.read("a"))["a"]
    assert (claim.server_group, claim.counted, claim.slots) == ("web", COUNTED, HELD_AMOUNTS)
    host = await fields_of(raw, cell.keys.host("h1"))
    assert (host["claims"], host.get("starting", "0")) == ("1", "0")
    entries = [one for one in await cell.feed.read("0-0", 100) if one.seq > seq]
    assert [(one.op, one.more) for one in entries] == [("attest", 2), ("attest", 1), ("attest", 0)]
    assert {one.kind for one in entries} == {"host", "server-group", "pool"}
    async with nothing_written(raw):
        assert (await cell.hosts.attest("h1", "", held=[journal])).outcome is Outcome.ALREADY_DONE
    await cell.claims.release("h1", "a", how=ReleaseMode.FORCE)
    assert (await counts(raw, cell), await seats(raw, cell)) == ({"members": 0}, 0)


@pytest.mark.parametrize("state", [ClaimStatus.CLAIMED, ClaimStatus.ACTIVE, ClaimStatus.ENDING])
async def test_what_the_store_has_kept_is_not_counted_twice(cell: CellStore, raw: Any, state: ClaimStatus) -> None:
    """Neither placements that both have nor those that the journal has lost."""
    journal = replace(await placed(cell), state=state)
    await placed(cell, "lost")
    before = (await counts(raw, cell), await seats(raw, cell))
    await new_epoch(cell)
    seq = (await cell.tick()).seq
    assert (await cell.hosts.attest("h1", "", held=[journal])).outcome is Outcome.OK
    assert (await counts(raw, cell), await seats(raw, cell)) == before
    assert [one.kind for one in await cell.feed.read("0-0", 100) if one.seq > seq] == ["host"]
    host = await fields_of(raw, cell.keys.host("h1"))
    starting = 1 + (state is ClaimStatus.CLAIMED)
    assert (host["claims"], host["starting"]) == ("2", str(starting))


async def test_what_the_journal_remembers_as_ended_leaves(cell: CellStore, raw: Any) -> None:
    journal = await placed(cell)
    await new_epoch(cell)
    await cell.hosts.attest("h1", "", ended=[ended("a", journal.token)])
    assert (await counts(raw, cell), await seats(raw, cell)) == ({"members": 0}, 0)
    assert (await fields_of(raw, cell.keys.host("h1")))["claims"] == "0"


async def test_after_a_resize_that_the_store_has_lost_the_later_amounts_count(cell: CellStore, raw: Any) -> None:
    """In the domains of its host, whatever the journal has."""
    journal = await placed(cell)
    await new_epoch(cell)
    amounts, counted = {"VCPU": 1, SEAT: 5}, {"zone": "az7"}
    resized = held(later_token(journal), amounts=amounts, counted=counted, placed=journal.placed)
    await cell.hosts.attest("h1", "", held=[resized])
    assert await counts(raw, cell) == ONE
    assert await seats(raw, cell) == 5


@pytest.mark.parametrize("first", ["h1", "h2"])
async def test_a_claim_that_two_hosts_attest_counts_on_both_while_it_runs_there(
    cell: CellStore, raw: Any, first: str
) -> None:
    await open_in(cell, "h2", "az2")
    journal = await placed(cell)
    await new_epoch(cell)
    journals = {"h1": journal, "h2": held(later_token(journal), counted={"zone": "az2"})}
    seq = (await cell.tick()).seq
    for name in sorted(journals, reverse=first == "h2"):
        assert (await cell.hosts.attest(name, "", held=[journals[name]])).outcome is Outcome.OK
    both = {"members": 2, "host=h1": 1, "host=h2": 1, "zone=az1": 1, "zone=az2": 1, "label:rack=r1": 1}
    assert (await counts(raw, cell), await seats(raw, cell)) == (both, 6)
    entries = [one for one in await cell.feed.read("0-0", 100) if one.seq > seq]
    assert [one.more for one in entries if one.op == "attest"] == ([0, 2, 1, 0] if first == "h1" else [2, 1, 0, 0])
    await settle(cell)
    assert (await counts(raw, cell), await seats(raw, cell)) == (both, 6)
    await cell.claims.gone("h1", "a", journal.token, EndReason.RELEASED, {}, objects=("server-group:web", "pool:lic"))
    assert await counts(raw, cell) == {"members": 1, "host=h2": 1, "zone=az2": 1}
    assert await seats(raw, cell) == 3
    hosts = [await fields_of(raw, cell.keys.host(name)) for name in ("h1", "h2")]
    assert [(one["claims"], one.get("starting", "0")) for one in hosts] == [("0", "0"), ("1", "0")]


async def test_within_an_epoch_a_journal_counts_nothing(cell: CellStore, raw: Any) -> None:
    known = await placed(cell)
    async with nothing_written(raw):
        answer = await cell.hosts.attest("h1", "", held=[known, held("1-a.1", "b")])
    assert (answer.outcome, answer.drop) == (Outcome.ALREADY_DONE, ("1-a.1",))


async def test_what_comes_back_before_its_group_and_pool_is_counted_and_stays_unknown(
    cell: CellStore, raw: Any
) -> None:
    """After a wipe: no rule is better than a wrong one, and a later declaration keeps the counts."""
    journal = await placed(cell)
    await raw.flushall()
    await cell.tick()
    await raw.hset(cell.keys.meta, "settled", "1")
    await open_in(cell, "h2")
    await cell.hosts.report(replace(report_of("h1"), zone="az1", labels={"rack": "r1"}))
    assert (await cell.hosts.attest("h1", "", held=[journal])).outcome is Outcome.OK
    assert (await counts(raw, cell), await seats(raw, cell)) == (ONE, 3)
    unknown = await ask(cell, Member("b", (Candidate("h2", HELD_AMOUNTS),), "web"))
    assert (unknown.outcome, set(unknown.unknown)) == (Outcome.UNKNOWN, {"server-group:web", "pool:lic"})
    await group(cell, count_by=("label:rack",))
    await pool(cell, CUSTOM_SEAT=5)
    assert causes(await ask(cell, drawing("c", "h2", seats=3))) == {"h2": SEAT}
    await given(cell, drawing("c", "h2", seats=2))
    assert await seats(raw, cell) == 5


async def test_what_comes_back_counts_although_it_is_more_than_the_pool_has(cell: CellStore, raw: Any) -> None:
    """Work that runs is a fact; `over` distinguishes it from a claim that should not have been made."""
    journal = await back_to_before(cell, raw, placed(cell))
    many = {"VCPU": 1, SEAT: 100}
    await cell.hosts.attest("h1", "", held=[held(journal.token, amounts=many)])
    assert (await seats(raw, cell), await raw.hget(cell.keys.pool("lic"), "over.CUSTOM_SEAT")) == (100, "1")
    assert causes(await ask(cell, drawing("b", "h1"))) == {"h1": SEAT}


async def test_a_damaged_pool_keeps_no_host_from_attesting(cell: CellStore, raw: Any) -> None:
    journal = await back_to_before(cell, raw, placed(cell))
    await raw.hset(cell.keys.pool("lic"), "claimed.CUSTOM_SEAT", "abc")
    assert (await cell.hosts.attest("h1", "", held=[journal])).outcome is Outcome.OK
    assert causes(await ask(cell, drawing("b", "h1"))) == {"h1": SEAT}


async def test_nonsense_amounts_of_a_shared_pool_are_a_conflict(cell: CellStore, raw: Any) -> None:
    journal = await placed(cell)
    await new_epoch(cell)
    nonsense = held(later_token(journal), placed=journal.placed, amounts={"VCPU": 1, SEAT: -3})
    async with nothing_written(raw):
        assert (await cell.hosts.attest("h1", "", held=[nonsense])).outcome is Outcome.CONFLICT


async def test_counts_of_a_host_are_worked_out_again(cell: CellStore, raw: Any) -> None:
    """Whatever values were written by hand."""
    await open_host(cell, "h2")
    tokens = {name: (await active(cell, name, "h2")).token for name in "xy"}
    await raw.hset(cell.keys.host("h2"), mapping={"claims": "abc", "starting": "7"})
    await new_epoch(cell)
    states = (ClaimStatus.ACTIVE, ClaimStatus.STARTING)
    journal = [held_claim(name, tokens[name], state, {"VCPU": 1}) for name, state in zip("xy", states, strict=True)]
    seq = (await cell.tick()).seq
    await cell.hosts.attest("h2", "", held=journal)
    host = await fields_of(raw, cell.keys.host("h2"))
    assert (host["claims"], host["starting"]) == ("2", "0")
    (entry,) = [one for one in await cell.feed.read("0-0", 100) if one.seq > seq]
    assert (entry.fields["claims"], entry.fields["starting"]) == ("2", "0")


async def test_a_member_counts_where_its_host_is_now(cell: CellStore, raw: Any) -> None:
    """The journal has the zone and labels of the time of the claim, which count no more, whatever its token."""
    kept = await back_to_before(cell, raw, placed(cell))
    await cell.hosts.report(replace(report_of(VCPU=8), zone="az2", labels={"rack": "r2"}))
    assert (await cell.hosts.attest("h1", "", held=[kept])).outcome is Outcome.OK
    now = {"members": 1, "host=h1": 1, "zone=az2": 1, "label:rack=r2": 1}
    assert await counts(raw, cell) == now
    await new_epoch(cell)
    resized = replace(kept, token=later_token(kept))
    assert (await cell.hosts.attest("h1", "", held=[resized])).outcome is Outcome.OK
    assert await counts(raw, cell) == now
    assert (await cell.claims.read("a"))["a"].counted == {"zone": "az2", "label:rack": "r2"}


async def test_a_member_of_a_forgotten_group_counts_where_its_host_is_now(cell: CellStore, raw: Any) -> None:
    """By what the journal has counted it by, so that the same group may be declared again."""
    kept = await placed(cell)
    await raw.flushall()
    await cell.hosts.report(replace(report_of(VCPU=8), zone="az2", labels={"rack": "r2"}))
    assert (await cell.hosts.attest("h1", "", held=[kept])).outcome is Outcome.OK
    assert await counts(raw, cell) == {"members": 1, "host=h1": 1, "zone=az2": 1, "label:rack=r2": 1}
    await group(cell, count_by=("label:rack",))


async def test_what_an_earlier_release_has_counted_elsewhere_counts_where_its_host_is(
    cell: CellStore, raw: Any
) -> None:
    """Also a claim that only the store has, as after an import of such a cell."""
    await placed(cell)
    await raw.hset(cell.keys.claim("a"), "counted.zone", "az9")
    group_key = cell.keys.server_group("web")
    await raw.hset(group_key, "count.zone=az9", "1")
    await raw.hdel(group_key, "count.zone=az1")
    await new_epoch(cell)
    assert (await cell.hosts.attest("h1", "")).outcome is Outcome.OK
    assert await counts(raw, cell) == ONE


async def restored(cell: CellStore, raw: Any, one: JournaledClaim) -> int:
    """Let h1 restore a claim that the store has lost; return how often the server has read whole hashes for that."""
    await raw.delete(cell.keys.claim(one.id), cell.keys.claims("h1"))
    await new_epoch(cell)
    await raw.config_resetstat()
    assert (await cell.hosts.attest("h1", "", held=[one])).outcome is Outcome.OK
    return int((await raw.info("commandstats"))["cmdstat_hgetall"]["calls"])


@pytest.mark.parametrize("policy", [APART, GroupPolicy.AFFINITY])
async def test_a_group_is_read_as_a_whole_only_if_its_rule_may_be_broken(
    cell: CellStore, raw: Any, policy: GroupPolicy
) -> None:
    """One of thousands has as many counts, and after a wipe each of its hosts attests."""
    await group(cell, "hard", policy, "zone")
    answer = await ask(cell, Member("b", (Candidate("h1", {"VCPU": 1}),), "hard"))
    one = held(answer.placed[0].token, "b", amounts={"VCPU": 1}, group="hard", counted={"zone": "az1"})
    key = cell.keys.server_group("hard")
    none_of_it = {"members": 0, "count.host=h1": 0, "count.zone=az1": 0}
    await raw.hset(key, mapping=none_of_it)
    holds = await restored(cell, raw, one)
    assert await raw.hget(key, "broken") is None
    await raw.hset(key, mapping=none_of_it | {"members": 1, f"count.zone={'az1' if policy == APART else 'az2'}": 1})
    assert holds < await restored(cell, raw, one)
    assert await raw.hget(key, "broken") == "1"
