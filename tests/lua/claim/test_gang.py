"""Gangs: until all claims of one request are active, the end of one ends all; after that they are independent."""

from dataclasses import replace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from redsched.model import ClaimStatus, EndReason
from redsched.store.cell import CellStore
from redsched.store.codec.claim_codec import counting_objects
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimReply, Placed, ReleaseMode, Replacement
from tests.support.builders.cells import (
    HOUR_S,
    call_of,
    claimed,
    make_due,
    member,
    new_epoch,
    nothing_written,
    open_host,
)
from tests.support.builders.placements import arrive, ask_again, ended, held, main_states, settle


@pytest.fixture
async def cell(cell: CellStore) -> CellStore:
    """A cell with a host."""
    await open_host(cell)
    return cell


async def gang(cell: CellStore, ids: str = "abc") -> dict[str, Placed]:
    """Make a claim for each id, all of one gang."""
    members = [member(one, "h1") for one in ids]
    answer = await cell.claims.place(replace(call_of(await cell.tick(), *members), is_gang=True))
    assert answer.outcome is Outcome.OK
    return dict(zip(ids, answer.placed, strict=True))


async def placed_again(
    cell: CellStore, claim_id: str, placed: Placed, end_reason: EndReason, gang: str = "a"
) -> ClaimReply:
    """Request another placement of a member."""
    return await ask_again(cell, claim_id, "h1", Replacement("h1", placed.token, end_reason, gang=gang))


async def test_a_gang_is_remembered_until_all_of_it_is_active(cell: CellStore, raw: Any) -> None:
    placed = await gang(cell)
    assert await cell.gangs.members("a") == {"a": "h1", "b": "h1", "c": "h1"}
    assert {one.gang for one in (await cell.claims.read("abc")).values()} == {"a"}
    for number, one in enumerate("bac"):
        assert await raw.hget(cell.keys.gang("a"), "waiting") == str(3 - number)
        await arrive(cell, one, placed[one])
        await cell.claims.confirm("h1", one, placed[one].token)
    assert not await raw.exists(cell.keys.gang("a"))
    await cell.claims.fail("h1", "a", placed["a"].token, by_host=True)
    await settle(cell)
    assert await main_states(cell, "abc") == {"a": "ended failed", "b": "active", "c": "active"}
    assert (await cell.claims.read("a"))["a"].gang == ""


async def test_one_place_is_no_gang(cell: CellStore, raw: Any) -> None:
    await gang(cell, "a")
    assert not await raw.exists(cell.keys.gang("a"))
    assert (await cell.claims.read("a"))["a"].gang == ""


async def test_a_refused_gang_leaves_nothing(cell: CellStore, raw: Any) -> None:
    members = [member("a", "h1"), member("b", "h1", VCPU=99)]
    async with nothing_written(raw):
        answer = await cell.claims.place(replace(call_of(await cell.tick(), *members), is_gang=True))
    assert answer.outcome is Outcome.FULL


@pytest.mark.parametrize("end", ["fail", "fail by host", "expire claimed", "expire starting"])
async def test_when_one_fails_the_others_end_too_whatever_they_are(cell: CellStore, raw: Any, end: str) -> None:
    placed = await gang(cell, "abcd")
    await arrive(cell, "b", placed["b"])
    await cell.claims.accept("h1", "c", placed["c"].token, HOUR_S)
    if end == "expire starting":
        await cell.claims.accept("h1", "a", placed["a"].token, HOUR_S)
    if end.startswith("fail"):
        await cell.claims.fail("h1", "a", placed["a"].token, by_host=end == "fail by host")
    else:
        await make_due(raw, cell, "a")
        assert await cell.claims.reconcile(["a"]) == 1
    assert await cell.due.to_reconcile((await cell.tick()).now_ms, 0, 10) == ["a"]
    assert (await cell.claims.read("a"))["a"].gang == "a"
    await settle(cell)
    end_reason = "expired" if end.startswith("expire") else "failed"
    first = f"{'ending' if end == 'expire starting' else 'ended'} {end_reason}"
    rest = {"b": "ending failed", "c": "ending failed", "d": "ended failed"}
    assert await main_states(cell, "abcd") == {"a": first, **rest}
    for one in "abc":
        await cell.claims.gone("h1", one, placed[one].token, EndReason.RELEASED, {})
    await settle(cell)
    assert (await claimed(raw, cell), await raw.exists(cell.keys.gang("a"))) == (0, 0)
    assert not await raw.exists(cell.keys.reconcile)
    assert all([await raw.pttl(cell.keys.claim(one)) > 0 for one in "abcd"])


async def test_an_active_member_that_fails_while_others_are_waited_for_ends_all(cell: CellStore) -> None:
    placed = await gang(cell, "ab")
    await arrive(cell, "b", placed["b"])
    await cell.claims.fail("h1", "b", placed["b"].token, by_host=True)
    await settle(cell)
    assert await main_states(cell, "ab") == {"a": "ended failed", "b": "ended failed"}


async def test_the_last_one_that_was_waited_for_fails_and_ends_all(cell: CellStore) -> None:
    placed = await gang(cell, "ab")
    await arrive(cell, "b", placed["b"])
    await cell.claims.fail("h1", "a", placed["a"].token, by_host=True)
    await settle(cell)
    assert await main_states(cell, "ab") == {"a": "ended failed", "b": "ending failed"}


@pytest.mark.parametrize("accepted_claim", [False, True])
async def test_a_member_that_confirms_after_another_has_failed_is_asked_back(
    cell: CellStore, raw: Any, accepted_claim: bool
) -> None:
    """Before any scheduler has reconciled it."""
    placed = await gang(cell, "ab")
    if accepted_claim:
        await cell.claims.accept("h1", "b", placed["b"].token, HOUR_S)
    await cell.claims.fail("h1", "a", placed["a"].token, by_host=True)
    assert (await cell.claims.confirm("h1", "b", placed["b"].token)).outcome is Outcome.ENDING
    assert await main_states(cell, "b") == {"b": "ending failed"}
    assert [one.op for one in await cell.hosts.inbox("h1")] == ["end"]
    await settle(cell)
    await cell.claims.gone("h1", "b", placed["b"].token, EndReason.RELEASED, {})
    assert (await raw.exists(cell.keys.gang("a")), await claimed(raw, cell)) == (0, 0)


async def test_a_member_that_confirms_so_without_having_been_accepted_is_not_counted_as_starting_any_more(
    cell: CellStore, raw: Any
) -> None:
    placed = await gang(cell, "ab")
    await cell.claims.fail("h1", "a", placed["a"].token, by_host=True)
    assert (await cell.claims.confirm("h1", "b", placed["b"].token)).outcome is Outcome.ENDING
    assert await raw.hget(cell.keys.host("h1"), "starting") == "0"


async def test_none_is_placed_again_alone_while_its_gang_is_waited_for(cell: CellStore, raw: Any) -> None:
    """Nor after it has failed with its gang, whether or not the others have been released by then."""
    placed = await gang(cell, "abc")
    await arrive(cell, "b", placed["b"])
    async with nothing_written(raw):
        assert (await placed_again(cell, "b", placed["b"], EndReason.MOVED)).outcome is Outcome.GANG
        assert (await placed_again(cell, "b", placed["b"], EndReason.MOVED, gang="")).outcome is Outcome.GANG
        assert (await placed_again(cell, "b", placed["b"], EndReason.FAILED)).outcome is Outcome.GANG
    answer = await cell.claims.fail("h1", "a", placed["a"].token, by_host=True, retry=True)
    assert (answer.outcome, answer.facts) == (Outcome.OK, ("ended",))
    async with nothing_written(raw):
        assert (await placed_again(cell, "a", placed["a"], EndReason.FAILED)).outcome is Outcome.GANG
        assert (await placed_again(cell, "b", placed["b"], EndReason.MOVED)).outcome is Outcome.GANG
    await settle(cell)
    await cell.claims.gone("h1", "b", placed["b"].token, EndReason.RELEASED, {})
    assert await main_states(cell, "abc") == {"a": "ended failed", "b": "ended failed", "c": "ended failed"}
    for one in "abc":
        assert (await placed_again(cell, one, placed[one], EndReason.FAILED)).outcome is Outcome.ENDED


async def test_a_member_of_a_gang_that_has_come_up_is_placed_again_like_any_claim(cell: CellStore) -> None:
    placed = await gang(cell, "ab")
    for one in "ab":
        await arrive(cell, one, placed[one])
    assert (await placed_again(cell, "a", placed["a"], EndReason.MOVED)).outcome is Outcome.OK
    await cell.claims.fail("h1", "b", placed["b"].token, by_host=True, retry=True)
    assert (await placed_again(cell, "b", placed["b"], EndReason.FAILED)).outcome is Outcome.OK
    assert {one.gang for one in (await cell.claims.read("ab")).values()} == {""}


async def test_what_its_owner_let_go_has_not_fallen_with_the_gang(cell: CellStore) -> None:
    placed = await gang(cell)
    await cell.claims.fail("h1", "a", placed["a"].token, by_host=True)
    assert (await cell.claims.shelve("h1", "b", placed["b"].token)).outcome is Outcome.OK
    await settle(cell)
    assert (await placed_again(cell, "b", placed["b"], EndReason.SHELVED)).outcome is Outcome.OK


@pytest.mark.parametrize("how", [ReleaseMode.ASK, ReleaseMode.FORCE, ReleaseMode.UNLESS_ACTIVE])
async def test_an_owner_may_let_one_go(cell: CellStore, raw: Any, how: ReleaseMode) -> None:
    placed = await gang(cell)
    await cell.claims.accept("h1", "b", placed["b"].token, HOUR_S)
    await cell.claims.release("h1", "b", placed["b"].token, how)
    await arrive(cell, "a", placed["a"])
    assert await cell.gangs.members("a") == {"a": "h1", "c": "h1"}
    await arrive(cell, "c", placed["c"])
    assert not await raw.exists(cell.keys.gang("a"))
    await cell.claims.gone("h1", "b", placed["b"].token, EndReason.RELEASED, {})
    await settle(cell)
    assert await main_states(cell, "abc") == {"a": "active", "b": "ended released", "c": "active"}


async def test_an_owner_may_let_all_go(cell: CellStore, raw: Any) -> None:
    await gang(cell)
    for one in "abc":
        await cell.claims.release("h1", one)
    assert not await raw.exists(cell.keys.gang("a"), cell.keys.reconcile)


async def test_a_removed_host_ends_its_members_and_so_the_others(cell: CellStore) -> None:
    await open_host(cell, "h2")
    members = [member("a", "h1"), member("b", "h2")]
    answer = await cell.claims.place(replace(call_of(await cell.tick(), *members), is_gang=True))
    await arrive(cell, "b", answer.placed[1])
    await cell.hosts.forget("h1", force=True)
    await settle(cell)
    assert await main_states(cell, "ab") == {"a": "ended void", "b": "ending failed"}


async def test_what_is_left_of_a_gone_host_ends_its_members_and_so_the_others(cell: CellStore, raw: Any) -> None:
    await open_host(cell, "h2")
    members = [member("a", "h1"), member("b", "h2")]
    answer = await cell.claims.place(replace(call_of(await cell.tick(), *members), is_gang=True))
    await arrive(cell, "b", answer.placed[1])
    await raw.delete(cell.keys.host("h1"))
    assert (await cell.repair.removed_host("h1", "it is gone", operator=False)).outcome is Outcome.OK
    assert await cell.gangs.members("a") == {"b": "h2"}
    await settle(cell)
    assert await main_states(cell, "ab") == {"a": "ended void", "b": "ending failed"}
    assert not await raw.exists(cell.keys.gang("a"))


async def test_a_journal_that_knows_a_member_active_counts_it(cell: CellStore, raw: Any) -> None:
    """The store lost its confirmation with the former epoch."""
    placed = await gang(cell, "ab")
    await cell.claims.accept("h1", "a", placed["a"].token, HOUR_S)
    epoch = await new_epoch(cell)
    await cell.hosts.attest("h1", epoch, None, [held("a", placed["a"])])
    assert await raw.hget(cell.keys.gang("a"), "waiting") == "1"
    await arrive(cell, "b", placed["b"])
    assert not await raw.exists(cell.keys.gang("a"))


async def test_a_journal_that_knows_a_member_ended_ends_it_quietly(cell: CellStore) -> None:
    """The journal has no end reason: the store may have lost a release by the owner."""
    placed = await gang(cell, "ab")
    await cell.claims.accept("h1", "a", placed["a"].token, HOUR_S)
    epoch = await new_epoch(cell)
    await cell.hosts.attest("h1", epoch, None, [], [ended("a", placed["a"].token)])
    assert await cell.gangs.members("a") == {"b": "h1"}


async def test_who_knows_the_gang_of_a_claim_names_it(cell: CellStore) -> None:
    placed = await gang(cell, "ab")
    claim = (await cell.claims.read("b"))["b"]
    objects = counting_objects(claim.server_group, claim.slots, claim.gang)
    assert objects == ("gang:a",)
    assert (await cell.claims.confirm("h1", "b", placed["b"].token, objects)).outcome is Outcome.OK


async def test_a_gang_that_the_store_has_lost_leaves_claims_that_stand_alone(cell: CellStore, raw: Any) -> None:
    placed = await gang(cell, "ab")
    await raw.delete(cell.keys.gang("a"))
    await arrive(cell, "a", placed["a"])
    await cell.claims.fail("h1", "b", placed["b"].token, by_host=True)
    await settle(cell)
    assert await main_states(cell, "ab") == {"a": "active", "b": "ended failed"}


async def test_a_caller_may_call_its_claims_what_it_likes(cell: CellStore, raw: Any) -> None:
    members = [member("end_reason", "h1"), member("waiting", "h1")]
    answer = await cell.claims.place(replace(call_of(await cell.tick(), *members), is_gang=True))
    await arrive(cell, "waiting", answer.placed[1])
    assert await cell.gangs.members("end_reason") == {"end_reason": "h1", "waiting": "h1"}
    await arrive(cell, "end_reason", answer.placed[0])
    found = await cell.claims.read(("end_reason", "waiting"))
    assert {one.state for one in found.values()} == {ClaimStatus.ACTIVE}


async def test_the_first_that_ended_gives_the_reason_and_is_to_be_reconciled(cell: CellStore, raw: Any) -> None:
    placed = await gang(cell)
    await make_due(raw, cell, "a")
    await cell.claims.reconcile(["a"])
    await cell.claims.fail("h1", "b", placed["b"].token, by_host=True)
    assert await raw.hget(cell.keys.gang("a"), "end_reason") == "expired"
    assert await cell.due.to_reconcile((await cell.tick()).now_ms, 0, 10) == ["a"]


async def test_a_second_reconciliation_keeps_the_chore_of_a_gang_that_has_failed(cell: CellStore, raw: Any) -> None:
    """Two schedulers see the same deadline pass: the second finds nothing due, and the others have not ended yet."""
    placed = await gang(cell, "ab")
    await arrive(cell, "a", placed["a"])
    await cell.claims.accept("h1", "b", placed["b"].token, HOUR_S)
    await make_due(raw, cell, "b")
    assert await cell.claims.reconcile(["b"]) == 1
    assert await cell.claims.reconcile(["b"]) == 0
    await settle(cell)
    assert await main_states(cell, "ab") == {"a": "ending failed", "b": "ending expired"}
    assert not await raw.exists(cell.keys.reconcile)


async def test_only_a_gang_that_has_failed_is_ended(cell: CellStore) -> None:
    placed = await gang(cell)
    await arrive(cell, "a", placed["a"])
    await cell.claims.release("h1", "b")
    assert not await cell.gangs.end("a")
    assert await main_states(cell, "abc") == {"a": "active", "b": "ended released", "c": "claimed"}


async def test_a_member_that_was_resized_meanwhile_is_released_by_the_next_try(
    cell: CellStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its token is no longer the one that was read: its entry in `reconcile` stays."""
    placed = await gang(cell, "ab")
    await arrive(cell, "a", placed["a"])
    await cell.claims.fail("h1", "b", placed["b"].token, by_host=True)
    before = await cell.claims.read("a")
    await cell.claims.resize("h1", "a", placed["a"].token, {"VCPU": 2})
    with monkeypatch.context() as patch:
        patch.setattr(cell.claims, "read", AsyncMock(return_value=before))
        assert not await cell.gangs.end("a")
    await cell.claims.reconcile(["b"])
    await settle(cell)
    assert await main_states(cell, "ab") == {"a": "ending failed", "b": "ended failed"}
