"""Place a claim again: after a failed start (`fail`), while it is active (`move`), or after shelving (`unshelve`).

A call carries the token of the placement that it is based on; repeating it with that token returns the first outcome.
"""

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace

from redsched.errors import ClaimState, NotFound, NoValidHost, QuotaExceeded, RedschedError
from redsched.model import ENDING_OR_ENDED, Claim, ClaimStatus, EndReason, OnExit, Placement, Token
from redsched.model.records.problems import ClaimStateFacts
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.claims.by_id import find_claim, release_elsewhere
from redsched.scheduler.claims.gang_restart import GangRestarter
from redsched.scheduler.claims.outcomes import check_outcome, stale
from redsched.scheduler.claims.replacements import ReplacementPlacer, ReplacementSpec
from redsched.scheduler.selection.wait_queue import WaitQueue
from redsched.store.codec.claim_codec import counted_by
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ScriptResult

LIVE_DEADLINE_S = 300
"""How long a live move may take by default."""


class MigrationService:
    """Moves claims to other places, over all cells of a scheduler."""

    def __init__(
        self, cells: Cells, wait_queue: WaitQueue, replacements: ReplacementPlacer, gangs: GangRestarter
    ) -> None:
        self._cells = cells
        self._wait_queue = wait_queue
        self._replacements = replacements
        self._gangs = gangs

    async def fail(self, claim_id: str, token: str, alternates: Collection[str] | None = None) -> Claim:
        """Do what `ClaimService.fail` does."""
        cell, claim, known = await self._find_placing(claim_id, token)
        if known is not None:
            return await _durable(cell, known)
        _refuse_over(claim, besides=(EndReason.FAILED, EndReason.EXPIRED))
        if stays_on := _running_elsewhere(claim):
            return await self._fail_target(cell, claim, alternates, stays_on)
        if alternates is not None and not alternates:
            return await self._end_failed(cell, claim)
        if claim.state is not ClaimStatus.PENDING:
            answer = await cell.store.claims.fail(
                claim.host, claim.claim_id, token, False, counted_by(claim), retry=True
            )
            # A concurrent call may have reported the same failure and placed the claim again.
            cell, claim, known = await self._find_placing(claim_id, token)
            if known is not None:
                return await _durable(cell, known)
            check_outcome(claim, answer, ending=True)
        return await self.place_again(cell, claim, alternates or (), for_caller=True)

    async def _fail_target(
        self, cell: Cell, claim: Claim, alternates: Collection[str] | None, stays_on: Placement
    ) -> Claim:
        """End the failed target of a move. If the source has ended too, `alternates` decides on another attempt."""
        if alternates:
            raise ClaimState(
                f"on {claim.host}, claim {claim.claim_id} has only the target of a move; it stays {stays_on.state} on "
                f"{stays_on.host}: leave out the hosts, and move it again to one of {', '.join(alternates)}",
                ClaimStateFacts(claim_id=claim.claim_id, state=claim.state),
            )
        again = None if alternates is None else False
        answer = await cell.store.claims.fail(
            claim.host, claim.claim_id, claim.token, False, counted_by(claim), retry=again
        )
        check_outcome(claim, answer, ending=True)
        return await self._read(cell, claim.claim_id)

    async def place_again(
        self, cell: Cell, claim: Claim, hosts: Collection[str] = (), for_caller: bool = False
    ) -> Claim:
        """Give a pending claim its next placement, or end it.

        It is placed on one of `hosts` if any are named, else on the first alternate that still fits, else on any host
        on which it has not failed. A service that has run before (`on_exit` is REPLACE) may also be placed on hosts on
        which it has failed, as a last resort, and otherwise waits for room or quota. A member of a gang that is placed
        again as a whole waits for the others. With `for_caller`, the end of the claim is reported to a caller, so it
        must be repeated in later epochs too.
        Raises NoValidHost, QuotaExceeded, ClaimState (after each the claim has ended, unless it is such a service),
        Settling.
        """
        try:
            return await self._next_placement(cell, claim, frozenset(hosts))
        except (NoValidHost, QuotaExceeded, ClaimState, NotFound) as error:
            waits = claim.gang_exit is not None or (_is_service(claim) and not hosts)
            if isinstance(error, NoValidHost | QuotaExceeded) and waits:
                raise await self._postpone(cell, claim, error) from error
            # STALE: another scheduler has placed the claim in the meantime.
            answer, end_reason = await self._abandon(cell, claim)
            if answer.outcome is Outcome.STALE:
                placed = await self._read(cell, claim.claim_id)
                return await _durable(cell, placed) if for_caller else placed
            if for_caller:
                await self._end_for_caller(cell, claim, answer, end_reason)
            raise _error_though_ended(error, claim) from error

    async def _next_placement(self, cell: Cell, claim: Claim, hosts: frozenset[str]) -> Claim:
        if await cell.is_overdue(claim):
            raise ClaimState(
                f"claim {claim.claim_id} could not be placed again before its max_runtime_s of {claim.max_runtime_s} s "
                "had passed",
                ClaimStateFacts(claim_id=claim.claim_id, state=claim.state),
            )
        if claim.gang_exit is not None:
            await self._gangs.place(cell, claim)
            return await self._read(cell, claim.claim_id)
        *first, last = _next_specs(claim, hosts)
        for spec in first:
            with suppress(NoValidHost):
                return (await self._replacements.place(cell, claim, spec))[0]
        return (await self._replacements.place(cell, claim, last))[0]

    async def _postpone(self, cell: Cell, claim: Claim, error: RedschedError) -> RedschedError:
        """Postpone the next attempt to place a claim, or all of its gang, and return the error to raise."""
        for one in await self._gangs.pending(cell, claim) if claim.gang_exit else (claim,):
            token = one.retry_from or one.token
            await cell.store.claims.postpone(
                one.host, one.claim_id, token, f"there is no place for it now: {error.detail}"
            )
        message = f"claim {claim.claim_id} is pending, and a place is looked for again; {error.detail}"
        return type(error)(message, replace(error.facts, claim_id=claim.claim_id))

    async def move(
        self,
        claim_id: str,
        token: str,
        hosts: Collection[str] = (),
        live: bool = False,
        deadline_s: int = 0,
        queue_timeout_s: int = 0,
    ) -> Claim:
        """Do what `ClaimService.move` does."""
        cell, claim, known = await self._find_placing(claim_id, token)
        if known is not None:
            return await _durable(cell, known)
        _refuse_over(claim)
        exclude = frozenset(() if claim.host in hosts else (claim.host,))
        by_s = deadline_s or (LIVE_DEADLINE_S if live else 0)
        spec = ReplacementSpec(EndReason.MOVED, frozenset(hosts), exclude, by_s)
        return (await self._place_or_wait(cell, claim, spec, queue_timeout_s))[0]

    async def unshelve(self, claim_id: str, queue_timeout_s: int = 0, token: str = "") -> tuple[Claim, bool]:
        """Do what `ClaimService.unshelve` does; also return whether this call has placed it, and no earlier one."""
        cell, claim = await find_claim(self._cells, claim_id)
        if token and claim.token != token:
            raise stale(claim)
        if claim.state is not ClaimStatus.ENDED or claim.end_reason is not EndReason.SHELVED:
            if claim.closed_reason is EndReason.SHELVED and claim.state not in ENDING_OR_ENDED:
                # The claim was unshelved after it was shelved, presumably by an earlier attempt of this call.
                return await _durable(cell, claim), False
            by_shelving = " by shelving" if claim.end_reason is EndReason.SHELVED else ""
            raise ClaimState(
                f"claim {claim.claim_id} is {claim.state}{by_shelving}: only a shelved claim that has left its host "
                "can be unshelved",
                ClaimStateFacts(claim_id=claim.claim_id, state=claim.state),
            )
        return await self._place_or_wait(cell, claim, ReplacementSpec(EndReason.SHELVED), queue_timeout_s)

    async def _place_or_wait(
        self, cell: Cell, claim: Claim, spec: ReplacementSpec, queue_timeout_s: int
    ) -> tuple[Claim, bool]:
        try:
            return await self._replacements.place(cell, claim, spec)
        except NoValidHost as refused:
            if not queue_timeout_s:
                raise
            target = await self._replacements.target(cell, claim, spec)
            return await self._wait_queue.place(
                lambda: self._replacements.place(cell, claim, spec),
                lambda: self._replacements.may_fit(cell, target),
                queue_timeout_s,
                refused,
            )

    async def _find_placing(self, claim_id: str, token: str) -> tuple[Cell, Claim, Claim | None]:
        """Return the claim at the placement that a token names, and at the placement made from that one, if any.

        Raises NotFound, StaleToken.
        """
        Token.parse(token)
        cell, claim = await find_claim(self._cells, claim_id)
        live = (one for one in claim.placements if one.state not in ENDING_OR_ENDED)
        known = next((claim.view(one) for one in live if one.based_on == token), None)
        at = claim if claim.token == token else claim.at(token)
        if at is None and known is None:
            raise stale(claim)
        return cell, at or claim, known

    async def _end_failed(self, cell: Cell, claim: Claim) -> Claim:
        answer, end_reason = await self._abandon(cell, claim)
        check_outcome(claim, answer, ending=True)
        ended = await self._read(cell, claim.claim_id)
        await self._end_for_caller(cell, claim, answer, end_reason)
        return ended

    async def _end_for_caller(self, cell: Cell, claim: Claim, answer: ScriptResult, end_reason: EndReason) -> None:
        """End a claim in other cells too, and note its end, for later epochs whose store may have lost it.

        Call it last, just before the caller gets the result: only an end that a caller learned of may be repeated. One
        who gets an error instead asks again, and the claim may have been placed by then.
        """
        if answer.outcome in (Outcome.OK, Outcome.ALREADY_DONE, Outcome.ENDING):
            await release_elsewhere(self._cells, claim, cell)
            cell.released.note(claim.claim_id, answer, end_reason)

    async def _abandon(self, cell: Cell, claim: Claim) -> tuple[ScriptResult, EndReason]:
        """End a claim for good if its last placement is still the one that failed. Returns the answer and the reason.

        An unshelved claim that could not be started is shelved again; one past its deadline ends because of that.
        """
        end_reason = EndReason.MAX_RUNTIME if await cell.is_overdue(claim) else EndReason.FAILED
        end_reason = EndReason.SHELVED if _is_unshelved(claim) else end_reason
        token, objects = claim.retry_from or claim.token, counted_by(claim)
        release = cell.store.claims.release
        return await release(claim.host, claim.claim_id, token, end_reason=end_reason, objects=objects), end_reason

    async def _read(self, cell: Cell, claim_id: str) -> Claim:
        claims = await cell.store.claims.read([claim_id])
        return claims[claim_id] if claim_id in claims else (await find_claim(self._cells, claim_id))[1]


def _is_unshelved(claim: Claim) -> bool:
    """Return whether a pending claim was unshelved and has not been active since, so that it counts as shelved."""
    return claim.closed_reason is EndReason.SHELVED and not claim.was_active


def _running_elsewhere(claim: Claim) -> Placement | None:
    """Return the source of a move, where the claim stays if the placement shown by this view fails; None if none."""
    current = next((one for one in claim.placements if one.token == claim.token), None)
    return next((one for one in claim.wanted if current and one.rank < current.rank), None)


def _is_service(claim: Claim) -> bool:
    """Return whether a pending claim has been active and its request asks to replace work that ends."""
    return claim.on_exit is OnExit.REPLACE and claim.was_active


def _next_specs(claim: Claim, hosts: frozenset[str]) -> list[ReplacementSpec]:
    """Return the targets for a claim's next placement in order of preference: the first with a fitting host is used."""
    failed_on = claim.tried | {claim.host}
    alternates = () if hosts else claim.alternates
    allowed = [*(frozenset((one,)) for one in alternates), hosts]
    specs = [ReplacementSpec(EndReason.FAILED, one, failed_on) for one in allowed]
    return [*specs, ReplacementSpec(EndReason.FAILED)] if not hosts and _is_service(claim) else specs


async def _durable(cell: Cell, claim: Claim) -> Claim:
    """Return a claim as an earlier call has left it, once that is durable. Raises NotDurable."""
    await cell.store.claims.require_durable()
    return claim


def _refuse_over(claim: Claim, besides: Collection[EndReason] = ()) -> None:
    """Raise ClaimState if a claim is ending or has ended, except for one of the reasons `besides`."""
    if claim.state in ENDING_OR_ENDED and claim.end_reason not in besides:
        raise ClaimState(
            f"claim {claim.claim_id} is {claim.state} ({claim.end_reason}): it cannot be placed again",
            ClaimStateFacts(claim_id=claim.claim_id, state=claim.state),
        )


def _error_though_ended(error: RedschedError, claim: Claim) -> RedschedError:
    message = f"claim {claim.claim_id} has failed and is released; {error.detail}"
    return type(error)(message, replace(error.facts, claim_id=claim.claim_id))
