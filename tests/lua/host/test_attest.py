"""attest.lua: a host's journal is merged with the store: within an epoch the store decides, in a new one the union."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from redsched.errors import RedschedError
from redsched.model import AgentStamp, ClaimStatus, EndReason, Token
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import JournaledClaim, Placed, ReleaseMode
from redsched.store.store import Store
from tests.support.builders.cells import (
    IN_STATE,
    accepted_claim,
    active,
    call_of,
    claim_on,
    claimed,
    ended,
    ending,
    fields_of,
    member,
    new_epoch,
    nothing_written,
    open_host,
    report_of,
    stamp,
)
from tests.support.builders.placements import ended as has_ended, held_claim, main_states, settle, states


@pytest.fixture
async def cell(cell: CellStore) -> CellStore:
    """A cell with one host."""
    await open_host(cell)
    return cell


@pytest.fixture
async def open_cell(clean_store: str) -> AsyncIterator[CellStore]:
    """A cell with one host, without a list of permitted keys, which is slow for thousands of keys."""
    async with Store.connect(clean_store) as store:
        await open_host(store.cell("c1"))
        yield store.cell("c1")


def held(
    placed: Placed, claim_id: str = "a", state: ClaimStatus = ClaimStatus.ACTIVE, vcpu: int = 2, **fields: Any
) -> JournaledClaim:
    """Return a claim as the journal has it."""
    return held_claim(claim_id, placed.token, state, {"VCPU": vcpu}, "project", "consumer", "digest", **fields)


def later(token: str) -> str:
    """Return the token of a later placement."""
    parsed = Token.parse(token)
    return str(replace(parsed, seq=parsed.seq + 1000))


async def forget_claim(raw: Any, cell: CellStore, claim_id: str = "a", host: str = "h1") -> None:
    """Delete a claim from the store, as if a failover had lost it."""
    await raw.delete(cell.keys.claim(claim_id), cell.keys.inbox(host))
    await raw.srem(cell.keys.claims(host), claim_id)
    await raw.zrem(cell.keys.deadlines, claim_id)
    await raw.hset(cell.keys.host(host), "claimed.VCPU", "0")


async def test_the_answers_that_write_nothing(cell: CellStore, raw: Any) -> None:
    async with nothing_written(raw):
        assert (await cell.hosts.attest("nowhere", "")).outcome is Outcome.UNKNOWN
        assert (await cell.hosts.attest("h1", "1-a")).outcome is Outcome.WRONG_EPOCH
        assert (await cell.hosts.attest("h1", "")).outcome is Outcome.ALREADY_DONE


async def test_attesting_opens_the_host_in_the_feed_and_once_per_epoch(cell: CellStore, raw: Any) -> None:
    epoch = await new_epoch(cell)
    clock = await cell.tick()
    assert (await cell.hosts.attest("h1", epoch)).outcome is Outcome.OK
    (entry,) = [one for one in await cell.feed.read("0-0", 100) if one.seq > clock.seq]
    assert (entry.op, entry.fields) == ("attest", {"epoch": epoch})
    async with nothing_written(raw):
        assert (await cell.hosts.attest("h1", epoch)).outcome is Outcome.ALREADY_DONE
    await claim_on(cell)


async def test_a_late_copy_of_an_attestation_opens_nothing(cell: CellStore, raw: Any) -> None:
    """It was built from an older journal; the current one is yet to be sent, and may carry the report's own number."""
    await cell.hosts.report(report_of(), stamp(7))
    epoch = await new_epoch(cell)
    async with nothing_written(raw):
        assert (await cell.hosts.attest("h1", epoch, stamp(6))).outcome is Outcome.ALREADY_DONE
        assert (await cell.hosts.heartbeat("h1", 60, stamp(7))).outcome is Outcome.NOT_ATTESTED
    assert (await cell.hosts.attest("h1", epoch, stamp(7))).outcome is Outcome.OK


async def test_work_that_the_store_has_forgotten_is_put_back(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a", VCPU=2)
    await forget_claim(raw, cell)
    await new_epoch(cell)
    answer = await cell.hosts.attest("h1", "", held=[held(placed)])
    assert (answer.outcome, answer.drop) == (Outcome.OK, ())
    claim = (await cell.claims.read("a"))["a"]
    assert (claim.host, claim.state, claim.token, claim.digest) == ("h1", "active", placed.token, "digest")
    assert (claim.project, claim.consumer, claim.slots) == ("project", "consumer", {"VCPU": 2})
    assert (await claimed(raw, cell), await cell.hosts.claim_ids("h1"), dict(await cell.due.deadlines())) == (
        2,
        {"a"},
        {},
    )
    again = await cell.claims.place(call_of(await cell.tick(), member("a", "h1", VCPU=2)))
    assert (again.outcome, again.placed[0].token) == (Outcome.ALREADY_DONE, placed.token)


async def test_restored_work_counts_although_it_is_more_than_the_host_has(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    await forget_claim(raw, cell)
    await new_epoch(cell)
    await cell.hosts.attest("h1", "", held=[held(placed, vcpu=100)])
    assert await claimed(raw, cell) == 100
    assert (await cell.claims.place(call_of(await cell.tick(), member("b", "h1")))).outcome is Outcome.FULL


async def test_sums_above_the_largest_amount_are_a_conflict(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    await new_epoch(cell)
    huge = [held(placed, "a"), held(placed, "b", vcpu=2**53 - 1)]
    async with nothing_written(raw):
        assert (await cell.hosts.attest("h1", "", held=huge)).outcome is Outcome.CONFLICT


async def test_claimed_is_recomputed_from_the_claims(cell: CellStore, raw: Any) -> None:
    """The field of an unused slot that the host does not have is deleted; a sum that had drifted is corrected."""
    placed = await active(cell, "a", VCPU=2)
    await raw.hset(cell.keys.host("h1"), mapping={"claimed.VCPU": "7", "claimed.MEMORY_MB": "5"})
    await new_epoch(cell)
    seq = (await cell.tick()).seq
    await cell.hosts.attest("h1", "", held=[held(placed)])
    fields = await fields_of(raw, cell.keys.host("h1"))
    assert (fields["claimed.VCPU"], fields.get("claimed.MEMORY_MB")) == ("2", None)
    (entry,) = [one for one in await cell.feed.read("0-0", 100) if one.seq > seq]
    assert (entry.fields["claimed.VCPU"], entry.fields["claimed.MEMORY_MB"]) == ("2", "")


async def test_a_host_attests_with_more_slots_than_an_entry_of_the_feed_can_name(cell: CellStore, raw: Any) -> None:
    """Also slots of which nothing is claimed any more, and some thousands of them: more than Lua can unpack."""
    slots = [f"CUSTOM_{number}" for number in range(9000)]
    for first in range(0, len(slots), 1000):
        batch = slots[first : first + 1000]
        await raw.hset(cell.keys.host("h1"), mapping={f"capacity.{slot}": "1" for slot in batch})
        await raw.hset(cell.keys.host("h1"), mapping={f"claimed.{slot}": "1" for slot in batch})
    await new_epoch(cell)
    seq = (await cell.tick()).seq
    assert (await cell.hosts.attest("h1", "")).outcome is Outcome.OK
    (entry,) = [one for one in await cell.feed.read("0-0", 100) if one.seq > seq]
    assert entry.fields == {"reread": "1"}
    fields = await fields_of(raw, cell.keys.host("h1"))
    assert {fields[f"claimed.{slot}"] for slot in slots} == {"0"}


@pytest.mark.parametrize(
    ("stored", "journal", "merged"),
    [
        ("claimed", "claimed", "claimed"),
        ("claimed", "starting", "starting"),
        ("claimed", "active", "active"),
        ("starting", "active", "active"),
        ("active", "starting", "active"),
        ("ending", "active", "ending"),
        ("active", "ending", "ending"),
    ],
)
async def test_a_claim_known_to_both_is_in_the_state_further_along(
    cell: CellStore, raw: Any, stored: str, journal: str, merged: str
) -> None:
    placed = await IN_STATE[stored](cell, "a", "h1", VCPU=2)
    await new_epoch(cell)
    answer = await cell.hosts.attest("h1", "", held=[held(placed, state=ClaimStatus(journal))], lease_s=7)
    fields = await fields_of(raw, cell.keys.claim("a"))
    assert (answer.outcome, fields["state"], fields["token"]) == (Outcome.OK, merged, placed.token)
    assert fields["claimed_at_ms"]
    assert await claimed(raw, cell) == 2
    leased = merged in ("claimed", "starting")
    assert await cell.due.deadlines() == ({"a": answer.now_ms + 7000} if leased else {})
    notifications = [(one.op, one.epoch, one.entry_id) for one in await cell.hosts.inbox("h1")]
    op = {"claimed": "claim", "ending": "end"}.get(merged)
    assert notifications == ([(op, answer.epoch, fields["inbox_id"])] if op else [])
    # this journal does not have the reason
    assert fields.get("end_reason") == ({"ending": "released"}.get(stored, "void") if merged == "ending" else None)


async def test_work_whose_confirmation_was_lost_has_its_log(cell: CellStore) -> None:
    """Of what was confirmed, the store knows it: during a move, it may be that of the other host."""
    placed = await accepted_claim(cell)
    for log in ("h1:/first", "h1:/second"):
        one = held(placed)
        await new_epoch(cell)
        await cell.hosts.attest("h1", "", held=[replace(one, record={**one.record, "log": log})])
        assert (await cell.claims.read("a"))["a"].log == "h1:/first"


async def test_of_two_placings_the_later_one_has_its_amounts(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a", VCPU=2)
    await new_epoch(cell)
    newer = replace(held(placed, vcpu=5), token=later(placed.token))
    await cell.hosts.attest("h1", "", held=[newer])
    claim = (await cell.claims.read("a"))["a"]
    assert (claim.token, claim.slots, await claimed(raw, cell)) == (newer.token, {"VCPU": 5}, 5)
    await new_epoch(cell)
    await cell.hosts.attest("h1", "", held=[held(placed, vcpu=3)])
    claim = (await cell.claims.read("a"))["a"]
    assert (claim.token, claim.slots, await claimed(raw, cell)) == (newer.token, {"VCPU": 5}, 5)


@pytest.mark.parametrize("state", ["claimed", "starting", "active"])
async def test_a_placement_that_the_journal_lost_is_notified_again_with_a_fresh_lease(
    cell: CellStore, raw: Any, state: str
) -> None:
    placed = await IN_STATE[state](cell, "a", "h1", VCPU=2)
    number = int(await raw.hget(cell.keys.host("h1"), "inbox"))
    epoch = await new_epoch(cell)
    answer = await cell.hosts.attest("h1", "", lease_s=7)
    (notification,) = await cell.hosts.inbox("h1")
    assert (notification.op, notification.epoch, notification.number, notification.token) == (
        "claim",
        epoch,
        number + 1,
        placed.token,
    )
    assert await cell.due.deadlines() == {"a": answer.now_ms + 7000}
    assert (await cell.claims.read("a"))["a"].state == "claimed"
    assert await claimed(raw, cell) == 2
    assert (await cell.claims.accept("h1", "a", placed.token, 60)).outcome is Outcome.OK


@pytest.mark.parametrize(("state", "then"), [("claimed", "claimed"), ("starting", "starting"), ("active", "starting")])
async def test_what_a_new_journal_does_not_know_may_run(cell: CellStore, raw: Any, state: str, then: str) -> None:
    """The former journal is lost: a release asks the host to stop the work, and frees no amounts that may be in use."""
    await cell.hosts.report(report_of("h1"), AgentStamp("journal-1", "n", 1))
    placed = await IN_STATE[state](cell, "a", "h1", VCPU=2)
    epoch = await new_epoch(cell)
    await raw.hset(cell.keys.host("h1"), "alive_until_ms", 1)
    await cell.hosts.attest("h1", epoch, AgentStamp("journal-2", "n", 1))
    assert [(one.op, one.token) for one in await cell.hosts.inbox("h1")] == [("claim", placed.token)]
    assert await main_states(cell, "a") == {"a": then}
    freed = (await cell.claims.release("h1", "a")).outcome is Outcome.OK
    assert (freed, await claimed(raw, cell)) == (True, 0) if then == "claimed" else (False, 2)


async def test_what_was_ending_and_is_lost_to_the_journal_is_asked_back_again(cell: CellStore, raw: Any) -> None:
    placed = await ending(cell)
    await new_epoch(cell)
    await cell.hosts.attest("h1", "")
    assert [(one.op, one.token) for one in await cell.hosts.inbox("h1")] == [("end", placed.token)]
    assert (await cell.claims.read("a"))["a"].state == "ending"


async def test_what_the_journal_remembers_as_ended_ends(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a", VCPU=2)
    await new_epoch(cell)
    await cell.hosts.attest("h1", "", ended=[has_ended("a", placed.token), has_ended("never-was", placed.token)])
    claim = (await cell.claims.read("a"))["a"]
    assert (claim.state, claim.end_reason) == ("ended", EndReason.VOID)
    assert (await claimed(raw, cell), await cell.hosts.claim_ids("h1")) == (0, set())
    assert await raw.pttl(cell.keys.claim("a")) > 0
    assert not await raw.exists(cell.keys.claim("never-was"))


async def test_an_end_of_an_earlier_placing_does_not_end_the_present_one(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a", VCPU=2)
    await new_epoch(cell)
    await cell.hosts.attest(
        "h1", "", ended=[has_ended("a", placed.token, "1-a.1"), has_ended("a", "1-a.1", placed.token)]
    )
    assert (await cell.claims.read("a"))["a"].state == "claimed"
    assert [one.token for one in await cell.hosts.inbox("h1")] == [placed.token]


async def test_work_whose_claim_has_ended_is_counted_until_its_host_has_stopped_it(cell: CellStore, raw: Any) -> None:
    placed = await ended(cell, "a", VCPU=2)
    await new_epoch(cell)
    answer = await cell.hosts.attest("h1", "", held=[held(placed)])
    assert (answer.outcome, answer.drop) == (Outcome.OK, ())
    assert (await states(cell, "a"), await claimed(raw, cell)) == ({"h1": "ending released"}, 2)
    assert [(one.op, one.token) for one in await cell.hosts.inbox("h1")] == [("end", placed.token)]
    assert await raw.pttl(cell.keys.claim("a")) == -1
    assert (await cell.claims.gone("h1", "a", placed.token, EndReason.VOID, {})).outcome is Outcome.OK
    assert (await states(cell, "a"), await claimed(raw, cell)) == ({"": "ended released"}, 0)
    assert await raw.pttl(cell.keys.claim("a")) > 0


async def test_what_was_placed_after_its_claim_had_ended_is_restored(cell: CellStore, raw: Any) -> None:
    placed = await ended(cell, "a", VCPU=2)
    await new_epoch(cell)
    newer = later(placed.token)
    assert (
        await cell.hosts.attest("h1", "", held=[replace(held(placed), placed=newer, token=newer, root=newer)])
    ).drop == ()
    assert (await raw.pttl(cell.keys.claim("a")), await claimed(raw, cell)) == (-1, 2)
    assert await states(cell, "a") == {"h1": "active"}


@pytest.mark.parametrize("first", ["h1", "h2"])
async def test_of_two_that_were_active_both_come_back_and_the_earlier_is_asked_back(
    cell: CellStore, raw: Any, first: str
) -> None:
    """A failover lost the id, and another host got a claim under it. Both placements count for as long as they run."""
    old = await active(cell, "a", "h1", VCPU=2)
    await forget_claim(raw, cell)
    await open_host(cell, "h2")
    new = await active(cell, "a", "h2", VCPU=2)
    await new_epoch(cell)
    for name in sorted(("h1", "h2"), reverse=first == "h2"):
        assert (await cell.hosts.attest(name, "", held=[held(old if name == "h1" else new)])).drop == ()
    assert await states(cell, "a") == {"h1": "active", "h2": "active"}
    assert (await claimed(raw, cell, "h1"), await claimed(raw, cell, "h2")) == (2, 2)
    await settle(cell)
    assert await states(cell, "a") == {"h1": "ending moved", "h2": "active"}
    assert [(one.op, one.token) for one in await cell.hosts.inbox("h1")] == [("end", old.token)]
    assert (await cell.claims.gone("h1", "a", old.token, EndReason.RELEASED, {})).outcome is Outcome.OK
    assert (await claimed(raw, cell, "h1"), await claimed(raw, cell, "h2")) == (0, 2)
    assert (await cell.hosts.claim_ids("h1"), await cell.hosts.claim_ids("h2")) == (set(), {"a"})


@pytest.mark.parametrize("state", [ClaimStatus.STARTING, ClaimStatus.ACTIVE])
async def test_a_journal_leaves_the_mark_of_the_last_call(cell: CellStore, raw: Any, state: ClaimStatus) -> None:
    """Only that call may undo the claim, in a later epoch too: journals do not contain the id of the call."""
    call = replace(call_of(await cell.tick(), member("a", "h1")), call_id="first")
    placed = (await cell.claims.place(call)).placed[0]
    await cell.hosts.attest("h1", await new_epoch(cell), held=[replace(held(placed), state=state)])
    assert (await fields_of(raw, cell.keys.claim("a")))["call_id"] == "first"
    assert (await cell.claims.release("h1", "a", placed.token, call_id="other")).outcome is Outcome.STALE
    assert (await cell.claims.release("h1", "a", placed.token, call_id="first")).outcome is Outcome.ENDING


async def test_within_an_epoch_the_store_decides(cell: CellStore, raw: Any) -> None:
    """A placement that only the journal has was ended; one that both have is not changed."""
    known = await active(cell, "a")
    async with nothing_written(raw):
        other = replace(held(known, "b"), placed="1-a.1")
        answer = await cell.hosts.attest("h1", "", held=[held(known, "a", vcpu=5), other])
    assert (answer.outcome, answer.drop) == (Outcome.ALREADY_DONE, ("1-a.1",))


@pytest.mark.parametrize("remembered", [True, False])
async def test_what_ended_while_its_host_was_written_off_counts_until_the_host_has_stopped_it(
    cell: CellStore, raw: Any, remembered: bool
) -> None:
    """In the epoch of the write-off: the stop hook may take minutes, and no other claim gets the amounts meanwhile."""
    placed = await active(cell, "a", VCPU=2)
    await cell.hosts.write_off("h1", force=True)
    await cell.claims.release("h1", "a", how=ReleaseMode.FORCE)
    if not remembered:
        await raw.delete(cell.keys.claim("a"))
    answer = await cell.hosts.attest("h1", "", held=[held(placed)])
    assert (answer.outcome, answer.drop, await claimed(raw, cell)) == (Outcome.OK, (), 2)
    assert await states(cell, "a") == {"h1": "ending void"}
    assert [(one.op, one.token) for one in await cell.hosts.inbox("h1")] == [("end", placed.token)]
    assert (await cell.claims.gone("h1", "a", placed.token, EndReason.RELEASED, {})).outcome is Outcome.OK
    assert await claimed(raw, cell) == 0
    assert await states(cell, "a") == {"": "ended released" if remembered else "ended void"}


@pytest.mark.parametrize("is_wiped", [True, False])
@pytest.mark.parametrize(
    ("journaled", "seen"),
    [("failed", "failed"), ("released", "released"), ("work-ended", "work-ended"), ("shelved", "void"), ("", "void")],
)
async def test_what_a_journal_is_ending_keeps_its_reason(
    cell: CellStore, raw: Any, is_wiped: bool, journaled: str, seen: str
) -> None:
    """The owner sees the reason, whether the store lost the claim or only its ending; the claim is not shelved."""
    placed = await active(cell, "a", VCPU=2)
    if is_wiped:
        await raw.delete(cell.keys.claim("a"))
    await new_epoch(cell)
    await cell.hosts.attest("h1", "", held=[held(placed, state=ClaimStatus.ENDING, end_reason=journaled)])
    assert await states(cell, "a") == {"h1": f"ending {seen}"}
    await cell.claims.gone("h1", "a", placed.token, EndReason.RELEASED, {})
    assert await states(cell, "a") == {"": f"ended {seen}"}
    assert [*await cell.claims.shelved_ids()] == []


async def test_a_reason_in_the_journal_of_work_that_runs_says_nothing(cell: CellStore) -> None:
    placed = await active(cell, "a", VCPU=2)
    await new_epoch(cell)
    await cell.hosts.attest("h1", "", held=[held(placed, end_reason="failed")])
    assert (await cell.claims.read(["a"]))["a"].end_reason is None


async def test_what_was_released_by_force_while_its_host_was_away_stays_ended(cell: CellStore, raw: Any) -> None:
    """In a later epoch too, and when the store has forgotten the claim. A later placement of its id is unaffected."""
    placed, kept = await active(cell, "a", VCPU=2), await active(cell, "b")
    await raw.hset(cell.keys.host("h1"), "alive_until_ms", "1")
    await cell.claims.release("h1", "a", how=ReleaseMode.FORCE)
    await raw.delete(cell.keys.claim("a"))
    for _ in range(2):  # the host may not have received the first answer
        epoch = await new_epoch(cell)
        assert (await cell.hosts.attest("h1", epoch, held=[held(placed), held(kept, "b")])).drop == ()
        assert (await states(cell, "a"), await states(cell, "b")) == ({"h1": "ending void"}, {"h1": "active"})
        assert [one.claim_id for one in await cell.hosts.inbox("h1")] == ["a"]
    assert (await cell.claims.gone("h1", "a", placed.token, EndReason.RELEASED, {})).outcome is Outcome.OK
    await cell.hosts.attest("h1", await new_epoch(cell), held=[held(kept, "b")])
    assert not [name for name in await fields_of(raw, cell.keys.host("h1")) if name.startswith("dropped.")]


async def test_what_was_placed_after_a_release_by_force_is_restored(cell: CellStore, raw: Any) -> None:
    await active(cell, "a")
    await raw.hset(cell.keys.host("h1"), "alive_until_ms", "1")
    await cell.claims.release("h1", "a", how=ReleaseMode.FORCE)
    await raw.delete(cell.keys.claim("a"))
    await cell.hosts.report(report_of())
    later = await active(cell, "a")
    await raw.delete(cell.keys.claim("a"))
    epoch = await new_epoch(cell)
    assert (await cell.hosts.attest("h1", epoch, held=[held(later)])).drop == ()
    assert await cell.hosts.claim_ids("h1") == {"a"}


async def test_the_last_host_settles_the_cell(cell: CellStore) -> None:
    await open_host(cell, "h2")
    await new_epoch(cell)
    await cell.hosts.attest("h1", "")
    await cell.hosts.attest("h1", "")
    assert not (await cell.tick()).settled
    await cell.hosts.attest("h2", "")
    assert (await cell.tick()).settled


async def test_a_claim_that_arrives_meanwhile_is_seen(cell: CellStore, raw: Any) -> None:
    """The script answers RETRY for an id that the call did not name, and the call is built again."""
    placed = await claim_on(cell, "a", VCPU=2)
    await new_epoch(cell)
    seen: list[int] = []
    held_ids = cell.hosts.claim_ids

    async def outdated(host: str) -> set[str]:
        seen.append(1)
        return set() if len(seen) == 1 else await held_ids(host)

    cell.hosts.claim_ids = outdated  # type: ignore[method-assign]
    assert (await cell.hosts.attest("h1", "")).outcome is Outcome.OK
    assert len(seen) == 2
    assert [one.token for one in await cell.hosts.inbox("h1")] == [placed.token]
    assert await claimed(raw, cell) == 2


async def test_thousands_of_claims_to_drop_are_all_named(open_cell: CellStore) -> None:
    """More than Lua can unpack, and after the last check: a script that failed here would leave half its writes."""
    many = [held_claim(f"id{number}", "1-a.1", ClaimStatus.ACTIVE, {"VCPU": 1}) for number in range(9000)]
    assert len((await open_cell.hosts.attest("h1", "", held=many)).drop) == 9000


async def test_thousands_of_claims_are_restored(open_cell: CellStore, raw: Any) -> None:
    many = [held_claim(f"id{number}", "1-a.1", ClaimStatus.STARTING, {"VCPU": 1}) for number in range(2000)]
    await new_epoch(open_cell)
    assert (await open_cell.hosts.attest("h1", "", held=many)).outcome is Outcome.OK
    assert (await claimed(raw, open_cell), len(await open_cell.due.deadlines())) == (2000, 2000)


async def test_a_journal_that_says_nonsense_changes_nothing(cell: CellStore, raw: Any) -> None:
    placed = await accepted_claim(cell, "a", VCPU=2)
    await new_epoch(cell)
    with pytest.raises(RedschedError):
        async with nothing_written(raw):
            await cell.hosts.attest("h1", "", held=[held(placed, state=ClaimStatus.ENDED)])
    async with nothing_written(raw):
        assert (await cell.hosts.attest("h1", "", held=[held(placed, "b", vcpu=-1)])).outcome is Outcome.CONFLICT


async def test_a_confirmation_for_another_epoch_is_refused(cell: CellStore) -> None:
    """A replaced primary still answers: a client must not learn from it that the work stays."""
    placed = await accepted_claim(cell, "a")
    epoch = (await cell.tick()).epoch
    assert (await cell.claims.confirm("h1", "a", placed.token, epoch=f"9{epoch}")).outcome is Outcome.NOT_ATTESTED
    assert await main_states(cell, "a") == {"a": "starting"}
    assert (await cell.claims.confirm("h1", "a", placed.token, epoch=epoch)).outcome is Outcome.OK
