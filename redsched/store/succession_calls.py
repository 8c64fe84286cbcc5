"""What claims leave to be done: their succession, their gangs, what is shelved. Any scheduler does it, or several."""

from collections.abc import Collection

from redsched.errors import StoreUnavailable
from redsched.model import Claim
from redsched.store.answers import Answer
from redsched.store.base import MOST_TRIES
from redsched.store.claim_calls import ClaimCalls
from redsched.store.claim_wire import drawn_on
from redsched.store.outcomes import Outcome


class SuccessionCalls(ClaimCalls):
    """One coroutine for each chore."""

    async def succeed(self, claim_id: str) -> Answer:
        """Do whatever is due between a claim and the one that it is to succeed, or that is to succeed it. (succeed.lua)

        OK | SAME (nothing was due) | EARLY (the target is not active yet) | ATTEST | UNKNOWN. In every case but ATTEST
        the claim is no chore of its succession any more, or is one at the right time.
        """
        things = set[str]()
        for _ in range(MOST_TRIES):
            target, former, origin, drawn = await self._pair(claim_id)
            keys = (
                *self.keys.due,
                self.keys.shelved,
                *self._claim_keys(target[1], target[0]),
                *self._claim_keys(former[1], former[0]),
                self.keys.claim(origin),
            )
            things |= set(drawn)
            answer = await self._answer("succeed", (*keys, *self._thing_keys(things)), (*target, *former, origin))
            if answer.outcome is not Outcome.RETRY:
                return answer
            things |= set(answer.facts)
        raise StoreUnavailable(f"claim {claim_id} changes faster than it can be read: try again")

    async def _pair(self, claim_id: str) -> tuple[tuple[str, str], tuple[str, str], str, tuple[str, ...]]:
        """Id and host of the target and of the former, their owner's id, and what they draw on beside their hosts."""
        known = await self.read_claims((claim_id,))
        one = known.get(claim_id)
        other_id = (one.former or one.next or one.origin or claim_id) if one else claim_id
        other = (await self.read_claims((other_id,))).get(other_id)
        side, other_side = (claim_id, one.host if one else ""), (other_id, other.host if other else "")
        drawn = (*_drawn_on(one), *_drawn_on(other))
        if one and one.next and not one.former:
            return other_side, side, one.origin or claim_id, drawn
        if one and not other:
            other_side = (other_id, one.former_host)
        return side, other_side, (one.origin if one else "") or other_id, drawn

    async def chore_done(self, claim_id: str, fields: Collection[str], again_ms: int = 0) -> Answer:
        """What was to be done for these fields (gang) of a claim is done. (chore_done.lua)

        OK | SAME (it was no chore) | EARLY (more is left to be done, or it is to be tried again).
        `again_ms`: nothing has been done yet, and it is to be tried again in so many milliseconds.
        """
        keys = (*self.keys.due, self.keys.claim(claim_id))
        return await self._answer("chore_done", keys, (claim_id, again_ms, *fields))

    async def forget_shelved(self, claim_id: str, origin: str = "") -> Answer:
        """A shelved claim is not wanted any more. OK | ENDING | SAME | UNKNOWN. (forget_shelved.lua)

        `origin`: that of the claim, where its owner has given up all that goes by it.
        """
        keys = (*self.keys.due, self.keys.claim(claim_id), self.keys.shelved, self.keys.claim(origin or claim_id))
        return await self._answer("forget_shelved", keys, (claim_id,))

    async def end_gang(self, gang_id: str) -> bool:
        """Give back what is left of a gang that has failed; whether each could be: else try again. (fail.lua)"""
        done = True
        members = await self.read_gang(gang_id)
        for claim in (await self.read_claims(members)).values():
            answer = await self.fail(claim.host, claim.id, claim.token, by_host=False, things=_drawn_on(claim))
            done = done and answer.outcome is not Outcome.ATTEST
        return done


def _drawn_on(claim: Claim | None) -> tuple[str, ...]:
    return drawn_on(claim.group, claim.amounts, claim.gang, claim.project) if claim else ()
