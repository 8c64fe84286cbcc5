"""UntilActive: an answer that is given only when the hosts themselves have confirmed, and undone otherwise.

Undoing is atomic for each claim: the script gives it back unless it has become active. What has is the hosts' word come
after all, and answered as such; of several places all are, or all are given back. A caller who goes away is undone as
well, in the background: nobody would know of what was claimed for him.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any

import structlog

from redsched.errors import NotConfirmed, OutcomeUnknown, RedschedError, StoreUnavailable
from redsched.model import Claim, ClaimStatus, Request
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.views import Selection, Selections
from redsched.store import Giving, Outcome, drawn_on

AGAIN_AFTER_S = 0.2
UNDONE_WITHIN_S = 30.0
"""How long it is tried to undo something while the store, or the host's attestation, is missing."""
CLOSED_WITHIN_S = 5.0
"""How long a scheduler that closes goes on undoing."""

log = structlog.get_logger(__name__)


class UntilActive:
    """What a scheduler holds until hosts have confirmed it."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._later: set[asyncio.Task[None]] = set()

    async def stop(self) -> None:
        """Return when what callers left behind is undone, or some seconds were not enough for it."""
        if self._later:
            await asyncio.wait(self._later, timeout=CLOSED_WITHIN_S)
        for task in self._later:
            task.cancel()

    async def placed(self, place: Callable[[], Coroutine[Any, Any, Selections]]) -> Selections:
        """What `place` claims. Cancelled meanwhile, it is undone as soon as it is known."""
        placing = asyncio.ensure_future(place())
        try:
            return await asyncio.shield(placing)
        except asyncio.CancelledError:
            self._undo_later(placing)
            raise

    async def confirmed(self, request: Request, found: Selections) -> Selections:
        """The same, once its hosts have confirmed.

        Raises NotConfirmed (all of it is given back), OutcomeUnknown (that could not be done).
        """
        if not found.selections:
            return found
        cell = self._cells.named(found.selections[0].cell)
        hosts = {one.claim_id or "": one.host for one in found.selections}
        try:
            missing = await cell.words.wait(hosts, request.wait_s or request.lease_s)
            if missing and await self._undone(cell, found.selections):
                raise NotConfirmed(_sentence(missing), {"claim_ids": list(hosts), "reasons": dict(missing)})
        except asyncio.CancelledError:
            # What was sent before is also somebody else's, who may still wait for it.
            if found.fresh:
                self._undo_later(_ready(found))
            raise
        active = (replace(one, state=ClaimStatus.ACTIVE, expires_at_ms=None) for one in found.selections)
        return replace(found, selections=tuple(active))

    def _undo_later(self, placing: Awaitable[Selections]) -> None:
        task = asyncio.create_task(self._undo(placing), name="redsched-undo")
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    async def _undo(self, placing: Awaitable[Selections]) -> None:
        try:
            found = await placing
            if found.fresh and found.selections:
                await self._undone(self._cells.named(found.selections[0].cell), found.selections, although_active=True)
        except RedschedError as error:
            log.warning("undo", problem=error.detail, facts=dict(error.facts))

    async def _undone(self, cell: Cell, places: Sequence[Selection], although_active: bool = False) -> bool:
        """Give the places back; False where all of them have become active meanwhile, and so are kept."""
        active = [one for one in places if not await self._give_back(cell, one, Giving.UNLESS_ACTIVE)]
        if len(active) == len(places) and not although_active:
            return False
        for one in active:
            await self._give_back(cell, one, Giving.ASK)
        return True

    async def _give_back(self, cell: Cell, one: Selection, how: Giving) -> bool:
        """Give one place back, even if its host has to attest first; False where it is active, which keeps it."""
        claim_id, things = one.claim_id or "", drawn_on("", one.slots)
        claim = Claim(claim_id, cell.name, one.host, ClaimStatus.CLAIMED, one.token or "", one.slots)
        until = asyncio.get_running_loop().time() + UNDONE_WITHIN_S
        while asyncio.get_running_loop().time() < until:
            try:
                answer = await cell.store.release(one.host, claim_id, "", how, things)
            except StoreUnavailable:
                await asyncio.sleep(AGAIN_AFTER_S)
                continue
            if answer.outcome is Outcome.ACTIVE:
                return False
            if answer.outcome is not Outcome.ATTEST:
                cell.released.note(claim, Giving.ASK, answer.epoch)
                return True
            await asyncio.sleep(AGAIN_AFTER_S)
        raise OutcomeUnknown(
            f"claim {claim_id} was not confirmed in time and could not be undone either: ask for it, or release it",
            {"claim_ids": [claim_id]},
        )


async def _ready(found: Selections) -> Selections:
    return found


def _sentence(missing: Any) -> str:
    claim_id, why = next(iter(missing.items()))
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return f"claim {claim_id}: {why}{more}; all that was claimed is given back"
