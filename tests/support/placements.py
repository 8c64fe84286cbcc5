"""Claims with more than one placement, for tests of the store: short ways to make them, and a look at what is left."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from redsched.model import Amounts, ClaimStatus, EndReason
from redsched.store.cell import CellStore
from redsched.store.codec.claim_codec import counted_by
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.results import ClaimAnswer, EndedPlacement, JournaledClaim, Placed, Replacement
from tests.support.cells import HOUR_S, call_of, member, new_epoch


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
    """A placement as its host's journal has it: of 1 VCPU unless said otherwise."""
    words = {"project": project, "consumer": consumer, "digest": digest, "group": group, **fields}
    record = {name: value for name, value in words.items() if value}
    for kind, values in (
        ("amount", amounts or {"VCPU": 1}),
        ("resizing_to", resizing_to or {}),
        ("counted", counted or {}),
    ):
        record |= {f"{kind}.{name}": str(value) for name, value in values.items()}
    placed = placed or token
    return JournaledClaim(claim_id, placed, token, root or placed, state, record)


def held(claim_id: str, placed: Placed, state: ClaimStatus = ClaimStatus.ACTIVE, **fields: Any) -> JournaledClaim:
    """`held_claim` of a placing."""
    return held_claim(claim_id, placed.token, state, **fields)


def ended(claim_id: str, token: str, placed: str = "") -> EndedPlacement:
    """A placement that its host's journal remembers as ended."""
    return EndedPlacement(claim_id, placed or token, token)


async def ask_again(cell: CellStore, claim_id: str, host: str, replacement: Replacement, **amounts: int) -> ClaimAnswer:
    """Ask for another placement of a claim."""
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
    """Another placement of a claim, of 1 VCPU, that was claimed."""
    answer = await ask_again(cell, claim_id, host, Replacement(placed.host, placed.token, end_reason, by_s))
    assert answer.outcome is Outcome.OK
    return answer.placed[0]


async def arrive(cell: CellStore, claim_id: str, placed: Placed) -> None:
    """The host of a placement takes it up, and its work runs."""
    assert (await cell.claims.accept(placed.host, claim_id, placed.token, HOUR_S)).outcome is Outcome.OK
    assert (await cell.claims.confirm(placed.host, claim_id, placed.token)).outcome is Outcome.OK


async def moved(cell: CellStore, claim_id: str, placed: Placed, host: str = "h2") -> Placed:
    """A claim that has moved to another host, and the first has stopped its work."""
    found = await move_to(cell, claim_id, placed, host)
    await arrive(cell, claim_id, found)
    await settle(cell)
    assert (await cell.claims.gone(placed.host, claim_id, placed.token, EndReason.RELEASED, {})).outcome is Outcome.OK
    return found


async def shelved(cell: CellStore, claim_id: str, placed: Placed) -> str:
    """A claim was active, is shelved, and its host has stopped its work. Up to which token it is closed."""
    answer = await cell.claims.shelve(placed.host, claim_id, placed.token)
    assert answer.outcome is Outcome.ENDING
    assert (await cell.claims.gone(placed.host, claim_id, placed.token, EndReason.RELEASED, {})).outcome is Outcome.OK
    return answer.facts[0]


async def unshelved(cell: CellStore, claim_id: str, placed: Placed, host: str = "h2") -> Placed:
    """A shelved claim is placed again, and its work runs."""
    found = await move_to(cell, claim_id, placed, host, EndReason.SHELVED)
    await arrive(cell, claim_id, found)
    return found


Snapshot = Mapping[str, tuple[bytes, int]]
"""What a store holds: each key's value and how long it is kept (ms; 0: without end)."""


async def snapshot(raw: Any) -> Snapshot:
    """What a failover or a restored backup takes the store back to."""
    keys = [key async for key in raw.scan_iter(count=1000)]
    async with raw.pipeline(transaction=False) as pipeline:
        for key in keys:
            pipeline.dump(key).pttl(key)
        values = iter(await pipeline.execute())
    return {key: (next(values), max(0, next(values))) for key in keys}


async def restore(raw: Any, to: Snapshot) -> None:
    """Let the store hold what it held then, and nothing else."""
    async with raw.pipeline(transaction=False) as pipeline:
        pipeline.flushall()
        for key, (value, ttl_ms) in to.items():
            pipeline.restore(key, ttl_ms, value)
        await pipeline.execute()


async def roll_back(cell: CellStore, raw: Any, to: Snapshot) -> str:
    """The store has never heard of anything that came after the snapshot. The epoch that begins with that."""
    await restore(raw, to)
    return await new_epoch(cell)


async def let_settle(cell: CellStore, raw: Any) -> None:
    """The time that a cell waits for its hosts is over."""
    await raw.hset(cell.keys.meta, "settle_at_ms", 1)
    assert (await cell.tick()).settled


async def make_move_due(raw: Any, cell: CellStore, claim_id: str, placed: Placed) -> None:
    """Let the deadline of a move have passed, without waiting for it."""
    await raw.hset(cell.keys.claim(claim_id), f"placement.{placed.token}.move_deadline_ms", 1)
    await raw.zadd(cell.keys.deadlines, {claim_id: 1})


async def settle(cell: CellStore, but: Collection[str] = ()) -> None:
    """Reconcile all due claims, as schedulers do, but for placing them again; none is left then but those named."""
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
    """`state` or `state why` of each placement of a claim, by host; of one without any, by ''."""
    claim = (await cell.claims.read([claim_id])).get(claim_id)
    if claim is None:
        return {}
    views = [(one.host, one.state, one.end_reason) for one in claim.placements] or [("", claim.state, claim.end_reason)]
    if claim.state is ClaimStatus.PENDING and claim.placements:
        views.append(("", claim.state, None))
    return {host: f"{state} {end_reason}" if end_reason else str(state) for host, state, end_reason in views}


async def main_states(cell: CellStore, ids: Collection[str]) -> dict[str, str]:
    """`state` or `state why` of each claim at its main placement; those that are not known are left out."""
    found = await cell.claims.read(ids)
    return {
        one: f"{claim.state} {claim.end_reason}" if claim.end_reason else str(claim.state)
        for one, claim in found.items()
    }


async def is_kept(cell: CellStore, raw: Any, claim_id: str) -> bool:
    """Whether a claim that has ended is remembered without end."""
    return bool(await raw.pttl(cell.keys.claim(claim_id)) == -1)
