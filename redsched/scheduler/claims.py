"""ClaimDesk: reading claims, and what may be said of one: confirm, renew, fail, release."""

from collections.abc import Awaitable, Iterator

from redsched.errors import ClaimState, InvalidRequest, Settling, StaleToken, Unknown
from redsched.model import Claim, ClaimStatus, Token
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.views import Page
from redsched.store import Answer, Outcome, drawn_on

HOSTS_AT_ONCE = 200


class ClaimDesk:
    """Claims over all cells of a scheduler. Everything here is read from the store, not from memory."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells

    async def get(self, claim_id: str) -> Claim:
        """One claim, ended ones included while they are remembered. Raises Unknown, Settling."""
        return (await self._cells.find_claim(claim_id))[1]

    async def list(
        self,
        host: str | None = None,
        project: str | None = None,
        consumer: str | None = None,
        state: ClaimStatus | None = None,
        zone: str | None = None,
        limit: int = 100,
        after: str = "",
    ) -> Page[Claim]:
        """Claims that have not ended, by host and id. `after` is the `next` of the page before."""
        await self._cells.catch_up()
        after_host, after_id = _cursor(after)
        wanted = {"project": project, "consumer": consumer, "state": state}
        found: list[Claim] = []
        hosts = [one for one in self._hosts(host, zone) if one[1] >= after_host]
        for first in range(0, len(hosts), HOSTS_AT_ONCE):
            for claim in await _claims_on(hosts[first : first + HOSTS_AT_ONCE]):
                if (claim.host, claim.id) <= (after_host, after_id):
                    continue
                if any(value is not None and getattr(claim, name) != value for name, value in wanted.items()):
                    continue
                if len(found) == limit:
                    return Page(tuple(found), f"{found[-1].host}:{found[-1].id}")
                found.append(claim)
        return Page(tuple(found))

    async def confirm(self, claim_id: str, token: str) -> Claim:
        """The work runs. Raises Unknown, ClaimState, StaleToken, Settling."""
        cell, claim = await self._find(claim_id, token)
        await self._say(claim, cell.store.confirm(claim.host, claim_id, token))
        return await self.get(claim_id)

    async def renew(self, claim_id: str, token: str, lease_s: int) -> Claim:
        """A fresh lease, for a claim that is not active yet. Raises Unknown, ClaimState, StaleToken, Settling."""
        cell, claim = await self._find(claim_id, token)
        await self._say(claim, cell.store.renew(claim.host, claim_id, token, lease_s))
        return await self.get(claim_id)

    async def fail(self, claim_id: str, token: str) -> Claim:
        """The work could not be started. Raises Unknown, ClaimState, StaleToken, Settling."""
        cell, claim = await self._find(claim_id, token)
        things = drawn_on(claim.group, claim.amounts)
        await self._say(claim, cell.store.fail(claim.host, claim_id, token, False, things), ending=True)
        return await self.get(claim_id)

    async def release(self, claim_id: str, token: str = "", force: bool = False) -> bool:
        """Give a claim back. True: it has ended; False: its host has been asked to stop its work.

        Raises Unknown, StaleToken, Settling.
        """
        cell, claim = await self._find(claim_id, token)
        things = drawn_on(claim.group, claim.amounts)
        answer = await self._say(claim, cell.store.release(claim.host, claim_id, token, force, things), ending=True)
        cell.released.note(claim, force, answer.epoch)
        return answer.outcome is not Outcome.ENDING

    async def _find(self, claim_id: str, token: str) -> tuple[Cell, Claim]:
        if token:
            Token.parse(token)
        return await self._cells.find_claim(claim_id)

    async def _say(self, claim: Claim, call: Awaitable[Answer], ending: bool = False) -> Answer:
        answer = await call
        outcome = answer.outcome
        if outcome in (Outcome.OK, Outcome.SAME) or (ending and outcome is Outcome.ENDING):
            return answer
        if outcome is Outcome.ATTEST:
            raise Settling(f"host {claim.host} of claim {claim.id} has not attested to the new epoch yet: try again")
        if outcome is Outcome.STALE:
            raise StaleToken(
                f"the token is not that of the last placing of claim {claim.id}: read the claim, and use the one it has"
            )
        if outcome is Outcome.UNKNOWN:
            raise Unknown(f"there is no claim {claim.id!r} any more")
        state = "is ending" if outcome is Outcome.ENDING else "has ended"
        raise ClaimState(f"claim {claim.id} {state}: nothing but its release is possible", {"state": claim.state})

    def _hosts(self, host: str | None, zone: str | None) -> Iterator[tuple[Cell, str]]:
        names = ((cell, name) for cell in self._cells for name in cell.mirror.columns.names_where(zone, None))
        for cell, name in sorted(names, key=lambda one: one[1]):
            if host is None or host == name:
                yield cell, name


async def _claims_on(hosts: "list[tuple[Cell, str]]") -> "list[Claim]":
    found: list[Claim] = []
    for cell in dict.fromkeys(cell for cell, _ in hosts):
        names = [name for one, name in hosts if one is cell]
        ids = set().union(*await cell.store.held_ids_of(names))
        found += (await cell.store.read_claims(ids)).values()
    return sorted(
        (claim for claim in found if claim.state is not ClaimStatus.ENDED), key=lambda one: (one.host, one.id)
    )


def _cursor(after: str) -> tuple[str, str]:
    host, colon, claim_id = after.partition(":")
    if after and not (host and colon and claim_id):
        raise InvalidRequest(f"after {after[:140]!r} is not the `next` of a page of claims: pass it as it was given")
    return host, claim_id
