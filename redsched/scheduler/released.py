"""What has ended for its owner, said again in each new epoch: the store may have lost it.

A failover can take an answered release with it. The claim then stands in the store again, or its host brings it back
from its journal, and its owner, who was told that it is over, will never end it. So whoever answered says it again. The
same holds for what was said to have failed without another place, for what a released claim was being moved to and for
what it has succeeded, for an id that was told to be unknown, and for ids that were made for a call and given up.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from redsched import tasks
from redsched.errors import RedschedError
from redsched.model import OVER, Claim, ClaimStatus, Token, Why
from redsched.pacing import paced
from redsched.scheduler.placings import succession
from redsched.store import CellStore, Giving, Outcome

ANSWERED_S = 60.0
"""How long before a new epoch something may have been answered and still be lost with it."""

KEPT_S = 600.0
"""How long it is said again to a host that has not attested: as long as journals remember what has ended."""

MOST = 100_000
"""Of releases, and as many closed ids: above this the oldest are not said again. 40 MB, and 30 MB."""

AT_ONCE = 100


@dataclass(slots=True)
class _Said:
    claim_id: str
    host: str
    token: str
    how: Giving
    origin: str
    whole: bool
    """Whether all was given up that goes by its origin, whatever the claim has come to."""
    epoch: str
    """The epoch in which it was answered last."""
    at_s: float
    """When that was, by this process' monotonic clock."""


@dataclass(slots=True)
class _Closed:
    """An id that nobody is to have; the other fields as above."""

    claim_id: str
    since: str
    """The token from which on what has it is another claim; '' for none: whatever has it."""
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

    def note(self, claim: Claim, how: Giving, epoch: str, whole: bool = False) -> None:
        """Remember a release that `epoch` has answered. `whole`: by the id that has led to the claim."""
        self._said.append(_said(claim, how, epoch, whole))
        called_off = claim.former_why is Why.MOVED and claim.state is not ClaimStatus.ACTIVE and not whole
        if claim.former_why is not Why.SHELVED and not called_off:
            self.note_former(claim, epoch)

    def note_former(self, claim: Claim, epoch: str) -> None:
        """Remember that what a claim was placed to succeed is over too.

        A store that has not heard of the claim may know nothing else. What it was unshelved from is not always over:
        where it has failed, that is shelved still.
        """
        for before in {claim.origin, claim.came_from} - {""}:
            self._closed.append(_Closed(before, claim.token, epoch, tasks.now_s()))

    def note_unknown(self, claim_id: str, epoch: str) -> None:
        """Remember an id that was told to be unknown, and is closed in `epoch`."""
        self._closed.append(_Closed(claim_id, f"{epoch}.0", epoch, tasks.now_s()))

    def abandon(self, claim_ids: Iterable[str]) -> None:
        """Give up ids made for a call that is not answered by them: it, or a copy of it, may have been carried out."""
        self._closed.extend(_Closed(claim_id, "", "", tasks.now_s()) for claim_id in claim_ids)

    async def say_again(self, epoch: str) -> int:
        """Say again what was answered in another epoch than this; the number that was heard. Raises Unavailable.

        What a host stands in the way of that has not attested yet is kept for the next call.
        """
        closed = await self._each(await _lost(self._closed, epoch), self._close)
        return closed + await self._each(await _lost(self._said, epoch), self._release)

    async def _each(self, lost: Sequence[Kept], say: Callable[[Kept], Awaitable[str | None]]) -> int:
        heard = 0
        for first in range(0, len(lost), AT_ONCE):
            batch = lost[first : first + AT_ONCE]
            for one, answered_in in zip(batch, await tasks.together(_tried(say, one) for one in batch), strict=True):
                if answered_in is not None:
                    # Not forgotten: this epoch's answers can be lost with the next.
                    one.epoch, one.at_s = answered_in, tasks.now_s()
                    heard += 1
        return heard

    async def _release(self, one: _Said) -> str | None:
        answer = await self._cell.release(
            one.host, one.claim_id, one.token, one.how, origin=one.origin, whole=one.whole
        )
        if answer.outcome is Outcome.ATTEST:
            return None
        if answer.outcome is not Outcome.OK:
            # STALE: it was resized before it was released, and the store has lost that too.
            await self._look_for(one.claim_id, since=one.token if answer.outcome is Outcome.STALE else "")
        return answer.epoch

    async def _close(self, one: _Closed) -> str | None:
        """Close the id where nothing is known of it, for its host may still bring it back; else release the claim."""
        # Where all hosts have been heard, nobody can bring back what was unknown.
        answer = await self._cell.void(one.claim_id, "", unheard=bool(one.since), token=one.since)
        if answer.outcome is Outcome.CONFLICT:
            await self._look_for(one.claim_id, one.since)
        return answer.epoch

    async def _look_for(self, claim_id: str, since: str) -> None:
        """Give up what has this id, unless it has that token or a later one, and all that was placed in its stead."""
        for claim in (await self._cell.read_claims([claim_id])).values():
            if since and Token.parse(claim.token) >= Token.parse(since):
                continue
            for one in await succession(self._cell, claim):
                if one.why is Why.SHELVED:
                    await self._cell.forget_shelved(one.id, one.origin)
                elif one.state not in OVER:
                    self._said.append(_said(one, Giving.ASK, "", whole=True))


def _said(claim: Claim, how: Giving, epoch: str, whole: bool) -> _Said:
    return _Said(claim.id, claim.host, claim.token, how, claim.origin, whole, epoch, tasks.now_s())


async def _lost(kept: deque[Kept], epoch: str) -> list[Kept]:
    """Those that were answered in another epoch. What is too old is taken out."""
    now_s, lost = tasks.now_s(), list[Kept]()
    async for _ in paced(range(len(kept))):
        # All round once, and not a new deque: more may be added at its end meanwhile.
        one = kept.popleft()
        if now_s - one.at_s < (ANSWERED_S if one.epoch == epoch else KEPT_S):
            kept.append(one)
            lost += [one] if one.epoch != epoch else []
    return lost


async def _tried(say: Callable[[Kept], Awaitable[str | None]], one: Kept) -> str | None:
    """One that cannot be said now is kept, and keeps no other from being said."""
    try:
        return await say(one)
    except RedschedError:
        return None
