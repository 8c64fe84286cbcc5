"""release: a claim is closed at a token, on whatever hosts it is: no placement made until then is wanted any more."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from redsched.model import ClaimStatus, EndReason
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ReleaseMode, Replacement
from tests.support.builders.cells import (
    HOUR_S,
    active,
    claim_on,
    claimed,
    ended,
    fields_of,
    later_than,
    new_epoch,
    nothing_written,
    open_host,
    report_of,
)
from tests.support.builders.placements import (
    arrive,
    ask_again,
    ended as has_ended,
    held,
    let_settle,
    main_states,
    move_to,
    roll_back,
    settle,
    snapshot,
    states,
)
from tests.support.models.sums import check_sums

pytestmark = pytest.mark.usefixtures("three_hosts", "sums")


@pytest.fixture
async def sums(cell: CellStore, raw: Any) -> AsyncIterator[None]:
    """Check after each test that the counters are those of the claims."""
    yield
    await check_sums(cell, raw)


async def closed(cell: CellStore, raw: Any) -> tuple[str | None, str | None]:
    """Return the token up to which claim `a` is closed, and why."""
    fields = await fields_of(raw, cell.keys.claim("a"))
    return fields.get("closed"), fields.get("closed_reason")


async def test_a_release_tells_up_to_which_token_it_has_closed_the_claim(cell: CellStore, raw: Any) -> None:
    """It is at or above the token of every placement so far."""
    placed = await active(cell, "a")
    clock = await cell.tick()
    answer = await cell.claims.release("h1", "a", placed.token)
    assert answer.facts == (f"{clock.epoch}.{clock.seq}",)
    assert await closed(cell, raw) == (answer.facts[0], "released")
    async with nothing_written(raw):
        assert (await cell.claims.release("h1", "a", placed.token)).facts == answer.facts
    await cell.claims.gone("h1", "a", placed.token, EndReason.RELEASED, {})
    async with nothing_written(raw):
        again = await cell.claims.release("h1", "a", placed.token)
    assert (again.outcome, again.facts) == (Outcome.ALREADY_DONE, answer.facts)


@pytest.mark.parametrize("by", ["", "former", "target"])
async def test_a_release_while_both_run_takes_both_back(cell: CellStore, raw: Any, by: str) -> None:
    """The owner knows one of the tokens, the other, or neither."""
    placed = await active(cell, "a")
    found = await move_to(cell, "a", placed)
    await arrive(cell, "a", found)
    token = {"former": placed.token, "target": found.token}.get(by, "")
    assert (await cell.claims.release("", "a", token)).outcome is Outcome.ENDING
    assert await states(cell, "a") == {"h1": "ending released", "h2": "ending released"}
    for one in (placed, found):
        assert (await cell.claims.gone(one.host, "a", one.token, EndReason.RELEASED, {})).outcome is Outcome.OK
    assert await states(cell, "a") == {"": "ended released"}


async def test_a_release_by_a_token_that_the_claim_is_just_leaving_means_the_claim(cell: CellStore) -> None:
    """Its owner has read it before the move; the former host has not stopped its work yet."""
    placed = await active(cell, "a")
    await arrive(cell, "a", await move_to(cell, "a", placed))
    await settle(cell)
    assert (await cell.claims.release("h1", "a", placed.token)).outcome is Outcome.ENDING
    assert (await states(cell, "a"))["h2"] == "ending released"


async def test_a_release_of_a_claim_takes_along_what_it_is_being_moved_to(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    found = await move_to(cell, "a", placed)
    assert (await cell.claims.release("h1", "a", placed.token)).outcome is Outcome.ENDING
    assert await states(cell, "a") == {"h1": "ending released"}
    assert await claimed(raw, cell, "h2") == 0
    assert (await cell.claims.confirm("h2", "a", found.token)).outcome is Outcome.STALE


async def test_a_release_by_force_frees_all_placements_at_once(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    await arrive(cell, "a", await move_to(cell, "a", placed))
    assert (await cell.claims.release("", "a", how=ReleaseMode.FORCE)).outcome is Outcome.OK
    assert [await claimed(raw, cell, host) for host in ("h1", "h2")] == [0, 0]


async def test_a_written_off_host_is_not_waited_for_while_the_other_one_is_asked(cell: CellStore) -> None:
    placed = await active(cell, "a")
    await arrive(cell, "a", await move_to(cell, "a", placed))
    await cell.hosts.write_off("h1", force=True)
    assert (await cell.claims.release("", "a")).outcome is Outcome.ENDING
    assert await states(cell, "a") == {"h2": "ending released"}


# Before its hosts have attested


async def test_a_claim_on_an_unattested_host_is_closed_and_ends_when_it_attests(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    epoch = await new_epoch(cell)
    assert (await cell.claims.release("h1", "a")).outcome is Outcome.ENDING
    assert (await states(cell, "a"), await cell.hosts.inbox("h1")) == ({"h1": "ending released"}, [])
    assert await claimed(raw, cell) == 1
    await cell.hosts.attest("h1", epoch, held=[held("a", placed)])
    assert [(one.op, one.token) for one in await cell.hosts.inbox("h1")] == [("end", placed.token)]
    assert (await cell.claims.gone("h1", "a", placed.token, EndReason.RELEASED, {})).outcome is Outcome.OK
    assert await states(cell, "a") == {"": "ended released"}


async def test_what_no_host_had_accepted_stays_counted_until_its_host_is_heard(cell: CellStore, raw: Any) -> None:
    """It may have been accepted since, in writes that the store has lost."""
    await claim_on(cell, "a")
    epoch = await new_epoch(cell)
    assert (await cell.claims.release("h1", "a")).outcome is Outcome.ENDING
    assert await claimed(raw, cell) == 1
    await cell.hosts.attest("h1", epoch)
    assert (await states(cell, "a"), [one.op for one in await cell.hosts.inbox("h1")]) == (
        {"h1": "ending released"},
        ["end"],
    )


@pytest.mark.parametrize("how", [ReleaseMode.ASK, ReleaseMode.FORCE])
async def test_what_a_host_brings_back_of_a_released_claim_is_to_stop(
    cell: CellStore, raw: Any, how: ReleaseMode
) -> None:
    """The store had lost its move to that host."""
    first = await active(cell, "a")
    before = await snapshot(raw)
    second = await move_to(cell, "a", first)
    await arrive(cell, "a", second)
    epoch = await roll_back(cell, raw, before)
    await cell.claims.release("h1", "a", first.token, how)
    await cell.hosts.attest("h1", epoch, ended=[has_ended("a", first.token)])
    await cell.hosts.attest("h2", epoch, held=[held("a", second, root=first.token)])
    assert await states(cell, "a") == {"h2": "ending released"}
    assert [one.op for one in await cell.hosts.inbox("h2")] == ["end"]


async def test_a_release_of_what_has_ended_here_reaches_what_is_still_to_be_heard(cell: CellStore, raw: Any) -> None:
    """The first host's journal has it as ended, because of the move: the owner is told that it is freed."""
    first = await active(cell, "a")
    before = await snapshot(raw)
    second = await move_to(cell, "a", first)
    await arrive(cell, "a", second)
    epoch = await roll_back(cell, raw, before)
    await cell.hosts.attest("h1", epoch, ended=[has_ended("a", first.token)])
    assert await states(cell, "a") == {"": "ended void"}
    assert (await cell.claims.release("h1", "a")).outcome is Outcome.OK
    async with nothing_written(raw):
        assert (await cell.claims.release("h1", "a")).outcome is Outcome.ALREADY_DONE
    await cell.hosts.attest("h2", epoch, held=[held("a", second, root=first.token)])
    assert await states(cell, "a") == {"h2": "ending released"}


async def test_what_has_ended_here_continues_where_a_host_brings_it_back_and_nobody_has_released_it(
    cell: CellStore, raw: Any
) -> None:
    first = await active(cell, "a")
    before = await snapshot(raw)
    second = await move_to(cell, "a", first)
    await arrive(cell, "a", second)
    epoch = await roll_back(cell, raw, before)
    await cell.hosts.attest("h1", epoch, ended=[has_ended("a", first.token)])
    await cell.hosts.attest("h2", epoch, held=[held("a", second, root=first.token)])
    assert (await states(cell, "a"), await raw.pttl(cell.keys.claim("a"))) == ({"h2": "active"}, -1)


@pytest.mark.parametrize("heard", [True, False])
async def test_a_release_is_repeated_at_the_token_of_its_first_answer(cell: CellStore, raw: Any, heard: bool) -> None:
    """In a new epoch, schedulers repeat all releases that they have answered in the last minute."""
    placed = await active(cell, "a")
    before = await snapshot(raw)
    first = (await cell.claims.release("h1", "a")).facts[0]
    epoch = await roll_back(cell, raw, before)
    assert await closed(cell, raw) == (None, None)
    if heard:
        await cell.hosts.attest("h1", epoch, held=[held("a", placed)])
    again = await cell.claims.release("h1", "a", closed=first)
    assert (again.outcome, again.facts) == (Outcome.ENDING, (first,))
    assert (await states(cell, "a"), await closed(cell, raw)) == ({"h1": "ending released"}, (first, "released"))


@pytest.mark.parametrize("by", ["release", "reconcile"])
async def test_of_two_placements_that_end_together_the_later_one_is_remembered(
    cell: CellStore, raw: Any, by: str
) -> None:
    """Not the one that a table happens to list first: a caller that repeats a call with that token gets an answer."""
    for number in range(8):
        claim_id = f"c{number}"
        target = await move_to(cell, claim_id, await claim_on(cell, claim_id))
        if by == "release":
            await cell.claims.shelve("h1", claim_id, "")
        else:
            expired = {"expires_at_ms": 1, f"placement.{target.token}.expires_at_ms": 1}
            await raw.hset(cell.keys.claim(claim_id), mapping=expired)
            await cell.claims.reconcile([claim_id])
        claim = (await cell.claims.read([claim_id]))[claim_id]
        assert (claim.state, claim.host, claim.token) == ("ended", "h2", target.token)


async def test_a_repeated_release_closes_no_further_than_it_was_closed_since(cell: CellStore, raw: Any) -> None:
    await active(cell, "a")
    first = (await cell.claims.shelve("h1", "a", "")).facts[0]
    second = (await cell.claims.release("h1", "a")).facts[0]
    assert (await cell.claims.release("h1", "a", closed=first, end_reason=EndReason.SHELVED)).facts == (second,)
    assert await closed(cell, raw) == (second, "released")


# Unknown ids


async def test_an_id_that_was_reported_unknown_is_not_brought_back(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    await raw.flushall()
    await open_host(cell, "h2")
    assert (await cell.claims.release("h1", "a")).outcome is Outcome.UNKNOWN
    answer = await cell.claims.void("a", "", if_unattested=True)
    assert (answer.outcome, await main_states(cell, "a")) == (Outcome.OK, {"a": "ended void"})
    await open_host_with(cell, "h1", held("a", placed))
    assert await states(cell, "a") == {"h1": "ending released"}


async def test_a_shelving_of_an_unknown_id_repeated_makes_no_shelved_claim(cell: CellStore, raw: Any) -> None:
    """It cannot be unshelved until its host has restored it; a later release closes it for good."""
    placed = await active(cell, "a")
    shelved = (await cell.claims.shelve("h1", "a", "")).facts[0]
    released = (await cell.claims.release("h1", "a")).facts[0]
    await raw.flushall()
    await open_host(cell, "h2")
    assert (await cell.claims.void("a", "", token=shelved, end_reason=EndReason.SHELVED)).outcome is Outcome.OK
    assert (await cell.claims.release("", "a", closed=shelved, end_reason=EndReason.SHELVED)).outcome is Outcome.OK
    assert await main_states(cell, "a") == {"a": "ended void"}
    assert not await raw.exists(cell.keys.shelved)
    assert (await cell.claims.void("a", "", token=released)).outcome is Outcome.OK
    assert (
        await cell.claims.void("a", "", token=shelved, end_reason=EndReason.SHELVED)
    ).outcome is Outcome.ALREADY_DONE
    assert await closed(cell, raw) == (released, "released")
    await open_host_with(cell, "h1", held("a", placed))
    assert await states(cell, "a") == {"h1": "ending released"}


async def test_what_was_placed_after_its_id_was_closed_comes_back_whole(cell: CellStore, raw: Any) -> None:
    """It has what its journal has, and not what was written for the unknown id."""
    told = await cell.claims.void("a", "other")
    before = await snapshot(raw)
    await later_than(cell, (await cell.tick()).now_ms)  # a decision of the same millisecond may be older
    placed = await active(cell, "a")
    epoch = await roll_back(cell, raw, before)
    entry = held("a", placed, digest="digest", project="p", consumer="c", group="web", counted={"zone": "az1"})
    await cell.hosts.attest("h1", epoch, held=[entry])
    claim = (await cell.claims.read("a"))["a"]
    assert (claim.state, claim.closed) == ("active", told.facts[0])
    assert (claim.digest, claim.project, claim.consumer, claim.server_group) == ("digest", "p", "c", "web")
    assert "voided_at_ms" not in await fields_of(raw, cell.keys.claim("a"))


async def open_host_with(cell: CellStore, name: str, *entries: Any) -> None:
    """Let a host report, and attest with this journal."""
    said = await cell.hosts.report(report_of(name))
    assert (await cell.hosts.attest(name, said.epoch, held=entries)).outcome is Outcome.OK


# With other calls in flight


async def test_nothing_is_placed_again_after_a_release(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    await cell.claims.release("h1", "a")
    for end_reason in (EndReason.MOVED, EndReason.FAILED, EndReason.SHELVED):
        answer = await ask_again(cell, "a", "h2", Replacement("h1", placed.token, end_reason))
        assert answer.outcome in (Outcome.ENDED, Outcome.STALE), end_reason
    await cell.claims.gone("h1", "a", placed.token, EndReason.RELEASED, {})
    for end_reason in (EndReason.MOVED, EndReason.FAILED, EndReason.SHELVED):
        assert (
            await ask_again(cell, "a", "h2", Replacement("h1", placed.token, end_reason))
        ).outcome is Outcome.ENDED, end_reason


async def test_a_release_of_a_pending_claim_ends_it(cell: CellStore, raw: Any) -> None:
    placed = await claim_on(cell, "a")
    await cell.claims.fail("h1", "a", placed.token, by_host=True, retry=True)
    assert await states(cell, "a") == {"": "pending failed"}
    assert (await cell.claims.release("", "a")).outcome is Outcome.OK
    assert await states(cell, "a") == {"": "ended released"}
    assert (
        await ask_again(cell, "a", "h2", Replacement("h1", placed.token, EndReason.FAILED))
    ).outcome is Outcome.ENDED
    await settle(cell)
    assert await raw.pttl(cell.keys.claim("a")) > 0


async def test_a_claim_that_has_ended_otherwise_is_not_closed_by_a_release(cell: CellStore, raw: Any) -> None:
    """All hosts have attested, so none can restore it."""
    placed = await claim_on(cell, "a")
    await cell.claims.fail("h1", "a", placed.token, by_host=True)
    async with nothing_written(raw):
        assert (await cell.claims.release("h1", "a")).outcome is Outcome.ALREADY_DONE


async def test_unless_active_asks_back_what_is_not_active(cell: CellStore, raw: Any) -> None:
    placed = await claim_on(cell, "a")
    await cell.claims.accept("h1", "a", placed.token, HOUR_S)
    assert (await cell.claims.release("h1", "a", how=ReleaseMode.UNLESS_ACTIVE)).outcome is Outcome.ENDING
    await active(cell, "b")
    async with nothing_written(raw):
        assert (await cell.claims.release("h1", "b", how=ReleaseMode.UNLESS_ACTIVE)).outcome is Outcome.ACTIVE


async def test_a_void_of_a_claim_that_has_ended_says_that_it_has_an_outcome(cell: CellStore, raw: Any) -> None:
    await ended(cell, "a")
    async with nothing_written(raw):
        assert (await cell.claims.void("a", "digest")).outcome is Outcome.CONFLICT


async def test_a_journal_that_is_ending_work_does_not_end_the_claim_elsewhere(cell: CellStore, raw: Any) -> None:
    """After a wipe, the host of a cancelled target attests first, and stops it; then the host of the claim attests."""
    first = await active(cell, "a")
    second = await move_to(cell, "a", first)
    await cell.claims.accept("h2", "a", second.token, HOUR_S)
    await raw.flushall()
    await open_host_with(cell, "h2", held("a", second, ClaimStatus.ENDING, root=first.token))
    assert (await cell.claims.gone("h2", "a", second.token, EndReason.RELEASED, {})).outcome is Outcome.OK
    assert await states(cell, "a") == {"": "ended void"}
    await open_host_with(cell, "h1", held("a", first))
    await let_settle(cell, raw)
    await settle(cell)
    assert await states(cell, "a") == {"h1": "active"}
