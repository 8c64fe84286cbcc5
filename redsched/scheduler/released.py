"""Releases that were answered lately: in a new epoch they are said again, for the store may have lost them.

A failover can take an answered release with it. The claim then stands in the store again, or its host brings it back
from its journal, and its owner, who was told that it is over, will never end it. So whoever answered says it again.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from redsched.model import Claim
from redsched.store import CellStore, Giving, Outcome

ANSWERED_S = 60.0
"""How long before a new epoch a release may have been answered and still be lost with it."""

KEPT_S = 600.0
"""How long it is said again to a host that has not attested: as long as journals remember what has ended."""

MOST = 100_000
"""Above this the oldest are not said again: 25 MB."""

AT_ONCE = 100


@dataclass(slots=True)
class _Said:
    claim_id: str
    host: str
    token: str
    how: Giving
    epoch: str
    """The epoch in which it was answered last."""
    at_s: float
    """When that was, by this process' monotonic clock."""


class Released:
    """The releases of one cell that this scheduler has answered."""

    def __init__(self, cell: CellStore) -> None:
        self._cell = cell
        self._said: deque[_Said] = deque(maxlen=MOST)

    def __len__(self) -> int:
        return len(self._said)

    def note(self, claim: Claim, how: Giving, epoch: str) -> None:
        """Remember a release that `epoch` has answered."""
        self._said.append(_Said(claim.id, claim.host, claim.token, how, epoch, _now_s()))

    async def abandon(self, claim_ids: Sequence[str]) -> None:
        """Give up ids made for a call that another epoch has refused. Raises Unavailable.

        A copy of the call whose reply was lost may have been carried out before, and nobody would know of it.
        """
        for claim_id in claim_ids:
            # Closed where nothing is known of it: its host may still have to bring it back.
            answer = await self._cell.void(claim_id, "")
            if answer.outcome is Outcome.CONFLICT:
                for claim in (await self._cell.read_claims([claim_id])).values():
                    self.note(claim, Giving.ASK, epoch="")

    async def say_again(self, epoch: str) -> int:
        """Say again what was answered in another epoch than this; the number that was heard. Raises Unavailable.

        Those whose host has not attested yet are kept for the next call.
        """
        now_s = _now_s()
        kept = (one for one in self._said if now_s - one.at_s < (ANSWERED_S if one.epoch == epoch else KEPT_S))
        self._said = deque(kept, maxlen=MOST)
        lost = [one for one in self._said if one.epoch != epoch]
        heard = 0
        for first in range(0, len(lost), AT_ONCE):
            heard += await self._say(lost[first : first + AT_ONCE])
        return heard

    async def _say(self, batch: Sequence[_Said]) -> int:
        said = (self._cell.release(one.host, one.claim_id, one.token, one.how) for one in batch)
        heard = 0
        for one, answer in zip(batch, await asyncio.gather(*said), strict=True):
            if answer.outcome is not Outcome.ATTEST:
                # Not forgotten: this epoch's answers can be lost with the next.
                one.epoch, one.at_s = answer.epoch, _now_s()
                heard += 1
        return heard


def _now_s() -> float:
    return asyncio.get_running_loop().time()
