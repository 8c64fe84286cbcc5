"""PlacedAnew: what finds a claim another place. Fail takes the next alternate, move goes elsewhere, unshelve returns.

Each is sent with the token of the placing that it is based on, and sent again with it gets the first outcome.
"""

from collections.abc import Collection

from redsched.errors import ClaimState, NoValidHost, RedschedError, Unknown
from redsched.model import OVER, Claim, ClaimStatus, Token, Why
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.claim_words import stale, told
from redsched.scheduler.placings import earlier, present
from redsched.scheduler.quotas import Quotas
from redsched.scheduler.room import RoomLine
from redsched.scheduler.successors import Successors, Wanted
from redsched.store import Giving, drawn_on

LIVE_DEADLINE_S = 300
"""How long a live move may take where nobody says."""


class PlacedAnew:
    """Claims over all cells of a scheduler that are to be elsewhere."""

    def __init__(self, cells: Cells, line: RoomLine, successors: Successors, quotas: Quotas) -> None:
        self._cells = cells
        self._quotas = quotas
        self._line = line
        self._successors = successors

    async def fail(self, claim_id: str, token: str, alternates: Collection[str] | None = None) -> Claim:
        """The work could not be started: the claim ends, and the next host that still fits takes its successor.

        `alternates` are the hosts to try; None: any but those on which it has failed; none of them: it only ends, and
        is the answer itself. Raises NoValidHost (it has ended all the same), ClaimState, StaleToken, Unknown, Settling.
        """
        cell, claim, known = await self._find_placing(claim_id, token)
        if known is not None:
            if known is not claim:
                # On its way elsewhere already: that is where it goes on.
                await self._end_failed(cell, claim)
            return known
        _refuse_over(claim, besides=(Why.FAILED, Why.EXPIRED))
        if alternates is not None and not alternates:
            return await self._end_failed(cell, claim)
        failed_on = await self._failed_on(cell, claim)
        try:
            wanted = Wanted(Why.FAILED, frozenset(alternates or ()), failed_on)
            found, _ = await self._successors.place(cell, claim, wanted)
        except (NoValidHost, ClaimState, Unknown) as error:
            # Whatever comes after, the work does not run there.
            await self._end_failed(cell, claim)
            raise _though_ended(error, claim) from error
        await cell.store.succeed(found.id)
        return await self._read(found.id)

    async def move(
        self,
        claim_id: str,
        token: str,
        hosts: Collection[str] = (),
        live: bool = False,
        deadline_s: int = 0,
        wait_s: int = 0,
    ) -> tuple[Claim, bool]:
        """Claim another place for it: the source is held until the target is active, and then given back.

        `hosts`: only there; its present host only where it is named, for another of its pools. A live move has a
        deadline (300 s where none is given), after which the target is given back; `wait_s` waits for room. Answers the
        target, and False where it had been placed before.
        Raises NoValidHost, ClaimState, StaleToken, Unknown, Settling.
        """
        cell, claim, known = await self._find_placing(claim_id, token)
        if known is not None and known.state is not ClaimStatus.ENDED:
            return known, False
        _refuse_over(claim)
        exclude = frozenset(() if claim.host in hosts else (claim.host,))
        by_s = deadline_s or (LIVE_DEADLINE_S if live else 0)
        wanted = Wanted(Why.MOVED, frozenset(hosts), exclude, by_s)
        return await self._place_or_wait(cell, claim, wanted, wait_s)

    async def unshelve(self, claim_id: str, wait_s: int = 0) -> tuple[Claim, bool]:
        """Claim again what was shelved; False where that had been done before.

        Raises NoValidHost, ClaimState (it is not shelved), Unknown, Settling.
        """
        cell, placings = await self._cells.placings(claim_id)
        claim = present(placings)
        if claim.state is not ClaimStatus.ENDED or claim.why is not Why.SHELVED:
            if claim is not placings[0] and claim.state not in OVER:
                # It was placed anew: by an earlier sending of this, as far as anyone remembers.
                return claim, False
            raise ClaimState(
                f"claim {claim.id} is {claim.state}{' by shelving' if claim.why is Why.SHELVED else ''}: only what is "
                "shelved, and has left its host, can be unshelved",
                {"claim_id": claim.id, "state": claim.state},
            )
        return await self._place_or_wait(cell, claim, Wanted(Why.SHELVED), wait_s)

    async def _place_or_wait(self, cell: Cell, claim: Claim, wanted: Wanted, wait_s: int) -> tuple[Claim, bool]:
        try:
            return await self._successors.place(cell, claim, wanted)
        except NoValidHost as refused:
            if not wait_s:
                raise
            asked = await self._successors.asked(cell, claim, wanted)
            return await self._line.place(
                lambda: self._successors.place(cell, claim, wanted),
                lambda: self._successors.may_fit(cell, asked),
                wait_s,
                refused,
            )

    async def _find_placing(self, claim_id: str, token: str) -> tuple[Cell, Claim, Claim | None]:
        """The claim as it is placed now; and what it has become already, where the token is that of a former placing.

        Raises Unknown, StaleToken.
        """
        Token.parse(token)
        cell, placings = await self._cells.placings(claim_id)
        claim = present(placings)
        if claim.token == token:
            following = placings[placings.index(claim) + 1 :]
            return cell, claim, following[0] if following else None
        if any(one.token == token for one in await earlier(cell.store, claim)):
            return cell, claim, claim
        raise stale(claim)

    async def _failed_on(self, cell: Cell, claim: Claim) -> frozenset[str]:
        """Where it is, and where it has failed before."""
        before = await earlier(cell.store, claim)
        return frozenset((claim.host, *(one.host for one in before if one.why is Why.FAILED)))

    async def _end_failed(self, cell: Cell, claim: Claim) -> Claim:
        things = drawn_on(claim.group, claim.amounts, claim.gang, claim.project)
        answer = told(claim, await cell.store.fail(claim.host, claim.id, claim.token, False, things), ending=True)
        if not claim.next:
            # Nothing of it is left, which the store may lose like any release.
            cell.released.note(claim, Giving.ASK, answer.epoch)
        return await self._read(claim.id)

    async def _read(self, claim_id: str) -> Claim:
        return (await self._cells.find_claim(claim_id))[1]


def _refuse_over(claim: Claim, besides: Collection[Why] = ()) -> None:
    """Raise ClaimState for a claim that is ending or has ended, for another reason than these."""
    if claim.state in OVER and claim.why not in besides:
        raise ClaimState(
            f"claim {claim.id} is {claim.state} ({claim.why}): nothing can take its place",
            {"claim_id": claim.id, "state": claim.state},
        )


def _though_ended(error: RedschedError, claim: Claim) -> RedschedError:
    said = f"claim {claim.id} has failed and is given back; {error.detail}"
    return type(error)(said, {**error.facts, "claim_id": claim.id})
