"""What agents may report: only about their own hosts, and there only what their token names."""

from collections.abc import Collection, Sequence
from typing import Any, TypeVar

from redsched import logs
from redsched.auth.caller import Caller
from redsched.errors import Forbidden
from redsched.model import Claim, HostReport
from redsched.model.claims import LOCAL
from redsched.model.hosts import NUMA_NODE
from redsched.model.role import Role
from redsched.model.validation import parse_int
from redsched.requests.reports import ReportBody
from redsched.store.agent_calls import AgentCall, AttestCall, LocalCall, ReportCall
from redsched.store.cell import CellStore
from redsched.store.codec.replies import JournaledClaim

Held = TypeVar("Held", bound=JournaledClaim)

log = logs.get_logger(__name__)


def own_host(caller: Caller, host: str) -> None:
    """Raise Forbidden if the caller is an agent and the host is none of its own, known or not."""
    if caller.role is Role.AGENT and host not in caller.hosts:
        raise Forbidden(f"host {host!r} is none of the hosts of {caller.title}: use the token of that host")


def own_cell(caller: Caller, cell: str) -> None:
    """Raise Forbidden if the caller is an agent of another cell."""
    if caller.role is Role.AGENT:
        _check_named(caller, "cell", {cell}, {caller.cell} - {""})


def own_project(caller: Caller, claim_id: str, project: str) -> None:
    """Raise Forbidden if the caller is an agent that may not report local claims for a project."""
    if caller.role is Role.AGENT and project not in caller.projects:
        raise Forbidden(
            f"local claim {claim_id!r} is for project {project!r}, which is none of the projects of {caller.title}"
        )


def check_call(caller: Caller, cell: str, call: AgentCall[Any]) -> None:
    """Raise Forbidden unless the caller may send a call to a cell: to its own, about hosts that are all its own.

    Also for a report, local work or a local claim that its token does not allow.
    """
    own_cell(caller, cell)
    for host in call.about:
        own_host(caller, host)
    if isinstance(call, ReportCall):
        check_report(caller, call)
    elif isinstance(call, LocalCall):
        own_project(caller, call.claim_id, call.project)
    elif isinstance(call, AttestCall):
        for claim in call.held:
            if claim.record.get("digest") == LOCAL:
                own_project(caller, claim.id, claim.record.get("project", ""))


def check_report(caller: Caller, report: HostReport) -> None:
    """Raise Forbidden if an agent reports a host, cell, zone, label, trait or project that its token does not allow."""
    if caller.role is not Role.AGENT:
        return
    own_host(caller, report.name)
    own_cell(caller, report.cell)
    _check_named(caller, "zone", {report.zone}, caller.zones)
    _check_named(caller, "label", report.labels, caller.labels)
    traits = report.traits.union(*(pool.traits for pool in report.pools.values()))
    _check_named(
        caller, "trait", traits - {NUMA_NODE}, caller.traits
    )  # NUMA_NODE is added to reports, not given in them
    for claim in report.claims if isinstance(report, ReportBody) else ():
        if not claim.token:
            own_project(caller, claim.id, claim.record.get("project", ""))


async def without_foreign(
    caller: Caller, store: CellStore, host: str, held: Sequence[Held]
) -> tuple[Sequence[Held], tuple[str, ...]]:
    """Return the claims that a host may hold, and the names of placements of those that the store has elsewhere.

    Only a host that had a claim has read its digest and its time. Without this check an agent could take over each
    claim whose id it knows, because a host is believed about placements that the store may have lost.
    """
    placed = [one for one in held if one.token]
    if caller.role is not Role.AGENT or not placed:
        return held, ()
    known = await store.claims.read([one.id for one in placed])
    foreign = {_name(one): one.id for one in placed if one.id in known and _is_foreign(known[one.id], host, one)}
    if not foreign:
        return held, ()
    log.warning("foreign_claims_attested", host=host, claims=len(foreign), first=next(iter(foreign.values())))
    return [one for one in held if _name(one) not in foreign], tuple(foreign)


def _name(held: JournaledClaim) -> str:
    return held.placed or held.token


def _is_foreign(claim: Claim, host: str, held: JournaledClaim) -> bool:
    """Return whether a claim is on other hosts, and what a host reports is neither of it nor of an earlier one."""
    if host in (claim.host, *claim.hosts) or not claim.digest:  # a voided id has no digest
        return False
    is_like = all(held.record.get(name, "") == claim.raw.get(name, "") for name in ("project", "digest"))
    claimed_at_ms = parse_int(held.record.get("claimed_at_ms", ""), -1)
    return not is_like or not 0 <= claimed_at_ms <= (claim.claimed_at_ms or 0)


def _check_named(caller: Caller, what: str, given: Collection[str], allowed: Collection[str]) -> None:
    """Raise Forbidden for a name that is not allowed; an empty collection allows all."""
    if allowed and (others := sorted(set(given) - set(allowed))):
        raise Forbidden(
            f"{caller.title} may not report {what} {others[0]!r}, only {', '.join(sorted(allowed))}: leave it out, or "
            "ask an operator for a token with it"
        )
