"""`redsched claim confirm`, `renew`, `fail`, `move`, `resize`, `shelve`, `unshelve`: the verbs of a claim."""

from collections.abc import Awaitable, Callable
from typing import Annotated

import typer

from redsched.cli import completion, options
from redsched.cli.fleet import ANYWHERE, Fleet, Where, with_fleet
from redsched.cli.options import AsJson, ClaimArgument, seconds
from redsched.cli.output import tables
from redsched.cli.verbs import bulk
from redsched.errors import InvalidRequest
from redsched.model import ENDING_OR_ENDED, MAX_DEADLINE_S, MAX_LEASE_S, MAX_WAIT_S, Claim
from redsched.model.record import json_of
from redsched.model.records.bulk import BulkPage
from redsched.model.validation import check_name
from redsched.requests.verbs import FailBody, MoveBody, RenewBody, ResizeBody, TokenBody, UnshelveBody

MaybeClaim = Annotated[
    str,
    typer.Argument(
        metavar="[CLAIM]",
        help="The claim's id.",
        callback=lambda name: check_name("claim id", name) if name else "",
        autocompletion=completion.claims,
        show_default=False,
    ),
]
TokenOption = Annotated[
    str, typer.Option("--token", help="Token of the placement. Default: the current one.", show_default=False)
]
Wait = Annotated[int, seconds("--wait", most=MAX_WAIT_S, help=options.WAIT)]


def confirm(claim: ClaimArgument, token: TokenOption = "", as_json: AsJson = False, where: Where = ANYWHERE) -> None:
    """Confirm that a claim's work runs, for a host without an agent."""

    async def work(fleet: Fleet) -> Claim:
        asked = options.as_model({"token": await _token(fleet, claim, token)}, TokenBody)
        return await fleet.claims.confirm(claim, asked.token)

    _show(where, work, as_json, "{0.claim_id} is active on {0.host}", on_demand=True)


@bulk.takes_filters
def renew(
    filters: bulk.Filters,
    claim: MaybeClaim = "",
    lease_s: Annotated[
        int, seconds("--lease", least=1, most=MAX_LEASE_S, help="Lease from now, such as 120 or 5m.")
    ] = 120,
    token: TokenOption = "",
    as_json: AsJson = False,
    where: Where = ANYWHERE,
) -> int:
    """Renew the lease of a claim that is not active yet, or of all that match filters."""
    wanted = filters.or_ids([claim] if claim else [], token)
    if wanted is None:
        _renew(claim, lease_s, token, as_json, where)
        return 0

    async def page(fleet: Fleet, after: str, dry_run: bool) -> BulkPage:
        return await fleet.bulk.renew(wanted, lease_s, dry_run, bulk.PAGE, after)

    return bulk.say(where, filters, page, "renewed", as_json)


def _renew(claim: str, lease_s: int, token: str, as_json: bool, where: Where) -> None:
    async def work(fleet: Fleet) -> Claim:
        body = {"token": await _token(fleet, claim, token), "lease_s": lease_s}
        asked = options.as_model(body, RenewBody)
        return await fleet.claims.renew(claim, asked.token, asked.lease_s)

    _show(where, work, as_json, "{0.claim_id} is {0.state} on {0.host}", on_demand=True)


def fail(
    claim: ClaimArgument,
    to: Annotated[
        list[str], typer.Option("--to", help="Host to try next. Repeatable.", autocompletion=completion.hosts)
    ] = [],  # noqa: B006 - typer reads it, nobody writes it
    no_alternate: Annotated[bool, typer.Option("--no-alternate", help="Try no other host.")] = False,
    token: TokenOption = "",
    as_json: AsJson = False,
    where: Where = ANYWHERE,
) -> None:
    """Report that a claim's work could not be started. The next host that fits takes it.

    With the token of a move's target, only the target ends, and the claim stays where it runs.
    """

    async def work(fleet: Fleet) -> Claim:
        body = {"token": await _token(fleet, claim, token), "alternates": [] if no_alternate else to or None}
        asked = options.as_model(body, FailBody)
        return await fleet.claims.fail(claim, asked.token, asked.alternates)

    found = with_fleet(where, work)
    is_over = found.state in ENDING_OR_ENDED
    said = "{0.claim_id} has failed on {0.host}" if is_over else "{0.claim_id} is {0.state} on {0.host} now"
    _show_claim(found, as_json, said)


def move(
    claim: ClaimArgument,
    to: Annotated[
        list[str],
        typer.Option("--to", help="Move only to this host. Repeatable: any of them.", autocompletion=completion.hosts),
    ] = [],  # noqa: B006
    live: Annotated[bool, typer.Option("--live", help=options.about(MoveBody, "live"))] = False,
    deadline_s: Annotated[
        int,
        seconds(
            "--deadline",
            most=MAX_DEADLINE_S,
            help="Time within which the target must be active, such as 10m. 0: no limit, or 5m if live.",
        ),
    ] = 0,
    queue_timeout_s: Wait = 0,
    token: TokenOption = "",
    as_json: AsJson = False,
    where: Where = ANYWHERE,
) -> None:
    """Move a claim to another place. Its present amounts are held until the work runs there."""

    async def work(fleet: Fleet) -> Claim:
        body = {"token": await _token(fleet, claim, token), "hosts": to, "live": live}
        asked = options.as_model(body | {"deadline_s": deadline_s, "queue_timeout_s": queue_timeout_s}, MoveBody)
        return await fleet.claims.move(claim, **asked.model_dump())

    _show(where, work, as_json, "{0.claim_id} is {0.state} on {0.host}, and leaves its present host once it runs there")


def resize(
    claim: ClaimArgument,
    amounts: Annotated[
        list[str],
        typer.Argument(
            metavar="CLASS=AMOUNT...",
            help="New amounts, such as MEMORY_MB=8Gi, or by slot: gpu0/VGPU=2. 0 removes an amount.",
        ),
    ],
    token: TokenOption = "",
    as_json: AsJson = False,
    where: Where = ANYWHERE,
) -> None:
    """Change a claim's amounts in place. Amounts that are not listed do not change."""

    async def work(fleet: Fleet) -> Claim:
        given = options.amounts(amounts)
        body = {
            "token": await _token(fleet, claim, token),
            "resources": {name: amount for name, amount in given.items() if "/" not in name},
            "slots": {name: amount for name, amount in given.items() if "/" in name},
        }
        asked = options.as_model(body, ResizeBody)
        return await fleet.claims.resize(claim, asked.token, asked.resources, asked.slots)

    found = with_fleet(where, work)
    if as_json:
        return tables.show_json(json_of(found))
    wanted = f"; its host is resizing it to {tables.amounts(found.resizing_to)}" if found.resizing_to else ""
    print(f"{found.claim_id} holds {tables.amounts(found.slots)} of {found.host}{wanted}")
    return None


@bulk.takes_filters
def shelve(
    filters: bulk.Filters,
    claim: MaybeClaim = "",
    token: TokenOption = "",
    as_json: AsJson = False,
    where: Where = ANYWHERE,
) -> int:
    """Free the amounts of a claim, or of all that match filters, and keep the claims.

    `redsched claim unshelve` places it again.
    """
    wanted = filters.or_ids([claim] if claim else [], token)
    if wanted is None:
        _shelve(claim, token, as_json, where)
        return 0

    async def page(fleet: Fleet, after: str, dry_run: bool) -> BulkPage:
        return await fleet.bulk.shelve(wanted, dry_run, bulk.PAGE, after)

    return bulk.say(where, filters, page, "shelved", as_json)


def _shelve(claim: str, token: str, as_json: bool, where: Where) -> None:
    async def work(fleet: Fleet) -> Claim:
        asked = options.as_model({"token": await _token(fleet, claim, token)}, TokenBody)
        return await fleet.claims.shelve(claim, asked.token)

    found = with_fleet(where, work)
    if as_json:
        return tables.show_json(json_of(found))
    ending = ": its host has yet to report that the work is gone" if found.state == "ending" else ""
    print(f"{found.claim_id} is {'being ' if ending else ''}shelved{ending}")
    return None


@bulk.takes_filters
def unshelve(
    filters: bulk.Filters,
    claim: MaybeClaim = "",
    queue_timeout_s: Wait = 0,
    as_json: AsJson = False,
    where: Where = ANYWHERE,
) -> int:
    """Place a shelved claim again, or all that match filters.

    It is placed on any host that fits now.
    """
    wanted = filters.or_ids([claim] if claim else [], "")
    if wanted is None:
        _unshelve(claim, queue_timeout_s, as_json, where)
        return 0
    if queue_timeout_s:
        raise InvalidRequest(
            "--wait is for a single claim: leave it out with filters, and repeat the command for refused claims"
        )

    async def page(fleet: Fleet, after: str, dry_run: bool) -> BulkPage:
        return await fleet.bulk.unshelve(wanted, dry_run, bulk.PAGE, after)

    return bulk.say(where, filters, page, "unshelved", as_json)


def _unshelve(claim: str, queue_timeout_s: int, as_json: bool, where: Where) -> None:
    async def work(fleet: Fleet) -> Claim:
        asked = options.as_model({"queue_timeout_s": queue_timeout_s}, UnshelveBody)
        return await fleet.claims.unshelve(claim, asked.queue_timeout_s)

    _show(where, work, as_json, "{0.claim_id} is {0.state} on {0.host}")


async def _token(fleet: Fleet, claim: str, given: str) -> str:
    return given or (await fleet.claims.get(claim)).token


def _show(
    where: Where, work: Callable[[Fleet], Awaitable[Claim]], as_json: bool, said: str, on_demand: bool = False
) -> None:
    _show_claim(with_fleet(where, work, on_demand=on_demand), as_json, said)


def _show_claim(found: Claim, as_json: bool, said: str) -> None:
    if as_json:
        return tables.show_json(json_of(found))
    print(said.format(found))
    return None
