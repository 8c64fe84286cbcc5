"""ClaimDesk: what may be said of a claim where it is: confirm, renew, resize, shelve, release.

Beside it what finds a claim another place (placed_anew.py), and reading (claim_list.py).
"""

from redsched.errors import NoValidHost, Unknown
from redsched.model import OVER, Amounts, Claim, ClaimStatus, Token, Why
from redsched.scheduler.cells import Cell
from redsched.scheduler.claim_list import ClaimList
from redsched.scheduler.claim_words import stale, told
from redsched.scheduler.placed_anew import PlacedAnew
from redsched.scheduler.placings import earlier
from redsched.scheduler.resizing import absolute
from redsched.store import Giving, Outcome, drawn_on


class ClaimDesk(PlacedAnew, ClaimList):
    """Claims over all cells of a scheduler. An id leads to what its work is placed as now; the token is that one's."""

    async def confirm(self, claim_id: str, token: str) -> Claim:
        """The work runs. Raises Unknown, ClaimState, StaleToken, Settling."""
        cell, claim = await self._find(claim_id, token)
        told(claim, await cell.store.confirm(claim.host, claim.id, token))
        return await self.get(claim.id)

    async def renew(self, claim_id: str, token: str, lease_s: int) -> Claim:
        """A fresh lease, for a claim that is not active yet. Raises Unknown, ClaimState, StaleToken, Settling."""
        cell, claim = await self._find(claim_id, token)
        told(claim, await cell.store.renew(claim.host, claim.id, token, lease_s))
        return await self.get(claim.id)

    async def resize(self, claim_id: str, token: str, slots: Amounts, resources: Amounts) -> Claim:
        """Have the claim hold so much, by slot or by class; what is not named stays as it is, and 0 gives it up.

        One that its host has taken up holds the larger of both until its host has resized the work, and has a new token
        at once. Raises NoValidHost (facts: `slot`), InvalidRequest, Unknown, ClaimState, StaleToken, Settling.
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
        told(claim, answer)
        return await self.get(claim.id)

    async def shelve(self, claim_id: str, token: str) -> Claim:
        """Give its place back and remember it: `unshelve` claims again.

        What its host has taken up is ending first, until its host has stopped the work.
        Raises Unknown, ClaimState, StaleToken, Settling.
        """
        cell, claim = await self._find(claim_id, token)
        things = drawn_on(claim.group, claim.amounts, claim.gang, claim.project)
        told(claim, await cell.store.shelve(claim.host, claim.id, token, things), ending=True)
        return await self.get(claim.id)

    async def release(self, claim_id: str, token: str = "", force: bool = False) -> bool:
        """Give a claim back. True: it has ended; False: its host has been asked to stop its work.

        One that is not known stays gone, though a host which was long away should have it in its journal.
        Raises Unknown, StaleToken, Settling.
        """
        try:
            cell, claim = await self._find(claim_id, token)
        except Unknown:
            if await self._cells.close_to(claim_id):
                raise
            cell, claim = await self._find(claim_id, token)
        if token and token != claim.token:
            raise stale(claim)
        if claim.state is ClaimStatus.ENDED and claim.why is Why.SHELVED:
            answer = await cell.store.forget_shelved(claim.id, claim.origin)
            told(claim, answer)
            cell.released.note(claim, Giving.ASK, answer.epoch)
            return True
        for before in await earlier(cell.store, claim):
            if before.why is Why.SHELVED:
                # It would be left shelved, as by an end that nobody asked for.
                await cell.store.forget_shelved(before.id)
        how, led_here = Giving.FORCE if force else Giving.ASK, claim.id != claim_id
        whole = led_here and not token  # by a token it may prove to be another one's by now
        things = drawn_on(claim.group, claim.amounts, claim.gang, claim.project)
        answer = await cell.store.release(claim.host, claim.id, token, how, things, origin=claim.origin, whole=whole)
        if answer.outcome is not Outcome.OK and await self._has_moved_on(claim_id, claim):
            return await self.release(claim_id, token, force)
        told(claim, answer, ending=True)
        cell.released.note(claim, how, answer.epoch, led_here)
        if claim.former_why is Why.SHELVED:
            cell.released.note_former(claim, answer.epoch)
        if claim.next:
            # What it was to be moved to is not wanted either. The sweeper would find it too, later.
            for target in (await cell.store.read_claims([claim.next])).values():
                cell.released.note(target, Giving.ASK, answer.epoch)
            await cell.store.succeed(claim.id)
        return answer.outcome is not Outcome.ENDING

    async def _has_moved_on(self, claim_id: str, claim: Claim) -> bool:
        """Whether another one that lives has taken the place of this one, which the id led to when it was read."""
        now = (await self._cells.find_claim(claim_id))[1]
        return now.id != claim.id and now.state not in OVER

    async def _find(self, claim_id: str, token: str) -> tuple[Cell, Claim]:
        if token:
            Token.parse(token)
        return await self._cells.find_claim(claim_id)
