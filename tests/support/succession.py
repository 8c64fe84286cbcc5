"""Claims that are to succeed others, for tests of the store: short ways to make them, and a look at what is left."""

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from redsched.model import ClaimStatus, Why
from redsched.store import CellStore, ClaimAnswer, Former, HeldClaim, Outcome, Placed
from tests.support.cells import HOUR_S, call_of, member


async def ask_target(cell: CellStore, claim_id: str, host: str, former: Former, **amounts: int) -> ClaimAnswer:
    """Ask for a claim that is to succeed another."""
    one = replace(member(claim_id, host, **amounts), former=former)
    return await cell.claim(call_of(await cell.tick(), one))


async def target(
    cell: CellStore,
    former_id: str,
    placed: Placed,
    claim_id: str = "b",
    host: str = "h2",
    why: Why = Why.MOVED,
    by_s: int = 0,
) -> Placed:
    """A claim of 1 VCPU that is to succeed another, and has been claimed."""
    answer = await ask_target(cell, claim_id, host, Former(former_id, placed.host, placed.token, why, by_s))
    assert answer.outcome is Outcome.OK
    return answer.placed[0]


async def arrive(cell: CellStore, claim_id: str, placed: Placed) -> None:
    """Its host takes a claim up, and its work runs."""
    assert (await cell.accept(placed.host, claim_id, placed.token, HOUR_S)).outcome is Outcome.OK
    assert (await cell.confirm(placed.host, claim_id, placed.token)).outcome is Outcome.OK


async def moved(cell: CellStore, former_id: str, placed: Placed, claim_id: str = "b", host: str = "h2") -> Placed:
    """A claim that has succeeded another whose host has stopped its work."""
    found = await target(cell, former_id, placed, claim_id, host)
    await arrive(cell, claim_id, found)
    assert (await cell.succeed(claim_id)).outcome is Outcome.OK
    assert (await cell.gone(placed.host, former_id, placed.token, Why.RELEASED, {})).outcome is Outcome.OK
    await settle(cell)
    return found


async def settle(cell: CellStore, but: Collection[str] = ()) -> None:
    """Do all chores that are due, as schedulers do; none is left then but those named."""
    for _ in range(6):
        due = [one for one in await cell.due_chores((await cell.tick()).now_ms, 0, 100) if one not in but]
        if not due:
            return
        for claim_id in due:
            claim = (await cell.read_claims((claim_id,)))[claim_id]
            if claim.former or claim.next or claim.origin:
                await cell.succeed(claim_id)
            if claim.gang and claim.state in (ClaimStatus.ENDING, ClaimStatus.ENDED):
                assert await cell.end_gang(claim.gang)
                await cell.chore_done(claim_id, ("gang",))
    raise AssertionError(f"chores are left: {due}")


async def states(cell: CellStore, ids: str) -> dict[str, str]:
    """`state` or `state why` of each claim; those that are not known are left out."""
    found = await cell.read_claims(ids)
    return {one: f"{claim.state} {claim.why}" if claim.why else claim.state for one, claim in found.items()}


async def kept(cell: CellStore, raw: Any, ids: str) -> str:
    """Those of the ended claims that are kept without a time at which they are forgotten."""
    found = await cell.read_claims(ids)
    ended = [one for one in ids if one in found and found[one].state is ClaimStatus.ENDED]
    return "".join([one for one in ended if await raw.pttl(cell.keys.claim(one)) == -1])


def held(claim_id: str, placed: Placed, state: ClaimStatus = ClaimStatus.ACTIVE, **succession: Any) -> HeldClaim:
    """A claim of 1 VCPU as its host's journal has it."""
    return HeldClaim(claim_id, placed.token, state, {"VCPU": 1}, digest="digest", **succession)
