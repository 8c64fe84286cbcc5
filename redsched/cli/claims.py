"""`redsched select`, `explain`, `claims`, `release`."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from redsched.cli import bulk, options, tables
from redsched.cli.context import with_scheduler
from redsched.cli.options import After, AsJson, Force, Limit, Url
from redsched.cli.request_options import RequestOptions, request_of, takes_asked
from redsched.model import (
    MAX_ALTERNATES,
    MAX_ATTEMPTS,
    MAX_LEASE_S,
    MAX_WAIT_S,
    OVER,
    Claim,
    ClaimStatus,
    ListedState,
    OnExit,
    Token,
)
from redsched.model.validation import check_name
from redsched.scheduler import BulkResult, Explanation, Miss, Page, Scheduler, Selection
from redsched.schema import render

CLAIM_HEADS = ("CLAIM", "STATE", "HOST", "AMOUNTS", "PROJECT")
PLACEMENT_HEADS = ("TOKEN", "STATE", "HOST", "AMOUNTS", "WHY")
SELECTION_HEADS = ("CLAIM", "HOST", "AMOUNTS", "ALTERNATES", "TOKEN")
GANG_HEADS = ("CLAIM", "MEMBER", *SELECTION_HEADS[1:])

MAX_HOSTS = 100_000
"""Hosts that are shown at most where every one is asked for."""

ClaimArgument = Annotated[str, typer.Argument(metavar="[CLAIM]", help="Show this claim alone.", show_default=False)]


def register(app: typer.Typer) -> None:
    """Add the commands of this file."""
    for command in (select, explain, claims, release):
        app.command()(command)


@takes_asked
def select(
    asked: RequestOptions,
    mode: Annotated[str, typer.Option(help="incremental: as many places as fit.", show_default=False)] = "",
    alternates: Annotated[
        int | None, typer.Option(min=0, max=MAX_ALTERNATES, help="Further hosts that fit.", show_default=False)
    ] = None,
    consumer: Annotated[str, typer.Option(help="What it is for.", show_default=False)] = "",
    claim_id: Annotated[list[str], typer.Option("--id", help="A claim id, one for each place.")] = [],  # noqa: B006 - typer reads it, nobody writes it
    lease_s: Annotated[
        int | None, typer.Option("--lease", min=1, max=MAX_LEASE_S, help="Seconds for a host to take it up.")
    ] = None,
    until: Annotated[
        str, typer.Option(help="active: wait until hosts have confirmed, else give it back.", show_default=False)
    ] = "",
    wait_s: Annotated[
        int | None,
        typer.Option(
            "--wait", min=0, max=MAX_WAIT_S, help="Seconds to wait for room, and then for the hosts to confirm."
        ),
    ] = None,
    on_exit: Annotated[
        OnExit | None, typer.Option(help="What becomes of it when its work ends by itself. Default: release.")
    ] = None,
    max_attempts: Annotated[
        int | None,
        typer.Option(min=1, max=MAX_ATTEMPTS, help="Hosts tried before it has failed. Default: 3.", show_default=False),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing.")] = False,
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Select hosts and claim the amounts on them."""
    request = request_of(
        asked,
        mode=mode,
        alternates=alternates,
        consumer=consumer,
        claim_ids=claim_id,
        lease_s=lease_s,
        until=until,
        wait_s=wait_s,
        on_exit=on_exit,
        max_attempts=max_attempts,
        claim=False if dry_run else None,
    )
    _show_selections(with_scheduler(url, lambda s: s.select(request)).selections, as_json)


@takes_asked
def explain(
    asked: RequestOptions,
    on: Annotated[list[str], typer.Option("--on", help="Show every check of this host.", show_default=False)] = [],  # noqa: B006
    every: Annotated[bool, typer.Option("--every-host", help="Show every check of every host.")] = False,
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """Say why hosts fit or do not. Writes nothing."""
    request = request_of(asked)
    named = [check_name("host", host) for host in on]
    found = with_scheduler(url, lambda s: s.explain(request, *(s.host_names(MAX_HOSTS) if every else named)))
    if as_json:
        tables.show_json(render.explanation(found))
    else:
        _show_explanation(found)


def claims(
    claim: ClaimArgument = "",
    host: Annotated[str, typer.Option(help="Only on this host.", show_default=False)] = "",
    project: Annotated[str, typer.Option(help="Only of this project.", show_default=False)] = "",
    consumer: Annotated[str, typer.Option(help="Only for this consumer.", show_default=False)] = "",
    state: Annotated[ListedState | None, typer.Option(help="Only in this state. Ended ones are not listed.")] = None,
    zone: Annotated[str, typer.Option(help="Only on hosts of this zone.", show_default=False)] = "",
    cell: Annotated[str, typer.Option(help="Only of this cell.", show_default=False)] = "",
    limit: Limit = 100,
    after: After = "",
    as_json: AsJson = False,
    url: Url = "",
) -> None:
    """List claims, or show one."""
    if claim:
        check_name("claim id", claim)
        found = with_scheduler(url, lambda s: s.claims.get(claim))
        return tables.show_json(render.claim(found)) if as_json else _show_claim(found)
    given = {"host": host, "project": project, "consumer": consumer, "zone": zone, "cell": cell}
    wanted: dict[str, Any] = {name: options.filter_name(name, value) for name, value in given.items()}
    page = with_scheduler(url, lambda s: s.claims.list(**wanted, state=state, limit=limit, after=after))
    return _show_page(page, as_json)


@bulk.takes_filters
def release(
    filters: bulk.Filters,
    claim: Annotated[list[str], typer.Argument(metavar="CLAIM", help="The claims' ids.", show_default=False)] = [],  # noqa: B006 - typer reads it, nobody writes it
    token: Annotated[str, typer.Option(help="Only the placement with this token.", show_default=False)] = "",
    force: Force = False,
    as_json: AsJson = False,
    url: Url = "",
) -> int:
    """Release claims, by id or by filters. One that its host runs is ending until the host says it is gone."""
    wanted = filters.of_many(claim, token)
    if wanted is None:
        _release_each(claim, token, force, as_json, url)
        return 0

    async def page(scheduler: Scheduler, after: str) -> Page[BulkResult]:
        return await scheduler.claims.release_all(wanted, force, filters.dry_run, bulk.PAGE, after)

    return bulk.say(url, page, "released", as_json)


def _release_each(claim: Sequence[str], token: str, force: bool, as_json: bool, url: str) -> None:
    checked = str(Token.parse(token)) if token else ""
    for one in claim:
        check_name("claim id", one)

    done: dict[str, bool] = {}

    async def release_all(scheduler: Scheduler) -> None:
        for one in claim:
            done[one] = await scheduler.claims.release(one, checked, force=force)

    try:
        with_scheduler(url, release_all)
    finally:  # also where one of them was refused: those before it are released all the same
        if done:
            _show_released(done, as_json)


def _show_selections(found: Sequence[Selection], as_json: bool) -> None:
    if as_json:
        return tables.show_json(render.selections(found))
    gang = any(one.member for one in found)
    rows = (_selection_row(one, (one.member,) if gang else ()) for one in found)
    return tables.show_table(GANG_HEADS if gang else SELECTION_HEADS, rows, "nothing selected")


def _selection_row(one: Selection, member: tuple[str, ...]) -> tuple[object, ...]:
    return (one.claim_id, *member, one.host, tables.amounts(one.slots), " ".join(one.alternates), one.token)


def _show_explanation(found: Explanation) -> None:
    unsearched = f", the pools of {found.unsearched} of them not searched" if found.unsearched else ""
    print(f"{found.fits} of {found.hosts} hosts fit{unsearched}")
    if found.reasons:
        tables.show_table(("REASON", "HOSTS"), ((one.reason, one.hosts) for one in found.reasons), "")
    for miss in found.nearest:
        tables.say(f"nearest: {_miss(miss)}")
    for one in found.exceeded or ():
        tables.say(f"the project's quota does not allow it: {one.detail}")
    if found.exceeded is None:
        print("what the project uses of its quota is being counted: try again")
    for host in found.checks:
        print(f"{host.host}: {host.reason or 'fits'}")
        tables.show_table(("CHECK", "OK", "DETAIL"), ((one.name, one.ok, one.detail) for one in host.checks), "")


def _miss(miss: Miss) -> str:
    lack = f" needs {tables.amounts(miss.needs)}, free {tables.amounts(miss.free)};" if miss.needs else ""
    of = f" one {miss.member}" if miss.member else ""
    ways = [", ".join(miss.changes)] if miss.changes else []
    ways += [f"after claim {miss.after} ends"] if miss.after else []
    return (
        f"{miss.host}{lack} fits{of}: {'; or '.join(ways)}" if ways else f"{miss.host}{lack} no change found to fit{of}"
    )


def _show_page(page: Page[Claim], as_json: bool) -> None:
    if as_json:
        return tables.show_json({"claims": [render.claim(one) for one in page.items], "next": page.next})
    _show_claims(page.items)
    if page.next:
        print(f"there are more: --after {page.next}")
    return None


def _show_released(done: Mapping[str, bool], as_json: bool) -> None:
    if as_json:
        shown = [{"claim_id": one, "state": "freed" if freed else "ending"} for one, freed in done.items()]
        return tables.show_json({"claims": shown})
    for one, freed in done.items():
        print(f"{one} is {'released' if freed else 'ending: its host has to say that the work is gone'}")
    return None


def _show_claims(found: Sequence[Claim]) -> None:
    rows = ((one.id, _state(one), _where(one), tables.amounts(one.amounts), one.project) for one in found)
    tables.show_table(CLAIM_HEADS, rows, "no claims")


def _show_claim(found: Claim) -> None:
    _show_claims([found])
    rows = ((one.token, one.state, one.host, tables.amounts(one.amounts), one.why) for one in found.placements)
    tables.show_table(PLACEMENT_HEADS, rows, f"no placements; the last token was {found.token}")
    for name, value in _facts(found).items():
        tables.say(f"{name}: {value}")
    if found.restarts:
        print(f"restarts: {found.restarts}")
    if found.next_attempt_at_ms is not None:
        print(f"next attempt: {tables.time(found.next_attempt_at_ms)}")
    if found.work_ended_at_ms is not None:
        print(f"its work ended at {tables.time(found.work_ended_at_ms)}; on_exit is {found.on_exit}")
    if found.reason is not None:
        # Of a claim that goes on it is past, however long ago.
        what = "reason" if found.state in OVER else "last failure"
        tables.say(f"{what} on {found.reason.host} at {tables.time(found.reason.at_ms)}: {found.reason.text}")


def _facts(found: Claim) -> dict[str, object]:
    """Return what else there is to say of a claim, by name."""
    facts = {
        "consumer": found.consumer,
        "server group": found.group,
        "why": found.why,
        "attempts": f"{found.attempts} of {found.max_attempts}",
        "alternates": " ".join(found.alternates),
    }
    return {name: value for name, value in facts.items() if value}


def _state(one: Claim) -> str:
    """Return its state, and for an active one whether its work has ended."""
    ended = one.state is ClaimStatus.ACTIVE and one.work_ended_at_ms is not None
    return f"{one.state} (work ended)" if ended else one.state


def _where(one: Claim) -> str:
    """Return its host, and the host that it is being moved to."""
    return f"{one.host} to {one.target.host}" if one.target else one.host
