"""`redsched plan rebalance`: moves that reach an aim, and with --apply, carrying them out."""

from collections.abc import Awaitable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from redsched.cli import completion
from redsched.cli.fleet import ANYWHERE, Fleet, Where, with_fleet
from redsched.cli.options import AsJson, Many, filter_names, seconds
from redsched.cli.output import tables
from redsched.cli.output.progress import waiting
from redsched.cli.request_options import RequestOptions, takes_asked
from redsched.cli.verbs.plans import Budget, From, is_given, limit_of, planned, planned_request
from redsched.errors import ClaimState, InvalidRequest, Unavailable
from redsched.model.record import json_of
from redsched.model.records.plans import Aim, Applied, AppliedMove, Move, RebalancePlan
from redsched.requests.plans import MAX_MOVE_S, MAX_MOVES

if TYPE_CHECKING:
    from redsched.operate.plans.plans import PlanService
    from redsched.operations.operation import Async
    from redsched.operations.plans import Plans

HEADS = ("MOVE", "CLAIM", "FROM", "TO", "GAIN")
NUMBERS = {
    Aim.REQUEST: "{before:g} of {goal:g} places fit now, {after:g} after {moves}",
    Aim.WAITING: "{before:g} of {goal:g} that wait fit now, {after:g} after {moves}",
    Aim.DRAIN: "{claims} on these hosts now, {after:g} after {moves}",
    Aim.POLICY: "the scores rise by {after:.3f} with {moves}",
}
"""What the numbers of a plan mean, by its aim."""


@takes_asked
def rebalance(
    aim: Annotated[Aim, typer.Option("--for", help="Room for a request or for what waits, empty hosts, or a policy.")],
    asked: RequestOptions,
    empty: Annotated[
        Many,
        typer.Option(
            "--empty",
            metavar="HOST",
            help="For drain: a host to be emptied. Repeatable.",
            show_default=False,
            autocompletion=completion.hosts,
        ),
    ] = [],  # noqa: B006 - typer reads it, nobody writes it
    max_moves: Annotated[int, typer.Option("--max-moves", min=1, max=MAX_MOVES, help="The most moves.")] = 10,
    apply: Annotated[bool, typer.Option("--apply", help="Carry out the moves, one after the other.")] = False,
    move_timeout_s: Annotated[
        int, seconds("--move-timeout", least=1, most=MAX_MOVE_S, help="Time within which each move must be complete.")
    ] = 60,
    export: From = "",
    budget_s: Budget = None,
    as_json: AsJson = False,
    where: Where = ANYWHERE,
) -> None:
    """Plan moves, and carry them out with --apply.

    They make room, empty hosts or follow a policy, which --policy names then. Each was verified on a copy of the fleet.
    Without --apply nothing is written; with it, the first move that fails ends the rest.
    """
    policy = asked.policy if aim in (Aim.POLICY, Aim.DRAIN, Aim.WAITING) else ""
    asked = replace(asked, policy="") if policy else asked
    if aim is Aim.DRAIN and not empty:
        raise InvalidRequest("--for drain needs the hosts to be emptied: add --empty HOST")
    request = planned_request(asked) if is_given(asked) else None
    hosts = filter_names("host", empty)
    if export and apply:
        raise InvalidRequest("--apply moves claims of the running cells: leave out --from")

    def ask(plans: "PlanService | Plans[Async]") -> Awaitable[RebalancePlan]:
        return plans.rebalance(aim, max_moves, request, hosts, policy)

    if not apply:
        return _show(planned(where, export, budget_s, ask), as_json)

    async def work(fleet: Fleet) -> tuple[RebalancePlan, list[AppliedMove]]:
        async with waiting("planning"):
            plan = await ask(fleet.plans)
        if not as_json:
            _show(plan, as_json)
        return plan, await _apply(fleet, plan, move_timeout_s, as_json)

    plan, applied = with_fleet(where, work, plan_limit_s=limit_of(where, budget_s))
    if as_json:
        tables.show_json({**json_of(plan), "applied": json_of(Applied(tuple(applied)))["moves"]})
    if applied and (problem := applied[-1].problem):
        one = applied[-1]
        raise ClaimState(f"claim {one.claim_id} was not moved to {one.target}: {problem}")
    return None


async def _apply(fleet: Fleet, plan: RebalancePlan, timeout_s: int, as_json: bool) -> list[AppliedMove]:
    """Carry out the moves, and report each as soon as it is complete."""
    found = list[AppliedMove]()
    for move in plan.moves:
        try:
            # Each is a call of its own: no proxy has to wait for all of them, and the caller sees each at once.
            [one] = (await fleet.plans.apply([move], timeout_s)).moves
        except Unavailable as error:
            if not found:
                raise
            one = AppliedMove(move.claim_id, move.source, move.target, error.detail)
        found.append(one)
        if one.problem:
            break
        if not as_json:
            tables.say(f"{one.claim_id} is active on {one.target} ({len(found)} of {len(plan.moves)})")
    return found


def _show(plan: RebalancePlan, as_json: bool) -> None:
    if as_json:
        return tables.show_json(json_of(plan))
    count = len(plan.moves)
    moves = f"{count} move{'s' * (count != 1)}"
    claims = "1 claim is" if plan.before == 1 else f"{plan.before:g} claims are"
    numbers = {"before": plan.before, "after": plan.after, "goal": plan.goal, "claims": claims, "moves": moves}
    print(NUMBERS[plan.aim].format(**numbers))
    if plan.moves:
        tables.show_table(HEADS, (_row(number, one) for number, one in enumerate(plan.moves, 1)), "")
    if plan.is_cut:
        print("the search took too long, and more may be gained: allow more with --budget")
    return None


def _row(number: int, one: Move) -> tuple[object, ...]:
    return (number, one.claim_id, one.source, one.target, one.gain)
