"""Selecting: decide on the columns, claim in one script call, and answer only what is true of the store.

        decide --nothing fits--> catch up --> decide --nothing fits--> refuse, with reasons
           |                        ^            |
           +------ candidates ------|------------+--> claim.lua --OK, SAME--> answer
                                    |                     |
                                    +--------FULL---------+

A refusal is an answer about the store after the request arrived: it is given only from columns that were brought up to
date after the last candidate turned out to be full.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from random import Random

from redsched.decide import Decision, Explanation
from redsched.errors import (
    ClaimIdReused,
    ClaimState,
    OutcomeUnknown,
    RedschedError,
    Settling,
    StoreUnavailable,
)
from redsched.model import Candidate, ClaimStatus, Request
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.identity import Identity
from redsched.scheduler.refusal import refusal
from redsched.scheduler.views import Effort, Selection, Selections
from redsched.settings import Settings
from redsched.store import Cause, ClaimAnswer, ClaimCall, Member, Outcome

Observe = Callable[[Effort], None]


class _Attempt:
    """One request on its way, and what it has taken so far."""

    __slots__ = ("calls", "catch_up", "decide_s", "home", "left", "request", "seen", "sent", "started")

    def __init__(self, request: Request) -> None:
        self.request = request
        self.calls = 0
        self.decide_s = 0.0
        # A dry run shows what a later request would see: nothing that was answered may be missing.
        self.catch_up = not request.claim
        """Whether to decide only on columns that have caught up: after FULL, and before a refusal."""
        self.seen: dict[str, Explanation] = {}
        """Why nothing fitted, by cell, at the instant at which that was decided."""
        self.home: Cell | None = None
        """The cell that the caller's own ids are bound to, where there are several."""
        self.left: set[str] = set()
        """Cells that they were bound to before, and that had no room."""
        self.sent: tuple[str, ...] = ()
        """Ids of the claim call that is under way."""
        self.started = time.perf_counter()

    def effort(self, outcome: str) -> Effort:
        retries = max(0, self.calls - 1)
        return Effort(outcome, self.calls, retries, self.decide_s, time.perf_counter() - self.started)


class Selector:
    """Selects over all cells of a scheduler."""

    def __init__(self, cells: Cells, settings: Settings, identity: Identity, observe: Observe | None = None) -> None:
        self._cells = cells
        self._settings = settings
        self._identity = identity
        self._observe = observe or (lambda _: None)
        self._rng = Random()

    async def select(self, request: Request) -> Selections:
        """Claim a place for every member of the request, or show where they would go (`claim` False).

        Raises NoValidHost, ClaimIdReused, ClaimState (the ids have ended), Settling, StoreUnavailable, OutcomeUnknown.
        """
        attempt = _Attempt(request)
        try:
            async with asyncio.timeout(self._settings.select_timeout_s):
                found = await self._select(attempt)
        except TimeoutError as error:
            late = self._late(attempt)
            self._observe(attempt.effort(late.problem))
            raise late from error
        except OutcomeUnknown as error:
            self._observe(attempt.effort(error.problem))
            raise OutcomeUnknown(error.detail, _ids(attempt)) from error
        except RedschedError as error:
            self._observe(attempt.effort(error.problem))
            raise
        done = "claimed" if found.fresh else "same"
        self._observe(attempt.effort(done if request.claim else "dry-run"))
        return found

    def _late(self, attempt: _Attempt) -> RedschedError:
        waited = f"within {self._settings.select_timeout_s:g} s"
        if attempt.sent:
            return OutcomeUnknown(
                f"a claim was sent to the store and no answer came {waited}; send it again with these claim_ids",
                _ids(attempt),
            )
        return StoreUnavailable(f"no host could be claimed {waited}, though some seemed free: retry")

    async def _select(self, attempt: _Attempt) -> Selections:
        request = attempt.request
        attempt.home = await self._identity.home(request)
        while True:
            cell, decision = await self._decide(attempt)
            if not decision.members and not attempt.catch_up:
                attempt.catch_up = True
                continue
            if not request.claim:
                return _dry_run(request, cell, decision) if decision.members else self._refuse(attempt)
            if not decision.members and await self._moves_on(attempt):
                continue
            found = await self._claim(attempt, cell, decision)
            if found is not None:
                return found

    async def _decide(self, attempt: _Attempt) -> tuple[Cell, Decision]:
        """The best decision of all cells, or that of the cell in which the request's ids are at home."""

        def look(cell: Cell) -> tuple[Cell, Decision]:
            return cell, self._decide_in(cell, attempt)

        cells = [attempt.home] if attempt.home else list(self._cells)
        looks = await self._cells.caught_up(look) if attempt.catch_up else [look(cell) for cell in cells]
        mine = [found for found in looks if found[0] in cells]
        return max(mine, key=lambda found: (bool(found[1].members), found[1].score))

    def _decide_in(self, cell: Cell, attempt: _Attempt) -> Decision:
        started = time.perf_counter()
        decision = cell.decider.decide(attempt.request, self._rng)
        if attempt.catch_up:
            attempt.seen.pop(cell.name, None)
            if not decision.members:
                attempt.seen[cell.name] = cell.decider.explain(attempt.request)
        attempt.decide_s += time.perf_counter() - started
        return decision

    async def _moves_on(self, attempt: _Attempt) -> bool:
        """Take the caller's ids from a cell without room to one that may have it; False when there is none."""
        if attempt.home is None:
            return False
        attempt.left.add(attempt.home.name)
        for cell in self._cells:
            if cell.name not in attempt.left and cell.decider.decide(attempt.request, self._rng).members:
                attempt.home = await self._identity.move(attempt.request, attempt.home, cell)
                return True
        return False

    async def _claim(self, attempt: _Attempt, cell: Cell, decision: Decision) -> Selections | None:
        """Run the claim script. None: decide anew, on columns that know more than before."""
        request = attempt.request
        if not decision.members and not request.claim_ids:
            self._refuse(attempt)
        bound = await self._identity.bind(request, cell)
        if bound is not cell:
            attempt.home = bound
            return None
        ids = request.claim_ids or self._identity.make(cell, request.count)
        attempt.calls += 1
        attempt.sent = tuple(ids)
        answer = await cell.store.claim(_call(request, cell, decision, ids))
        attempt.sent = ()
        cell.mirror.apply_reply(answer)
        if answer.outcome in (Outcome.OK, Outcome.SAME):
            return _selections(request, cell, decision, ids, answer)
        if answer.outcome is Outcome.FULL and not decision.members:
            self._refuse(attempt)
        if answer.outcome is Outcome.GONE:
            raise await _ended(request, cell)
        _raise_final(request, answer)
        # FULL, EPOCH, LATE: what was decided on is not what the store has. Only a later picture can refuse, and only
        # one that knows more than the reply told (a host shrank, or was disabled) is sure not to aim there again.
        down = [host.host for host in answer.looked_at if host.cause == Cause.DOWN]
        if down:
            # A lease that has lapsed and was not swept yet is in no feed: without this the next try would aim there.
            await cell.sweeper.mark_down(down)
        attempt.catch_up = True
        return None

    def _refuse(self, attempt: _Attempt) -> Selections:
        found = [attempt.seen.get(cell.name) or cell.decider.explain(attempt.request) for cell in self._cells]
        raise refusal(self._cells, attempt.request, found)


def _ids(attempt: _Attempt) -> dict[str, list[str]]:
    """What the caller needs to learn the outcome: the ids, its own or those that were made for the call."""
    return {"claim_ids": list(attempt.sent or attempt.request.claim_ids)}


def _call(request: Request, cell: Cell, decision: Decision, ids: Sequence[str]) -> ClaimCall:
    # Without candidates the script only tells what the ids are known for.
    places = decision.members or ((),) * len(ids)
    members = (
        Member(claim_id, tuple(Candidate(host, request.resources) for host in hosts))
        for claim_id, hosts in zip(ids, places, strict=True)
    )
    return ClaimCall(
        members=tuple(members),
        epoch=cell.mirror.epoch,
        now_ms=cell.mirror.now_ms(),
        digest=request.digest(),
        fresh=not request.claim_ids,
        lease_ms=request.lease_s * 1000,
        project=request.project,
        consumer=request.consumer,
    )


async def _ended(request: Request, cell: Cell) -> ClaimState:
    """Which of the ids have ended; with several places the others may still be there."""
    claims = await cell.store.read_claims(request.claim_ids)
    states = {claim_id: claim.state for claim_id, claim in claims.items()}
    ended = [claim_id for claim_id, state in states.items() if state is ClaimStatus.ENDED]
    return ClaimState(f"claim {', '.join(ended)} has ended: use new ids to claim again", {"claims": states})


def _raise_final(request: Request, answer: ClaimAnswer) -> None:
    ids = ", ".join(request.claim_ids)
    if answer.outcome is Outcome.CONFLICT:
        raise ClaimIdReused(
            f"claim id {ids} is known with other content, or only some of these ids are known: "
            "send what it was first sent with, or use new ids",
            {"claim_ids": list(request.claim_ids)},
        )
    if answer.outcome is Outcome.SETTLING:
        raise Settling(
            f"claim id {ids} may be known to hosts that have not attested to the new epoch yet: try again",
            {"claim_ids": list(request.claim_ids)},
        )


def _dry_run(request: Request, cell: Cell, decision: Decision) -> Selections:
    hosts = [member[0] for member in decision.members]
    alternates = _alternates(request, decision, hosts)
    return Selections(tuple(Selection(cell.name, host, request.resources, alternates) for host in hosts))


def _selections(
    request: Request, cell: Cell, decision: Decision, ids: Sequence[str], answer: ClaimAnswer
) -> Selections:
    alternates = _alternates(request, decision, [one.host for one in answer.placed])
    found = (
        Selection(
            cell.name,
            one.host,
            request.resources,
            alternates,
            claim_id,
            one.state,
            one.token,
            one.expires_at_ms,
        )
        for claim_id, one in zip(ids, answer.placed, strict=True)
    )
    return Selections(tuple(found), fresh=answer.outcome is Outcome.OK or not request.claim_ids)


def _alternates(request: Request, decision: Decision, chosen: Sequence[str]) -> tuple[str, ...]:
    return tuple(host for host in decision.alternates if host not in chosen)[: request.alternates]
