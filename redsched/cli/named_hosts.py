"""What a refused request is told of hosts: why those that it names take no claims, and for whom the nearest is kept."""

import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from redsched.cli.fleet import Fleet
from redsched.cli.output import tables
from redsched.cli.output.formats import host_text
from redsched.errors import NoValidHost, RedschedError
from redsched.model import HostCondition, HostStatus, Request
from redsched.model.records.explanations import Miss
from redsched.model.reserved_for import ReservedFor

if TYPE_CHECKING:
    from redsched.model.records.hosts import HostView
    from redsched.model.records.selections import Selections

MAX_NAMED = 3
"""The most hosts that are looked up."""
SAID = " are kept for "
"""In the text of a refusal that says what the nearest host keeps for a request that waits."""


async def select(fleet: Fleet, request: Request) -> "Selections":
    """Select places. Raises what `select` of a fleet raises; a refusal says what is wrong with the hosts it names.

    A request that has to wait for room is told why, on stderr.
    """
    if request.queue_timeout_s:
        try:
            return await select(fleet, replace(request, queue_timeout_s=0, reserve=False))
        except NoValidHost as error:
            waits = f"redsched: waiting up to {request.queue_timeout_s} s for room: {error.detail}"
            print(waits, file=sys.stderr, flush=True)
    try:
        return await (fleet.select(request) if request.claim else fleet.dry_run(request))
    except NoValidHost as error:
        kept = [] if SAID in error.detail else await _kept(fleet, error.facts.nearest or ())
        found = [*kept, *await closed(fleet, request.hosts)]
        if not found:
            raise
        raise NoValidHost("; ".join((error.detail, *found)), error.facts) from error


async def _kept(fleet: Fleet, nearest: Sequence[Miss]) -> list[str]:
    """Return a text about what the nearest host keeps for a request that waits, which it names if the caller may."""
    if not nearest or nearest[0].kept is None:
        return []
    host, kept = nearest[0].host, ReservedFor(nearest[0].kept.slots)
    with suppress(RedschedError):  # of tenants, who see no hosts
        if host:
            of = (await fleet.hosts.get(host)).kept_for
            kept = replace(kept, request=of.request, project=of.project)
    return [f"{host or 'the nearest host'} has {tables.amounts(kept.slots)} {kept.text}"]


async def closed(fleet: Fleet, hosts: Iterable[str]) -> list[str]:
    """Return a text for each of the first hosts that takes no claims, as far as the caller may see hosts."""
    found = list[str]()
    for name in sorted(hosts)[:MAX_NAMED]:
        try:
            view = await fleet.hosts.get(name)
        except RedschedError:  # it does not exist, which the refusal says, or the caller is a tenant
            continue
        if view.condition is not HostCondition.UP:
            found.append(_text(view))
    return found


def _text(host: "HostView") -> str:
    reason = f" ({host.status_reason})" if host.status_reason else ""
    return f"{host.name} is {host_text(host)}{reason}: {_next_step(host)}"


def _next_step(host: "HostView") -> str:
    enable = (
        "" if host.status is HostStatus.ENABLED else f"`redsched host enable {host.name}` lets it take claims again"
    )
    if host.condition in (HostCondition.DRAINING, HostCondition.DISABLED):
        return enable
    return f"start its agent{enable and '; then '}{enable}"
