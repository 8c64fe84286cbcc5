"""The cells of one scheduler: for each its store, its replica in memory and its decider; and what concerns them all."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from redsched.cache.updater import ReplicaUpdater
from redsched.decide import Decider
from redsched.decide.plugins.registry import PluginRegistry
from redsched.errors import NotFound, Settling
from redsched.model import Claim, ClaimStatus
from redsched.scheduler.background.expiry import Expiry
from redsched.scheduler.background.release_log import ReleaseLog
from redsched.scheduler.claims.request_cache import RequestCache
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Cause, Outcome
from redsched.store.codec.results import ClaimAnswer

T = TypeVar("T")


@dataclass(eq=False)
class Cell:
    """One cell as a scheduler has it. It does nothing by itself: the tasks on it are in `redsched.scheduler.wiring`."""

    store: CellStore
    updater: ReplicaUpdater
    expiry: Expiry
    released: ReleaseLog
    requests: RequestCache
    settings: Settings
    plugins: PluginRegistry
    name: str = field(init=False)
    _decider: Decider | None = field(default=None, init=False)
    _decided_on: object = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.name = self.store.name

    @property
    def decider(self) -> Decider:
        """The decider over the present columns: a snapshot replaces them, and what was remembered of them."""
        if self._decider is None or self._decided_on is not self.updater.columns:
            self._decided_on = self.updater.columns
            self._decider = Decider(self.updater.columns, self.settings, self.plugins)
        return self._decider

    async def read_at_head(self, read: Callable[[], T]) -> T:
        """Look at the columns when all that was answered before this call is in them, with what is due ended first."""
        found = await self.updater.read_at_head(read)
        due = self.updater.next_deadline_ms
        if due is not None and due <= self.updater.now_ms():
            # Whoever ends it, this process or another one: what comes free is to be seen.
            await self.expiry.expire_due()
            found = await self.updater.read_at_head(read)
        return found

    async def mark_down(self, answer: ClaimAnswer) -> None:
        """Mark the hosts that a claim has found down. Raises Unavailable.

        A lease that has lapsed and was not swept yet is in no feed: without this the next try would aim there.
        """
        down = [host.host for host in answer.looked_at if host.cause == Cause.DOWN]
        if down:
            await self.expiry.mark_down(down)


def no_such_host(name: str) -> NotFound:
    """Return the error for a host that no cell knows."""
    return NotFound(f"there is no host {name!r}: it has never reported, or was removed")


class Cells:
    """All cells of a scheduler, in the order of the settings."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._cells = {cell.name: cell for cell in cells}

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._cells.values())

    def __len__(self) -> int:
        return len(self._cells)

    def named(self, name: str) -> Cell:
        """The cell of that name. Raises NotFound."""
        if name not in self._cells:
            raise NotFound(f"there is no cell {name!r} here: this scheduler serves {', '.join(self._cells)}")
        return self._cells[name]

    async def catch_up(self) -> None:
        """Bring all columns up to what the store had answered before this call."""
        await self.read_at_head(lambda _: None)

    async def read_at_head(self, read: Callable[[Cell], T]) -> list[T]:
        """`Cell.read_at_head` for all of them."""
        return await asyncio.gather(*(cell.read_at_head(partial(read, cell)) for cell in self._cells.values()))

    async def find_claim(self, claim_id: str) -> tuple[Cell, Claim]:
        """Return the claim of an id, and its cell, read from the store.

        Raises NotFound; Settling while it might only be forgotten.
        """
        known = await self.known([claim_id])
        if known is None:
            await self.refuse_unsettled(f"claim {claim_id}")
            # The cell may have settled since that was read, and its host have brought it back before.
            known = await self.known([claim_id])
        if known is None:
            raise NotFound(f"there is no claim {claim_id!r}: it never existed, or ended too long ago to be remembered")
        cell, claims = known
        return cell, claims[claim_id]

    async def known(self, claim_ids: Sequence[str]) -> tuple[Cell, dict[str, Claim]] | None:
        """The cell that has any of these ids, and those that it has; None where no cell does.

        Of several cells, one with a claim that goes on: audits end what the others have (audit/ids.py).
        """
        cells = list(self._cells.values())
        found = await asyncio.gather(*(cell.store.claims.read(claim_ids) for cell in cells))
        # Without a host: only closed here, because the id moved on to another cell.
        held = [{one: claim for one, claim in claims.items() if claim.host} for claims in found]
        known = [(cell, claims) for cell, claims in zip(cells, held, strict=True) if claims]
        return min(known, key=lambda one: min(map(_how_ended, one[1].values())), default=None)

    async def close_to(self, claim_id: str) -> bool:
        """Let no host bring a claim back whose owner is told that it is not known; False if it is there. (void.lua)"""
        voids = [cell.store.claims.void(claim_id, "", unheard=True) for cell in self._cells.values()]
        answers = await asyncio.gather(*voids)
        for cell, answer in zip(self._cells.values(), answers, strict=True):
            if answer.outcome is not Outcome.CONFLICT:
                cell.released.note(claim_id, answer)
        return all(answer.outcome is not Outcome.CONFLICT for answer in answers)

    async def refuse_unsettled(self, what: str) -> None:
        """Raise Settling if a cell still waits for its hosts: what is not there may come back with them."""
        refuse(await self.unsettled(), what)

    async def unsettled(self) -> list[str]:
        """Return the names of the cells that still wait for their hosts."""
        clocks = await asyncio.gather(*(cell.store.tick() for cell in self._cells.values()))
        return [name for name, clock in zip(self._cells, clocks, strict=True) if not clock.settled]


def _how_ended(claim: Claim) -> int:
    """Return 0 for a claim that goes on, 1 for one that is ending, 2 for one that has ended."""
    return {ClaimStatus.ENDING: 1, ClaimStatus.ENDED: 2}.get(claim.state, 0)


def refuse(unsettled: Sequence[str], what: str) -> None:
    """Raise Settling if there are cells that still wait for their hosts."""
    if unsettled:
        raise Settling(
            f"{what} is not known yet: cell {unsettled[0]} is in a new epoch and its hosts are still attesting; "
            "try again"
        )
