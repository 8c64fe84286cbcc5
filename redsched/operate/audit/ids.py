"""Audit claim ids over all cells: at most one cell has a live claim with an id. Invariant 3.

A cell that was wiped may settle before one of its hosts returns. Until then it lacks the host's claims, so a repeated
call may claim the same id in another cell before the host restores the first claim. A claim on a live host is kept
rather than one on a host that is down, because it runs. Of two that run, the cell that the id is bound to keeps its
claim, because the binding was written for the last answer to the caller. The other claims are released.
"""

from collections.abc import AsyncIterator, Container, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain

from redsched import aio, logs
from redsched.model import Claim
from redsched.model.records.audit import Problem, RepairKind
from redsched.operate.audit.recheck import repaired_shared, shared_problems
from redsched.pacing import Spread, paced, paged
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.claims.by_id import made_for, on_live_hosts
from redsched.store.codec.claim_codec import counted_by
from redsched.store.codec.outcomes import Outcome
from redsched.store.commands.base import CLAIMS_AT_ONCE, chunks
from redsched.store.commands.bindings import BOUND_MS
from redsched.store.commands.claims import HOSTS_AT_ONCE

log = logs.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SharedId:
    """An id with live claims in several cells, as it was read."""

    claims: Sequence[Claim]
    """In the order of the cells' names."""
    bound_to: str
    """The cell that the id is bound to; '' for none."""
    unsettled: str
    """One of these cells that has not settled; '' if all have."""
    live: Container[tuple[str, str]]
    """The cells and hosts of these claims whose lease runs, and which have attested."""

    @property
    def kept(self) -> Claim | None:
        """The claim to keep: one on a live host, then the one in the cell that the id is bound to, or was generated
        for, or the newest one.

        None while this is undecided: a call that has bound the id to a cell without a claim may still claim it there.
        """
        if self.bound_to and all(one.cell != self.bound_to for one in self.claims):
            return None
        return max(self.claims, key=self._worth)

    def _worth(self, claim: Claim) -> tuple[bool, bool, bool, int, str]:
        is_live, is_bound = (claim.cell, claim.host) in self.live, claim.cell == self.bound_to
        # A host that is not trusted can attest to any time.
        return is_live, is_bound, made_for(claim.cell, claim.claim_id), claim.claimed_at_ms or 0, claim.cell

    def problem(self) -> Problem:
        """Return the repeated id as a problem of the first of its cells."""
        first, kept = self.claims[0], self.kept
        found = ", ".join(f"{one.state} in {one.cell}" for one in self.claims)
        if self.unsettled or kept is None:
            return Problem(3, first.cell, first.claim_id, "claim", found, "in one cell", advice=self._left_alone())
        return Problem(
            3, first.cell, first.claim_id, "claim", found, f"in {kept.cell} alone", RepairKind.TWO_CELLS, first.claim_id
        )

    def _left_alone(self) -> str:
        if self.unsettled:
            return f"an id with claims in two cells is left alone until cell {self.unsettled} has settled"
        return f"an id that is bound to cell {self.bound_to} and not claimed there is left alone until it is not bound"


async def audit_ids(cell: Cell, cells: Cells) -> tuple[Problem, ...]:
    """Return a problem for each id of a cell's claims that a later cell, by name, also has. Raises StoreUnavailable.

    If all cells are audited, each pair of them is compared once.
    """
    ids = await _ids_claimed_elsewhere(cell, [one for one in cells if one.name > cell.name])
    return await shared_problems(cell.name, ids, partial(_shared_ids, cells))


async def repair_ids(cell: Cell, cells: Cells) -> tuple[Problem, ...]:
    """Audit the ids of a cell's claims as `audit_ids` does, and release the claims that are not kept."""
    before = await audit_ids(cell, cells)
    return await repaired_shared(before, partial(_repair, cells), partial(_shared_ids, cells))


async def _repair(cells: Cells, problem: Problem) -> None:
    """Read an id again, and release all of its claims except the one that is kept."""
    async for one in _shared_ids(cells, [problem.thing]):
        kept = one.kept
        if one.unsettled or kept is None or not await _is_bound_to(cells.named(kept.cell), one):
            return
        for claim in one.claims:
            if claim is not kept:
                outcome = await _release(cells.named(claim.cell), claim, f"also claimed in cell {kept.cell}")
                log.warning("repaired", cell=claim.cell, thing=claim.claim_id, problem=problem.detail, outcome=outcome)


async def _is_bound_to(cell: Cell, one: SharedId) -> bool:
    """Bind the id to the cell whose claim is kept; return False if another call has bound it elsewhere meanwhile."""
    if one.bound_to == cell.name:
        return True
    return await cell.store.bindings.bind(one.claims[0].claim_id, one.bound_to, BOUND_MS) == cell.name


async def _release(cell: Cell, claim: Claim, reason: str) -> Outcome:
    """Release a claim unless it has changed since it was read."""
    answer = await cell.store.claims.release(
        claim.host, claim.claim_id, claim.token, objects=counted_by(claim), reason=reason
    )
    return answer.outcome


async def _ids_claimed_elsewhere(cell: Cell, others: Sequence[Cell]) -> list[str]:
    """Return the ids of a cell's claims for which another cell has a live claim."""
    found: dict[str, None] = {}
    if not others:
        return []
    async for ids in _claim_ids(cell):
        for other in others:
            if ids and await other.store.audit.has_any(ids):
                claims = (await other.store.claims.read(ids)).values()
                found.update((one.claim_id, None) for one in claims if one.is_live and not one.is_local)
    return list(found)


async def _claim_ids(cell: Cell) -> AsyncIterator[list[str]]:
    """Yield the ids of the claims on hosts and of those that wait for a place, in pages."""
    # Read again: a million ids kept from audit_cell's walk would occupy 100 MB beside what a repair of the cell reads.
    for hosts in chunks(await cell.store.hosts.names(), HOSTS_AT_ONCE):
        async for page in paged(chain.from_iterable(await cell.store.hosts.claim_ids_of(hosts)), CLAIMS_AT_ONCE):
            yield page
    waiting: Spread[int] = await cell.store.due.reconcile_times()
    async for page in paged(waiting, CLAIMS_AT_ONCE):
        yield page
    await waiting.free_in_slices()


async def _shared_ids(cells: Cells, ids: Sequence[str]) -> AsyncIterator[SharedId]:
    """Read ids in pages, and yield those with claims in several cells."""
    for some in chunks(ids, CLAIMS_AT_ONCE) if ids else ():
        # Read before the claims: if a host restores a claim after that, its cell still counts as unsettled here.
        unsettled = await cells.unsettled()
        claims = await _live_claims(cells, some)
        shared = [claim_id for claim_id in some if len(claims[claim_id]) > 1]
        bindings = next(iter(cells)).store.bindings
        bound = await aio.gather(map(bindings.cell_of, shared))
        async for claim_id, bound_to in paced(zip(shared, bound, strict=True)):
            waiting = next((one.cell for one in claims[claim_id] if one.cell in unsettled), "")
            live = await on_live_hosts(cells, claims[claim_id])
            yield SharedId(claims[claim_id], bound_to, waiting, live)


async def _live_claims(cells: Cells, ids: Sequence[str]) -> dict[str, list[Claim]]:
    found: dict[str, list[Claim]] = {claim_id: [] for claim_id in ids}
    for cell in sorted(cells, key=lambda one: one.name):
        async for claim_id, claim in paced((await cell.store.claims.read(ids)).items()):
            if claim.is_live and not claim.is_local:
                found[claim_id].append(claim)
    return found
