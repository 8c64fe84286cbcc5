"""`redsched plan capacity`, `drain`, `without`, `with`: what would happen, on the running cells or on an export."""

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from redsched.cli import completion
from redsched.cli.fleet import ANYWHERE, Fleet, Where, settings_for, settings_of, with_fleet
from redsched.cli.options import AsJson, filter_names, seconds
from redsched.cli.output import tables
from redsched.cli.output.progress import waiting
from redsched.cli.request_options import NOT_GIVEN, RequestOptions, request_of, takes_asked
from redsched.cli.running import run
from redsched.errors import InvalidRequest
from redsched.model import Request
from redsched.model.record import json_of
from redsched.model.records.plans import AddingPlan, CapacityPlan, ClassAmounts, LeavingPlan, Redundancy, Unplaced
from redsched.wording import counted

if TYPE_CHECKING:
    from redsched.operate.plans.plans import PlanService
    from redsched.operations.operation import Async
    from redsched.operations.plans import Plans

T = TypeVar("T")

MAX_BUDGET_S, BUDGET_S = 3600, 60
CLASS_HEADS = ("CLASS", "CAPACITY", "FREE", "FREE AFTER")
MOVE_HEADS = ("CLAIM", "FROM", "TO")
UNPLACED_HEADS = ("UNPLACED CLAIM", "HOST", "REASON")

From = Annotated[
    str,
    typer.Option("--from", metavar="FILE", help="Plan on this export instead; - for stdin.", show_default=False),
]
Budget = Annotated[
    int | None,
    seconds(
        "--budget",
        least=1,
        most=MAX_BUDGET_S,
        help="Processor time that the plan may take, such as 5m. Default: 1m; an API's own.",
    ),
]
Hosts = Annotated[list[str], typer.Argument(metavar="HOST...", help="Hosts by name.", autocompletion=completion.hosts)]


@takes_asked
def capacity(
    asked: RequestOptions,
    n_plus_one: Annotated[
        str,
        typer.Option(
            "--n-plus-one",
            metavar="BY",
            help="Also show whether all claims fit without any one host, zone or label:KEY.",
            show_default=False,
        ),
    ] = "",
    export: From = "",
    budget_s: Budget = None,
    as_json: AsJson = False,
    where: Where = ANYWHERE,
) -> None:
    """Show how many more of a request fit, and what runs out.

    \b
    Two GPUs of one NUMA node:  redsched plan capacity VCPU=8 GPU=2 --same numa

    Nothing is written. With --n-plus-one, also show without which host, zone or label value some claims have no place.
    """
    request = planned_request(asked)
    found = planned(where, export, budget_s, lambda plans: plans.capacity(request, n_plus_one))
    if as_json:
        return tables.show_json(json_of(found))
    return _show_capacity(found)


def drain(
    hosts: Hosts, export: From = "", budget_s: Budget = None, as_json: AsJson = False, where: Where = ANYWHERE
) -> None:
    """Show where the claims of hosts would go in a drain.

    Nothing is written: `redsched host drain --move` drains a host.
    """
    names = filter_names("host", hosts)
    found = planned(where, export, budget_s, lambda plans: plans.drain(names))
    _show_leaving(found, as_json, "could not leave")


def without(
    hosts: Hosts, export: From = "", budget_s: Budget = None, as_json: AsJson = False, where: Where = ANYWHERE
) -> None:
    """Show where the claims of hosts would go if the hosts died.

    Nothing is written: `redsched host write-off --evacuate` does it for a host that is dead.
    """
    names = filter_names("host", hosts)
    found = planned(where, export, budget_s, lambda plans: plans.without(names))
    _show_leaving(found, as_json, "would have no place")


@takes_asked
def with_hosts(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Fleet file with the hosts to be added.")],
    asked: RequestOptions,
    export: From = "",
    budget_s: Budget = None,
    as_json: AsJson = False,
    where: Where = ANYWHERE,
) -> None:
    """Show what the hosts of a fleet file would change.

    Nothing is written. With a request, also show how many of it fit before and after.
    """
    from redsched.agent.collectors.fleet import read_fleet  # loads what agents need

    reports = read_fleet(Path(file))
    request = planned_request(asked) if is_given(asked) else None
    found = planned(where, export, budget_s, lambda plans: plans.with_hosts(reports, request))
    if as_json:
        return tables.show_json(json_of(found))
    return _show_adding(found)


def planned_request(asked: RequestOptions) -> Request:
    """Return the request of a plan. Raises InvalidRequest."""
    request = request_of(asked)
    if request.claim_ids:
        raise InvalidRequest("claim_ids belong to one selection: leave them out of a plan")
    return request


def is_given(asked: RequestOptions) -> bool:
    """Return whether any option of a request is given."""
    return any(getattr(asked, name) not in NOT_GIVEN for name in RequestOptions.__slots__)


def planned(
    where: Where, export: str, budget_s: int | None, ask: Callable[["PlanService | Plans[Async]"], Awaitable[T]]
) -> T:
    """Make a plan on an export, if one is named, else on the running cells. Raises InvalidRequest."""
    if export:
        return _planned_on(export, float(budget_s or BUDGET_S), ask)

    async def plan(fleet: Fleet) -> T:
        async with waiting("planning"):
            return await ask(fleet.plans)

    return with_fleet(where, plan, read_only=True, plan_limit_s=limit_of(where, budget_s))


def _planned_on(export: str, limit_s: float, ask: Callable[["PlanService"], Awaitable[T]]) -> T:
    from redsched.cli.verbs.archive import read_archive  # these load the client of the store
    from redsched.offline.plans import plans_on
    from redsched.store.embedded.server import PrivateServer

    archive, settings = read_archive(export), settings_for()

    async def plan(url: str) -> T:
        async with waiting("planning"), plans_on(url, archive, settings, limit_s) as plans:
            return await ask(plans)

    with PrivateServer.start() as server:
        return run(plan(server.url))


def limit_of(where: Where, budget_s: int | None) -> float:
    """Return the time of a plan on the running cells. Raises InvalidRequest for a budget over an API."""
    if budget_s and settings_of(where).api:
        raise InvalidRequest("--budget is for plans over the store: an API has its own limit, REDSCHED_PLAN_LIMIT_S")
    return float(budget_s or BUDGET_S)


def _show_capacity(found: CapacityPlan) -> None:
    print(f"{'at least ' if found.at_least else ''}{found.places} more fit")
    if found.quota is not None:
        print(f"the project's quota allows {found.quota} more")
    if found.zones:
        tables.show_table(("ZONE", "PLACES"), found.zones.items(), "")
    _show_classes(found.classes)
    if found.reasons:
        tables.show_table(("RUNS OUT", "HOSTS"), ((one.reason, one.hosts) for one in found.reasons), "")
    if found.redundancy is not None:
        _show_redundancy(found.redundancy)


def _show_redundancy(found: Redundancy) -> None:
    what = found.by.removeprefix("label:")
    if not found.checked and not found.unchecked:
        tables.say(f"no host has a {what}, so none was left out")
        return
    if not found.failing:
        print(f"all claims fit without any one {what}: {found.checked} tried")
    else:
        print(f"{found.failed} of {found.checked}: without that {what}, some claims would have no place")
        rows = ((one.domain, one.hosts, one.claims, one.unplaced) for one in found.failing)
        tables.show_table(("WITHOUT", "HOSTS", "CLAIMS", "UNPLACED"), rows, "")
        if found.failed > len(found.failing):
            print(f"and {found.failed - len(found.failing)} more, without which fewer have no place")
        for one in (one for one in found.failing if one.examples):
            print(f"without {one.domain}:")
            _show_unplaced(one.examples)
            if one.unplaced > len(one.examples):
                print(f"and {one.unplaced - len(one.examples)} more")
    if found.unchecked:
        tables.say(f"{found.unchecked} more were not tried in time: allow more with --budget")
    if found.unlabelled:
        have, were = ("has", "was") if found.unlabelled == 1 else ("have", "were")
        tables.say(f"{counted(found.unlabelled, 'host')} {have} no {what}, and {were} not left out")


def _show_leaving(found: LeavingPlan, as_json: bool, stuck: str) -> None:
    if as_json:
        return tables.show_json(json_of(found))
    claims = len(found.moves) + len(found.unplaced)
    have = "claim has" if claims == 1 else "claims have"
    print(f"{len(found.moves)} of {claims} {have} another place, {len(found.unplaced)} {stuck}")
    if found.moves:
        tables.show_table(MOVE_HEADS, ((one.claim_id, one.source, one.target) for one in found.moves), "")
    if found.unplaced:
        _show_unplaced(found.unplaced)
    return _show_classes(found.classes)


def _show_unplaced(found: Sequence[Unplaced]) -> None:
    tables.show_table(UNPLACED_HEADS, ((one.claim_id, one.host, one.reason) for one in found), "")


def _show_adding(found: AddingPlan) -> None:
    print("1 more host" if found.hosts == 1 else f"{found.hosts} more hosts")
    if found.room is not None:
        at_least = "at least " if found.room.at_least else ""
        print(f"{found.room.before} of the request fit now, {at_least}{found.room.after} then")
    if found.waiting:
        waiting = "claim that waits" if found.waiting == 1 else "claims that wait"
        print(f"{found.served} of {found.waiting} {waiting} would get a place")
    _show_classes(found.classes)


def _show_classes(found: Sequence[ClassAmounts]) -> None:
    rows = ((one.resource_class, one.capacity, one.free, one.after) for one in found)
    tables.show_table(CLASS_HEADS, rows, "no amounts")
