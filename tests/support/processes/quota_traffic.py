"""Callers under one quota, who record their claims with their times.

The store is read cell by cell while they claim, so a sum over the cells may mix several moments. The claims that
callers certainly hold are known at every moment: from the reply to a claim until its release is sent.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from itertools import accumulate
from math import inf
from typing import cast

from redsched.errors import NotFound, OutcomeUnknown, QuotaExceeded, Unavailable
from redsched.scheduler import Scheduler
from tests.support.waiting import wait_until


@dataclass(slots=True)
class Holding:
    """A claim of amount 1 as its caller knows it. It also ends if its cell has lost it."""

    id: str
    cell: str
    from_s: float
    until_s: float = inf

    def end(self, at_s: float) -> None:
        """End the claim at this time at the latest; it does not count at all if it was answered later."""
        self.until_s = min(self.until_s, max(at_s, self.from_s))


@dataclass(slots=True)
class QuotaTraffic:
    """Callers that claim one by one in a cell, and release all of their claims whenever they are refused."""

    scheduler: Scheduler
    claim: Callable[[str], Awaitable[str]]
    known: dict[str, Holding] = field(default_factory=dict)
    stopped: bool = False

    async def run(self, cell: str) -> None:
        """Run one caller until `stopped`. It keeps its claims then, and finishes the releases that it has begun."""
        mine: list[str] = []
        while not self.stopped:
            try:
                mine.append(await self._claim(cell))
            except OutcomeUnknown as error:
                mine += cast("list[str]", error.facts.claim_ids)
            except (QuotaExceeded, Unavailable):
                await self._release(mine)
                await asyncio.sleep(0.01)
        mine = [one for one in mine if one not in self.held()]
        while mine:
            await self._release(mine)
            await asyncio.sleep(0.01)

    async def goes_on(self) -> None:
        """Return once more than 20 further claims have been made."""
        seen = len(self.known)
        await wait_until(lambda: len(self.known) > seen + 20, 60.0, "claims go on")

    async def _claim(self, cell: str) -> str:
        claim_id = await self.claim(cell)
        self.known[claim_id] = Holding(claim_id, cell, time.monotonic())
        return claim_id

    async def _release(self, ids: list[str]) -> None:
        """Release these claims, the last one first; those left after an error remain in `ids`."""
        while ids:
            if found := self.known.get(ids[-1]):
                found.end(time.monotonic())
            try:
                await self.scheduler.claims.release(ids[-1])
            except NotFound:
                pass  # lost, or never claimed
            except Unavailable:
                return
            ids.pop()

    def lose(self, cell: str, at_s: float, left: Collection[str]) -> int:
        """The server of a cell died at `at_s`, and its replica has only these claims; return the number lost."""
        lost = [one for one in self.known.values() if one.cell == cell and one.until_s == inf and one.id not in left]
        for one in lost:
            one.end(at_s)
        return len(lost)

    def held(self) -> set[str]:
        """Return the ids that are held now."""
        return {one.id for one in self.known.values() if one.until_s == inf}

    def most_held(self) -> int:
        """Return the maximum number that were held at the same moment."""
        begins = [(one.from_s, 1) for one in self.known.values()]
        ends = [(one.until_s, -1) for one in self.known.values()]
        return max(accumulate(change for _, change in sorted(begins + ends)), default=0)
