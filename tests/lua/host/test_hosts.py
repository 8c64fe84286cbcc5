"""report, heartbeat, down, status, lost and forget: who may write a host, and what each verb changes."""

from typing import Any

import pytest

from redsched.model import (
    MAX_CLASSES,
    MAX_LABELS,
    MAX_TRAITS,
    AgentStamp,
    Candidate,
    HostReport,
    HostStatus,
    Inventory,
    Pool,
)
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import Change, Member, ReleaseMode
from tests.support.builders.cells import (
    HOUR_S,
    active,
    call_of,
    claim_on,
    claimed,
    ending,
    fields_of,
    lapse,
    member,
    new_epoch,
    nothing_written,
    open_host,
    report_of,
    stamp,
)
from tests.support.builders.placements import held_claim


async def changes_since(cell: CellStore, seq: int) -> list[Change]:
    """Return the feed after a seq, which must be dense."""
    found = [one for one in await cell.feed.read("0-0", 1000) if one.seq > seq]
    assert [one.seq for one in found] == list(range(seq + 1, (await cell.tick()).seq + 1))
    return found


# Reports


async def test_a_report_replaces_all_that_the_agent_owns_and_nothing_else(cell: CellStore, raw: Any) -> None:
    full = HostReport(
        "h1",
        {"VCPU": Inventory(64, 2, 4.0, 2, 32, 2), "MEMORY_MB": Inventory(100)},
        zone="az1",
        labels={"rack": "r4"},
        traits=frozenset({"HW_CPU_X86_AVX2"}),
        metrics={"cpu.percent": 12.5},
        external={"MEMORY_MB": 7},
        lease_s=HOUR_S,
    )
    await open_host(cell, report=full)
    await claim_on(cell, "a", VCPU=4)
    await cell.hosts.set_status("h1", HostStatus.DRAINING)
    before = dict(await fields_of(raw, cell.keys.host("h1")))
    seq = (await cell.tick()).seq
    await cell.hosts.report(report_of("h1", VCPU=8))
    after = dict(await fields_of(raw, cell.keys.host("h1")))
    kept = {"epoch", "status", "alive", "inbox", "claimed.VCPU"}
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert {name for name in after if "." in name} == {
        *("agent.journal", "agent.nonce", "agent.number", "claimed.VCPU"),
        *(f"{kind}.VCPU" for kind in ("capacity", "total", "max", "reserved", "ratio")),
    }
    assert not await raw.exists(cell.keys.attributes("h1"))
    (entry,) = await changes_since(cell, seq)
    assert (entry.op, entry.version, str(entry.version)) == ("report", int(before["version"]) + 1, after["version"])
    assert entry.fields == {
        "zone": "default",
        "capacity.VCPU": "8",
        "total.VCPU": "8",
        "max.VCPU": "8",
        "reserved.VCPU": "0",
        "ratio.VCPU": "1.0",
        "min.VCPU": "",
        "step.VCPU": "",
        **{f"{kind}.MEMORY_MB": "" for kind in ("capacity", "total", "max", "reserved", "ratio", "external")},
        "trait.HW_CPU_X86_AVX2": "",
        "label.rack": "",
        "metric.cpu.percent": "",
    }


async def test_a_report_tells_the_pools_of_a_host_and_their_slots(cell: CellStore, raw: Any) -> None:
    """A pool named numa<number> is a NUMA node by its name; `/` is the host itself as the parent."""
    pools = {
        "numa0": Pool({"PCPU": Inventory(16, 2)}),
        "numalike": Pool(traits=frozenset({"CUSTOM_T"})),
        "gpu0": Pool({"CUSTOM_GPU_MILLI": Inventory(1000, step_size=10)}, "numa0", frozenset({"CUSTOM_T4"})),
    }
    report = HostReport("h1", {"VCPU": Inventory(8)}, pools=pools, external={"gpu0/CUSTOM_GPU_MILLI": 250})
    await open_host(cell, report=report)
    host = await fields_of(raw, cell.keys.host("h1"))
    assert {name: value for name, value in host.items() if "/" in name} == {
        "capacity.numa0/PCPU": "14",
        "total.numa0/PCPU": "16",
        "max.numa0/PCPU": "16",
        "reserved.numa0/PCPU": "2",
        "ratio.numa0/PCPU": "1.0",
        "ratio.gpu0/CUSTOM_GPU_MILLI": "1.0",
        "step.gpu0/CUSTOM_GPU_MILLI": "10",
        **{f"{kind}.gpu0/CUSTOM_GPU_MILLI": "1000" for kind in ("capacity", "total", "max")},
        "reserved.gpu0/CUSTOM_GPU_MILLI": "0",
        "external.gpu0/CUSTOM_GPU_MILLI": "250",
    }
    assert await fields_of(raw, cell.keys.attributes("h1")) == {
        "pool.numa0": "/",
        "pool.numalike": "/",
        "pool.gpu0": "numa0",
        "trait.numa0/HW_NUMA_ROOT": "1",
        "trait.numalike/CUSTOM_T": "1",
        "trait.gpu0/CUSTOM_T4": "1",
    }


async def test_a_pool_that_is_no_longer_reported_goes_and_what_is_claimed_of_it_stays(
    cell: CellStore, raw: Any
) -> None:
    pools = {"gpu0": Pool({"CUSTOM_GPU_MILLI": Inventory(1000)}, traits=frozenset({"CUSTOM_T4"}))}
    await open_host(cell, report=HostReport("h1", {"VCPU": Inventory(8)}, pools=pools, lease_s=HOUR_S))
    amounts = {"gpu0/CUSTOM_GPU_MILLI": 300, "VCPU": 1}
    await cell.claims.place(call_of(await cell.tick(), Member("a", (Candidate("h1", amounts),))))
    await raw.hset(cell.keys.host("h1"), mapping={"aggregate.fast": "1", "claims": "1", "starting": "1"})
    await raw.hset(cell.keys.host("h1"), mapping={"failures": "2"})
    seq = (await cell.tick()).seq
    await cell.hosts.report(report_of("h1", VCPU=8))
    slot = "gpu0/CUSTOM_GPU_MILLI"
    host = await fields_of(raw, cell.keys.host("h1"))
    assert {name: value for name, value in host.items() if "/" in name} == {
        f"claimed.{slot}": "300",
        f"over.{slot}": "1",
    }
    kept = {"aggregate.fast": "1", "claims": "1", "starting": "1", "failures": "2"}
    assert host.items() >= kept.items(), "none of these is the agent's"
    entry, over = await changes_since(cell, seq)
    assert (over.op, over.fields) == ("over-capacity", {"reason": f"{slot}: 300 claimed of 0"})
    assert (over.version, host["version"]) == (entry.version + 1, str(over.version))
    gone = {f"{kind}.{slot}": "" for kind in ("capacity", "total", "max", "reserved", "ratio")}
    assert entry.fields == gone | {"pool.gpu0": "", "trait.gpu0/CUSTOM_T4": ""}
    await cell.hosts.report(HostReport("h1", {"VCPU": Inventory(8)}, pools=pools, lease_s=HOUR_S))
    assert not await raw.hexists(cell.keys.host("h1"), f"over.{slot}")


async def test_a_report_that_changes_nothing_reaches_no_reader(cell: CellStore, raw: Any) -> None:
    await open_host(cell)
    seq, version = (await cell.tick()).seq, await raw.hget(cell.keys.host("h1"), "version")
    answer = await cell.hosts.report(report_of("h1", lease_s=7))
    assert (answer.outcome, answer.attested, str(answer.version)) == (Outcome.OK, True, version)
    assert await changes_since(cell, seq) == []
    assert await raw.hget(cell.keys.host("h1"), "alive_until_ms") == str(answer.now_ms + 7000)
    assert await raw.zscore(cell.keys.hosts, "h1") == answer.now_ms + 7000


async def test_a_report_opens_nothing_before_the_host_has_attested(cell: CellStore, raw: Any) -> None:
    answer = await cell.hosts.report(report_of("h1"))
    assert (answer.outcome, answer.attested) == (Outcome.OK, False)
    assert (await cell.claims.place(call_of(await cell.tick(), member("a", "h1")))).looked_at[0].cause == "NOT_ATTESTED"


async def test_a_report_brings_a_host_up_again_in_the_feed(cell: CellStore, raw: Any) -> None:
    await open_host(cell)
    await lapse(raw, cell)
    assert await cell.hosts.mark_down(["h1"]) == 1
    seq = (await cell.tick()).seq
    await cell.hosts.report(report_of("h1"))
    (entry,) = await changes_since(cell, seq)
    assert (entry.op, entry.fields) == ("up", {"alive": "1"})


async def test_the_first_report_of_a_host_is_not_its_return(cell: CellStore) -> None:
    seq = (await cell.tick()).seq
    await cell.hosts.report(report_of("new"))
    (entry,) = await changes_since(cell, seq)
    assert entry.op == "report"


async def test_an_attestation_renews_the_lease_and_says_up(cell: CellStore, raw: Any) -> None:
    """The store was away for longer than the lease: no scheduler may take the host for down before it beats again."""
    await open_host(cell)
    await lapse(raw, cell)
    await cell.hosts.mark_down(["h1"])
    await new_epoch(cell)
    clock = await cell.tick()
    assert (await cell.hosts.attest("h1", "")).outcome is Outcome.OK
    host = await fields_of(raw, cell.keys.host("h1"))
    assert host["alive"] == "1"
    assert int(host["alive_until_ms"]) > clock.now_ms
    assert await cell.hosts.mark_down(["h1"]) == 0
    assert await cell.hosts.lapsed(0, clock.now_ms, 0, 10) == []
    assert [(one.op, one.version) for one in await changes_since(cell, clock.seq)] == [
        ("up", int(host["version"]) - 1),
        ("attest", int(host["version"])),
    ]


async def test_reports_of_one_agent_count_only_in_their_order(cell: CellStore, raw: Any) -> None:
    """A late or repeated copy changes nothing, not even the lease."""
    assert (await cell.hosts.report(report_of(VCPU=8), stamp(5))).outcome is Outcome.OK
    async with nothing_written(raw):
        assert (await cell.hosts.report(report_of(VCPU=9), stamp(5))).outcome is Outcome.ALREADY_DONE
        assert (await cell.hosts.report(report_of(VCPU=9), stamp(4))).outcome is Outcome.ALREADY_DONE
    assert (await cell.hosts.report(report_of(VCPU=9), stamp(6))).outcome is Outcome.OK


async def test_a_restarted_agent_continues_and_a_clone_of_its_journal_does_not(cell: CellStore, raw: Any) -> None:
    await cell.hosts.report(report_of(), stamp(5))
    assert (await cell.hosts.report(report_of(), stamp(6, nonce="restarted"))).outcome is Outcome.OK
    async with nothing_written(raw):
        assert (await cell.hosts.report(report_of(VCPU=1), stamp(6, nonce="clone"))).outcome is Outcome.NOT_OWNER
        assert (await cell.hosts.report(report_of(VCPU=1), stamp(5, nonce="clone"))).outcome is Outcome.NOT_OWNER


async def test_a_restarted_agent_whose_report_was_lost_reports_again(cell: CellStore, raw: Any) -> None:
    """A failover has restored the record of the former process, with a lower number."""
    await cell.hosts.report(report_of(), stamp(5))
    before = await raw.hgetall("rs:{c1}:host:h1")
    await cell.hosts.report(report_of(), stamp(6, nonce="restarted"))
    await raw.hset("rs:{c1}:host:h1", mapping=before)
    assert (await cell.hosts.heartbeat("h1", 60, stamp(6, nonce="restarted"))).outcome is Outcome.UNKNOWN
    assert (await cell.hosts.report(report_of(), stamp(7, nonce="restarted"))).outcome is Outcome.OK
    assert (await cell.hosts.heartbeat("h1", 60, stamp(7, nonce="restarted"))).outcome is Outcome.NOT_ATTESTED


async def test_of_two_copies_of_a_journal_the_one_that_was_overtaken_ends(cell: CellStore, raw: Any) -> None:
    """Its heartbeat cannot tell whether it was overtaken; its report can, because a later number was seen."""
    await cell.hosts.report(report_of(), stamp(5))
    assert (await cell.hosts.report(report_of(), stamp(6, nonce="clone"))).outcome is Outcome.OK
    async with nothing_written(raw):
        assert (await cell.hosts.heartbeat("h1", 60, stamp(5))).outcome is Outcome.UNKNOWN
        assert (await cell.hosts.report(report_of(), stamp(6))).outcome is Outcome.NOT_OWNER


@pytest.mark.parametrize("other", [stamp(99, journal="other"), None])
async def test_another_journal_takes_over_only_when_the_lease_has_lapsed(
    cell: CellStore, raw: Any, other: AgentStamp | None
) -> None:
    await cell.hosts.report(report_of(), stamp(5))
    async with nothing_written(raw):
        assert (await cell.hosts.report(report_of(VCPU=1), other)).outcome is Outcome.NOT_OWNER
        assert (await cell.hosts.attest("h1", "", other)).outcome is Outcome.NOT_OWNER
        assert (await cell.hosts.heartbeat("h1", 60, other)).outcome is Outcome.NOT_OWNER
    await lapse(raw, cell)
    assert (await cell.hosts.report(report_of(VCPU=1), other)).outcome is Outcome.OK
    async with nothing_written(raw):
        expected = Outcome.NOT_OWNER
        assert (await cell.hosts.heartbeat("h1", 60, stamp(6))).outcome is expected


async def test_an_agent_takes_over_a_host_that_was_reported_without_one(cell: CellStore) -> None:
    await open_host(cell)
    assert (await cell.hosts.report(report_of(), stamp(1))).outcome is Outcome.OK


async def test_reports_without_an_agent_are_taken_as_they_come(cell: CellStore) -> None:
    for total in (8, 9, 8):
        assert (await cell.hosts.report(report_of(VCPU=total))).outcome is Outcome.OK


async def test_a_giant_report_is_taken_whole_and_read_again_by_readers(cell: CellStore, raw: Any) -> None:
    """The largest permitted report: an entry of all its fields would be more than Lua can unpack into one command."""
    inventory = Inventory(9, min_unit=2, step_size=2)
    report = HostReport(
        "h1",
        {f"CUSTOM_R{number}": inventory for number in range(MAX_CLASSES)},
        traits=frozenset(f"CUSTOM_T{number}" for number in range(MAX_TRAITS)),
        labels={f"l{number}": "x" for number in range(MAX_LABELS)},
        metrics={f"m{number}": 1.0 for number in range(MAX_LABELS)},
        lease_s=HOUR_S,
    )
    seq = (await cell.tick()).seq
    assert (await cell.hosts.report(report)).outcome is Outcome.OK
    (entry,) = await changes_since(cell, seq)
    assert entry.fields == {"reread": "1"}
    assert await raw.hlen(cell.keys.attributes("h1")) == MAX_TRAITS + 2 * MAX_LABELS
    assert await raw.hget(cell.keys.host("h1"), f"capacity.CUSTOM_R{MAX_CLASSES - 1}") == "9"
    await cell.hosts.report(report_of("h1"))
    assert not await raw.exists(cell.keys.attributes("h1"))
    assert not await raw.hexists(cell.keys.host("h1"), "capacity.CUSTOM_R0")


async def test_a_name_that_comes_back_is_newer_than_what_it_was(cell: CellStore, raw: Any) -> None:
    """A reader that missed the removal must not mistake the new host's entries for those of the former one."""
    await open_host(cell)
    for total in range(9, 20):
        await cell.hosts.report(report_of(VCPU=total))
    before = int(await raw.hget(cell.keys.host("h1"), "version"))
    await cell.hosts.forget("h1", force=True)
    assert (await cell.hosts.report(report_of())).version > before + 1


# Heartbeats, down, status


async def test_a_heartbeat_renews_the_lease_and_nothing_else(cell: CellStore, raw: Any) -> None:
    await open_host(cell)
    before = dict(await fields_of(raw, cell.keys.host("h1")))
    seq = (await cell.tick()).seq
    answer = await cell.hosts.heartbeat("h1", 7)
    until_ms = answer.now_ms + 7000
    assert answer.outcome is Outcome.OK
    assert await fields_of(raw, cell.keys.host("h1")) == before | {"alive_until_ms": str(until_ms)}
    assert await raw.zscore(cell.keys.hosts, "h1") == until_ms
    assert await changes_since(cell, seq) == []


async def test_a_heartbeat_of_a_host_marked_down_says_up(cell: CellStore, raw: Any) -> None:
    await open_host(cell)
    await lapse(raw, cell)
    await cell.hosts.mark_down(["h1"])
    seq = (await cell.tick()).seq
    await cell.hosts.heartbeat("h1", 7)
    await cell.hosts.heartbeat("h1", 7)
    (entry,) = await changes_since(cell, seq)
    assert (entry.op, entry.fields) == ("up", {"alive": "1"})


async def test_heartbeats_that_mean_nothing_write_nothing(cell: CellStore, raw: Any) -> None:
    await cell.hosts.report(report_of("unattested"))
    await open_host(cell, "h1")
    await cell.hosts.write_off("h1", force=True)
    async with nothing_written(raw):
        assert (await cell.hosts.heartbeat("nowhere", 7)).outcome is Outcome.UNKNOWN
        assert (await cell.hosts.heartbeat("unattested", 7)).outcome is Outcome.NOT_ATTESTED
        assert (await cell.hosts.heartbeat("h1", 7)).outcome is Outcome.NOT_ATTESTED
        assert (await cell.hosts.heartbeat("h1", 7, stamp(1))).outcome is Outcome.NOT_OWNER


async def test_only_hosts_whose_lease_has_lapsed_are_marked_down_and_once(cell: CellStore, raw: Any) -> None:
    for name in ("h1", "h2", "h3"):
        await open_host(cell, name)
    await lapse(raw, cell, "h1")
    await lapse(raw, cell, "h3")
    seq = (await cell.tick()).seq
    assert await cell.hosts.mark_down(["h1", "h2", "h3", "nowhere"]) == 2
    entries = await changes_since(cell, seq)
    assert [(one.name, one.op, one.more, one.fields) for one in entries] == [
        ("h1", "down", 1, {"alive": "0"}),
        ("h3", "down", 0, {"alive": "0"}),
    ]
    async with nothing_written(raw):
        assert await cell.hosts.mark_down(["h1", "h2", "h3"]) == 0


async def test_a_status_is_the_operators_word_and_touches_nothing_else(cell: CellStore, raw: Any) -> None:
    await open_host(cell)
    before = dict(await fields_of(raw, cell.keys.host("h1")))
    seq = (await cell.tick()).seq
    assert (await cell.hosts.set_status("h1", HostStatus.DRAINING)).outcome is Outcome.OK
    async with nothing_written(raw):
        assert (await cell.hosts.set_status("h1", HostStatus.DRAINING)).outcome is Outcome.ALREADY_DONE
        assert (await cell.hosts.set_status("nowhere", HostStatus.DRAINING)).outcome is Outcome.UNKNOWN
    after = before | {"status": "draining", "version": str(int(before["version"]) + 1)}
    assert await fields_of(raw, cell.keys.host("h1")) == after
    (entry,) = await changes_since(cell, seq)
    assert (entry.op, entry.fields) == ("status", {"status": "draining"})


# Lost and forgotten


async def test_a_lost_host_is_disabled_down_and_closed(cell: CellStore, raw: Any) -> None:
    await open_host(cell)
    placed = await active(cell)
    seq = (await cell.tick()).seq
    assert (await cell.hosts.write_off("h1", force=True)).outcome is Outcome.OK
    (entry,) = await changes_since(cell, seq)
    assert entry.fields == {"status": "disabled", "alive": "0", "epoch": "lost"}
    async with nothing_written(raw):
        assert (await cell.hosts.write_off("h1", force=True)).outcome is Outcome.ALREADY_DONE
        assert (await cell.hosts.write_off("nowhere")).outcome is Outcome.UNKNOWN
        assert (await cell.claims.place(call_of(await cell.tick(), member("b", "h1")))).outcome is Outcome.FULL
    assert (await cell.claims.release("h1", "a", placed.token, how=ReleaseMode.FORCE)).outcome is Outcome.OK
    assert await claimed(raw, cell) == 0


async def test_a_host_that_came_back_can_be_lost_again(cell: CellStore, raw: Any) -> None:
    await open_host(cell)
    await cell.hosts.write_off("h1", force=True)
    await open_host(cell)
    await cell.hosts.set_status("h1", HostStatus.ENABLED)
    await claim_on(cell)
    assert (await cell.hosts.write_off("h1", force=True)).outcome is Outcome.OK
    assert (await cell.claims.place(call_of(await cell.tick(), member("b", "h1")))).looked_at[0].cause == "NOT_ATTESTED"


@pytest.mark.parametrize("evacuate", [False, True])
async def test_a_host_whose_lease_runs_is_not_written_off_unless_forced(
    cell: CellStore, raw: Any, evacuate: bool
) -> None:
    """It is alive, and would attest again. The refusal tells how long its lease still runs."""
    await open_host(cell)
    async with nothing_written(raw):
        answer = await cell.hosts.write_off("h1", evacuate)
        assert answer.outcome is Outcome.ALIVE
        assert 0 < int(answer.facts[0]) <= 3_600_000
    await lapse(raw, cell, "h1")
    assert (await cell.hosts.write_off("h1", evacuate)).outcome is Outcome.OK
    await open_host(cell)
    assert (await cell.hosts.write_off("h1", evacuate, force=True)).outcome is Outcome.OK


async def test_nobody_waits_for_a_host_that_was_lost_or_forgotten(cell: CellStore) -> None:
    for name in ("lost", "forgotten", "h1"):
        await open_host(cell, name)
    await new_epoch(cell)
    await cell.hosts.write_off("lost", force=True)
    await cell.hosts.write_off("lost", force=True)
    await cell.hosts.forget("lost")
    await cell.hosts.forget("forgotten", force=True)
    assert not (await cell.tick()).settled
    await open_host(cell, "new")
    assert not (await cell.tick()).settled
    await open_host(cell, "h1")
    assert (await cell.tick()).settled


async def test_forgetting_removes_every_key_of_the_host(cell: CellStore, raw: Any) -> None:
    await open_host(cell, "h2")
    await open_host(cell, "h1", HostReport("h1", {"VCPU": Inventory(8)}, traits=frozenset({"CUSTOM_T"}), lease_s=9))
    await claim_on(cell, "a", "h1")
    await ending(cell, "b", "h1")
    async with nothing_written(raw):
        assert (await cell.hosts.forget("h1")).outcome is Outcome.IN_USE
        assert (await cell.hosts.forget("nowhere")).outcome is Outcome.UNKNOWN
    seq = (await cell.tick()).seq
    assert (await cell.hosts.forget("h1", force=True)).outcome is Outcome.OK
    assert [key async for key in raw.scan_iter() if key.endswith(":h1")] == [cell.keys.removed("h1")]
    assert await cell.hosts.names() == ["h2"]
    assert await cell.due.deadlines() == {}
    claims = await cell.claims.read("ab")
    assert [(one.state, one.end_reason) for one in claims.values()] == [("ended", "void"), ("ended", "released")]
    (entry,) = await changes_since(cell, seq)
    assert (entry.name, entry.op, entry.fields) == ("h1", "removed", {})
    async with nothing_written(raw):
        assert (await cell.hosts.forget("h1", force=True)).outcome is Outcome.UNKNOWN


async def test_forgetting_spares_a_claim_that_only_the_set_names(cell: CellStore, raw: Any) -> None:
    """A set that was changed by hand must not end a claim that runs elsewhere."""
    await open_host(cell, "h1")
    await open_host(cell, "h2")
    await active(cell, "a", "h2")
    await raw.sadd(cell.keys.claims("h1"), "a", "nothing")
    assert (await cell.hosts.forget("h1", force=True)).outcome is Outcome.OK
    assert (await cell.claims.read("a"))["a"].state == "active"


async def test_forgetting_a_host_of_more_claims_than_one_command_takes(cell: CellStore, raw: Any) -> None:
    """Only the first of them has a deadline: its set is deleted with it, and the script does not touch it again."""
    epoch = (await cell.hosts.report(report_of(VCPU=1000))).epoch
    have = [held_claim(f"c{number}", f"{epoch}.{number}") for number in range(1, 602)]
    assert (await cell.hosts.attest("h1", epoch, held=have)).outcome is Outcome.OK
    first = await raw.eval("return redis.call('SMEMBERS', KEYS[1])[1]", 1, cell.keys.claims("h1"))
    await raw.hset(cell.keys.claim(first), mapping={"state": "starting", "expires_at_ms": str(2**52)})
    await raw.zadd(cell.keys.deadlines, {first: 2**52})
    assert (await cell.hosts.forget("h1", force=True)).outcome is Outcome.OK
    assert (dict(await cell.due.deadlines()), await cell.hosts.claim_ids("h1")) == ({}, set())
    ended = (await cell.claims.read([one.id for one in have])).values()
    assert {(one.state, one.end_reason) for one in ended} == {("ended", "void")}


async def test_a_claim_that_arrives_while_a_host_is_forgotten_is_seen(cell: CellStore, raw: Any) -> None:
    """The script answers RETRY for an id that the call did not name, and the call is built again."""
    await open_host(cell)
    await claim_on(cell, "a")
    seen: list[int] = []
    held_ids = cell.hosts.claim_ids

    async def outdated(host: str) -> set[str]:
        seen.append(1)
        return set() if len(seen) == 1 else await held_ids(host)

    cell.hosts.claim_ids = outdated  # type: ignore[method-assign]
    assert (await cell.hosts.forget("h1", force=True)).outcome is Outcome.OK
    assert len(seen) == 3, "once more for the quota that the claim counts in"
    assert (await cell.claims.read("a"))["a"].end_reason == "void"
