"""Claims with more than one placement, for tests of the store: helpers that create them, and read what is left."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from redsched.model import Amounts, ClaimStatus, EndReason
from redsched.store.cell import CellStore
from redsched.store.codec.claim_codec import counted_by
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimReply, EndedPlacement, JournaledClaim, Placed, Replacement
from tests.support.builders.cells import HOUR_S, call_of, member, new_epoch


def held_claim(
    claim_id: str,
    token: str,
    state: ClaimStatus = ClaimStatus.ACTIVE,
    amounts: Amounts | None = None,
    project: str = "",
    consumer: str = "",
    digest: str = "digest",
    group: str = "",
    counted: Mapping[str, str] | None = None,
    resizing_to: Amounts | None = None,
    placed: str = "",
    root: str = "",
    **fields: str,
) -> JournaledClaim:
    """Return a placement as in its host's journal: of 1 VCPU by default."""
    words = {"project": project, "consumer": consumer, "digest": digest, "group": group, **fields}
    record = {name: value for name, value in words.items() if value}
    for kind, values in (
        ("amount", amounts or {"VCPU": 1}),
        ("resizing_to", resizing_to or {}),
        ("counted", counted or {}),
    ):
        record |= {f"{kind}.{name}": str(value) for name, value in values.items()}
    placed = placed or token
    return JournaledClaim(claim_id, token, placed, root or placed, state, record)


def held(claim_id: str, placed: Placed, state: ClaimStatus = ClaimStatus.ACTIVE, **fields: Any) -> JournaledClaim:
    """Return the `held_claim` of a placement."""
    return held_claim(claim_id, placed.token, state, **fields)


def ended(claim_id: str, token: str, placed: str = "", **more: Any) -> EndedPlacement:
    """Return a placement that its host's journal remembers as ended."""
    return EndedPlacement(claim_id, token, placed, **more)


def done(claim_id: str, placed: Placed, end_reason: EndReason = EndReason.WORK_ENDED) -> EndedPlacement:
    """Return a placement that was active, and has just ended for this reason, in its host's journal."""
    return ended(claim_id, placed.token, end_reason=end_reason, was_active=True, ended_ago_ms=0)


async def ask_again(cell: CellStore, claim_id: str, host: str, replacement: Replacement, **amounts: int) -> ClaimReply:
    """Request another placement of a claim."""
    one = replace(member(claim_id, host, **amounts), replacement=replacement)
    return await cell.claims.place(call_of(await cell.tick(), one))


async def move_to(
    cell: CellStore,
    claim_id: str,
    placed: Placed,
    host: str = "h2",
    end_reason: EndReason = EndReason.MOVED,
    by_s: int = 0,
) -> Placed:
    """Return another placement of a claim, of 1 VCPU, that was claimed."""
    answer = await ask_again(cell, claim_id, host, Replacement(placed.host, placed.token, end_reason, by_s))
    assert answer.outcome is Outcome.OK
    return answer.placed[0]


async def arrive(cell: CellStore, claim_id: str, placed: Placed) -> None:
    """Accept and confirm a placement on its host."""
    assert (await cell.claims.accept(placed.host, claim_id, placed.token, HOUR_S)).outcome is Outcome.OK
    assert (await cell.claims.confirm(placed.host, claim_id, placed.token)).outcome is Outcome.OK


async def moved(cell: CellStore, claim_id: str, placed: Placed, host: str = "h2") -> Placed:
    """Move a claim to another host; the first has stopped its work."""
    found = await move_to(cell, claim_id, placed, host)
    await arrive(cell, claim_id, found)
    await settle(cell)
    assert (await cell.claims.gone(placed.host, claim_id, placed.token, EndReason.RELEASED, {})).outcome is Outcome.OK
    return found


async def shelved(cell: CellStore, claim_id: str, placed: Placed) -> str:
    """Shelve an active claim; its host has stopped its work. Return the token up to which it is closed."""
    answer = await cell.claims.shelve(placed.host, claim_id, placed.token)
    assert answer.outcome is Outcome.ENDING
    assert (await cell.claims.gone(placed.host, claim_id, placed.token, EndReason.RELEASED, {})).outcome is Outcome.OK
    return answer.facts[0]


async def unshelved(cell: CellStore, claim_id: str, placed: Placed, host: str = "h2") -> Placed:
    """Unshelve a claim; its work runs."""
    found = await move_to(cell, claim_id, placed, host, EndReason.SHELVED)
    await arrive(cell, claim_id, found)
    return found


Snapshot = Mapping[str, tuple[bytes, int]]
"""The contents of a store: each key's value and its time to live (ms; 0: none)."""


async def snapshot(raw: Any) -> Snapshot:
    """Return the present contents of the store, to be restored later as by a failover or from a backup."""
    keys = [key async for key in raw.scan_iter(count=1000)]
    async with raw.pipeline(transaction=False) as pipeline:
        for key in keys:
            pipeline.dump(key).pttl(key)
        values = iter(await pipeline.execute())
    return {key: (next(values), max(0, next(values))) for key in keys}


async def restore(raw: Any, to: Snapshot) -> None:
    """Replace the contents of the store by a snapshot."""
    async with raw.pipeline(transaction=False) as pipeline:
        pipeline.flushall()
        for key, (value, ttl_ms) in to.items():
            pipeline.restore(key, ttl_ms, value)
        await pipeline.execute()


async def roll_back(cell: CellStore, raw: Any, to: Snapshot) -> str:
    """Take the store back to the snapshot, and return the epoch that begins then."""
    await restore(raw, to)
    return await new_epoch(cell)


async def let_settle(cell: CellStore, raw: Any) -> None:
    """End the time for which a cell waits for its hosts to attest."""
    await raw.hset(cell.keys.meta, "settle_at_ms", 1)
    assert (await cell.tick()).settled


async def make_move_due(raw: Any, cell: CellStore, claim_id: str, placed: Placed) -> None:
    """Set the deadline of a move to the past, without waiting for it."""
    await raw.hset(cell.keys.claim(claim_id), f"placement.{placed.token}.move_deadline_ms", 1)
    await raw.zadd(cell.keys.deadlines, {claim_id: 1})


async def settle(cell: CellStore, but: Collection[str] = ()) -> None:
    """Reconcile all due claims, as schedulers do, except for placing them again; only the named ones are left then."""
    for _ in range(6):
        due = [one for one in await cell.due.to_reconcile((await cell.tick()).now_ms, 0, 100) if one not in but]
        if not due:
            return
        for claim_id in due:
            claim = (await cell.claims.read((claim_id,))).get(claim_id)
            over = claim and claim.gang and claim.state in (ClaimStatus.ENDING, ClaimStatus.ENDED)
            gang_done = bool(over) and await cell.gangs.end(claim.gang if claim else "")
            await cell.claims.reconcile([claim_id], counted_by(claim) if claim else (), gang_done)
    raise AssertionError(f"claims are left to reconcile: {due}")


async def states(cell: CellStore, claim_id: str) -> dict[str, str]:
    """Return `state` or `state end_reason` of each placement of a claim, by host; by '' if it has none."""
    claim = (await cell.claims.read([claim_id])).get(claim_id)
    if claim is None:
        return {}
    views = [(one.host, one.state, one.end_reason) for one in claim.placements] or [("", claim.state, claim.end_reason)]
    if claim.state is ClaimStatus.PENDING and claim.placements:
        views.append(("", claim.state, None))
    return {host: f"{state} {end_reason}" if end_reason else str(state) for host, state, end_reason in views}


async def main_states(cell: CellStore, ids: Collection[str]) -> dict[str, str]:
    """Return `state` or `state end_reason` of each claim at its main placement; unknown claims are omitted."""
    found = await cell.claims.read(ids)
    return {
        one: f"{claim.state} {claim.end_reason}" if claim.end_reason else str(claim.state)
        for one, claim in found.items()
    }


async def is_kept(cell: CellStore, raw: Any, claim_id: str) -> bool:
    """Return whether an ended claim is remembered without end."""
    return bool(await raw.pttl(cell.keys.claim(claim_id)) == -1)
