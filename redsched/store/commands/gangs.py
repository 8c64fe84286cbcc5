"""Gangs: their members until all are active, the end of one that has failed, and that of one whose member has ended."""

from redsched.model import Claim
from redsched.store.codec.claim_codec import counted_by
from redsched.store.codec.outcomes import Outcome
from redsched.store.commands.base import CellClient
from redsched.store.commands.claims import ClaimCommands

MEMBER = "member."
_RELEASED = (Outcome.OK, Outcome.ENDING, Outcome.ALREADY_DONE, Outcome.UNKNOWN)


class GangCommands:
    """Reads of gangs, and ending one that has failed."""

    def __init__(self, cell: CellClient, claims: ClaimCommands) -> None:
        self._cell = cell
        self._claims = claims

    async def members(self, gang_id: str) -> dict[str, str]:
        """Return the members of a gang that have not ended, with their hosts; none once all of them were active."""
        with self._cell.reading():
            fields = await self._cell.reader.hgetall(self._cell.keys.gang(gang_id))
        return {name[len(MEMBER) :]: host for name, host in fields.items() if name.startswith(MEMBER)}

    async def members_of_failed(self, gang_id: str) -> list[str] | None:
        """Return the members of a failed gang that have not ended; None if none of its members has failed."""
        with self._cell.reading():
            fields = await self._cell.reader.hgetall(self._cell.keys.gang(gang_id))
        return [name[len(MEMBER) :] for name in fields if name.startswith(MEMBER)] if "end_reason" in fields else None

    async def end(self, gang_id: str) -> bool:
        """Release the remaining members of a gang that has failed. (fail.lua)

        Return whether the gang had failed and all of its members have been handled; otherwise it stays listed in
        `reconcile`. If active members have ended, the gang counts as failed only once a member is known never to have
        been active.
        """
        members = await self.members_of_failed(gang_id)
        done = members is not None
        for claim in (await self._claims.read(members or ())).values():
            answer = await self._claims.fail_with_gang(claim.host, claim.claim_id, claim.token, counted_by(claim))
            # STALE: it was resized since it was read.
            done = done and answer.outcome not in (Outcome.NOT_ATTESTED, Outcome.STALE)
        return done

    async def release_others(self, claim: Claim) -> bool:
        """Release the other members of the gang of a claim that has ended (`gang_exit`). (release.lua)

        Return whether all of them are released; otherwise the claim stays listed in `reconcile`.
        """
        others = await self._claims.read(one for one in claim.gang_ids if one != claim.claim_id)
        reason, done = await self._why_ended(claim), True
        for one in others.values():
            if one.is_live and claim.is_with(one):
                answer = await self._claims.release(one.host, one.claim_id, objects=counted_by(one), reason=reason)
                done = done and answer.outcome in _RELEASED
        return done

    async def _why_ended(self, claim: Claim) -> str:
        reason = (await self._claims.reasons([claim.claim_id])).get(claim.claim_id)
        why = f": {reason.line}" if reason is not None else ""
        return f"claim {claim.claim_id} of its gang ended on {claim.host} ({claim.end_reason}){why}"
