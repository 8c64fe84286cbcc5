"""Pending claims: a claim that failed before it was active is placed again, as often as its request allows."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from redsched.model import AgentStamp, ClaimStatus, EndReason, OnExit
from redsched.store.cell import CellStore
from redsched.store.codec.claim_fields import record_of
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import JournaledClaim, Placed, Replacement
from tests.support.builders.cells import (
    HOUR_S,
    IN_STATE,
    active,
    call_of,
    claim_on,
    claimed,
    fields_of,
    make_due,
    member,
    new_epoch,
    nothing_written,
    report_of,
)
from tests.support.builders.placements import (
    arrive,
    ask_again,
    held,
    move_to,
    roll_back,
    settle,
    shelved,
    snapshot,
    states,
)
from tests.support.models.sums import check_sums

pytestmark = pytest.mark.usefixtures("three_hosts", "sums")

FAILED = EndReason.FAILED


@pytest.fixture
async def sums(cell: CellStore, raw: Any) -> AsyncIterator[None]:
    """Check after each test that the counters are those of the claims."""
    yield
    await check_sums(cell, raw)


async def attempted(cell: CellStore, most: int = 3, host: str = "h1") -> Placed:
    """Claim `a`, with so many attempts."""
    call = call_of(await cell.tick(), member("a", host), max_attempts=most)
    answer = await cell.claims.place(call)
    assert answer.outcome is Outcome.OK
    return answer.placed[0]


async def again(cell: CellStore, placed: Placed, host: str, most: int = 3) -> Placed:
    """Place `a` again, as a scheduler does."""
    one = replace(member("a", host), replacement=Replacement(placed.host, placed.token, FAILED))
    answer = await cell.claims.place(call_of(await cell.tick(), one, max_attempts=most))
    assert answer.outcome is Outcome.OK
    return answer.placed[0]


async def retry_fields(cell: CellStore, raw: Any) -> dict[str, str]:
    """Return the fields of claim `a` about placing it again."""
    names = ("attempts", "retry_root", "retry_from", "retry_reason")
    fields = await fields_of(raw, cell.keys.claim("a"))
    return {name: fields[name] for name in names if name in fields}


async def test_what_its_host_has_failed_waits_for_another_place(cell: CellStore, raw: Any) -> None:
    placed = await attempted(cell)
    answer = await cell.claims.fail("h1", "a", placed.token, by_host=True)
    assert (answer.outcome, answer.facts) == (Outcome.OK, ("pending",))
    assert (await states(cell, "a"), await claimed(raw, cell)) == ({"": "pending failed"}, 0)
    assert await retry_fields(cell, raw) == {
        "retry_root": placed.token,
        "retry_from": placed.token,
        "retry_reason": "failed",
    }
    assert await cell.due.to_reconcile((await cell.tick()).now_ms, 0, 10) == ["a"]
    assert await raw.pttl(cell.keys.claim("a")) == -1
    claim = (await cell.claims.read("a"))["a"]
    assert (claim.project, claim.digest, claim.retry_from) == ("project", "digest", placed.token)


async def test_its_next_place_is_the_next_attempt_of_the_same_line(cell: CellStore, raw: Any) -> None:
    first = await attempted(cell)
    await cell.claims.fail("h1", "a", first.token, by_host=True)
    second = await again(cell, first, "h2")
    claim = (await cell.claims.read("a"))["a"]
    assert (claim.state, claim.host, claim.attempts, claim.placements[0].root) == ("claimed", "h2", 2, first.token)
    assert await retry_fields(cell, raw) == {"attempts": "2"}
    assert not await raw.exists(cell.keys.reconcile)
    async with nothing_written(raw):
        copy = await ask_again(cell, "a", "h3", Replacement("h1", first.token, FAILED))
    assert (copy.outcome, copy.placed[0].token) == (Outcome.ALREADY_DONE, second.token)


async def test_it_ends_with_its_last_attempt(cell: CellStore, raw: Any) -> None:
    placed = await attempted(cell, 3)
    for host in ("h2", "h3"):
        assert (await cell.claims.fail(placed.host, "a", placed.token, by_host=True)).facts == ("pending",)
        placed = await again(cell, placed, host)
    answer = await cell.claims.fail("h3", "a", placed.token, by_host=True)
    assert (answer.outcome, answer.facts) == (Outcome.OK, ("ended",))
    assert (await states(cell, "a"), await retry_fields(cell, raw)) == ({"": "ended failed"}, {"attempts": "3"})


async def test_once_active_it_has_all_its_attempts_again(cell: CellStore, raw: Any) -> None:
    placed = await attempted(cell, 2)
    await cell.claims.fail("h1", "a", placed.token, by_host=True)
    placed = await again(cell, placed, "h2", 2)
    await arrive(cell, "a", placed)
    fields = await fields_of(raw, cell.keys.claim("a"))
    assert not [name for name in fields if name.startswith(("tried.", "retry_")) or name == "attempts"]
    assert (await cell.claims.fail("h2", "a", placed.token, by_host=True)).facts == ("pending",)


async def test_the_hosts_that_it_has_failed_on_are_named_until_it_is_active(cell: CellStore, raw: Any) -> None:
    placed = await attempted(cell)
    await cell.claims.fail("h1", "a", placed.token, by_host=True)
    placed = await again(cell, placed, "h2")
    await cell.claims.fail("h2", "a", placed.token, by_host=True)
    fields = await fields_of(raw, cell.keys.claim("a"))
    assert {name for name in fields if name.startswith("tried.")} == {"tried.h1", "tried.h2"}


async def test_each_pause_before_an_attempt_is_longer(cell: CellStore, raw: Any) -> None:
    placed = await attempted(cell, 9)
    pauses = []
    for host in ("h2", "h3", "h1", "h2"):
        now_ms = (await cell.claims.fail(placed.host, "a", placed.token, by_host=True)).now_ms
        pauses.append(int(await raw.zscore(cell.keys.reconcile, "a")) - now_ms)
        placed = await again(cell, placed, host, 9)
    assert pauses == [0, 500, 1000, 2000]


async def test_a_request_without_attempts_has_one(cell: CellStore) -> None:
    placed = await claim_on(cell)
    assert (await cell.claims.fail("h1", "a", placed.token, by_host=True)).facts == ("ended",)


@pytest.mark.parametrize("state", ["claimed", "starting", "active"])
async def test_who_fails_it_may_ask_for_another_place_or_for_none(cell: CellStore, state: str) -> None:
    """Whatever the request allows; its host has yet to stop what it has accepted."""
    placed = await IN_STATE[state](cell, "a")
    answer = await cell.claims.fail("h1", "a", placed.token, by_host=False, retry=True)
    assert answer.facts == ("pending",)
    last = {} if state == "claimed" else {"h1": "ending failed"}
    assert await states(cell, "a") == last | {"": "pending" if last else "pending failed"}
    found = await move_to(cell, "a", placed, "h2", FAILED)
    await arrive(cell, "a", found)
    assert await states(cell, "a") == last | {"h2": "active"}
    answer = await cell.claims.fail("h2", "a", found.token, by_host=False, retry=False)
    assert (answer.outcome, answer.facts) == (Outcome.ENDING, ("ending",))


async def test_what_was_ended_for_good_is_not_placed_again(cell: CellStore, raw: Any) -> None:
    placed = await attempted(cell)
    await cell.claims.fail("h1", "a", placed.token, by_host=False, retry=False)
    assert await states(cell, "a") == {"": "ended failed"}
    async with nothing_written(raw):
        assert (await cell.claims.fail("h1", "a", placed.token, by_host=True)).outcome is Outcome.ALREADY_DONE
        assert (await ask_again(cell, "a", "h2", Replacement("h1", placed.token, FAILED))).outcome is Outcome.ENDED


@pytest.mark.parametrize("state", ["ending", "shelved"])
async def test_a_host_that_fails_what_is_not_wanted_only_frees_it(cell: CellStore, raw: Any, state: str) -> None:
    placed = await attempted(cell)
    await arrive(cell, "a", placed)
    await cell.claims.release("h1", "a", end_reason=EndReason.SHELVED if state == "shelved" else EndReason.RELEASED)
    answer = await cell.claims.fail("h1", "a", placed.token, by_host=True)
    assert (answer.outcome, answer.facts) == (Outcome.OK, ("ended",))
    assert await states(cell, "a") == {"": "ended shelved" if state == "shelved" else "ended released"}


async def test_what_failed_and_was_being_stopped_is_still_placed_again(cell: CellStore) -> None:
    """Two calls report it: one that it failed, and one that its host has stopped it."""
    placed = await attempted(cell)
    await cell.claims.accept("h1", "a", placed.token, HOUR_S)
    await cell.claims.fail("h1", "a", placed.token, by_host=False)
    assert (await cell.claims.gone("h1", "a", placed.token, EndReason.RELEASED, {})).outcome is Outcome.OK
    assert await states(cell, "a") == {"": "pending failed"}
    await again(cell, placed, "h2")


async def test_a_pending_claim_is_placed_by_the_token_that_failed(cell: CellStore, raw: Any) -> None:
    placed = await attempted(cell)
    await cell.claims.fail("h1", "a", placed.token, by_host=True)
    async with nothing_written(raw):
        stale = await ask_again(cell, "a", "h2", Replacement("h1", f"{placed.token}1", FAILED))
        assert stale.outcome is Outcome.STALE
        assert (
            await ask_again(cell, "a", "h2", Replacement("h1", placed.token, FAILED), VCPU=99)
        ).outcome is Outcome.FULL
    await again(cell, placed, "h1")


@pytest.mark.parametrize("state", ["claimed", "starting", "active", "ended"])
async def test_what_does_not_wait_for_a_place_is_not_given_one(cell: CellStore, raw: Any, state: str) -> None:
    placed = await IN_STATE[state](cell, "a")
    async with nothing_written(raw):
        answer = await ask_again(cell, "a", "h2", Replacement("h1", placed.token, FAILED))
    assert answer.outcome is (Outcome.ENDED if state == "ended" else Outcome.STALE)


async def test_who_found_no_other_place_ends_nothing_where_somebody_else_has_found_one(cell: CellStore) -> None:
    """Two schedulers searched at once; the failed placement is still being stopped."""
    placed = await attempted(cell)
    await cell.claims.accept("h1", "a", placed.token, HOUR_S)
    await cell.claims.fail("h1", "a", placed.token, False, retry=True)
    await again(cell, placed, "h2")
    before = await states(cell, "a")
    assert (await cell.claims.release("h1", "a", placed.token, end_reason=FAILED)).outcome is Outcome.STALE
    assert await states(cell, "a") == before == {"h1": "ending failed", "h2": "claimed"}


async def test_who_found_no_other_place_ends_the_claim(cell: CellStore) -> None:
    placed = await attempted(cell)
    await cell.claims.accept("h1", "a", placed.token, HOUR_S)
    await cell.claims.fail("h1", "a", placed.token, False, retry=True)
    assert (await cell.claims.release("h1", "a", placed.token, end_reason=FAILED)).outcome is Outcome.ENDING
    await cell.claims.gone("h1", "a", placed.token, EndReason.RELEASED, {})
    assert await states(cell, "a") == {"": "ended failed"}


async def test_reconciling_leaves_a_pending_claim_to_the_schedulers(cell: CellStore, raw: Any) -> None:
    placed = await attempted(cell)
    await cell.claims.fail("h1", "a", placed.token, by_host=True)
    assert await cell.claims.reconcile(["a"]) == 0
    assert await states(cell, "a") == {"": "pending failed"}
    assert "a" in await raw.zrange(cell.keys.reconcile, 0, -1)


async def test_what_an_agent_has_not_accepted_in_time_is_placed_again(cell: CellStore, raw: Any) -> None:
    """On a host without an agent the claim just expires, because no agent was to accept it."""
    said = await cell.hosts.report(report_of("h1"), AgentStamp("j", "n", 1))
    await cell.hosts.attest("h1", said.epoch, AgentStamp("j", "n", 2))
    placed = await attempted(cell)
    await make_due(raw, cell, "a")
    assert await cell.claims.reconcile(["a"]) == 1
    assert await states(cell, "a") == {"": "pending expired"}
    await again(cell, placed, "h2")
    await make_due(raw, cell, "a")
    assert await cell.claims.reconcile(["a"]) == 1
    assert await states(cell, "a") == {"": "ended expired"}


async def test_what_was_accepted_and_did_not_come_up_in_time_is_not_placed_again(cell: CellStore, raw: Any) -> None:
    said = await cell.hosts.report(report_of("h1"), AgentStamp("j", "n", 1))
    await cell.hosts.attest("h1", said.epoch, AgentStamp("j", "n", 2))
    placed = await attempted(cell)
    await cell.claims.accept("h1", "a", placed.token, HOUR_S)
    await make_due(raw, cell, "a")
    await cell.claims.reconcile(["a"])
    assert await states(cell, "a") == {"h1": "ending expired"}
    await cell.claims.gone("h1", "a", placed.token, EndReason.RELEASED, {})
    assert await states(cell, "a") == {"": "ended expired"}


async def test_what_is_ending_is_not_placed_again_because_its_host_fails_to_stop_it(cell: CellStore, raw: Any) -> None:
    placed = await attempted(cell)
    await cell.claims.accept("h1", "a", placed.token, HOUR_S)
    await make_due(raw, cell, "a")
    await cell.claims.reconcile(["a"])
    answer = await cell.claims.fail("h1", "a", placed.token, by_host=True)
    assert (answer.outcome, answer.facts) == (Outcome.OK, ("ended",))
    assert await states(cell, "a") == {"": "ended expired"}


async def test_a_pending_claim_that_a_host_brings_back_is_not_placed_again(cell: CellStore, raw: Any) -> None:
    """The store had lost the placement that was made next."""
    first = await attempted(cell)
    await cell.claims.fail("h1", "a", first.token, by_host=True)
    before = await snapshot(raw)
    second = await again(cell, first, "h2")
    await arrive(cell, "a", second)
    epoch = await roll_back(cell, raw, before)
    await cell.hosts.attest("h1", epoch)
    await cell.hosts.attest("h3", epoch)
    assert (await ask_again(cell, "a", "h3", Replacement("h1", first.token, FAILED))).outcome is Outcome.SETTLING
    await cell.hosts.attest("h2", epoch, held=[held("a", second, root=first.token)])
    assert (await states(cell, "a"), await retry_fields(cell, raw)) == ({"h2": "active"}, {})
    await settle(cell)
    assert (await ask_again(cell, "a", "h3", Replacement("h1", first.token, FAILED))).outcome is Outcome.STALE


@pytest.mark.parametrize("anew", [True, False])
@pytest.mark.parametrize("closing", ["shelved", "voided"])
async def test_a_repeated_closing_does_not_end_what_was_placed_since(
    cell: CellStore, raw: Any, closing: str, anew: bool
) -> None:
    """Unshelved, or claimed under a voided id, and pending now. Schedulers repeat reported ends in new epochs."""
    if closing == "shelved":
        first = await active(cell, "a")
        closed, end_reason = await shelved(cell, "a", first), EndReason.SHELVED
        second = await move_to(cell, "a", first, "h2", EndReason.SHELVED)
        await raw.hset(cell.keys.claim("a"), "max_attempts", 3)
    else:
        closed, end_reason = (await cell.claims.void("a", "")).facts[0], EndReason.RELEASED
        await raw.hset(cell.keys.claim("a"), "voided_at_ms", 1)  # well before the next call was decided
        second = await attempted(cell, host="h2")
    await cell.claims.fail("h2", "a", second.token, by_host=True)
    assert await states(cell, "a") == {"": "pending failed"}
    fields = await retry_fields(cell, raw)
    if anew:
        await new_epoch(cell)
    await cell.claims.release("", "a", end_reason=end_reason, closed=closed)
    assert (await states(cell, "a"), await retry_fields(cell, raw)) == ({"": "pending failed"}, fields)
    assert (await cell.claims.release("", "a")).outcome is Outcome.OK
    assert (await states(cell, "a"), await retry_fields(cell, raw)) == ({"": "ended released"}, {})


async def test_a_pending_claim_stays_so_when_a_written_off_host_brings_a_former_placement_back(
    cell: CellStore, raw: Any
) -> None:
    """The restored placement only has to stop, and the claim still waits to be placed again."""
    first = await attempted(cell)
    await cell.claims.accept("h1", "a", first.token, HOUR_S)
    await cell.hosts.write_off("h1", force=True)
    await cell.claims.fail("h1", "a", first.token, by_host=False)
    fields = await retry_fields(cell, raw)
    assert fields["retry_root"] == first.token
    old = held("a", first, ClaimStatus.STARTING, max_attempts="1")
    assert (await cell.hosts.attest("h1", "", held=[old])).drop == ()
    assert await states(cell, "a") == {"h1": "ending void", "": "pending"}
    second = await again(cell, first, "h2")
    await cell.claims.gone("h1", "a", first.token, EndReason.RELEASED, {})
    await arrive(cell, "a", second)
    assert await states(cell, "a") == {"h2": "active"}


async def test_what_fails_on_a_written_off_host_is_placed_again(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    await cell.hosts.write_off("h1", force=True)
    answer = await cell.claims.fail("h1", "a", placed.token, by_host=False, retry=True)
    assert (answer.outcome, answer.facts) == (Outcome.OK, ("pending",))
    await arrive(cell, "a", await move_to(cell, "a", placed, "h2", FAILED))


async def test_a_repeated_failure_gets_its_first_answer(cell: CellStore, raw: Any) -> None:
    placed = await attempted(cell)
    await cell.claims.fail("h1", "a", placed.token, by_host=True)
    async with nothing_written(raw):
        again_answer = await cell.claims.fail("h1", "a", placed.token, by_host=True)
    assert (again_answer.outcome, again_answer.facts) == (Outcome.ALREADY_DONE, ("pending",))
    await again(cell, placed, "h2")
    async with nothing_written(raw):
        assert (await cell.claims.fail("h1", "a", placed.token, by_host=True)).outcome is Outcome.STALE


async def test_before_its_host_has_attested_nothing_has_failed(cell: CellStore, raw: Any) -> None:
    placed = await attempted(cell)
    await new_epoch(cell)
    async with nothing_written(raw):
        assert (await cell.claims.fail("h1", "a", placed.token, by_host=True)).outcome is Outcome.NOT_ATTESTED


async def test_how_often_its_work_has_ended_survives_a_loss_of_all_data(cell: CellStore, raw: Any) -> None:
    """Otherwise the pauses before its work is placed again would start over."""
    placed = await active(cell, "a")
    await raw.hset(cell.keys.claim("a"), "restarts", "3")
    claim = (await cell.claims.read("a"))["a"]
    entry = JournaledClaim("a", placed.token, record=record_of(claim))
    await raw.flushall()
    await cell.hosts.report(report_of("h1"))
    await cell.hosts.attest("h1", "", held=[entry])
    assert (await fields_of(raw, cell.keys.claim("a")))["restarts"] == "3"


async def test_what_comes_up_by_an_attestation_has_all_its_attempts_again(cell: CellStore, raw: Any) -> None:
    """As if its host had confirmed it."""
    first = await attempted(cell, 2)
    await cell.claims.fail("h1", "a", first.token, by_host=True)
    second = await again(cell, first, "h2", 2)
    await cell.claims.accept("h2", "a", second.token, HOUR_S)
    epoch = await new_epoch(cell)
    await cell.hosts.attest("h2", epoch, held=[held("a", second, root=first.token)])
    for host in ("h1", "h3"):
        await cell.hosts.attest(host, epoch)
    fields = await fields_of(raw, cell.keys.claim("a"))
    assert not [name for name in fields if name.startswith(("tried.", "expires_")) or name == "attempts"]
    assert (await cell.claims.fail("h2", "a", second.token, by_host=True)).facts == ("pending",)


async def test_what_a_host_brings_back_as_active_has_all_its_attempts_again(cell: CellStore, raw: Any) -> None:
    """The store had lost that placement."""
    first = await attempted(cell, 3)
    await cell.claims.fail("h1", "a", first.token, by_host=True)
    before = await snapshot(raw)
    second = await again(cell, first, "h2")
    await arrive(cell, "a", second)
    epoch = await roll_back(cell, raw, before)
    await cell.hosts.attest("h2", epoch, held=[held("a", second, root=first.token)])
    fields = await fields_of(raw, cell.keys.claim("a"))
    assert not [name for name in fields if name.startswith("tried.")]


async def replaced(cell: CellStore, most: int) -> Placed:
    """Claim `a`, whose work runs, and which is placed again whenever its work ends."""
    call = call_of(await cell.tick(), member("a", "h1"), max_attempts=most, on_exit=OnExit.REPLACE)
    placed = (await cell.claims.place(call)).placed[0]
    await arrive(cell, "a", placed)
    return placed


async def test_work_that_has_run_and_is_to_be_replaced_is_although_one_attempt_is_all(cell: CellStore) -> None:
    """Attempts are counted from when it was last active: the next one is the first."""
    placed = await replaced(cell, 1)
    assert (await cell.claims.fail("h1", "a", placed.token, by_host=True)).facts == ("pending",)
    claim = (await cell.claims.read("a"))["a"]
    assert (claim.attempts, claim.restarts) == (0, 1)
    second = await again(cell, placed, "h2", 1)
    assert (await cell.claims.read("a"))["a"].attempts == 1
    assert (await cell.claims.fail("h2", "a", second.token, by_host=True)).facts == ("ended",)


async def test_a_place_that_is_not_there_is_looked_for_less_and_less_often(cell: CellStore, raw: Any) -> None:
    """Reconciling does not bring the next search forward. The claim keeps the reason why no host was found."""
    placed = await replaced(cell, 3)
    await cell.claims.fail("h1", "a", placed.token, by_host=True)
    pauses: list[int] = []
    for _ in range(8):
        answer = await cell.claims.postpone("h1", "a", placed.token, "all is full")
        assert (answer.outcome, answer.facts) == (Outcome.OK, ("pending",))
        due_ms = await cell.due.reconcile_at_ms("a")
        await cell.claims.reconcile(["a"])
        assert due_ms == await cell.due.reconcile_at_ms("a") or len(pauses) == 0
        pauses.append((due_ms or 0) - answer.now_ms)
    assert pauses == [1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000]
    assert (await cell.claims.reasons(["a"]))["a"].text == "all is full"
    second = await again(cell, placed, "h2")
    assert "searches" not in await fields_of(raw, cell.keys.claim("a"))
    async with nothing_written(raw):
        assert (await cell.claims.postpone("h1", "a", placed.token, "late")).outcome is Outcome.STALE
        assert (await cell.claims.postpone("h2", "a", second.token, "not pending")).outcome is Outcome.STALE
