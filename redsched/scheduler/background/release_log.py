"""Remember acknowledged releases, and replay them in each new epoch, whose store may have lost them.

A failover can lose an acknowledged release. The store then has the claim again, or its host restores it from its
journal, and the owner, to whom the release was acknowledged, will not repeat it. So the scheduler that acknowledged the
release repeats it, with the token up to which it closed the claim the first time: later placements are not affected.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

from redsched import aio
from redsched.errors import RedschedError
from redsched.model import EndReason
from redsched.model.tokens import is_newer_token
from redsched.pacing import paced
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ReleaseMode, ScriptResult

ANSWERED_S = 60.0
"""How long before a new epoch a release may have been acknowledged and still be lost with it."""

KEPT_S = 600.0
"""How long a replay is retried while the store cannot be reached: as long as journals remember ended claims."""

MOST = 200_000
"""The most claims that are remembered, which take 60 MB; above this number the oldest are forgotten."""

AT_ONCE = 100


@dataclass(slots=True)
class _Closed:
    """A closed claim: the token up to which it was closed, why, and the epoch and time of the last acknowledgement.

    Without a token, it is an id that was generated for a call but never returned: any claim with it is unwanted.
    Without an epoch, it has yet to be closed in the present one.
    """

    claim_id: str
    token: str
    end_reason: EndReason
    how: ReleaseMode
    epoch: str
    at_s: float


class ReleaseLog:
    """The claims that this scheduler has closed in one cell."""

    def __init__(self, cell: CellStore) -> None:
        self._cell = cell
        self._closed = dict[str, _Closed]()
        """The last release of each claim, which covers the earlier ones; oldest first."""

    def __len__(self) -> int:
        return len(self._closed)

    def note(
        self,
        claim_id: str,
        answer: ScriptResult,
        end_reason: EndReason = EndReason.RELEASED,
        how: ReleaseMode = ReleaseMode.ASK,
    ) -> None:
        """Remember that a claim was closed by release.lua or void.lua, whose reply is `answer`."""
        self._keep(_Closed(claim_id, answer.facts[0], end_reason, how, answer.epoch, aio.now_s()))

    def abandon(self, claim_ids: Iterable[str], token: str = "") -> None:
        """Have claims closed that the store does not know, but that a host may restore or a copy of a call may make.

        `token`: up to which they are closed; '' for generated ids that no call returns, to close whatever has them.
        """
        now_s = aio.now_s()
        for claim_id in claim_ids:
            self._keep(_Closed(claim_id, token, EndReason.RELEASED, ReleaseMode.ASK, "", now_s))

    def _keep(self, one: _Closed) -> None:
        earlier = self._closed.pop(one.claim_id, None)
        if earlier is not None and one.end_reason is EndReason.SHELVED and is_newer_token(earlier.token, one.token):
            one = earlier  # a late reply: the claim was released again in the meantime
        self._closed[one.claim_id] = one
        if len(self._closed) > MOST:
            del self._closed[next(iter(self._closed))]

    async def replay_releases(self, epoch: str) -> int:
        """Repeat the releases acknowledged in an epoch other than this one. Returns how many succeeded.

        Raises Unavailable.
        """
        lost, done = await self._lost(epoch), 0
        for first in range(0, len(lost), AT_ONCE):
            batch = lost[first : first + AT_ONCE]
            for one, answer in zip(
                batch, await aio.gather(_close_or_none(self._close, one) for one in batch), strict=True
            ):
                if answer is not None:
                    # Kept in the log: acknowledgements of this epoch can in turn be lost with the next one.
                    one.epoch, one.token, one.at_s = answer.epoch, one.token or answer.facts[0], aio.now_s()
                    done += 1
        return done

    async def _lost(self, epoch: str) -> list[_Closed]:
        """Return the releases acknowledged in another epoch. Deletes those that are too old."""
        now_s, lost = aio.now_s(), list[_Closed]()
        async for one in paced([*self._closed.values()]):
            if _is_recent(one, epoch, now_s):
                lost += [one] if one.epoch != epoch else []
            elif self._closed.get(one.claim_id) is one:
                del self._closed[one.claim_id]
        return lost

    async def _close(self, one: _Closed) -> ScriptResult:
        """Release the claim, or tombstone its id if the store does not have it: its host may still restore it."""
        answer = await self._cell.claims.release(
            "", one.claim_id, how=one.how, end_reason=one.end_reason, closed=one.token
        )
        if answer.outcome is Outcome.UNKNOWN:
            # Once all hosts have attested, no host can restore an unknown claim.
            answer = await self._cell.claims.void(
                one.claim_id, "", if_unattested=bool(one.token), token=one.token, end_reason=one.end_reason
            )
        # CONFLICT: its host has just restored it, so it can be released now.
        return answer if answer.outcome is not Outcome.CONFLICT else await self._close(one)


def _is_recent(one: _Closed, epoch: str, now_s: float) -> bool:
    return now_s - one.at_s < (ANSWERED_S if one.epoch == epoch else KEPT_S)


async def _close_or_none(close: Callable[[_Closed], Awaitable[ScriptResult]], one: _Closed) -> ScriptResult | None:
    """Release a claim; return None if that fails. The claim then stays in the log and does not delay others."""
    try:
        return await close(one)
    except RedschedError:
        return None
