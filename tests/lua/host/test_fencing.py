"""Fencing in the store: which hosts may be fenced, and when a host is written off because its machine is off."""

from dataclasses import replace
from typing import Any

import pytest

from redsched.model import HostStatus
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import FencingBegun
from redsched.store.commands.fencing import FencingLimits, FencingNote, Held
from tests.support.builders.cells import active, fields_of, lapse, new_epoch, nothing_written, open_host

AT_ONCE = FencingLimits(after_ms=0, most=10, percent=0, within_ms=600_000)
HOUR_MS = 3_600_000


async def fleet(cell: CellStore, size: int = 5) -> None:
    """Open hosts h1, h2 ..., each with an active claim of its name."""
    for number in range(1, size + 1):
        await open_host(cell, f"h{number}")
        await active(cell, f"of-h{number}", f"h{number}")


async def begin(cell: CellStore, host: str = "h1", limits: FencingLimits = AT_ONCE) -> FencingBegun:
    """Begin to fence a host, which must be possible."""
    begun = await cell.fencing.begin(host, limits)
    assert isinstance(begun, FencingBegun)
    return begun


async def test_a_host_that_is_down_may_be_fenced_which_is_a_change_of_the_host(cell: CellStore, raw: Any) -> None:
    await fleet(cell)
    await lapse(raw, cell)
    before, seq = await fields_of(raw, cell.keys.host("h1")), (await cell.tick()).seq
    begun = await begin(cell)
    assert (begun.host, begun.epoch, str(begun.lease_ms)) == ("h1", (await cell.tick()).epoch, before["alive_until_ms"])
    after = await fields_of(raw, cell.keys.host("h1"))
    assert after == {**before, "version": str(int(before["version"]) + 1)}
    (entry,) = [one for one in await cell.feed.read("0-0", 1000) if one.seq > seq]
    assert (entry.op, entry.name, str(entry.version), entry.fields) == ("fencing", "h1", after["version"], {})
    assert (await cell.fencing.notes()).hosts == {"h1": FencingNote(begun.began_ms)}
    assert await raw.pttl(cell.keys.fencing) > AT_ONCE.within_ms


@pytest.mark.parametrize("state", ["alive", "without claims", "disabled", "written off", "unknown", "heard of lately"])
async def test_a_host_that_needs_no_fencing_is_left_alone(cell: CellStore, raw: Any, state: str) -> None:
    await fleet(cell)
    limits = AT_ONCE
    if state == "without claims":
        await open_host(cell, "h6")
    elif state == "heard of lately":
        limits = replace(AT_ONCE, after_ms=HOUR_MS)
    host = {"without claims": "h6", "unknown": "h7"}.get(state, "h1")
    if state not in ("alive", "unknown"):
        await lapse(raw, cell, host)
    if state == "disabled":
        await cell.hosts.set_status("h1", HostStatus.DISABLED)
    elif state == "written off":
        await cell.hosts.write_off("h1")
    now_ms = (await cell.tick()).now_ms
    async with nothing_written(raw):
        assert await cell.fencing.begin(host, limits) is None
    if state not in ("heard of lately", "unknown"):
        assert host not in await cell.fencing.due(now_ms)


async def test_the_hosts_to_fence_are_those_that_have_been_down_for_longest(cell: CellStore, raw: Any) -> None:
    await fleet(cell)
    await lapse(raw, cell, "h1", 5000)
    await lapse(raw, cell, "h2", 9000)
    await lapse(raw, cell, "h3", 1)
    now_ms = (await cell.tick()).now_ms
    found = await cell.fencing.due(now_ms - 4000)
    assert list(found) == ["h2", "h1"]
    assert list(found.values()) == sorted(found.values())


async def test_the_time_before_an_epoch_does_not_count(cell: CellStore, raw: Any) -> None:
    """A store that was away for long had no agent that could renew a lease."""
    await fleet(cell)
    await lapse(raw, cell, "h1", HOUR_MS)
    limits = replace(AT_ONCE, after_ms=HOUR_MS // 2)
    assert await cell.fencing.begin("h1", limits) is None
    await raw.hset(cell.keys.meta, "began_ms", 1)
    await begin(cell, limits=limits)


async def test_no_host_is_fenced_while_the_cell_is_not_settled(cell: CellStore, raw: Any) -> None:
    await fleet(cell)
    await lapse(raw, cell)
    epoch = await new_epoch(cell)
    for number in (2, 3, 4):
        await cell.hosts.attest(f"h{number}", epoch)
    assert await cell.fencing.begin("h1", AT_ONCE) is Held.UNSETTLED
    await raw.hset(cell.keys.meta, "settle_at_ms", "1")
    await begin(cell)


async def test_no_host_is_fenced_while_most_are_down(cell: CellStore, raw: Any) -> None:
    """Hosts that were written off count neither way."""
    await fleet(cell, 6)
    await cell.hosts.write_off("h6", force=True)
    for number in (1, 2):
        await lapse(raw, cell, f"h{number}")
    await begin(cell)
    await lapse(raw, cell, "h3")
    assert await cell.fencing.begin("h2", AT_ONCE) is Held.MOST_DOWN
    held = (await cell.fencing.notes()).held
    assert held is not None
    assert (held.reason, held.count, held.of, held.until_ms) == (Held.MOST_DOWN, 3, 5, 0)


@pytest.mark.parametrize("limits", [replace(AT_ONCE, most=1, percent=39), replace(AT_ONCE, most=1, percent=0)])
async def test_no_more_hosts_are_fenced_within_a_time_than_may_be(
    cell: CellStore, raw: Any, limits: FencingLimits
) -> None:
    """39 % of 5 hosts is one host. A host that was fenced lately may be fenced again: it counts already."""
    await fleet(cell)
    for number in (1, 2):
        await lapse(raw, cell, f"h{number}")
    first = await begin(cell, "h1", limits)
    assert await cell.fencing.begin("h2", limits) is Held.LIMIT
    held = (await cell.fencing.notes()).held
    assert held is not None
    assert (held.count, held.of, held.until_ms) == (1, 1, first.began_ms + limits.within_ms)
    await begin(cell, "h1", limits)
    assert (await cell.fencing.notes()).held is None
    await raw.hset(cell.keys.fencing, "began_ms.h1", first.began_ms - limits.within_ms)
    await begin(cell, "h2", limits)


async def test_the_part_of_the_fleet_counts_if_it_is_more(cell: CellStore, raw: Any) -> None:
    await fleet(cell)
    limits = replace(AT_ONCE, most=1, percent=40)
    for number in (1, 2):
        await lapse(raw, cell, f"h{number}")
        await begin(cell, f"h{number}", limits)


async def test_attempts_of_long_ago_are_forgotten(cell: CellStore, raw: Any) -> None:
    await fleet(cell)
    await lapse(raw, cell)
    stale = {"began_ms.h9": "1", "failed_ms.h9": "2", "failures.h9": "3", "problem.h9": "it hangs"}
    await raw.hset(cell.keys.fencing, mapping=stale)
    await begin(cell)
    assert set(await raw.hkeys(cell.keys.fencing)) == {"began_ms.h1", "failures.h1"}


async def test_a_fenced_host_is_written_off_and_evacuated_with_the_reason(cell: CellStore, raw: Any) -> None:
    await fleet(cell)
    await lapse(raw, cell)
    begun = await begin(cell)
    seq = (await cell.tick()).seq
    assert (await cell.hosts.write_off("h1", evacuate=True, fenced=begun)).outcome is Outcome.OK
    host = await fields_of(raw, cell.keys.host("h1"))
    assert (host["epoch"], host["draining"], host["written_off_by"]) == ("lost", "evacuate", "fence")
    (entry,) = [one for one in await cell.feed.read("0-0", 1000) if one.seq > seq]
    assert (entry.op, entry.fields["status_reason"]) == ("lost", host["status_reason"])
    assert host["status_reason"].startswith("fenced: ")
    assert (await cell.hosts.write_off("h1", evacuate=True, fenced=begun)).outcome is Outcome.ALREADY_DONE


@pytest.mark.parametrize("is_down_again", [False, True])
async def test_a_host_that_was_heard_of_since_is_not_written_off(
    cell: CellStore, raw: Any, is_down_again: bool
) -> None:
    """Not even if its lease has ended again: the proof is of an earlier time."""
    await fleet(cell)
    await lapse(raw, cell, "h1", 5000)
    begun = await begin(cell)
    await cell.hosts.heartbeat("h1", 60)
    if is_down_again:
        await lapse(raw, cell)
    async with nothing_written(raw):
        assert (await cell.hosts.write_off("h1", evacuate=True, fenced=begun)).outcome is Outcome.ALIVE


async def test_what_was_proved_in_another_epoch_writes_no_host_off(cell: CellStore, raw: Any) -> None:
    await fleet(cell)
    await lapse(raw, cell)
    begun = await begin(cell)
    await new_epoch(cell)
    async with nothing_written(raw):
        assert (await cell.hosts.write_off("h1", evacuate=True, fenced=begun)).outcome is Outcome.WRONG_EPOCH


async def test_what_an_operator_has_written_off_meanwhile_is_not_evacuated(cell: CellStore, raw: Any) -> None:
    await fleet(cell)
    await lapse(raw, cell)
    begun = await begin(cell)
    await cell.hosts.write_off("h1")
    assert (await cell.hosts.write_off("h1", evacuate=True, fenced=begun)).outcome is Outcome.ALREADY_DONE
    assert not await raw.hexists(cell.keys.host("h1"), "draining")


async def test_failures_in_a_row_are_counted_once_each(cell: CellStore, raw: Any) -> None:
    await fleet(cell)
    await lapse(raw, cell, "h1", 5000)
    first = await begin(cell)
    seq = (await cell.tick()).seq
    assert await cell.fencing.failed(first, "exit code 1: no route") is Outcome.OK
    assert await cell.fencing.failed(first, "exit code 1: no route") is Outcome.ALREADY_DONE
    (entry,) = [one for one in await cell.feed.read("0-0", 1000) if one.seq > seq]
    assert (entry.op, entry.fields) == ("fence-failed", {"reason": "exit code 1: no route"})
    note = (await cell.fencing.notes()).hosts["h1"]
    assert (note.is_running, note.failures, note.problem) == (False, 1, "exit code 1: no route")
    assert note.next_ms == note.failed_ms + 30_000
    await raw.hset(cell.keys.fencing, "failed_ms.h1", first.began_ms - 1)  # otherwise both may be of one millisecond
    await raw.hset(cell.keys.fencing, "began_ms.h1", first.began_ms - 2)
    second = await begin(cell)
    assert await cell.fencing.failed(replace(first, began_ms=first.began_ms - 2), "late") is Outcome.ALREADY_DONE
    await cell.fencing.failed(second, "again")
    assert (await cell.fencing.notes()).hosts["h1"].failures == 2


async def test_failures_of_an_earlier_time_of_being_down_do_not_count(cell: CellStore, raw: Any) -> None:
    await fleet(cell)
    await lapse(raw, cell, "h1", 5000)
    await cell.fencing.failed(await begin(cell), "exit code 1")
    await raw.hset(cell.keys.fencing, "began_ms.h1", "1")
    await begin(cell)
    assert (await cell.fencing.notes()).hosts["h1"].failures == 0


async def test_a_host_that_is_gone_cannot_fail(cell: CellStore) -> None:
    assert await cell.fencing.failed(FencingBegun("h9", "1-a", 1, 1), "exit code 1") is Outcome.UNKNOWN


def test_the_pause_after_a_failure_doubles_up_to_an_hour() -> None:
    pauses = [FencingNote(1, 10, failures).next_ms - 10 for failures in (1, 2, 3, 8, 100)]
    assert pauses == [30_000, 60_000, 120_000, 3_600_000, 3_600_000]
