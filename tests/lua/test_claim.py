"""claim.lua: the first candidate that fits now, all members or none, and no write if it refuses."""

from typing import Any

import pytest

from redsched.model import Candidate, HostReport, HostStatus, Inventory
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import Member
from tests.support.builders.cells import (
    HOUR_S,
    call_of,
    claim_on,
    claimed,
    everything,
    fields_of,
    known,
    member,
    nothing_written,
    open_host,
    report_of,
)


async def test_a_claim_writes_its_hash_deadline_set_notification_sum_and_feed_entry(cell: CellStore, raw: Any) -> None:
    await open_host(cell, VCPU=8, MEMORY_MB=64)
    before = await everything(raw)
    clock = await cell.tick()
    answer = await cell.claims.place(call_of(clock, member("a", "h1", VCPU=3, MEMORY_MB=10), lease_ms=60_000))
    assert answer.outcome is Outcome.OK
    (placed,) = answer.placed
    assert (placed.host, placed.state, placed.expires_at_ms) == ("h1", "claimed", answer.now_ms + 60_000)
    assert placed.token == f"{clock.epoch}.{clock.seq + 1}"

    claim = dict(await fields_of(raw, cell.keys.claim("a")))
    (notification,) = await cell.hosts.inbox("h1")
    assert claim == {
        "host": "h1",
        "state": "claimed",
        "project": "project",
        "consumer": "consumer",
        "digest": "digest",
        "claimed_at_ms": str(answer.now_ms),
        "expires_at_ms": str(placed.expires_at_ms),
        "token": placed.token,
        "inbox_id": notification.entry_id,
        "amount.VCPU": "3",
        "amount.MEMORY_MB": "10",
    }
    assert (notification.op, notification.number, notification.epoch, notification.claim_id, notification.token) == (
        "claim",
        1,
        clock.epoch,
        "a",
        placed.token,
    )
    assert await cell.due.deadlines() == {"a": placed.expires_at_ms}
    assert await cell.hosts.claim_ids("h1") == {"a"}
    (entry,) = [one for one in await cell.feed.read("0-0", 100) if one.seq > clock.seq]
    assert (entry.seq, entry.kind, entry.name, entry.op, entry.more) == (clock.seq + 1, "host", "h1", "claimed", 0)
    counts = {"claims": "1", "starting": "1"}
    assert entry.fields == {"claim": "a", "claimed.VCPU": "3", "claimed.MEMORY_MB": "10"} | counts

    host_key = cell.keys.host("h1")
    was, _ = before[host_key]
    grown = {"version": str(int(was["version"]) + 1), "inbox": "1", "claimed.VCPU": "3", "claimed.MEMORY_MB": "10"}
    assert await fields_of(raw, host_key) == was | grown | counts
    assert entry.version == int(was["version"]) + 1
    touched = {key for key, value in (await everything(raw)).items() if before.get(key) != value}
    keys = cell.keys
    assert touched == {
        keys.meta,
        keys.changes,
        keys.deadlines,
        keys.claim("a"),
        host_key,
        keys.claims("h1"),
        keys.inbox("h1"),
        keys.quota("project"),
    }


async def test_a_host_is_filled_to_the_last_unit_and_not_further(cell: CellStore, raw: Any) -> None:
    await open_host(cell, report=report_of(VCPU=8, external={"VCPU": 2}))
    await claim_on(cell, "a", VCPU=5)
    async with nothing_written(raw):
        answer = await cell.claims.place(call_of(await cell.tick(), member("b", "h1", VCPU=2)))
    assert answer.outcome is Outcome.FULL
    assert [(one.host, one.cause, one.claimed) for one in answer.looked_at] == [("h1", "VCPU", {"VCPU": 5})]
    await claim_on(cell, "b", VCPU=1)
    assert await claimed(raw, cell) == 6


async def test_the_first_candidate_that_fits_wins_and_the_passed_over_tell_why(cell: CellStore) -> None:
    """The order is the caller's: the script prefers neither fuller nor emptier hosts."""
    for name in ("full", "draining", "disabled", "small", "good", "better"):
        await open_host(cell, name, VCPU=8 if name == "better" else 4)
    await claim_on(cell, "filler", "full", VCPU=3)
    await open_host(cell, "small", MEMORY_MB=1)
    await cell.hosts.set_status("draining", HostStatus.DRAINING)
    await cell.hosts.set_status("disabled", HostStatus.DISABLED)
    await cell.hosts.report(report_of("unattested"))
    hosts = ("nowhere", "unattested", "draining", "disabled", "full", "small", "good", "better")
    answer = await cell.claims.place(call_of(await cell.tick(), member("a", *hosts, VCPU=2)))
    assert [one.host for one in answer.placed] == ["good"]
    assert {one.host: one.cause for one in answer.looked_at} == {
        "nowhere": "UNKNOWN",
        "unattested": "NOT_ATTESTED",
        "draining": "DRAINING",
        "disabled": "DISABLED",
        "full": "VCPU",
        "small": "VCPU",
        "good": "",
    }
    assert {one.host: dict(one.claimed) for one in answer.looked_at if any(one.claimed.values())} == {
        "full": {"VCPU": 3},
        "good": {"VCPU": 2},
    }


async def test_a_host_whose_lease_has_lapsed_gets_nothing_though_none_has_marked_it_down(
    cell: CellStore, raw: Any
) -> None:
    """claim.lua compares the lease with the store's time, and does not use the flag that a sweep sets later."""
    await open_host(cell)
    now_ms = (await cell.tick()).now_ms
    await raw.hset(cell.keys.host("h1"), "alive_until_ms", now_ms)
    async with nothing_written(raw):
        answer = await cell.claims.place(call_of(await cell.tick(), member("a", "h1")))
    assert answer.outcome is Outcome.FULL
    assert [one.cause for one in answer.looked_at] == ["DOWN"]


async def test_a_host_marked_down_whose_lease_runs_again_gets_claims(cell: CellStore, raw: Any) -> None:
    await open_host(cell)
    await raw.hset(cell.keys.host("h1"), "alive", "0")
    await claim_on(cell)


async def test_all_members_are_placed_or_none(cell: CellStore, raw: Any) -> None:
    """The third member fits nowhere: the other two leave no trace, neither in the store nor in the reply."""
    await open_host(cell, "h1", VCPU=4)
    await open_host(cell, "h2", VCPU=4)
    members = [member(name, "h1", "h2", VCPU=3) for name in ("a", "b", "c")]
    async with nothing_written(raw):
        answer = await cell.claims.place(call_of(await cell.tick(), *members))
    assert answer.outcome is Outcome.FULL
    assert not answer.placed
    assert {one.host: dict(one.claimed) for one in answer.looked_at} == {"h1": {"VCPU": 0}, "h2": {"VCPU": 0}}
    answer = await cell.claims.place(call_of(await cell.tick(), *members[:2]))
    assert [(one.host, one.candidate) for one in answer.placed] == [("h1", 0), ("h2", 1)]


async def test_members_that_share_a_host_see_each_other(cell: CellStore, raw: Any) -> None:
    """Amounts of earlier members of the call count, although nothing is written before all members are placed."""
    await open_host(cell, "h1", VCPU=5)
    before = await cell.tick()
    answer = await cell.claims.place(call_of(before, *(member(name, "h1", VCPU=2) for name in "ab"), member("c", "h1")))
    assert [one.host for one in answer.placed] == ["h1"] * 3
    assert await claimed(raw, cell) == 5
    entries = [one for one in await cell.feed.read("0-0", 100) if one.seq > before.seq]
    assert [one.more for one in entries] == [2, 1, 0]
    assert [one.seq - before.seq for one in entries] == [1, 2, 3]
    assert [one.fields["claimed.VCPU"] for one in entries] == ["5"] * 3  # the state after the call
    assert [one.version - entries[0].version for one in entries] == [0, 1, 2]
    assert len({one.token for one in answer.placed}) == 3
    assert [one.number for one in await cell.hosts.inbox("h1")] == [1, 2, 3]
    (looked_at,) = answer.looked_at
    assert (looked_at.version, dict(looked_at.claimed)) == (entries[-1].version, {"VCPU": 5})
    assert await raw.hget(cell.keys.host("h1"), "version") == str(looked_at.version)


async def test_candidates_of_one_member_may_be_one_host_with_other_slots(cell: CellStore, raw: Any) -> None:
    """A slot that was read and not taken is not written: its field belongs to the call that takes it."""
    await open_host(cell, "h1", VCPU=1, PCPU=4)
    candidates = (Candidate("h1", {"VCPU": 2}), Candidate("h1", {"PCPU": 2}))
    answer = await cell.claims.place(call_of(await cell.tick(), Member("a", candidates)))
    assert answer.outcome is Outcome.OK
    assert dict(answer.looked_at[0].claimed) == {"VCPU": 0, "PCPU": 2}
    fields = await fields_of(raw, cell.keys.host("h1"))
    assert {name: value for name, value in fields.items() if name.startswith("claimed.")} == {"claimed.PCPU": "2"}


async def test_two_hundred_members_with_eight_candidates_in_one_call(cell: CellStore, raw: Any) -> None:
    for number in range(8):
        await open_host(cell, f"h{number}", VCPU=25)
    hosts = [f"h{number}" for number in range(8)]
    members = [member(f"m{number}", *hosts) for number in range(200)]
    answer = await cell.claims.place(call_of(await cell.tick(), *members))
    assert answer.outcome is Outcome.OK
    assert [one.host for one in answer.placed] == [hosts[number // 25] for number in range(200)]
    assert [await claimed(raw, cell, host) for host in hosts] == [25] * 8
    async with nothing_written(raw):
        again = await cell.claims.place(call_of(await cell.tick(), *members))
        one_more = await cell.claims.place(call_of(await cell.tick(), member("more", *hosts)))
    assert (again.outcome, again.placed) == (Outcome.ALREADY_DONE, known(*answer.placed))
    assert one_more.outcome is Outcome.FULL


@pytest.mark.parametrize(("amount", "fits"), [(1, False), (2, False), (4, True), (6, False), (8, True), (12, False)])
async def test_amounts_keep_to_min_max_and_step(cell: CellStore, raw: Any, amount: int, fits: bool) -> None:
    inventory = Inventory(100, min_unit=3, max_unit=10, step_size=4)
    await open_host(cell, report=HostReport("h1", {"VCPU": inventory}, lease_s=HOUR_S))
    call = call_of(await cell.tick(), member("a", "h1", VCPU=amount))
    if fits:
        assert (await cell.claims.place(call)).outcome is Outcome.OK
        return
    async with nothing_written(raw):
        answer = await cell.claims.place(call)
    assert [one.cause for one in answer.looked_at] == ["VCPU"]


async def test_no_amount_below_one_is_given(cell: CellStore, raw: Any) -> None:
    """A negative claim would create room that does not exist."""
    await open_host(cell)
    for amount in (0, -1):
        async with nothing_written(raw):
            answer = await cell.claims.place(call_of(await cell.tick(), member("a", "h1", VCPU=amount)))
        assert answer.outcome is Outcome.FULL


async def test_a_host_that_shrank_or_gained_external_work_gets_no_more(cell: CellStore, raw: Any) -> None:
    await open_host(cell, "h1", VCPU=8)
    await claim_on(cell, "a", VCPU=6)
    for worse in (report_of("h1", VCPU=5), report_of("h1", {"VCPU": 4}, VCPU=8)):
        await cell.hosts.report(worse)
        async with nothing_written(raw):
            answer = await cell.claims.place(call_of(await cell.tick(), member("b", "h1")))
        assert answer.outcome is Outcome.FULL
        assert await claimed(raw, cell) == 6
