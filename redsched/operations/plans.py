"""The operations that say what would happen, and the one that carries out what a plan says."""

from collections.abc import Collection, Sequence
from typing import Any

from redsched.auth.policy import OPERATORS, READ
from redsched.errors import ClaimState, NotFound, NoValidHost, OutcomeUnknown, PlannerBusy, TooHard
from redsched.model import HostReport, Request
from redsched.model.records.plans import AddingPlan, Aim, Applied, CapacityPlan, LeavingPlan, Move, RebalancePlan
from redsched.operations.operation import Arguments, Mode, Part, Sent, json_value, operation
from redsched.operations.route import Errors, Route

PLAN_S = 120.0
"""How long a plan may take, beyond an ordinary reply."""
SHOWN = ("gain", "project")
"""What a planned move has only to be shown."""


def _plan(word: str, summary: str, body: str, result: Any, *errors: Any, **given: Any) -> Route:
    refusals: Errors = (NotFound, *errors, TooHard, PlannerBusy)
    return Route(
        id=f"plan_{word}",
        method="POST",
        path=f"/v1/plans/{word}",
        tag="plans",
        summary=summary,
        policy=READ,
        answers={200: result},
        errors=refusals,
        body=body,
        is_repeatable=True,
        **given,
    )


def _asks_capacity(arguments: Arguments) -> Sent:
    return Sent(body={name: json_value(value) for name, value in arguments.items()}, waits_s=PLAN_S)


def _asks_leaving(arguments: Arguments) -> Sent:
    return Sent(body={"hosts": list(arguments["hosts"])}, waits_s=PLAN_S)


def _asks_adding(arguments: Arguments) -> Sent:
    request = arguments["request"]
    body = {"hosts": [json_value(one) for one in arguments["reports"]]}
    return Sent(body=body if request is None else {**body, "request": json_value(request)}, waits_s=PLAN_S)


def _asks_moves(arguments: Arguments) -> Sent:
    body = {name: json_value(value) for name, value in arguments.items() if name != "aim" and value is not None}
    return Sent(body={"for": str(arguments["aim"]), **body}, waits_s=PLAN_S)


def _applies(arguments: Arguments) -> Sent:
    moves, timeout_s = arguments["moves"], arguments["timeout_s"]
    steps = [{name: value for name, value in json_value(one).items() if name not in SHOWN} for one in moves]
    return Sent(body={"moves": steps, "timeout_s": timeout_s}, waits_s=float(timeout_s * len(steps)))


class Plans(Part[Mode]):
    """What would happen, which writes nothing, and the moves of a plan."""

    group = "plans"

    @operation(
        _plan("capacity", "Plan capacity", "CapacityBody", CapacityPlan, NoValidHost),
        sends=_asks_capacity,
    )
    def capacity(self, request: Request, n_plus_one: str = "") -> CapacityPlan:
        """Return how many more of a request fit, by zone, and what runs out.

        With `n_plus_one`, also whether all claims would have a place without any one host, zone or label value.
        """

    @operation(_plan("drain", "Plan a drain", "LeavingBody", LeavingPlan), sends=_asks_leaving)
    def drain(self, hosts: Collection[str]) -> LeavingPlan:
        """Return where the claims of hosts would go if these were drained with moves, and which could not leave."""

    @operation(_plan("without", "Plan a failure", "LeavingBody", LeavingPlan), sends=_asks_leaving)
    def without(self, hosts: Collection[str]) -> LeavingPlan:
        """Return where the claims of hosts would go if these died and were evacuated, and which would have no place."""

    @operation(
        _plan("with", "Plan further hosts", "AddingBody", AddingPlan, NoValidHost, body_may_be_large=True),
        sends=_asks_adding,
    )
    def with_hosts(self, reports: Sequence[HostReport], request: Request | None = None) -> AddingPlan:
        """Return what further hosts would change: the room of each class, what waits, and how many of a request fit."""

    @operation(
        _plan("rebalance", "Plan moves", "RebalanceBody", RebalancePlan, NoValidHost, ClaimState),
        sends=_asks_moves,
    )
    def rebalance(
        self,
        aim: Aim,
        max_moves: int = 10,
        request: Request | None = None,
        hosts: Collection[str] = (),
        policy: str = "",
    ) -> RebalancePlan:
        """Return an ordered list of moves that make room, empty hosts, or follow a policy, each with what it gains.

        The moves were verified on a copy of the fleet. 409: the fleet changes too fast for that.
        """

    @operation(
        Route(
            id="apply_rebalance",
            method="POST",
            path="/v1/plans/rebalance/apply",
            tag="plans",
            summary="Carry out planned moves",
            policy=OPERATORS,
            answers={200: Applied},
            errors=(OutcomeUnknown,),
            body="ApplyBody",
            body_may_be_large=True,
            is_repeatable=True,
        ),
        sends=_applies,
    )
    def apply(self, moves: Sequence[Move], timeout_s: int = 60) -> Applied:
        """Carry out the moves of a plan, one after the other, and stop at the first that fails.

        Each claim must still have the token of the plan. If the client disconnects, the move that has begun goes on,
        and no further one begins.
        """
