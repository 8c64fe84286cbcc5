"""Resolve what a request refers to: claims in its hints, aggregates and server groups. Unknown names are refused.

An unknown name must never mean "no rule" (docs/architecture.md, "Declared"): declarations may be lost with the store,
and a request that relied on one would be placed on hosts that it must not use.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from redsched.cache.columns import Columns
from redsched.errors import NotFound, NoValidHost
from redsched.model import ClaimStatus, Hints, Request
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.claims.by_id import find_claim


async def with_hints(request: Request, cells: Cells) -> Request:
    """Replace the claims in a request's hints by hosts: allow only hosts of same_host, exclude those of different_host.

    Does the same for each member of a gang. Raises NotFound for an unknown claim, Settling while a host might still
    restore it, NoValidHost if same_host leaves no host.
    """
    if request.members:
        members = [replace(one, request=await with_hints(one.request, cells)) for one in request.members]
        return replace(request, members=tuple(members))
    hints = request.hints
    if not (hints.same_host or hints.different_host):
        return request
    same, different = await _hosts(hints.same_host, cells), await _hosts(hints.different_host, cells)
    hosts = request.hosts
    if hints.same_host:
        hosts = (hosts & same) if hosts else same
        if not hosts:
            raise NoValidHost(
                f"same_host: claim {', '.join(sorted(hints.same_host))} runs on no host that the request allows"
            )
    return replace(
        request,
        hosts=hosts,
        exclude_hosts=request.exclude_hosts | different,
        hints=Hints(build_near_host_ip=hints.build_near_host_ip, cidr=hints.cidr),
    )


async def _hosts(claim_ids: Iterable[str], cells: Cells) -> frozenset[str]:
    """Return the hosts of the claims that have not ended."""
    found = [(await find_claim(cells, claim_id))[1] for claim_id in sorted(claim_ids)]
    return frozenset(claim.host for claim in found if claim.state is not ClaimStatus.ENDED)


async def without_ended_hints(request: Request, cells: Cells) -> Request:
    """Drop ended claims from a request's hints, for claims that are placed again long after their request was made."""
    hints = request.hints
    living = {claim_id for claim_id in hints.same_host | hints.different_host if await _has_not_ended(claim_id, cells)}
    return replace(
        request,
        hints=replace(hints, same_host=hints.same_host & living, different_host=hints.different_host & living),
    )


async def _has_not_ended(claim_id: str, cells: Cells) -> bool:
    try:
        return (await find_claim(cells, claim_id))[1].state is not ClaimStatus.ENDED
    except NotFound:
        return False


def undeclared(request: Request, cells: Iterable[Cell]) -> str:
    """Describe the first name in a request that some cell has not declared; '' if all are declared."""
    if not (request.members or request.server_group or request.member_of or request.not_member_of):
        return ""
    return next((what for cell in cells for what in undeclared_in(request, cell.updater.columns)), "")


def undeclared_in(request: Request, columns: Columns) -> Iterator[str]:
    """Describe each name in a request that a cell has not declared."""
    for one in request.members:
        yield from undeclared_in(one.request, columns)
    if request.server_group and request.server_group not in columns.declared.groups:
        yield f"server group {request.server_group!r}"
    named = request.not_member_of.union(*request.member_of)
    for name in sorted(named):
        if name not in columns.declared.aggregates:
            yield f"aggregate {name!r}"
    for spread in request.spread if request.server_group else ():
        group = columns.declared.groups.get(request.server_group)
        if group is not None and spread.by not in group.group.topologies():
            yield f"counting by {spread.by} in server group {request.server_group!r} (count_by of an empty group)"


async def refuse_undeclared(what: str, cells: Cells) -> None:
    """Raise NotFound for something that is not declared, or Settling while a cell still waits for its hosts."""
    await cells.refuse_unsettled(what)
    raise NotFound(f"{what} is not declared: declare it first, or leave it out of the request")
