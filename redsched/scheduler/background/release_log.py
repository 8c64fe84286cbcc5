"""What has been closed for its owner, repeated in each new epoch: the store may have lost it.

A failover can take an answered release with it. The claim then stands in the store again, or its host brings it back
from its journal, and its owner, who was told that it is over, will never end it. So the scheduler that answered repeats
it, with the token up to which it closed the claim the first time: what was placed after that stays.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from redsched import aio
from redsched.errors import RedschedError
from redsched.model import EndReason
from redsched.pacing import paced
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.results import ReleaseMode, ScriptResult

ANSWERED_S = 60.0
"""How long before a new epoch something may have been answered and still be lost with it."""

KEPT_S = 600.0
"""How long it is repeated for a store that cannot be reached: as long as journals remember what has ended."""

MOST = 200_000
"""Above this the oldest are not repeated. 60 MB."""

AT_ONCE = 100


@dataclass(slots=True)
class _Closed:
    """A claim that was closed: up to which token and why; in which epoch it was answered last, and when.

    Without a token it is an id that was made for a call which did not answer with it: whatever has it is not wanted.
    """

    claim_id: str
    token: str
    end_reason: EndReason
    how: ReleaseMode
    epoch: str
    at_s: float


class ReleaseLog:
    """What this scheduler has closed in one cell."""

    def __init__(self, cell: CellStore) -> None:
        self._cell = cell
        self._closed = dict[str, _Closed]()
        """The last closing of each claim: it says all that an earlier one does. The oldest first."""

    def __len__(self) -> int:
        return len(self._closed)

    def note(
        self,
        claim_id: str,
        answer: ScriptResult,
        end_reason: EndReason = EndReason.RELEASED,
        how: ReleaseMode = ReleaseMode.ASK,
    ) -> None:
        """Remember that `answer`, of release.lua or void.lua, has closed a claim."""
        self._keep(_Closed(claim_id, answer.facts[0], end_reason, how, answer.epoch, aio.now_s()))

    def abandon(self, claim_ids: Iterable[str]) -> None:
        """Give up ids made for a call that is not answered by them: it, or a copy of it, may have been carried out."""
        now_s = aio.now_s()
        for claim_id in claim_ids:
            self._keep(_Closed(claim_id, "", EndReason.RELEASED, ReleaseMode.ASK, "", now_s))

    def _keep(self, one: _Closed) -> None:
        self._closed.pop(one.claim_id, None)
        self._closed[one.claim_id] = one
        if len(self._closed) > MOST:
            del self._closed[next(iter(self._closed))]

    async def replay_releases(self, epoch: str) -> int:
        """Repeat what was answered in another epoch than this; the number that was done. Raises Unavailable."""
        lost, done = await self._lost(epoch), 0
        for first in range(0, len(lost), AT_ONCE):
            batch = lost[first : first + AT_ONCE]
            for one, answer in zip(batch, await aio.together(_tried(self._close, one) for one in batch), strict=True):
                if answer is not None:
                    # Not forgotten: this epoch's answers can be lost with the next.
                    one.epoch, one.token, one.at_s = answer.epoch, one.token or answer.facts[0], aio.now_s()
                    done += 1
        return done

    async def _lost(self, epoch: str) -> list[_Closed]:
        """Return those that were answered in another epoch. What is too old is taken out."""
        now_s, lost = aio.now_s(), list[_Closed]()
        async for one in paced([*self._closed.values()]):
            if _is_young(one, epoch, now_s):
                lost += [one] if one.epoch != epoch else []
            elif self._closed.get(one.claim_id) is one:
                del self._closed[one.claim_id]
        return lost

    async def _close(self, one: _Closed) -> ScriptResult:
        """Close the claim, or the id where nothing is known of it: its host may still bring it back."""
        answer = await self._cell.claims.release(
            "", one.claim_id, how=one.how, end_reason=one.end_reason, closed=one.token
        )
        if answer.outcome is Outcome.UNKNOWN:
            # Where all hosts have been heard, nobody can bring back what is not known.
            answer = await self._cell.claims.void(
                one.claim_id, "", unheard=bool(one.token), token=one.token, end_reason=one.end_reason
            )
        # CONFLICT: its host has just brought it back, so that it can be released now.
        return answer if answer.outcome is not Outcome.CONFLICT else await self._close(one)


def _is_young(one: _Closed, epoch: str, now_s: float) -> bool:
    return now_s - one.at_s < (ANSWERED_S if one.epoch == epoch else KEPT_S)


async def _tried(close: Callable[[_Closed], Awaitable[ScriptResult]], one: _Closed) -> ScriptResult | None:
    """One that cannot be closed now is kept, and keeps no other from being closed."""
    try:
        return await close(one)
    except RedschedError:
        return None
