"""What has ended for its owner, said again in each new epoch: the store may have lost it.

A failover can take an answered release with it. The claim then stands in the store again, or its host brings it back
from its journal, and its owner, who was told that it is over, will never end it. So whoever answered says it again. The
same holds for what was said to have failed without another place, for what a released claim was being moved to, for an
id that was told to be unknown, and for ids that were made for a call and given up.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from redsched.errors import RedschedError
from redsched.model import Claim, ClaimStatus, Token
from redsched.store import CellStore, Giving, Outcome

ANSWERED_S = 60.0
"""How long before a new epoch something may have been answered and still be lost with it."""

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


@dataclass(slots=True)
class _Closed:
    """An id that nobody is to have; the other fields as above."""

    claim_id: str
    told_in: str
    """The epoch in which its owner was told that it is unknown. What has it since is another claim; '' for none."""
    epoch: str
    at_s: float


Kept = TypeVar("Kept", _Said, _Closed)


class Released:
    """What this scheduler has answered of one cell."""

    def __init__(self, cell: CellStore) -> None:
        self._cell = cell
        self._said: deque[_Said] = deque(maxlen=MOST)
        self._closed: deque[_Closed] = deque(maxlen=MOST)

    def __len__(self) -> int:
        return len(self._said) + len(self._closed)

    def note(self, claim: Claim, how: Giving, epoch: str) -> None:
        """Remember a release that `epoch` has answered."""
        self._said.append(_Said(claim.id, claim.host, claim.token, how, epoch, _now_s()))

    def note_unknown(self, claim_id: str, epoch: str) -> None:
        """Remember an id that was told to be unknown, and is closed in `epoch`."""
        self._closed.append(_Closed(claim_id, epoch, epoch, _now_s()))

    def abandon(self, claim_ids: Iterable[str]) -> None:
        """Give up ids made for a call that is not answered by them: it, or a copy of it, may have been carried out."""
        self._closed.extend(_Closed(claim_id, "", "", _now_s()) for claim_id in claim_ids)

    async def say_again(self, epoch: str) -> int:
        """Say again what was answered in another epoch than this; the number that was heard. Raises Unavailable.

        What a host stands in the way of that has not attested yet is kept for the next call.
        """
        self._said = _younger(self._said, epoch)
        self._closed = _younger(self._closed, epoch)
        return await self._each(self._closed, epoch, self._close) + await self._each(self._said, epoch, self._release)

    async def _each(self, kept: Sequence[Kept], epoch: str, say: Callable[[Kept], Awaitable[str | None]]) -> int:
        lost = [one for one in kept if one.epoch != epoch]
        heard = 0
        for first in range(0, len(lost), AT_ONCE):
            batch = lost[first : first + AT_ONCE]
            for one, answered_in in zip(batch, await asyncio.gather(*(_tried(say, one) for one in batch)), strict=True):
                if answered_in is not None:
                    # Not forgotten: this epoch's answers can be lost with the next.
                    one.epoch, one.at_s = answered_in, _now_s()
                    heard += 1
        return heard

    async def _release(self, one: _Said) -> str | None:
        answer = await self._cell.release(one.host, one.claim_id, one.token, one.how)
        if answer.outcome in (Outcome.SAME, Outcome.ENDING):
            await self._cell.forget_shelved(one.claim_id)  # it was shelved, and released then
            await self._follow(one.claim_id)
        return None if answer.outcome is Outcome.ATTEST else answer.epoch

    async def _follow(self, claim_id: str) -> None:
        """What has been placed in its stead, since the store forgot that it was released, is not wanted either."""
        claim = (await self._cell.read_claims([claim_id])).get(claim_id)
        if claim is not None and claim.next:
            for successor in (await self._cell.read_claims([claim.next])).values():
                if successor.state is not ClaimStatus.ENDED:
                    self.note(successor, Giving.ASK, epoch="")

    async def _close(self, one: _Closed) -> str | None:
        """Close the id where nothing is known of it, for its host may still bring it back; else release the claim."""
        # Where all hosts have been heard, nobody can bring back what was unknown.
        answer = await self._cell.void(one.claim_id, "", unheard=bool(one.told_in))
        if answer.outcome is Outcome.CONFLICT:
            for claim in (await self._cell.read_claims([one.claim_id])).values():
                if claim.state is not ClaimStatus.ENDED and not _is_later(claim, one.told_in):
                    self.note(claim, Giving.ASK, epoch="")
        return answer.epoch


def _is_later(claim: Claim, told_in: str) -> bool:
    """Whether it was placed in the epoch that knew nothing of its id, or in a later one."""
    return bool(told_in) and Token.parse(claim.token).epoch_ms >= Token.parse(f"{told_in}.0").epoch_ms


def _younger(kept: Iterable[Kept], epoch: str) -> deque[Kept]:
    now_s = _now_s()
    young = (one for one in kept if now_s - one.at_s < (ANSWERED_S if one.epoch == epoch else KEPT_S))
    return deque(young, maxlen=MOST)


async def _tried(say: Callable[[Kept], Awaitable[str | None]], one: Kept) -> str | None:
    """One that cannot be said now is kept, and keeps no other from being said."""
    try:
        return await say(one)
    except RedschedError:
        return None


def _now_s() -> float:
    return asyncio.get_running_loop().time()
