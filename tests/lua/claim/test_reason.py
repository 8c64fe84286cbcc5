"""Why a claim failed, expired or lost its work: stored as text beside it, for as long as the claim is remembered."""

from datetime import UTC, datetime
from typing import Any

import pytest

from redsched.model import ClaimStatus, EndReason, OnExit, Reason
from redsched.store.cell import CellStore
from redsched.store.client.scripts import includes
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ReleaseMode
from redsched.store.commands.claims import MAX_REASON
from tests.support.builders.cells import (
    IN_STATE,
    accepted_claim,
    active,
    call_of,
    claim_on,
    fields_of,
    make_due,
    member,
    new_epoch,
    nothing_written,
    open_host,
)
from tests.support.builders.placements import held_claim

REMEMBER_MS, DAY_MS = 600_000, 24 * 3600 * 1000


@pytest.fixture
async def cell(cell: CellStore) -> CellStore:
    """A cell with one host."""
    await open_host(cell)
    return cell


async def reason_of(cell: CellStore, claim_id: str = "a") -> Reason | None:
    return (await cell.claims.reasons([claim_id, "other"])).get(claim_id)


def utc(at_ms: int | None) -> str:
    return datetime.fromtimestamp((at_ms or 0) // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


async def told(cell: CellStore, op: str) -> list[tuple[str | None, str | None]]:
    """Return the end reason and the reason text of each feed entry of this kind."""
    entries = await cell.feed.read("0-0", 100)
    return [(one.fields.get("end_reason"), one.fields.get("reason")) for one in entries if one.op == op]


async def left_ms(cell: CellStore, raw: Any) -> int:
    """Return how long the reason is still kept."""
    left: int = await raw.pttl(cell.keys.reason("a"))
    return left


async def test_a_failure_is_kept_as_long_as_the_claim_is_remembered(cell: CellStore, raw: Any) -> None:
    placed = await accepted_claim(cell)
    before = await cell.tick()
    await cell.claims.fail("h1", "a", placed.token, by_host=True, reason="no more disks\nreally")
    reason = await reason_of(cell)
    assert reason is not None
    assert (reason.host, reason.token, reason.text) == ("h1", placed.token, "no more disks\nreally")
    assert before.now_ms <= reason.at_ms <= (await cell.tick()).now_ms
    assert await left_ms(cell, raw) == pytest.approx(REMEMBER_MS, abs=10_000)
    assert await left_ms(cell, raw) == pytest.approx(await raw.pttl(cell.keys.claim("a")), abs=1000)


async def test_the_first_reason_stays(cell: CellStore, raw: Any) -> None:
    placed = await accepted_claim(cell)
    await cell.claims.fail("h1", "a", placed.token, by_host=True, reason="first")
    async with nothing_written(raw):
        await cell.claims.fail("h1", "a", placed.token, by_host=True, reason="second")


async def test_while_a_claim_ends_its_reason_is_kept_for_a_day(cell: CellStore, raw: Any) -> None:
    """Once it has ended, as long as the claim, even if the host reports nothing new."""
    placed = await accepted_claim(cell)
    answer = await cell.claims.fail("h1", "a", placed.token, by_host=False, reason="exit code 3")
    assert answer.outcome is Outcome.ENDING
    assert await left_ms(cell, raw) == pytest.approx(DAY_MS, abs=10_000)
    await cell.claims.gone("h1", "a", placed.token, EndReason.RELEASED, {})
    assert await left_ms(cell, raw) == pytest.approx(REMEMBER_MS, abs=10_000)
    assert (await reason_of(cell) or placed).token == placed.token


async def test_without_a_reason_there_is_no_key(cell: CellStore, raw: Any) -> None:
    first, second = await accepted_claim(cell, "a"), await accepted_claim(cell, "b")
    await cell.claims.fail("h1", "a", first.token, by_host=True)
    await cell.claims.gone("h1", "b", second.token, EndReason.RELEASED, {})
    assert not await raw.exists(cell.keys.reason("a"), cell.keys.reason("b"))


async def test_a_long_reason_is_cut(cell: CellStore) -> None:
    placed = await accepted_claim(cell)
    await cell.claims.fail("h1", "a", placed.token, by_host=True, reason="\N{GRINNING FACE}" * 5000)
    reason = await reason_of(cell)
    assert reason is not None
    assert len(reason.text) == MAX_REASON


async def test_work_that_ended_ends_its_claim_with_the_reason(cell: CellStore) -> None:
    placed = await active(cell)
    await cell.claims.gone("h1", "a", placed.token, EndReason.WORK_ENDED, {}, reason="no process 7 is left")
    assert (await cell.claims.read(["a"]))["a"].end_reason is EndReason.WORK_ENDED
    reason = await reason_of(cell)
    assert reason is not None
    assert reason.text == "no process 7 is left"


@pytest.mark.parametrize(("state", "word"), [("claimed", "accepted it"), ("starting", "confirmed that its work runs")])
async def test_a_lease_that_ran_out_says_which_and_what_was_missing(
    cell: CellStore, raw: Any, state: str, word: str
) -> None:
    """Of two that are ended together, each gets its own reason."""
    await IN_STATE[state](cell, "a", "h1", VCPU=1)
    await claim_on(cell, "other", VCPU=1)
    await make_due(raw, cell, "a")
    await make_due(raw, cell, "other")
    due_ms = (await cell.claims.read(["a"]))["a"].expires_at_ms
    assert await cell.claims.reconcile(["other", "a"]) == 2
    reason = await reason_of(cell)
    assert reason is not None
    assert reason.text == f"its lease ended at {utc(due_ms)}, and host h1 had not {word}"
    assert await left_ms(cell, raw) == pytest.approx(REMEMBER_MS if state == "claimed" else DAY_MS, abs=10_000)
    assert "accepted it" in (await cell.claims.reasons(["other"]))["other"].text


# -- work that ended although the claim continues


async def test_a_claim_shows_that_its_work_has_ended(cell: CellStore, raw: Any) -> None:
    placed = await active(cell)
    seq = (await cell.tick()).seq
    assert (await cell.claims.work_ended("h1", "a", placed.token, "no process 7 is left")).outcome is Outcome.OK
    claim = (await cell.claims.read(["a"]))["a"]
    assert claim.state is ClaimStatus.ACTIVE
    reason = await reason_of(cell)
    assert reason is not None
    assert (reason.text, reason.at_ms) == ("no process 7 is left", claim.work_ended_at_ms)
    (entry,) = [one for one in await cell.feed.read("0-0", 100) if one.seq > seq]
    assert (entry.op, entry.fields) == ("work-ended", {"claim": "a", "reason": "no process 7 is left"})
    assert await left_ms(cell, raw) == pytest.approx(DAY_MS, abs=10_000)


async def test_a_claim_that_lost_the_note_of_it_gets_it_again(cell: CellStore, raw: Any) -> None:
    """Its host restored it from a former journal, but the store never lost the reason."""
    placed = await active(cell)
    await cell.claims.work_ended("h1", "a", placed.token, "gone")
    await raw.hdel(cell.keys.claim("a"), "work_ended_at_ms")
    assert (await cell.claims.work_ended("h1", "a", placed.token, "gone")).outcome is Outcome.OK
    assert (await cell.claims.read(["a"]))["a"].work_ended_at_ms


async def test_the_work_of_a_later_placing_may_end_too(cell: CellStore) -> None:
    placed = await active(cell, VCPU=2)
    await cell.claims.work_ended("h1", "a", placed.token, "first")
    token = (await cell.claims.resize("h1", "a", placed.token, {"VCPU": 1})).facts[0]
    await cell.claims.resized("h1", "a", token, {"VCPU": 1})
    assert (await cell.claims.work_ended("h1", "a", placed.token, "late")).outcome is Outcome.STALE
    assert (await cell.claims.work_ended("h1", "a", token, "second")).outcome is Outcome.OK
    reason = await reason_of(cell)
    assert reason is not None
    assert (reason.text, reason.token) == ("second", token)


async def test_what_becomes_of_it_stands_in_the_claim_where_it_was_said(cell: CellStore, raw: Any) -> None:
    for claim_id, on_exit in (("a", OnExit.RELEASE), ("b", OnExit.REPLACE), ("c", OnExit.KEEP)):
        call = call_of(await cell.tick(), member(claim_id, "h1", VCPU=1), on_exit=on_exit)
        assert (await cell.claims.place(call)).outcome is Outcome.OK
        assert (await cell.claims.read([claim_id]))[claim_id].on_exit is on_exit
    assert "on_exit" not in await fields_of(raw, cell.keys.claim("a"))


async def test_a_host_brings_back_what_becomes_of_it_and_that_its_work_has_ended(cell: CellStore, raw: Any) -> None:
    call = call_of(await cell.tick(), member("a", "h1", VCPU=1), on_exit=OnExit.KEEP)
    token = (await cell.claims.place(call)).placed[0].token
    await cell.claims.release("h1", "a", token, ReleaseMode.FORCE)
    await raw.delete(cell.keys.claim("a"))
    epoch = await new_epoch(cell)
    held = held_claim("a", token, on_exit="keep", work_ended_at_ms="7")
    assert (await cell.hosts.attest("h1", epoch, None, [held])).outcome is Outcome.OK
    claim = (await cell.claims.read(["a"]))["a"]
    assert (claim.state, claim.on_exit, claim.work_ended_at_ms) == (ClaimStatus.ACTIVE, OnExit.KEEP, 7)


# -- work that cannot be stopped


async def stop_failure_of(cell: CellStore) -> Reason | None:
    return (await cell.claims.failures(["a", "other"]))[1].get("a")


async def test_a_claim_shows_why_its_work_could_not_be_stopped(cell: CellStore, raw: Any) -> None:
    placed = await active(cell)
    await cell.claims.release("h1", "a", placed.token)
    seq = (await cell.tick()).seq
    assert (await cell.claims.stop_failed("h1", "a", placed.token, "target is busy")).outcome is Outcome.OK
    stuck = await stop_failure_of(cell)
    assert stuck is not None
    assert (stuck.text, stuck.host, stuck.token) == ("target is busy", "h1", placed.token)
    assert seq <= stuck.at_ms <= (await cell.tick()).now_ms
    assert await reason_of(cell) is None
    assert await left_ms(cell, raw) == pytest.approx(DAY_MS, abs=10_000)
    assert [one for one in await cell.feed.read("0-0", 100) if one.seq > seq] == [], "nothing else has changed"


async def test_why_it_ends_is_told_when_it_is_gone_as_it_was_before(cell: CellStore, raw: Any) -> None:
    placed = await active(cell)
    await cell.claims.fail("h1", "a", placed.token, by_host=False, reason="the host is drained")
    before = await reason_of(cell)
    for said in ("target is busy", "still busy"):
        assert (await cell.claims.stop_failed("h1", "a", placed.token, said)).outcome is Outcome.OK
    stuck = await stop_failure_of(cell)
    assert stuck is not None
    assert stuck.after(before).text == "the host is drained; it could not be stopped: still busy"
    await cell.claims.gone("h1", "a", placed.token, EndReason.RELEASED, {})
    assert (await told(cell, "failed"))[-1] == ("failed", "the host is drained")
    assert before == await reason_of(cell)
    assert await stop_failure_of(cell) is None
    assert await left_ms(cell, raw) == pytest.approx(REMEMBER_MS, abs=10_000)


async def test_work_that_was_stopped_at_last_leaves_no_reason_behind(cell: CellStore, raw: Any) -> None:
    placed = await active(cell)
    await cell.claims.release("h1", "a", placed.token)
    await cell.claims.stop_failed("h1", "a", placed.token, "target is busy")
    await cell.claims.gone("h1", "a", placed.token, EndReason.RELEASED, {})
    assert not await raw.exists(cell.keys.reason("a"))


async def test_a_claim_that_was_released_by_force_shows_that_it_could_not_be_stopped(cell: CellStore, raw: Any) -> None:
    placed = await active(cell)
    await cell.claims.release("h1", "a", placed.token)
    await cell.claims.stop_failed("h1", "a", placed.token, "target is busy")
    await cell.claims.release("h1", "a", placed.token, how=ReleaseMode.FORCE)
    stuck = await stop_failure_of(cell)
    assert stuck is not None
    assert stuck.text == "target is busy"


async def test_what_cannot_be_stopped_on_one_host_hides_no_failure_on_another(cell: CellStore, raw: Any) -> None:
    """The work was moved to h2 and has ended there, while h1 is still trying to stop what was left behind."""
    placed = await active(cell)
    await open_host(cell, "h2")
    await cell.claims.release("h1", "a", placed.token)
    failure = {"at_ms": "7", "host": "h2", "token": "1-a.9", "op": "work-ended", "text": "exit code 7"}
    await raw.hset(cell.keys.reason("a"), mapping=failure)
    await cell.claims.stop_failed("h1", "a", placed.token, "target is busy")
    there = Reason(7, "h2", "1-a.9", "exit code 7", "work-ended")
    assert await reason_of(cell) == there
    stuck = await stop_failure_of(cell)
    assert stuck is not None
    assert stuck.after(there).text == "it could not be stopped: target is busy; on h2: exit code 7"
    await cell.claims.gone("h1", "a", placed.token, EndReason.RELEASED, {})
    assert await reason_of(cell) == there
    assert await stop_failure_of(cell) is None


# -- in the feed


async def test_each_change_of_the_feed_has_its_own_reason(cell: CellStore) -> None:
    placed = await active(cell)
    await cell.claims.work_ended("h1", "a", placed.token, "no process 7 is left")
    await cell.claims.fail("h1", "a", placed.token, by_host=True, reason="exit code 3")
    assert await told(cell, "work-ended") == [(None, "no process 7 is left")]
    assert await told(cell, "failed") == [("failed", "exit code 3")]
    assert await told(cell, "claimed") == await told(cell, "active") == [(None, None)]


async def test_a_lease_that_ran_out_is_reported_with_its_reason(cell: CellStore, raw: Any) -> None:
    await accepted_claim(cell)
    await make_due(raw, cell, "a")
    due_ms = (await cell.claims.read(["a"]))["a"].expires_at_ms
    await cell.claims.reconcile(["a"])
    said = f"its lease ended at {utc(due_ms)}, and host h1 had not confirmed that its work runs"
    assert await told(cell, "ending") == [("expired", said)]


async def test_the_reason_of_an_ending_is_that_of_its_end(cell: CellStore) -> None:
    """The host that has stopped the work gives no new reason. The reason of one claim is not used for another."""
    placed, other = await active(cell), await active(cell, "other")
    await cell.claims.release("h1", "a", placed.token, reason="its drain has reached its deadline")
    await cell.claims.release("h1", "other", other.token)
    await cell.claims.gone("h1", "a", placed.token, EndReason.RELEASED, {})
    await cell.claims.gone("h1", "other", other.token, EndReason.RELEASED, {})
    reasons = [("released", "its drain has reached its deadline"), ("released", None)]
    assert await told(cell, "ending") == await told(cell, "released") == reasons


async def test_an_end_that_its_owner_wanted_has_no_reason_from_before(cell: CellStore) -> None:
    """Its work had ended earlier and it was kept: that is not why it ends now."""
    placed = await active(cell)
    await cell.claims.work_ended("h1", "a", placed.token, "no process 7 is left")
    await cell.claims.release("h1", "a", placed.token)
    await cell.claims.gone("h1", "a", placed.token, EndReason.RELEASED, {})
    assert await told(cell, "ending") == await told(cell, "released") == [("released", None)]


DATES_MS = [
    0,
    951_782_399_999,
    951_782_400_000,
    951_868_800_000,
    1_795_394_958_361,
    4_107_542_400_000,
    1_735_689_599_000,
]
"""Both ends of leap days, the day after the leap day that 2100 lacks, and the last second of a year are among them."""


@pytest.mark.parametrize("at_ms", DATES_MS)
async def test_scripts_write_times_as_people_read_them(raw: Any, at_ms: int) -> None:
    assert await raw.eval(f"{includes()['utc']}\nreturn utc(tonumber(ARGV[1]))", 0, at_ms) == utc(at_ms)
