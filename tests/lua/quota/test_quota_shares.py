"""Shares of a quota: what a cell may use of limits that several cells share, and transfers of parts of a share."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from redsched.model import Exceeded, Quota
from redsched.store.cell import CellStore
from redsched.store.codec.keys import Kind
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimReply
from redsched.store.commands.quotas import QuotaState, Transfer
from tests.support.builders.cells import (
    call_of,
    claim_on,
    fields_of,
    member,
    new_epoch,
    nothing_written,
    open_host,
)

LIMITS = {"VCPU": 10, "claims": 8}
QUOTA = Quota("project", LIMITS)
CELLS = ("c1", "c2")


@pytest.fixture
async def other(cell: CellStore) -> CellStore:
    """A second cell of the same store."""
    opened = CellStore("c2", cell._cell.url, cell._cell.scripts, cell._cell.reader, cell._cell.outside)
    await opened.init()
    return opened


@pytest.fixture
async def pair(cell: CellStore, other: CellStore) -> tuple[CellStore, CellStore]:
    """Two cells with a host each, with the limits divided between them: 6 VCPU and 5 claims, 4 and 3."""
    for one, host in ((cell, "h1"), (other, "h2")):
        await open_host(one, host, VCPU=64)
        await one.declared.put_quota(QUOTA, CELLS)
    await divide(cell, other)
    return cell, other


async def divide(cell: CellStore, other: CellStore, division: str = "d1") -> None:
    for one, share in ((cell, {"VCPU": 6, "claims": 5}), (other, {"VCPU": 4, "claims": 3})):
        answer, state = await one.quotas.close("project", (await state_of(one)).division, division)
        assert answer.outcome is Outcome.OK
        given = await one.quotas.share("project", division, answer.epoch, state.version, share)
        assert given.outcome is Outcome.OK


async def state_of(cell: CellStore) -> QuotaState:
    return QuotaState.parse((await cell.declared.read(Kind.QUOTA, ["project"])).get("project", {}))


async def shares(*cells: CellStore) -> list[int]:
    return [(await state_of(cell)).share.get("VCPU", 0) for cell in cells]


_ids: Iterator[int] = itertools.count()


async def ask(cell: CellStore, vcpu: int = 1, limited: bool = True) -> ClaimReply:
    host = "h1" if cell.name == "c1" else "h2"
    call = call_of(await cell.tick(), member(f"n{next(_ids)}", host, VCPU=vcpu))
    return await cell.claims.place(replace(call, limited=limited))


async def give(cell: CellStore, amount: int = 2, transfer_id: str = "t1", division: str = "d1") -> Transfer:
    """Give part of the first cell's share to the second."""
    outcome, transfer = await cell.quotas.give("project", division, "c2", transfer_id, {"VCPU": amount})
    assert outcome in (Outcome.OK, Outcome.ALREADY_DONE)
    assert transfer is not None
    return transfer


# Dividing


async def test_a_cell_uses_its_share_and_no_more(pair: tuple[CellStore, CellStore]) -> None:
    cell, other = pair
    assert (await ask(cell, 6)).outcome is Outcome.OK
    assert (await ask(cell)).over == (Exceeded("VCPU", 6, 6, 1),)
    assert (await ask(other, 5)).over == (Exceeded("VCPU", 4, 0, 5),)
    assert (await ask(other, 4)).outcome is Outcome.OK


async def test_without_a_share_nothing_gets_in(cell: CellStore, other: CellStore, raw: Any) -> None:
    """Even if the scheduler does not know the quota. If the cell has lost it, only `limited` of the call shows it."""
    await open_host(cell, "h1", VCPU=64)
    assert (await ask(cell, limited=True)).outcome is Outcome.UNSHARED
    assert (await ask(cell, limited=False)).outcome is Outcome.OK
    await cell.declared.put_quota(QUOTA, CELLS)
    for limited in (False, True):
        assert (await ask(cell, limited=limited)).outcome is Outcome.UNSHARED
    memory = replace(call_of(await cell.tick(), member("m", "h1", VCPU=1)), project="other")
    assert (await cell.claims.place(memory)).outcome is Outcome.OK


async def test_a_changed_limit_closes_the_cell_until_it_is_divided(pair: tuple[CellStore, CellStore]) -> None:
    cell, _ = pair
    await cell.declared.put_quota(QUOTA, CELLS)
    assert (await ask(cell)).outcome is Outcome.OK
    await cell.declared.put_quota(Quota("project", {"VCPU": 4}), CELLS)
    assert (await ask(cell)).outcome is Outcome.UNSHARED
    late = await cell.quotas.share("project", "d1", (await cell.tick()).epoch, "1", {"VCPU": 6})
    assert late.outcome is Outcome.STALE


@pytest.mark.parametrize("by", ["taking it back", "another limit"])
async def test_a_division_that_was_planned_before_a_declaration_closes_no_cell_after_it(
    cell: CellStore, raw: Any, by: str
) -> None:
    """Although its limits are the same again: cells that were closed may have used any amount meanwhile."""
    await cell.declared.put_quota(QUOTA, CELLS)
    planned = (await state_of(cell)).division
    if by == "taking it back":
        await cell.declared.delete_quota("project")
    else:
        await cell.declared.put_quota(Quota("project", {"claims": 8}), CELLS)
    await cell.declared.put_quota(QUOTA, CELLS)
    async with nothing_written(raw):
        assert (await cell.quotas.close("project", planned, "late"))[0].outcome is Outcome.STALE
    division = (await state_of(cell)).division
    assert (await cell.quotas.close("project", division, "new"))[0].outcome is Outcome.OK


async def test_a_division_is_begun_after_the_last_one_and_its_late_copies_do_nothing(
    pair: tuple[CellStore, CellStore], raw: Any
) -> None:
    """Otherwise a cell would return to a share of a division that the other cell has left."""
    cell, _ = pair
    epoch, version = (await cell.tick()).epoch, (await state_of(cell)).version
    async with nothing_written(raw):
        assert (await cell.quotas.close("project", "", "d1"))[0].outcome is Outcome.STALE, "it is done"
        assert (await cell.quotas.close("project", "d0", "d2"))[0].outcome is Outcome.STALE
        late = await cell.quotas.share("project", "d1", epoch, version, {"VCPU": 60})
        assert late.outcome is Outcome.ALREADY_DONE
    await cell.quotas.close("project", "d1", "d2")
    async with nothing_written(raw):
        again, state = await cell.quotas.close("project", "d1", "d2")
        assert (again.outcome, state.share_epoch, state.share) == (Outcome.ALREADY_DONE, "", {})
        late = await cell.quotas.share("project", "d1", epoch, version, {"VCPU": 60})
        assert late.outcome is Outcome.STALE
    assert (await cell.quotas.close("project", "d2", "d3"))[0].outcome is Outcome.OK
    version = (await state_of(cell)).version
    assert (await cell.quotas.share("project", "d2", epoch, version, {"VCPU": 60})).outcome is Outcome.STALE


async def test_in_a_new_epoch_a_share_counts_no_more(pair: tuple[CellStore, CellStore]) -> None:
    """Transfers since may be lost with the rest: the cell may not use, give, take or take back any of its share."""
    cell, other = pair
    transfer = await give(cell)
    epoch = await new_epoch(cell)
    assert (await cell.quotas.close("project", "d1", "d2"))[0].outcome is Outcome.SETTLING
    await cell.hosts.attest("h1", epoch)
    assert (await ask(cell)).outcome is Outcome.UNSHARED
    assert (await cell.quotas.give("project", "d1", "c2", "t2", {"VCPU": 1}))[0] is Outcome.STALE
    assert (await cell.quotas.take("project", "d1", "c2", transfer)).outcome is Outcome.STALE
    assert (await cell.quotas.close_transfer("project", "d1", "c2", transfer, back=True)).outcome is Outcome.STALE
    version = (await state_of(cell)).version
    assert (await cell.quotas.share("project", "d1", epoch, version, {"VCPU": 6})).outcome is Outcome.ALREADY_DONE
    assert (await ask(cell)).outcome is Outcome.UNSHARED
    await divide(cell, other, "d2")
    assert (await ask(cell, 6)).outcome is Outcome.OK


async def test_a_cell_that_another_epoch_began_in_while_it_was_closed_gets_no_share(
    pair: tuple[CellStore, CellStore],
) -> None:
    """The usage that it reported may be less than what its hosts restore."""
    cell, _ = pair
    answer, state = await cell.quotas.close("project", "d1", "d2")
    await new_epoch(cell)
    given = await cell.quotas.share("project", "d2", answer.epoch, state.version, {"VCPU": 6})
    assert given.outcome is Outcome.STALE


async def test_taking_the_quota_back_leaves_nothing_but_what_is_used(
    pair: tuple[CellStore, CellStore], raw: Any
) -> None:
    cell, _ = pair
    await claim_on(cell, "a")
    await give(cell)
    await cell.declared.delete_quota("project")
    left = await fields_of(raw, cell.keys.quota("project"))
    assert left.keys() == {"seq", "version", "used.VCPU", "used.claims"}


# Transfers


async def test_a_share_changes_hands_once(pair: tuple[CellStore, CellStore], raw: Any) -> None:
    """First the giving cell has less, then the other has more; a repeated step changes nothing."""
    cell, other = pair
    transfer = await give(cell)
    assert (await shares(cell, other), transfer.amounts) == ([4, 4], {"VCPU": 2})
    async with nothing_written(raw):
        assert await give(cell) == transfer
    assert (await other.quotas.take("project", "d1", "c1", transfer)).outcome is Outcome.OK
    async with nothing_written(raw):
        assert (await other.quotas.take("project", "d1", "c1", transfer)).outcome is Outcome.ALREADY_DONE
    assert (await cell.quotas.close_transfer("project", "d1", "c2", transfer, back=False)).outcome is Outcome.OK
    async with nothing_written(raw):
        assert (
            await cell.quotas.close_transfer("project", "d1", "c2", transfer, back=True)
        ).outcome is Outcome.ALREADY_DONE
        assert (await other.quotas.take("project", "d1", "c1", transfer)).outcome is Outcome.ALREADY_DONE
    assert await shares(cell, other) == [4, 6]
    assert (await ask(other, 6)).outcome is Outcome.OK


async def test_only_what_is_not_used_is_given(pair: tuple[CellStore, CellStore]) -> None:
    cell, _ = pair
    await claim_on(cell, "a", VCPU=5)
    assert (await give(cell, 60)).amounts == {"VCPU": 1}
    outcome, other = await cell.quotas.give("project", "d1", "c2", "t2", {"VCPU": 1})
    assert (outcome, other and other.id) == (Outcome.IN_USE, "t1"), "one after the other"
    assert (await cell.quotas.give("project", "d1", "c3", "t2", {"VCPU": 1})) == (Outcome.FULL, None)


async def test_what_nobody_sees_to_returns_once_the_other_cell_is_closed_to_it(
    pair: tuple[CellStore, CellStore], raw: Any
) -> None:
    """So a later copy of the transfer adds nothing, however late it arrives."""
    cell, other = pair
    transfer = await give(cell)
    assert (await other.quotas.void("project", "d1", "c1", transfer)).outcome is Outcome.OK
    assert (await cell.quotas.close_transfer("project", "d1", "c2", transfer, back=True)).outcome is Outcome.OK
    async with nothing_written(raw):
        assert (await other.quotas.take("project", "d1", "c1", transfer)).outcome is Outcome.ENDED
        assert (await other.quotas.void("project", "d1", "c1", transfer)).outcome is Outcome.OK
    assert await shares(cell, other) == [6, 4]
    later = await give(cell, 3, "t2")
    assert (await other.quotas.take("project", "d1", "c1", later)).outcome is Outcome.OK
    async with nothing_written(raw):
        assert (await other.quotas.take("project", "d1", "c1", transfer)).outcome is Outcome.ENDED
    assert await shares(cell, other) == [3, 7]


async def test_what_the_other_cell_has_had_does_not_return(pair: tuple[CellStore, CellStore], raw: Any) -> None:
    """The scheduler that made the transfer died before it could close it."""
    cell, other = pair
    transfer = await give(cell)
    await other.quotas.take("project", "d1", "c1", transfer)
    async with nothing_written(raw):
        assert (await other.quotas.void("project", "d1", "c1", transfer)).outcome is Outcome.ALREADY_DONE


async def test_a_transfer_of_an_earlier_division_is_never_added(pair: tuple[CellStore, CellStore], raw: Any) -> None:
    """All transfers under way are part of the shares of the new division."""
    cell, other = pair
    transfer = await give(cell)
    await divide(cell, other, "d2")
    async with nothing_written(raw):
        assert (await other.quotas.take("project", "d1", "c1", transfer)).outcome is Outcome.STALE
        assert (await cell.quotas.close_transfer("project", "d1", "c2", transfer, back=True)).outcome is Outcome.STALE
    assert (await state_of(cell)).given == {}
    assert await shares(cell, other) == [6, 4]
