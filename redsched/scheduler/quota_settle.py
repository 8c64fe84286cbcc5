"""Settling what a ledger holds with what the cells do: when claims have ended, and when a lease of it has run out.

First the ids are marked in the ledger, then the cells are read, then the ledger is told: whoever changes a claim after
the reading marks it again, and then this word on it counts no more. Any scheduler may do it, any number of times.
"""

from collections.abc import Collection, Mapping

import structlog

from redsched.model import Claim, ClaimStatus
from redsched.scheduler.cells import Cells
from redsched.scheduler.identity import unique
from redsched.scheduler.quota_count import QuotaCount
from redsched.scheduler.taken import taken_together
from redsched.store import Ledgers, LedgerState, Outcome, Taking

RESERVED_MS = 60_000
"""The lease of a reservation: far longer than a claim call is sent again for."""
DUE_AT_ONCE = 200
MOST_STEPS = 8
"""A finished succession leads past its former, so that there are hardly ever more than two."""

log = structlog.get_logger(__name__)


class QuotaSettler:
    """Settles ledgers, over all cells of a scheduler."""

    def __init__(self, cells: Cells, ledgers: Ledgers, counting: QuotaCount) -> None:
        self._cells = cells
        self._ledgers = ledgers
        self._counting = counting

    async def settle(self, project: str, ids: Collection[str]) -> set[str]:
        """Have the ledger hold what the cells do, of these ids (of claims, or of the first of a succession).

        Those that are settled; the others are another's business, or wait for a count. Raises StoreUnavailable.
        """
        state = (await self._ledgers.read([project])).get(project)
        if state is None or not state.counted_in:
            # A count finds what holds now; what it found before this may have to be taken back after it.
            return set() if state else set(ids)
        known = await self._ledgers.known(project, ids)
        living = await self._living(ids)
        gone = {one for one in ids if one not in known and not living[one]}
        wanted = [one for one in ids if one not in gone]
        if not wanted:
            return gone
        await self._mark(project, [claim for one in wanted for claim in living[one] if not claim.quota])
        by = unique()
        marks = [Taking(one) for one in wanted]
        answer = await self._ledgers.reserve(project, by, marks, RESERVED_MS, present_epochs(self._cells))
        if answer.outcome is Outcome.UNKNOWN:
            return set(ids)
        if answer.outcome is not Outcome.OK:
            return gone
        # Marked: only now is it read what holds, for whoever changes it later marks it again.
        living = await self._living(wanted)
        places = zip(wanted, answer.facts[::2], answer.facts[1::2], strict=True)
        open_still = [one for one, claim, cell in places if not living[one] and not await self._close(claim, cell)]
        sure = [Taking(one, taken_together(living[one])) for one in wanted if one not in open_still]
        held = await self._ledgers.hold(project, by, sure)
        if held.outcome is not Outcome.OK:
            return gone
        return gone | {one.id for one in sure} - set(held.facts)

    async def sweep(self) -> None:
        """Settle what has been reserved for too long, and count ledgers that cannot be relied on."""
        first = next(iter(self._cells))
        projects = sorted(first.mirror.columns.declared.quotas)
        if not projects:
            return
        epochs, states = present_epochs(self._cells), await self._ledgers.read(projects)
        if all(cell.mirror.settled for cell in self._cells):
            for project in projects:
                if not _is_counted(states.get(project), epochs):
                    await self._counting.counted(project)
        for project, ids in (await self._ledgers.due(projects, first.mirror.now_ms(), DUE_AT_ONCE)).items():
            await self.settle(project, ids)

    async def _mark(self, project: str, claims: Collection[Claim]) -> None:
        """Have the end of claims be told that a host brought back, from before the quota."""
        for claim in claims:
            await self._cells.named(claim.cell).store.mark(project, [claim.id])

    async def _close(self, claim_id: str, cell: str) -> bool:
        """Close a claim's cell to calls that were decided before; False where it has an outcome there after all."""
        if not claim_id or cell not in {one.name for one in self._cells}:
            return True
        store = self._cells.named(cell).store
        if claim_id in await store.read_claims([claim_id]):
            # An outcome that has ended is as good: no call can claim it again. One that lives was just read so.
            known = await self._living([claim_id])
            return not known[claim_id]
        return (await store.void(claim_id, "")).outcome is not Outcome.CONFLICT

    async def _living(self, ids: Collection[str]) -> dict[str, list[Claim]]:
        """The claims that hold something of each id: its own, and those that succeeded it."""
        found: dict[str, list[Claim]] = {one: [] for one in ids}
        for cell in self._cells:
            leading = {one: one for one in ids}
            for _ in range(MOST_STEPS):
                claims = await cell.store.read_claims(leading)
                following: dict[str, str] = {}
                for claim_id, claim in claims.items():
                    if claim.state is not ClaimStatus.ENDED:
                        found[leading[claim_id]].append(claim)
                if not following:
                    break
                leading = following
        return found


def ledger_id(claim: Claim) -> str:
    """The id under which a ledger counts a claim: that by which its owner knows it."""
    return claim.id


def present_epochs(cells: Cells) -> dict[str, str]:
    """The epoch of each cell, as far as its picture knows."""
    return {cell.name: cell.mirror.epoch for cell in cells}


def _is_counted(state: LedgerState | None, epochs: Mapping[str, str]) -> bool:
    return state is not None and bool(state.counted_in) and all(state.epochs.get(c) == e for c, e in epochs.items())
