"""Empty the hosts of one cell that are drained with moves, or evacuated.

Every scheduler's sweeper handles a few claims of such a host at a time. The claim script keeps two schedulers from
moving a claim twice: the second gets the outcome of the first. A claim that cannot be moved now is retried with
back-off; the reason is determined when the host is read. A claim whose move failed at its target is retried likewise:
the claim records how often and when it failed, so that all schedulers wait.

A drained host still works, so a claim that is not active there yet is moved once it is active, unless it ends first. If
the drain has a deadline with `stop`, the claims left there at the deadline are released. An evacuated host is gone for
good, so its ending claims end at once. A claim that is past its `max_runtime_s` is released instead of being moved.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from redsched import aio, logs
from redsched.errors import Conflict, NotFound, NoValidHost, TooHard
from redsched.model import HELD, LEASED, Claim, ClaimStatus, EndReason, GangOnExit, Reason
from redsched.model.records.hosts import FailedMoves
from redsched.scheduler.cells import Cell
from redsched.scheduler.claims.replacements import ReplacementPlacer, ReplacementSpec
from redsched.scheduler.hosts.drain_group import GroupDrain, GroupOnItsWay
from redsched.scheduler.hosts.move_backoff import LONGEST_PAUSE_S, MoveBackoff
from redsched.store.codec.claim_codec import counted_by
from redsched.store.codec.outcomes import Outcome
from redsched.store.commands.base import chunks

MAX_PER_ROUND = 50
AT_ONCE = 5
HOSTS_AT_ONCE = 20
EVACUATE = "evacuate"
"""The way claims leave a host that was written off and is being evacuated."""
FIRST_PAUSE_MS = 1000
"""The pause after a failed move of a claim. It doubles with each failure, up to LONGEST_PAUSE_S."""
STOP = "stop"
"""The way claims leave a host whose drain has reached its deadline, if the drain stops them then."""

_STOPPED = (Outcome.OK, Outcome.ENDING, Outcome.ALREADY_DONE, Outcome.UNKNOWN)

log = logs.get_logger(__name__)


class DrainWorker:
    """Empties the drained and evacuated hosts of one cell."""

    def __init__(self, cell: Cell, replacements: ReplacementPlacer, group_drain: GroupDrain) -> None:
        self._cell = cell
        self._replacements = replacements
        self._group_drain = group_drain
        self._pauses = MoveBackoff()

    @property
    def unmovable(self) -> int:
        """The number of claims for which this scheduler lately found no other place."""
        return len(self._pauses)

    async def run_once(self) -> None:
        """Place some claims of these hosts elsewhere. Raises Unavailable."""
        claims = await self._next_claims()
        if not claims:
            self._pauses.clear()
            return
        now_s = aio.now_s()
        self._pauses.prune(now_s)
        due = [one for one in claims if one[1] == STOP or self._pauses.is_due(one[0].claim_id, now_s)]
        for first in range(0, len(due), AT_ONCE):
            await aio.gather(self._empty(claim, how) for claim, how in due[first : first + AT_ONCE])

    async def _next_claims(self) -> list[tuple[Claim, str]]:
        """Return some claims that need work, each with how it leaves its host."""
        store, now_ms = self._cell.store, self._cell.updater.now_ms()
        hosts = await store.hosts.draining(now_ms, self._cell.updater.epoch)
        if STOP in hosts.values():
            # A poll reads the time without the fence, which begins an epoch if the clock has jumped.
            clock = await store.tick()
            hosts = await store.hosts.draining(clock.now_ms, clock.epoch)
        # Other schedulers do the same work: a random order avoids most collisions.
        names, ids = random.sample(list(hosts), len(hosts)), list[str]()
        for batch in chunks(names, HOSTS_AT_ONCE):
            ids += chain.from_iterable(await store.hosts.claim_ids_of(batch))
            if len(ids) >= 4 * MAX_PER_ROUND:
                break
        chosen = random.sample(ids, min(len(ids), 4 * MAX_PER_ROUND))
        claims = (await store.claims.read(chosen)).values() if chosen else ()
        views = (claim.view(one) for claim in claims for one in claim.placements)
        found = [(one, hosts[one.host]) for one in views if _is_due(one, hosts.get(one.host, ""), now_ms)]
        return found[:MAX_PER_ROUND]

    async def _empty(self, claim: Claim, how: str) -> None:
        if how == STOP:
            await self._stop(claim)
        elif claim.state in HELD and await self._cell.is_overdue(claim):
            await self._end_overdue(claim)
        elif claim.state is ClaimStatus.ENDING:
            await self._cell.store.claims.reconcile([claim.claim_id], counted_by(claim))
        elif _goes_with_gang(claim, how) and claim.gang_on_exit is GangOnExit.RELEASE:
            lost = f"its host {claim.host} was written off, and its gang ends with a member that is lost"
            await self._release(claim, EndReason.FAILED, lost)
        elif claim.state in LEASED or _goes_with_gang(claim, how):
            # The claim was never active at this placement, so this is another attempt and not a move. An active member
            # of a gang that is placed again as a whole must not be moved alone.
            await self._cell.store.claims.requeue(claim.host, claim.claim_id, claim.token, counted_by(claim))
        else:
            await self._move(claim)

    async def _stop(self, claim: Claim) -> None:
        # While a gang waits for its members, ending one as FAILED ends the others, which would wait for it for ever.
        # A claim may still name its gang after the gang is complete, so the gang's own key is read.
        waits = claim.gang and await self._cell.store.gangs.members(claim.gang)
        end_reason = EndReason.FAILED if waits else EndReason.RELEASED
        reason = f"host {claim.host} was drained, and stopped what was left when the deadline had passed"
        await self._release(claim, end_reason, reason)

    async def _end_overdue(self, claim: Claim) -> None:
        """End a claim instead of moving it: its host would have to stop it now, and so would every other host."""
        await self._release(claim, EndReason.MAX_RUNTIME, f"its max_runtime_s of {claim.max_runtime_s} s has passed")

    async def _release(self, claim: Claim, end_reason: EndReason, reason: str) -> None:
        answer = await self._cell.store.claims.release(
            claim.host, claim.claim_id, claim.token, objects=counted_by(claim), end_reason=end_reason, reason=reason
        )
        if answer.outcome not in _STOPPED:
            # Its token has changed since it was read. The next sweep reads the claim again.
            log.info(
                "claim not stopped", cell=self._cell.name, claim=claim.claim_id, host=claim.host, outcome=answer.outcome
            )

    async def _move(self, claim: Claim) -> None:
        try:
            await self._place(claim)
        except (Conflict, NotFound, TooHard) as error:
            # The claim has left the host or ended, or has no other place.
            self._pauses.back_off(claim.claim_id, aio.now_s())
            log.debug(
                "claim not moved", cell=self._cell.name, claim=claim.claim_id, host=claim.host, problem=error.detail
            )
        else:
            self._pauses.forget(claim.claim_id)

    async def _place(self, claim: Claim) -> None:
        try:
            await self._replacements.place(self._cell, claim, _elsewhere(claim))
        except (NoValidHost, TooHard):
            if not await self._group_drain.place(self._cell, claim):
                raise


def _is_due(claim: Claim, how: str, now_ms: int) -> bool:
    """Return whether to handle a claim now, given how claims leave its host (`how`)."""
    if how == EVACUATE and claim.state is ClaimStatus.ENDING:
        return True
    # A later time than that is of a clock that has been set back since.
    waits = now_ms < next_move_at_ms(claim) <= now_ms + 2 * LONGEST_PAUSE_S * 1000
    if how != STOP and claim.state is ClaimStatus.ACTIVE and waits:
        return False
    states = HELD if how in (EVACUATE, STOP) else (ClaimStatus.ACTIVE,) if how else ()
    return claim.state in states and claim.target is None


def _goes_with_gang(claim: Claim, how: str) -> bool:
    """Return whether a claim that is lost with its host is not placed again alone: its gang ends or restarts."""
    return how == EVACUATE and claim.gang_on_exit is not GangOnExit.KEEP


def next_move_at_ms(claim: Claim) -> int:
    """Return when a claim whose last move failed may be moved off its host again (Unix ms); 0: at once."""
    if not claim.failed_moves:
        return 0
    doublings = min(claim.failed_moves - 1, 16)
    return claim.move_failed_at_ms + min(int(LONGEST_PAUSE_S * 1000), FIRST_PAUSE_MS << doublings)


async def failed_moves(cell: Cell, claims: Iterable[Claim], host: str) -> tuple[FailedMoves, ...]:
    """Return the failed moves of claims whose last move off the host failed, sorted by claim id."""
    failed = [one for one in claims if one.failed_moves and one.host == host and one.target is None]
    reasons = await cell.store.claims.reasons(one.claim_id for one in failed)
    failed.sort(key=lambda one: one.claim_id)
    return tuple(
        FailedMoves(one.claim_id, one.failed_moves, next_move_at_ms(one), _reason(one, reasons)) for one in failed
    )


def _reason(claim: Claim, reasons: Mapping[str, Reason]) -> str:
    """Return the reason of the last failed move; '' if none was given."""
    reason = reasons.get(claim.claim_id)
    return reason.text if reason is not None and reason.at_ms == claim.move_failed_at_ms else ""


def _elsewhere(claim: Claim) -> ReplacementSpec:
    return ReplacementSpec(EndReason.MOVED, exclude=frozenset((claim.host,)))


async def unmovable_reasons(
    cell: Cell, replacements: ReplacementPlacer, group_drain: GroupDrain, claims: Sequence[Claim]
) -> dict[str, str]:
    """Return the claims of a drained or evacuated host that have no other place now, and why, by claim id.

    Nothing is said while that may change without anybody's help: while others are on their way, they count at both
    hosts, in their groups and in shared pools. Nor of a claim that is not to be moved yet.
    """
    reasons: dict[str, str] = {}
    if any(one.target is not None for one in claims):
        return reasons
    now_ms = cell.updater.now_ms()
    leaving = await cell.store.hosts.draining(now_ms, cell.updater.epoch)
    wholes: dict[tuple[str, str, str], str | None] = {}
    """Why server groups and gangs cannot move as a whole: results of `_group_unmovable`."""
    for claim in claims:
        how = leaving.get(claim.host, "")
        if not _is_due(claim, how, now_ms) or claim.state not in HELD or _goes_with_gang(claim, how):
            continue
        try:
            await replacements.check_movable(cell, claim, _elsewhere(claim))
        except (Conflict, NotFound, TooHard) as error:
            whole = (claim.server_group, claim.raw.get("gang_members", ""), claim.gang_member)
            if whole not in wholes:
                wholes[whole] = await _group_unmovable(cell, group_drain, claim)
            why = wholes[whole]
            if why is not None:
                reasons[claim.claim_id] = why or error.detail
    return reasons


async def _group_unmovable(cell: Cell, group_drain: GroupDrain, claim: Claim) -> str | None:
    """Return why the claim's group or gang cannot move as a whole; '' if it never moves as a whole, None if it can."""
    try:
        return None if await group_drain.check_movable(cell, claim) else ""
    except GroupOnItsWay:
        return None
    except (Conflict, NotFound, TooHard) as error:
        return error.detail
