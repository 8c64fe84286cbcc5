"""Give claims further placements: one path for moves, for attempts after a failure, and for unshelving.

        the claim's own request --> decide in its cell, without its current place --> replace.lua adds a placement
                                                                                              |
                                 OK: placed;  ALREADY_DONE: an earlier call placed it, return that placement -'

When the new placement becomes active, fails or takes too long, reconcile.lua ends the others as needed
(scheduler/background/reconciler.py), because the scheduler that placed it may have died.
"""

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random

from redsched.decide.lost_members import followers_on, written_off_with
from redsched.decide.recovery import is_recovery
from redsched.decide.result import Decision
from redsched.decide.work_limit import TooMuchWork
from redsched.errors import (
    ClaimState,
    Conflict,
    NotFound,
    NoValidHost,
    RedschedError,
    Settling,
    StaleToken,
    StoreUnavailable,
)
from redsched.model import HELD, Claim, ClaimStatus, EndReason, Request
from redsched.model.records.problems import ClaimStateFacts
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.claims.deciding import decide_on, refusal_of
from redsched.scheduler.claims.gang_relations import expected, held_by, narrowed
from redsched.scheduler.claims.single_request import elsewhere, single_claim_request
from redsched.scheduler.decide_apart.limits import background_limit
from redsched.scheduler.hosts.group_targets import MAX_FOLLOWERS, PlacementTarget, decided
from redsched.scheduler.quotas.enforcement import Quotas
from redsched.scheduler.references import refuse_undeclared, undeclared, with_hints, without_ended_hints
from redsched.scheduler.selection.claim_call import ANY_RESERVATION, replacement_call
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimReply, Replacement

MAX_TRIES = 20


@dataclass(frozen=True, slots=True)
class ReplacementSpec:
    """Why a claim is placed again, and where: on `hosts` (empty: any) but not on `exclude`.

    The placement must be active within `by_s` seconds (0: no limit).
    """

    end_reason: EndReason
    hosts: frozenset[str] = frozenset()
    exclude: frozenset[str] = frozenset()
    by_s: int = 0


class ReplacementPlacer:
    """Gives claims further placements, over all cells of a scheduler, each in the claim's own cell."""

    def __init__(self, cells: Cells, quotas: Quotas) -> None:
        self._cells = cells
        self._quotas = quotas
        self._rng = Random()

    async def place(self, cell: Cell, claim: Claim, spec: ReplacementSpec) -> tuple[Claim, bool]:
        """Give a claim another placement. Returns the claim there, and False if an earlier call made the placement.

        Raises NoValidHost, ClaimState (it has ended, or its request is unknown), StaleToken, NotFound, Settling.
        """
        return await self._claim(cell, await self.target(cell, claim, spec), spec)

    async def target(self, cell: Cell, claim: Claim, spec: ReplacementSpec) -> PlacementTarget:
        """Return the placement to decide. Raises NoValidHost, ClaimState."""
        alone = await self.alone(cell, claim, spec)
        return replace(alone, followers=await self._followers(cell, alone))

    async def alone(
        self, cell: Cell, claim: Claim, spec: ReplacementSpec, besides: Collection[str] = ()
    ) -> PlacementTarget:
        """Return the placement to decide, ignoring followers and the relations to the claims `besides`.

        Raises NoValidHost, ClaimState.
        """
        request = await cell.requests.of(claim)
        place = await self._elsewhere(request, claim, spec)
        held = await held_by(cell, request, claim, besides)
        if held:
            place = await cell.read_at_head(lambda: narrowed(place, held, cell.updater.columns))
        return PlacementTarget(claim, request, place, held=held)

    async def _elsewhere(self, request: Request, claim: Claim, spec: ReplacementSpec) -> Request:
        place = await with_hints(
            await without_ended_hints(single_claim_request(request, claim), self._cells), self._cells
        )
        return elsewhere(place, spec.hosts, spec.exclude)

    async def _followers(self, cell: Cell, alone: PlacementTarget) -> tuple[Request, ...]:
        """Return a place for each claim that must follow this one; none if this one has no place now."""
        claim, found = alone.claim, list[Request]()

        def look() -> tuple[str, ...]:
            hosts = followers_on(cell.updater.columns, claim)
            return hosts if hosts and self.may_fit(cell, alone) else ()

        # A replica that lags behind the write-off of their host would find no followers.
        hosts = await cell.read_at_head(look) if claim.server_group else ()
        async for claims in cell.store.claims.unended_on(hosts):
            others = [
                one
                for one in claims
                if one.server_group == claim.server_group and one.claim_id != claim.claim_id and one.state in HELD
            ]
            for one in others[: MAX_FOLLOWERS - len(found)]:
                with suppress(Conflict, NotFound):
                    spec = ReplacementSpec(EndReason.MOVED, exclude=frozenset((one.host,)))
                    found.append(await self._elsewhere(await cell.requests.of(one), one, spec))
        return tuple(found)

    async def _claim(self, cell: Cell, target: PlacementTarget, spec: ReplacementSpec) -> tuple[Claim, bool]:
        claim = target.claim
        replacement = Replacement(claim.host, claim.retry_from or claim.token, spec.end_reason, spec.by_s, claim.gang)
        for number in range(MAX_TRIES):
            decision, decided_on = await self._decide(cell, target, read_at_head=number > 0)
            if not decision.places:
                if number == 0:
                    continue
                raise await self._refusal(cell, target)
            written_off = written_off_with(cell.updater.columns, claim)
            expected_hosts = expected(target.held)
            call = replacement_call(
                target.request,
                cell,
                decision,
                claim.claim_id,
                replacement,
                written_off,
                *decided_on,
                expected_hosts,
                ANY_RESERVATION if is_recovery(cell.updater.columns, claim) else "",
            )
            answer = await self._quotas.claim(cell, call)
            cell.updater.apply_reply(answer)
            if answer.outcome in (Outcome.OK, Outcome.ALREADY_DONE):
                cell.requests.has_written(call.digest, answer.epoch)
                return await self._read(cell, claim, answer.placed[0].token), answer.outcome is Outcome.OK
            raise_for(answer, claim)
            await cell.mark_down(answer)
            if answer.outcome is Outcome.RETRY:
                target = await self.target(cell, claim, spec)
        raise StoreUnavailable(f"no host could be claimed in {MAX_TRIES} tries, though some seemed free: retry")

    async def check_movable(self, cell: Cell, claim: Claim, spec: ReplacementSpec) -> None:
        """Check that the claim has another place now, without claiming it. Raises as `place` does."""
        target = await self.alone(cell, claim, spec)
        decision, _ = await self._decide(cell, target, read_at_head=True)
        if not decision.places:
            raise await self._refusal(cell, target)

    def may_fit(self, cell: Cell, target: PlacementTarget) -> bool:
        """Return whether the target may have a place, according to the replica as it is, without catching up."""
        try:
            with background_limit().working():
                return bool(decided(cell.decider, cell.updater.columns, target, self._rng).places)
        except TooMuchWork:
            return True

    async def _decide(
        self, cell: Cell, target: PlacementTarget, read_at_head: bool
    ) -> tuple[Decision, tuple[str, int]]:
        """Return a decision with the epoch and seq of the columns it is based on.

        Raises NotFound if the request names something that is not declared.
        """

        def decide() -> tuple[str, Decision]:
            what = undeclared(target.place, (cell,))
            return what, decided(cell.decider, cell.updater.columns, target, self._rng)

        (what, decision), decided_on = await decide_on(cell, target.place, decide, read_at_head)
        if what and read_at_head:
            await refuse_undeclared(what, self._cells)
        return (replace(decision, places=()) if what else decision), decided_on

    async def _refusal(self, cell: Cell, target: PlacementTarget) -> RedschedError:
        error = await refusal_of(cell, target.place, target.claim)
        if not target.held or not isinstance(error, NoValidHost):
            return error
        kept = "; ".join(map(str, target.held))
        return NoValidHost(f"{error.detail}; the relations of its gang must hold: {kept}", error.facts)

    async def _read(self, cell: Cell, claim: Claim, token: str) -> Claim:
        """Read the claim at its new placement; at its main one if the new one has ended already."""
        now = (await cell.store.claims.read([claim.claim_id])).get(claim.claim_id)
        if now is None:
            raise NotFound(f"claim {claim.claim_id!r} no longer exists")
        return now.at(token) or now


def raise_for(answer: ClaimReply, claim: Claim) -> None:
    """Raise an error if another host would not help, because of the state of the claim or the epoch."""
    outcome = answer.outcome
    if outcome is Outcome.STALE:
        raise StaleToken(
            f"claim {claim.claim_id} has been placed again since this token: read the claim, and use its token"
        )
    if outcome is Outcome.ENDED:
        raise ClaimState(
            f"claim {claim.claim_id} is ending or has ended: it cannot be placed again",
            ClaimStateFacts(state=ClaimStatus.ENDED),
        )
    if outcome is Outcome.MOVING:
        raise ClaimState(
            f"claim {claim.claim_id} is on its way to {claim.host}: wait until it is active there",
            ClaimStateFacts(claim_id=claim.claim_id, state=claim.state),
        )
    if outcome is Outcome.GANG:
        raise ClaimState(
            f"claim {claim.claim_id} belongs to a gang that is not active yet, or starts again: it cannot be placed "
            "alone",
            ClaimStateFacts(claim_id=claim.claim_id, state=claim.state),
        )
    if outcome is Outcome.NO_CLAIM:
        raise NotFound(f"claim {claim.claim_id!r} no longer exists")
    if outcome in (Outcome.NOT_ATTESTED, Outcome.SETTLING):
        raise Settling(f"claim {claim.claim_id}: its host or others have not attested to the new epoch yet: try again")
