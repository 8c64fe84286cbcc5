"""`redsched select` and `explain`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated

import typer

from redsched.cli import completion, named_hosts, options
from redsched.cli.fleet import ANYWHERE, Fleet, Where, with_fleet
from redsched.cli.options import AsJson, seconds
from redsched.cli.output import tables
from redsched.cli.request_options import RequestOptions, about, request_of, takes_asked
from redsched.model import (
    MAX_ALTERNATES,
    MAX_ATTEMPTS,
    MAX_LEASE_S,
    MAX_RUNTIME_S,
    MAX_WAIT_S,
    GangOnExit,
    OnExit,
    RankedHost,
    Request,
)
from redsched.model.gpus import gpus_of, in_words, lack_text, word_of
from redsched.model.record import json_of
from redsched.model.records.explanations import Explanation, Miss
from redsched.model.records.selections import Selection, Selections
from redsched.model.reserved_for import ReservedFor
from redsched.model.validation import check_name
from redsched.model.workload import GPU_SHARES
from redsched.wording import counted

SELECTION_HEADS = ("CLAIM", "HOST", "AMOUNTS", "ALTERNATES", "TOKEN")
GANG_HEADS = ("CLAIM", "MEMBER", *SELECTION_HEADS[1:])

REFUSED = 1
MAX_NAMED = 5
"""The most claims in the way that are named for each host; --json has all."""
MAX_HOSTS = 100_000
"""The most hosts that `--every-host` shows."""
HOSTS_AT_ONCE, CHECKED_AT_ONCE = 100, 1000
"""How many hosts one call names, whose names may be in its URL, and of how many it returns every check."""


@takes_asked
def select(
    asked: RequestOptions,
    mode: Annotated[str, typer.Option(help=about("mode"), show_default=False)] = "",
    alternates: Annotated[
        int | None, typer.Option(min=0, max=MAX_ALTERNATES, help=about("alternates"), show_default=False)
    ] = None,
    consumer: Annotated[str, typer.Option(help=about("consumer"), show_default=False)] = "",
    owner: Annotated[str, typer.Option(help="Who owns the claims; for operators.", show_default=False)] = "",
    claim_id: Annotated[list[str], typer.Option("--id", help=f"{about('claim_ids')} Repeatable.")] = [],  # noqa: B006 - typer reads it, nobody writes it
    lease_s: Annotated[
        int | None,
        seconds(
            "--lease",
            least=1,
            most=MAX_LEASE_S,
            help="Time within which a host must accept the claim, such as 90 or 5m.",
        ),
    ] = None,
    until: Annotated[str, typer.Option(help=about("until"), show_default=False)] = "",
    queue_timeout_s: Annotated[int | None, seconds("--wait", most=MAX_WAIT_S, help=options.WAIT)] = None,
    reserve: Annotated[bool, typer.Option("--reserve", help="With --wait: reserve a host meanwhile.")] = False,
    confirm_timeout_s: Annotated[
        int | None,
        seconds("--confirm-timeout", most=MAX_WAIT_S, help="How long --until active waits. Default: the lease."),
    ] = None,
    on_exit: Annotated[OnExit | None, typer.Option(help=f"{about('on_exit')} Default: release.")] = None,
    gang_on_exit: Annotated[GangOnExit | None, typer.Option(help=f"{about('gang_on_exit')} Default: keep.")] = None,
    max_attempts: Annotated[
        int | None,
        typer.Option(min=1, max=MAX_ATTEMPTS, help=f"{about('max_attempts')} Default: 3.", show_default=False),
    ] = None,
    max_runtime_s: Annotated[
        int | None,
        seconds(
            "--max-runtime",
            most=MAX_RUNTIME_S,
            help="Time from the claim until its host stops the work, such as 90 or 8h. Default: no limit.",
        ),
    ] = None,
    payload: Annotated[str, typer.Option("--payload", metavar="JSON", help=about("payload"), show_default=False)] = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Select without claiming: write nothing.")] = False,
    as_json: AsJson = False,
    where: Where = ANYWHERE,
) -> None:
    """Select hosts and claim the amounts on them.

    \b
    Two GPUs of one NUMA node:   redsched select VCPU=8 GPU=2 --same numa
    A whole box of four:         redsched select VCPU=64 MEMORY_MB=240Gi GPU=4
    Half a GPU:                  redsched select VCPU=4 GPU=0.5
    A GPU with its NIC:          redsched select GPU=1 SRIOV_NET_VF=1 --same numa

    --show-request shows the groups that these make.
    """
    request = request_of(
        asked,
        mode=mode,
        alternates=alternates,
        consumer=consumer,
        owner=owner,
        claim_ids=claim_id,
        lease_s=lease_s,
        until=until,
        queue_timeout_s=queue_timeout_s,
        reserve=reserve or None,
        confirm_timeout_s=confirm_timeout_s,
        on_exit=on_exit,
        gang_on_exit=gang_on_exit,
        max_attempts=max_attempts,
        max_runtime_s=max_runtime_s,
        claim=False if dry_run else None,
        payload=options.json_value("--payload", payload) if payload else None,
    )
    _show_selections(with_fleet(where, lambda s: named_hosts.select(s, request), read_only=not request.claim), as_json)


@takes_asked
def explain(
    asked: RequestOptions,
    on: Annotated[
        list[str],
        typer.Option(
            "--on", help="Show every check of this host.", show_default=False, autocompletion=completion.hosts
        ),
    ] = [],  # noqa: B006
    every: Annotated[bool, typer.Option("--every-host", help="Show every check of every host.")] = False,
    as_json: AsJson = False,
    where: Where = ANYWHERE,
) -> int:
    """Explain why hosts fit a request or not. Writes nothing.

    \b
    Two GPUs of one NUMA node:       redsched explain VCPU=8 GPU=2 --same numa
    Half a GPU, on one of the hosts: redsched explain GPU=0.5 --on gpu-1

    The exit code is 1 if the request would be refused: no host fits, or its quota does not allow it.
    """
    request = request_of(asked)
    named = [check_name("host", host) for host in on]

    async def explained(fleet: Fleet) -> tuple[Explanation, list[str]]:
        found = await _explained(fleet, request, named, every)
        return found, [] if as_json else await named_hosts.closed(fleet, request.hosts)

    found, closed = with_fleet(where, explained, read_only=True)
    if as_json:
        tables.show_json(json_of(found))
    else:
        _show_explanation(request, found, closed)
    return 0 if found.fits and not found.exceeded else REFUSED


async def _explained(fleet: Fleet, request: Request, named: Sequence[str], every: bool) -> Explanation:
    """Return the explanation with every check of the named hosts, or of every host, some hosts at a time."""
    if not every:
        found = await fleet.explain(request, named[:HOSTS_AT_ONCE])
        for first in range(HOSTS_AT_ONCE, len(named), HOSTS_AT_ONCE):
            more = await fleet.explain(request, named[first : first + HOSTS_AT_ONCE])
            found = replace(found, checks=(*found.checks, *more.checks))
        return found
    found = more = await fleet.explain(request, limit=CHECKED_AT_ONCE)
    while more.checks and len(found.checks) < MAX_HOSTS:
        more = await fleet.explain(request, limit=CHECKED_AT_ONCE, after=more.checks[-1].host)
        found = replace(found, checks=(*found.checks, *more.checks))
    return found


def _show_selections(found: Selections, as_json: bool) -> None:
    if as_json:
        return tables.show_json(json_of(found))
    gang = any(one.member for one in found.selections)
    rows = (_selection_row(one, (one.member,) if gang else ()) for one in found.selections)
    return tables.show_table(GANG_HEADS if gang else SELECTION_HEADS, rows, "nothing selected")


def _selection_row(one: Selection, member: tuple[str, ...]) -> tuple[object, ...]:
    return (one.claim_id, *member, one.host, tables.amounts(one.slots), " ".join(one.alternates), one.token)


def _show_explanation(request: Request, found: Explanation, closed_hosts: Sequence[str]) -> None:
    unsearched = f"; the pools of {found.unsearched} of these were not searched" if found.unsearched else ""
    print(f"{found.fits} of {found.hosts} hosts fit{unsearched}")
    if found.ranked:
        _show_ranked(found.ranked)
    if found.spared:
        classes = ", ".join(f"{name} ({hosts} of {found.hosts})" for name, hosts in found.spared.items())
        tables.say(f"spared: hosts with {classes}, which the request does not ask for")
    if found.unknown_text:
        tables.say(found.unknown_text)
    if found.reasons:
        reasons = in_words(request, found.reasons)
        tables.show_table(("REASON", "HOSTS"), ((one.reason, one.hosts) for one in reasons), "")
    if found.places is not None:
        tables.say(found.places.text)
    gpus = gpus_of(request)
    for miss in found.nearest:
        tables.say(f"nearest: {_miss(miss, bool(gpus))}")
    if found.closed:
        closed = ", ".join(f"{one.host} ({one.reason})" for one in found.closed)
        tables.say(f"would fit if they took claims: {closed}")
    for text in closed_hosts:
        tables.say(text)
    for one in found.exceeded or ():
        tables.say(f"the project's quota does not allow it: {one.detail}")
    if found.exceeded is None:
        print("the project's usage is still being counted: try again")
    for host in found.checks:
        print(f"{host.host}: {word_of(request, host.reason) if host.reason else 'fits'}")
        if host.kept:
            tables.say(_kept(host.kept))
        kept = host.kept or ReservedFor()
        rows = ((word_of(request, one.name), one.ok, kept.named(one.detail)) for one in host.checks)
        tables.show_table(("CHECK", "OK", "DETAIL"), dict.fromkeys(rows), "")  # one row for GPUs that are alike


def _show_ranked(hosts: Sequence[RankedHost]) -> None:
    member = ("MEMBER",) if hosts[0].member else ()
    rows = ((one.host, *((one.member,) if member else ()), f"{one.score:.3f}", _weighers(one)) for one in hosts)
    tables.show_table(("HOST", *member, "SCORE", "WEIGHERS"), rows, "")


def _weighers(one: RankedHost) -> str:
    return " ".join(f"{name}={part:+.3f}" for name, part in one.weighers.items() if part)


def _free(miss: Miss) -> str:
    return " ".join(
        f"{name}={amount}" + (f" in {miss.places[name]}" if name in miss.places else "")
        for name, amount in sorted(miss.free.items())
    )


def _lack(miss: Miss, gpus: bool) -> str:
    """Return what a host lacks: of GPUs in GPUs, if the request asks for them as such; '' if no amount."""
    name = GPU_SHARES
    if not gpus or name not in miss.capacity:
        return f" needs {tables.amounts(miss.needs)}, free {_free(miss)};" if miss.needs else ""
    place = miss.places.get(name, "")
    text = f" {lack_text(miss.needs[name], miss.free[name], miss.total_free[name], miss.capacity[name], place)};"
    others = replace(miss, needs=_less(miss.needs, name), free=_less(miss.free, name), capacity={})
    return text + _lack(others, gpus=False)


def _less(amounts: Mapping[str, int], name: str) -> dict[str, int]:
    return {one: amount for one, amount in amounts.items() if one != name}


def _miss(miss: Miss, gpus: bool) -> str:
    lack = _lack(miss, gpus)
    lack += f" {_kept(miss.kept)};" if miss.kept else ""
    of = f" one {miss.member}" if miss.member else ""
    remedies = [", ".join(miss.changes), _after(miss)]
    how = (", " if miss.both else "; or ").join(filter(None, remedies))
    return f"{miss.host}{lack} fits{of}: {how}" if how else f"{miss.host}{lack} no change found to fit{of}"


def _kept(kept: ReservedFor) -> str:
    return f"{tables.amounts(kept.slots)} {kept.text}"


def _after(miss: Miss) -> str:
    """Return which claims have to end, as "after claims a, b end"; '' for none."""
    ids, others, parts = list(miss.claims), miss.other_claims, list[str]()
    if ids:
        more = f" and {len(ids) - MAX_NAMED} more" if len(ids) > MAX_NAMED else ""
        parts.append(f"claim{'s' * (len(ids) > 1)} {', '.join(ids[:MAX_NAMED])}{more}")
    if others:
        parts.append(f"{counted(others, 'claim')} of other projects")
    return f"after {' and '.join(parts)} end{'s' * (len(ids) + others == 1)}" if parts else ""
