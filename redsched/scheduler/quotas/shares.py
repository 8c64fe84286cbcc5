"""Shares of quotas: several cells together never use more than a limit, though no script sees two cells.

Each cell may use its share of each limit; the sum of all shares never exceeds the limit.

- **Dividing.** Limits are divided when a quota is declared, and when a cell is in a new epoch, because it may have lost
  the records of its transfers. Every cell is closed first, so that earlier shares are no longer used; then each cell
  gets what it uses and a part of the rest.
- **Transferring.** The giving cell subtracts the amounts from its share and records the transfer; the receiving cell
  adds them, once; then the record is deleted. A crash may leave the record behind. The transfer is then voided in the
  receiving cell, and returned to the giving cell unless it had been received.
"""

import asyncio
import secrets
from collections.abc import Mapping, Sequence

from redsched import aio, logs
from redsched.errors import Settling
from redsched.model import Amounts, Exceeded, Quota
from redsched.scheduler.background.lease import DutyLease
from redsched.scheduler.background.periodic import repeat
from redsched.scheduler.cells import Cell, Cells
from redsched.store.codec.keys import Kind
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ScriptResult
from redsched.store.commands.quotas import QuotaState, Transfer

SWEEP_S = 5.0
"""How often one scheduler looks for transfers and divisions left behind by crashes."""
RETURNED_AFTER_MS = 1000
"""How long a transfer may be in flight before it is returned: ample for two calls. Any value is safe."""

UNDER_WAY_MS = 2000
"""How long a scheduler first waits for another one's division. Two divisions at once are safe, but one is wasted."""
MAX_PATIENCE_MS = 60_000
"""The longest such wait. After that, the division of a scheduler that may have died is repeated."""

States = Mapping[str, QuotaState]

log = logs.get_logger(__name__)


class QuotaShares:
    """Divides and transfers the shares of all quotas, over all cells of a scheduler."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._first = next(iter(cells))
        self._duty = DutyLease(self._first.store, "quotas")
        self._locks: dict[tuple[str, str], asyncio.Lock] = {}
        self._patience_ms: dict[str, int] = {}
        """By project: the time to wait for divisions of other schedulers, if not UNDER_WAY_MS."""
        self._last_division: dict[str, str] = {}
        """By project: the last division that this scheduler began."""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the sweep for what crashes leave behind, if there are several cells."""
        if len(self._cells) > 1:
            sweeping = repeat(self._sweep_on_duty, SWEEP_S, log, "quota-sweep", first_s=SWEEP_S)
            self._task = aio.detached(sweeping, name="redsched-quotas")

    async def stop(self) -> None:
        """Stop the sweep."""
        await aio.end(self._task)

    async def read(self, project: str) -> dict[str, QuotaState]:
        """Return each cell's state of a project's quota, by cell name.

        Reads the first cell before the others: if it is not being divided then, no other cell is either.
        """

        async def look(cell: Cell) -> QuotaState:
            return QuotaState.parse((await cell.store.declared.read(Kind.QUOTA, [project])).get(project, {}))

        first, *others = self._cells
        found = [await look(first), *await aio.gather(map(look, others))]
        return {cell.name: state for cell, state in zip(self._cells, found, strict=True)}

    # Dividing

    async def divide(self, project: str, instead_of: str = "") -> None:
        """Give every cell a share of the limits if any cell has none. Does nothing while another scheduler is dividing.

        `instead_of` names a division to replace even if every cell has a share. Raises Settling.
        """
        async with self._lock(project, ""):
            states = await self.read(project)
            limits = states[self._first.name].limits
            if not limits:
                await self._clear(project, states)
            elif instead_of == states[self._first.name].division != "" or not await self._is_divided(states):
                if await self._declare(Quota(project, limits), states):
                    states = await self.read(project)
                if len(self._cells) > 1:
                    await self._divide(project, limits, states)

    async def is_divided(self, project: str) -> bool:
        """Return whether every cell has a share in its current epoch, or there is only one cell."""
        return await self._is_divided(await self.read(project))

    async def _is_divided(self, states: States) -> bool:
        first = states[self._first.name]
        if any(one.limits != first.limits or one.cells != self._names() for one in states.values()):
            return False
        if len(states) == 1:
            return True
        epochs = await self._epochs()
        has_share = all(one.division and one.share_epoch == epochs[cell] for cell, one in states.items())
        same = len({one.division for one in states.values()}) == 1
        return has_share and same and not any(map(_uses_too_much, states.values()))

    async def _epochs(self) -> dict[str, str]:
        return {cell.name: (await cell.store.tick()).epoch for cell in self._cells}

    async def _declare(self, quota: Quota, states: States) -> bool:
        """Declare the first cell's limits in the cells that have lost them. Returns whether there were such cells."""
        await self._cells.refuse_unsettled(f"what project {quota.project} uses of its quota")
        lost = [
            cell
            for cell in self._cells
            if states[cell.name].limits != quota.limits or states[cell.name].cells != self._names()
        ]
        for cell in lost:
            await cell.store.declared.put_quota(quota, [one.name for one in self._cells])
        return bool(lost)

    async def _divide(self, project: str, limits: Amounts, states: States) -> None:
        """Close all cells, and give each its share.

        `states` were read before any cell was closed. A cell is closed only if it still has the division of that time,
        and gets its share only in the epoch of that time, so that of two concurrent divisions only one can give out
        shares. Comparing the division alone would not suffice: a cell that lost writes may have an earlier division
        again, and would be closed as if there had been no later one. Usually only one scheduler tries at a time,
        because the first cell is closed before the others and gets its share after them.

        A declaration counts as a division of its own, named by its version. So a division that was planned before a
        declaration closes no cell after it: in between, a cell that was already closed may have admitted any amount.
        """
        if self._is_under_way(project, states[self._first.name]):
            return
        division, epochs = secrets.token_hex(12), await self._epochs()
        self._last_division[project] = division
        closed = await self._close_all(project, limits, states, division)
        if not closed:
            return
        shares, answers = divided(limits, [state.used for _, state in closed]), list[ScriptResult]()
        for (cell, state), share in reversed([*zip(closed, shares, strict=True)]):
            answers.append(await cell.store.quotas.share(project, division, epochs[cell.name], state.version, share))
        if all(answer.outcome is not Outcome.STALE for answer in answers):
            del self._patience_ms[project]

    async def _close_all(
        self, project: str, limits: Amounts, states: States, division: str
    ) -> Sequence[tuple[Cell, QuotaState]]:
        """Close all cells, and return each cell's state of the quota after that; () if one cannot be closed.

        The division counts as overtaken until it completes.
        """
        patience_ms = min(2 * self._patience_of(project), MAX_PATIENCE_MS)
        closed = list[tuple[Cell, QuotaState]]()
        for cell in self._cells:
            answer, state = await cell.store.quotas.close(project, states[cell.name].division, division)
            if answer.outcome not in (Outcome.OK, Outcome.ALREADY_DONE) or state.limits != limits:
                return ()
            self._patience_ms[project] = patience_ms
            closed.append((cell, state))
        return closed

    def _is_under_way(self, project: str, first: QuotaState) -> bool:
        """Return whether another scheduler began a division recently and is still dividing.

        A scheduler whose division was overtaken doubles the time for which it leaves others alone. Otherwise two could
        overtake each other for ever if a division takes longer than UNDER_WAY_MS, with many cells or a slow store.
        """
        is_open = not first.share_epoch and first.division != self._last_division.get(project)
        return is_open and self._first.updater.now_ms() - first.closed_at_ms < self._patience_of(project)

    def _patience_of(self, project: str) -> int:
        return self._patience_ms.get(project, UNDER_WAY_MS)

    async def _clear(self, project: str, states: States) -> None:
        """Delete a quota that the first cell does not have: an interrupted deletion left it in other cells."""
        await self._cells.refuse_unsettled(f"the quota of project {project}")
        for cell in self._cells:
            if states[cell.name].limits:
                await cell.store.declared.delete_quota(project)

    # Transferring

    async def gather(self, cell: Cell, project: str, over: Sequence[Exceeded]) -> tuple[Exceeded, ...]:
        """Transfer spare shares of other cells to a cell that lacks them. Returns () if the call should be repeated.

        If all cells together have no room, returns the limits exceeded, with the numbers over all cells. Raises
        Settling, Unavailable.
        """
        if len(self._cells) == 1:
            return await self._alone(project, over)
        async with self._lock(project, cell.name):
            states = await self.read(project)
            own_state, asked = states[cell.name], {one.resource: one.asked for one in over}
            lacking = _positive(
                {
                    name: own_state.used.get(name, 0) + more - own_state.share.get(name, 0)
                    for name, more in asked.items()
                }
            )
            if not lacking:
                return ()  # another task has transferred them in the meantime
            if found := exceeded_by(list(states.values()), asked):
                return found
            await self._end_transfers(project, states)
            for other in self._cells:
                if other is not cell and lacking:
                    got = await self._transfer(project, own_state.division, other, states[other.name], cell, lacking)
                    lacking = _positive({name: amount - got.get(name, 0) for name, amount in lacking.items()})
            # If a limit is overused, no cell has a share of it; or a closed cell has the share that is lacking here.
            if any(name not in state.share for state in states.values() for name in lacking):
                await self.divide(project, instead_of=own_state.division)
            return ()

    async def _alone(self, project: str, over: Sequence[Exceeded]) -> tuple[Exceeded, ...]:
        """Return the limits exceeded in the only cell; () after dividing again, if there were other cells before."""
        if await self.is_divided(project):
            return tuple(over)
        await self.divide(project)
        return ()

    async def _transfer(
        self, project: str, division: str, giver: Cell, state: QuotaState, cell: Cell, lacking: Amounts
    ) -> Amounts:
        """Transfer the lacking amounts, or half of what the giver can spare if that is more. Returns what arrived."""
        spare = {name: state.share.get(name, 0) - state.used.get(name, 0) for name in lacking}
        wanted = _positive({name: min(spare[name], max(lacking[name], (spare[name] + 1) // 2)) for name in lacking})
        if not wanted:
            return {}
        outcome, transfer = await giver.store.quotas.give(project, division, cell.name, secrets.token_hex(12), wanted)
        if outcome is Outcome.STALE:
            await self.divide(project)
        if transfer is None or outcome is Outcome.IN_USE:
            return {}
        answer = await cell.store.quotas.take(project, division, giver.name, transfer)
        if answer.outcome is Outcome.STALE:
            return {}
        has_it = answer.outcome is not Outcome.ENDED
        await giver.store.quotas.close_transfer(project, division, cell.name, transfer, back=not has_it)
        return transfer.amounts if has_it else {}

    async def _return_transfer(self, project: str, division: str, giver: Cell, to: Cell, transfer: Transfer) -> None:
        """Return an abandoned transfer to its giver, after voiding it in the receiving cell."""
        if giver.updater.now_ms() - transfer.at_ms < RETURNED_AFTER_MS:
            return
        answer = await to.store.quotas.void(project, division, giver.name, transfer)
        if answer.outcome is not Outcome.STALE:
            back = answer.outcome is Outcome.OK
            await giver.store.quotas.close_transfer(project, division, to.name, transfer, back)

    # Recovery after crashes

    async def _sweep_on_duty(self) -> None:
        if await self._duty.is_mine(2 * SWEEP_S):
            await self.sweep()

    async def sweep(self) -> None:
        """End abandoned transfers, and divide quotas that are not divided. Raises Unavailable."""
        for project in self._projects():
            try:
                await self.divide(project)
            except Settling:
                continue
            await self._end_transfers(project, await self.read(project))

    def _projects(self) -> list[str]:
        """Return the projects with quotas in any cell."""
        return sorted({name for cell in self._cells for name in cell.updater.columns.declared.quotas})

    async def _end_transfers(self, project: str, states: States) -> None:
        """Return transfers to their givers that have been in flight for too long."""
        known = {cell.name: cell for cell in self._cells}
        for giver, state in states.items():
            for to, transfer in state.given.items():
                if to in known:
                    await self._return_transfer(project, state.division, known[giver], known[to], transfer)

    def _names(self) -> str:
        return ",".join(cell.name for cell in self._cells) if len(self._cells) > 1 else ""

    def _lock(self, project: str, cell: str) -> asyncio.Lock:
        return self._locks.setdefault((project, cell), asyncio.Lock())


def exceeded_by(states: Sequence[QuotaState], asked: Amounts) -> tuple[Exceeded, ...]:
    """Return which of the first cell's limits these amounts would exceed, added to the usage in all cells."""
    limits, used = states[0].limits, {name: sum(one.used.get(name, 0) for one in states) for name in asked}
    return tuple(
        Exceeded(name, limits[name], used[name], amount)
        for name, amount in sorted(asked.items())
        if name in limits and amount and used[name] + amount > limits[name]
    )


def divided(limits: Amounts, used: Sequence[Amounts]) -> list[dict[str, int]]:
    """Return each cell's share of each limit: what it uses and an equal part of the rest.

    If the total usage exceeds a limit, no cell gets a share of it: a cell whose usage drops must not admit more while
    another one exceeds its part. Once there is room again, the next request for it causes another division.
    """
    shares: list[dict[str, int]] = [{} for _ in used]
    for name, limit in limits.items():
        held = [one.get(name, 0) for one in used]
        each, rest = divmod(limit - sum(held), len(held))
        for number, amount in enumerate(held if sum(held) <= limit else ()):
            shares[number][name] = amount + each + (rest if number == 0 else 0)
    return shares


def _positive(amounts: Amounts) -> dict[str, int]:
    return {name: amount for name, amount in amounts.items() if amount > 0}


def _uses_too_much(state: QuotaState) -> bool:
    """Return whether a cell uses more than its share: attestations of its hosts can cause that without a transfer."""
    return any(state.used.get(name, 0) > share for name, share in state.share.items())
