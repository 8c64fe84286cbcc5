"""What keeps the hosts that a refused request names from taking claims, and what lets them take claims again."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from redsched.cli.fleet import Fleet
from redsched.cli.host_condition import host_text
from redsched.errors import NoValidHost, RedschedError
from redsched.model import HostCondition, HostStatus, Request

if TYPE_CHECKING:
    from redsched.scheduler import HostView, Selections

MAX_NAMED = 3
"""The most hosts that are looked up."""


async def select(fleet: Fleet, request: Request) -> "Selections":
    """Select places. Raises what `select` of a fleet raises; a refusal says what is wrong with the hosts it names."""
    try:
        return await fleet.select(request)
    except NoValidHost as error:
        found = await closed(fleet, request.hosts)
        if not found:
            raise
        raise NoValidHost("; ".join((error.detail, *found)), error.facts) from error


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
