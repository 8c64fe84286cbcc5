"""Verbs on a claim where it is: confirm, renew, resize, shelve, release.

Beside it what finds a claim another place (migration.py), and reading (listing.py).
"""

from redsched.errors import NotFound, NoValidHost
from redsched.model import Amounts, Claim, EndReason, Token
from redsched.scheduler.cells import Cell
from redsched.scheduler.claims.listing import ClaimList
from redsched.scheduler.claims.migration import MigrationService
from redsched.scheduler.claims.outcomes import check_outcome
from redsched.scheduler.claims.resize import absolute
from redsched.store.codec.claim_codec import counted_by
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.results import ReleaseMode, ScriptResult


class ClaimService(MigrationService, ClaimList):
    """Claims over all cells of a scheduler. A token names one placement of a claim."""

    async def confirm(self, claim_id: str, token: str) -> Claim:
        """The work runs. Raises NotFound, ClaimState, StaleToken, Settling."""
        cell, claim = await self._find(claim_id, token)
        check_outcome(claim, await cell.store.confirm(claim.host, claim.id, token))
        return await self.get(claim.id)

    async def renew(self, claim_id: str, token: str, lease_s: int) -> Claim:
        """A fresh lease, for a claim that is not active yet. Raises NotFound, ClaimState, StaleToken, Settling."""
        cell, claim = await self._find(claim_id, token)
        check_outcome(claim, await cell.store.renew(claim.host, claim.id, token, lease_s))
        return await self.get(claim.id)

    async def resize(self, claim_id: str, token: str, slots: Amounts, resources: Amounts) -> Claim:
        """Have the claim hold so much, by slot or by class; what is not named stays as it is, and 0 gives it up.

        One that its host has taken up holds the larger of both until its host has resized the work, and has a new token
        at once. Raises NoValidHost (facts: `slot`), InvalidRequest, NotFound, ClaimState, StaleToken, Settling.
        """
        cell, claim = await self._find(claim_id, token)
        amounts = absolute(claim, slots, resources)
        answer = await self._quotas.resize(cell, claim, token, amounts)
        if answer.outcome is Outcome.FULL:
            slot = answer.facts[0]
            raise NoValidHost(
                f"host {claim.host} has no room for {amounts.get(slot, 0)} {slot} of claim {claim.id}: ask for less, "
                "or move it",
                {"claim_id": claim.id, "slot": slot, "asked": amounts.get(slot, 0)},
            )
        check_outcome(claim, answer)
        return await self.get(claim.id)

    async def shelve(self, claim_id: str, token: str) -> Claim:
        """Give its place back and remember it: `unshelve` claims again.

        What its host has taken up is ending first, until its host has stopped the work.
        Raises NotFound, ClaimState, StaleToken, Settling.
        """
        cell, claim = await self._find(claim_id, token)
        answer = await cell.store.shelve(claim.host, claim.id, token, counted_by(claim))
        check_outcome(claim, answer, ending=True)
        cell.released.note(claim.id, answer, EndReason.SHELVED)
        return await self.get(claim.id)

    async def release(self, claim_id: str, token: str = "", force: bool = False) -> bool:
        """Give a claim back. True: it has ended; False: its host has been asked to stop its work.

        One that is not known stays gone, though a host which was long away should have it in its journal.
        Raises NotFound, StaleToken, Settling.
        """
        answer = await self._give_back(claim_id, token, ReleaseMode.FORCE if force else ReleaseMode.ASK)
        return answer.outcome is not Outcome.ENDING

    async def _give_back(self, claim_id: str, token: str, how: ReleaseMode) -> ScriptResult:
        try:
            return await self._release(claim_id, token, how)
        except NotFound:
            if await self._cells.close_to(claim_id):
                raise
            return await self._release(claim_id, token, how)

    async def _release(self, claim_id: str, token: str, how: ReleaseMode) -> ScriptResult:
        cell, claim = await self._find(claim_id, token)
        answer = await cell.store.release(claim.host, claim.id, token, how, counted_by(claim))
        check_outcome(claim, answer, ending=True)
        if answer.facts[0]:
            cell.released.note(claim.id, answer, how=how)
        return answer

    async def _find(self, claim_id: str, token: str) -> tuple[Cell, Claim]:
        """Return the claim at the placement that a token names, or as it is. Raises NotFound."""
        if token:
            Token.parse(token)
        cell, claim = await self._cells.find_claim(claim_id)
        return cell, (claim.at(token) if token else None) or claim
