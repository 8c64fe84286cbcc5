"""Rebalance: an ordered list of at most so many moves, for one of four aims; and its verification on another copy."""

import heapq
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from random import Random

from redsched.decide.plugins.registry import multipliers
from redsched.decide.work_limit import TooMuchWork, check_work
from redsched.errors import ClaimState, Conflict, InvalidRequest, NotFound
from redsched.model import HELD, Claim, Request
from redsched.model.records.plans import Aim, Move, RebalancePlan
from redsched.operate.plans.cell_copy import CellCopy
from redsched.operate.plans.making_room import RoomMaker, relates_places
from redsched.operate.plans.movers import Mover
from redsched.operate.plans.relocation import Relocation

PACK = "pack"
"""The policy by which claims that make room choose their targets."""
MIN_GAIN = 0.01
"""The least gain of a score for which a claim is moved."""
MAX_SCORED = 5000
"""The most claims whose scores are compared: of more, a sample."""


@dataclass(frozen=True, slots=True)
class RebalanceQuestion:
    """Which moves reach an aim: for `request`, its count of places; for `drain`, empty `hosts`; `policy`: its name.

    `waiting` are requests that wait for room, beside the claims that do. Called with a copy, it returns the plan.
    Raises NotFound, InvalidRequest.
    """

    aim: Aim
    max_moves: int
    request: Request | None = None
    hosts: Sequence[str] = ()
    policy: str = ""
    waiting: Sequence[Request] = ()

    def __call__(self, copy: CellCopy) -> RebalancePlan:
        """Return the plan."""
        with copy.trial():
            return _Rebalancing(copy, self).plan()


@dataclass(frozen=True, slots=True)
class VerifyQuestion:
    """What the moves of a plan reach on a copy of their own; called with it, returns the plan with what was reached.

    Raises ClaimState if a move is not possible there, or less is reached than planned.
    """

    question: RebalanceQuestion
    plan: RebalancePlan

    def __call__(self, copy: CellCopy) -> RebalancePlan:
        """Return the plan."""
        with copy.trial():
            for move in self.plan.moves:
                _play(copy, move)
            reached = _Rebalancing(copy, self.question).reached(self.plan)
        is_less = reached > self.plan.after if self.plan.aim is Aim.DRAIN else reached < self.plan.after
        if is_less:
            raise ClaimState(f"the moves would reach {reached:g} instead of {self.plan.after:g}: {CHANGED}")
        return replace(self.plan, after=reached)


def check_aim(aim: Aim, request: Request | None, hosts: Collection[str], policy: str) -> None:
    """Raise InvalidRequest unless an aim has what it needs, and nothing else."""
    given = {"request": request is not None, "hosts": bool(hosts), "policy": bool(policy)}
    of_aim = {Aim.REQUEST: "request", Aim.DRAIN: "hosts", Aim.POLICY: "policy"}
    for name, is_given in given.items():
        if is_given and of_aim.get(aim) != name:
            raise InvalidRequest(f"{name} does not belong to rebalancing for {aim}: leave it out")
    needed = of_aim.get(aim, "")
    if needed and not given[needed] and aim is not Aim.POLICY:
        what = {"request": "the request to make room for", "hosts": "the hosts to be emptied"}[needed]
        raise InvalidRequest(f"rebalancing for {aim} needs {what}: add {needed}")
    if request is not None and request.members:
        raise InvalidRequest("room is made for places that are alike: give the largest member as a request of its own")
    if request is not None and relates_places(request):
        raise InvalidRequest(
            "room is made for one place after the other, which a hard spread of several places does not allow: "
            "leave out the spread, make it soft (hard: false), or spread a server group"
        )


CHANGED = "the fleet has changed since they were planned; plan again"


def _play(copy: CellCopy, move: Move) -> None:
    claim = copy.claims.get(move.claim_id)
    here = claim.on(move.source) if claim is not None else None
    if here is None or here.token != move.token:
        raise ClaimState(f"claim {move.claim_id} is not on {move.source} any longer: {CHANGED}")
    try:
        copy.move(here, Relocation(copy).place_of(here, frozenset((move.target,))))
    except (Conflict, NotFound) as error:
        raise ClaimState(f"claim {move.claim_id} has no place on {move.target}: {CHANGED} ({error.detail})") from error


class _Rebalancing:
    """The search for moves on one copy, which it changes."""

    def __init__(self, copy: CellCopy, question: RebalanceQuestion) -> None:
        self._copy = copy
        self._question = question
        policies = {Aim.REQUEST: PACK, Aim.WAITING: PACK, Aim.POLICY: question.policy}
        self._mover = Mover(copy, question.max_moves, policies.get(question.aim, ""))

    def plan(self) -> RebalancePlan:
        """Return the moves found."""
        found = {
            Aim.REQUEST: self._for_request,
            Aim.WAITING: self._for_waiting,
            Aim.DRAIN: self._for_drain,
            Aim.POLICY: self._for_policy,
        }
        return found[self._question.aim]()

    def reached(self, plan: RebalancePlan) -> float:
        """Return what is reached without further moves, in the unit of the plan's aim."""
        if plan.aim is Aim.REQUEST:
            return sum(1 for _ in self._taken(int(plan.after)))
        if plan.aim is Aim.WAITING:
            return self._served()
        return plan.after if plan.aim is Aim.POLICY else len(list(self._left()))

    # Room for a request

    def _for_request(self) -> RebalancePlan:
        request = self._request
        maker = RoomMaker(self._mover, request)
        made, useful, is_cut = 0, 0, False
        while made < request.count and maker.take():
            made += 1
        before = made
        try:
            while made < request.count and self._mover.left and maker.make(request.count - made):
                made += 1
                useful = len(self._mover.moves)
        except TooMuchWork:
            is_cut = True
        del self._mover.moves[useful:]  # those that have made no room yet
        return self._plan(before, made, request.count, is_cut)

    def _taken(self, most: int) -> Iterator[int]:
        """Yield while places of the request are taken without moves."""
        maker = RoomMaker(self._mover, self._request)
        for number in range(most):
            if not maker.take():
                return
            yield number

    @property
    def _request(self) -> Request:
        assert self._question.request is not None
        return self._question.request

    # Room for what waits

    def _for_waiting(self) -> RebalancePlan:
        goal = len(self._waiting())
        with self._copy.trial():
            before = self._served()
        after, useful, is_cut = 0, 0, False
        try:
            for request in self._waiting():
                after += self._serve(request, moving=True)
                useful = len(self._mover.moves)
        except TooMuchWork:
            is_cut = True
        if after < before:  # the time was up too early
            after, useful = before, 0
        del self._mover.moves[useful:]  # those that have made no room yet
        return self._plan(before, after, goal, is_cut)

    def _waiting(self) -> list[Request]:
        """Return one request for each claim and request that waits, in order of arrival; those of claims first."""
        found = list[Request]()
        for claim in self._copy.pending():
            try:
                found.append(self._mover.relocation.anywhere(claim))
            except (Conflict, NotFound):
                continue
        return [*found, *self._question.waiting]

    def _served(self) -> int:
        """Serve what fits without moves."""
        return sum(self._serve(request, moving=False) for request in self._waiting())

    def _serve(self, request: Request, moving: bool) -> bool:
        """Take all places of a request, if need be with moves, or none."""
        check_work("placing what waits")
        decision = self._copy.decide(request)
        if len(decision.places) == request.places:
            for place in decision.places:
                self._copy.take(place)
            return True
        if request.members or relates_places(request) or not moving:
            return False
        maker, mark, moves = RoomMaker(self._mover, request), self._copy.mark, len(self._mover.moves)
        if all(maker.take() or maker.make(request.count - number) for number in range(request.count)):
            return True
        self._mover.undo_to(mark, moves)
        return False

    # Hosts without claims

    def _for_drain(self) -> RebalancePlan:
        before, is_cut = len(list(self._left())), False
        for host in self._question.hosts:
            self._copy.close(host)
        try:
            for host in sorted(self._question.hosts, key=lambda one: (len(self._copy.on_host(one)), one)):
                self._empty(host)
        except TooMuchWork:
            is_cut = True
        return self._plan(before, len(list(self._left())), 0, is_cut)

    def _empty(self, host: str) -> None:
        for claim in self._mover.on(host):
            if not self._mover.left:
                return
            check_work("emptying hosts")
            left = len(self._copy.on_host(host)) - 1
            self._mover.move(claim, f"{left} left on {host}" if left else f"{host} is empty")

    def _left(self) -> Iterator[Claim]:
        """Yield the claims that run, or are to run, on the hosts to be emptied."""
        return (one for host in self._question.hosts for one in self._copy.on_host(host) if one.state in HELD)

    # Places that a policy prefers

    def _for_policy(self) -> RebalancePlan:
        multipliers(Request({"VCPU": 1}, policy=self._question.policy), self._copy.plugins)  # an unknown one raises
        raised, is_cut = 0.0, False
        try:
            claims, is_cut = self._sample()
            gains = [(-gain, claim_id) for claim_id in claims if (gain := self._gain(claim_id)[0]) >= MIN_GAIN]
            heapq.heapify(gains)
            while gains and self._mover.left:
                raised += self._move_best(gains)
        except TooMuchWork:
            is_cut = True
        return self._plan(0, round(raised, 6), 0, is_cut)

    def _sample(self) -> tuple[list[str], bool]:
        """Return claims that may be moved, and whether there are more."""
        ids = sorted(one.claim_id for one in self._copy.claims.values() if one.placements and self._mover.may_move(one))
        return (Random(0).sample(ids, MAX_SCORED), True) if len(ids) > MAX_SCORED else (ids, False)

    def _move_best(self, gains: list[tuple[float, str]]) -> float:
        """Move the claim that gains most, unless others gain more by now; return what was gained."""
        _, claim_id = heapq.heappop(gains)
        gain, target = self._gain(claim_id)
        if gain < MIN_GAIN:
            return 0.0
        if gains and gain < -gains[0][0]:
            heapq.heappush(gains, (-gain, claim_id))
            return 0.0
        claim = self._copy.claims[claim_id]
        made = self._mover.move(claim, f"score +{gain:.3f}", frozenset((target,)))
        return gain if made else 0.0

    def _gain(self, claim_id: str) -> tuple[float, str]:
        """Return by how much the score of a claim's best host is above that of its own, and the best host."""
        check_work("comparing the scores of claims")
        claim = self._copy.claims[claim_id]
        try:
            request = self._mover.relocation.anywhere(claim)
        except (Conflict, NotFound):
            return 0.0, ""
        with self._copy.trial():
            self._copy.end(claim)
            decision = self._copy.decide(request)
            own = self._copy.decider.score_on(request, claim.host)
        if not decision.places or own is None or decision.places[0].chosen.host == claim.host:
            return 0.0, ""
        return decision.score - own, decision.places[0].chosen.host

    def _plan(self, before: float, after: float, goal: float, is_cut: bool) -> RebalancePlan:
        return RebalancePlan(self._question.aim, tuple(self._mover.moves), before, after, goal, is_cut)
