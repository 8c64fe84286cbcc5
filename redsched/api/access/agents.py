"""What agents may report: only about their own hosts, and there only what their token names."""

from collections.abc import Collection, Iterable

from redsched.auth.caller import Caller, Role
from redsched.errors import Forbidden
from redsched.model import HostReport
from redsched.model.claims import LOCAL
from redsched.model.hosts import NUMA_NODE
from redsched.scheduler import JournaledClaim
from redsched.schema.requests.reports import ReportBody


def own_host(caller: Caller, host: str) -> None:
    """Raise Forbidden if the caller is an agent and the host is none of its own, known or not."""
    if caller.role is Role.AGENT and host not in caller.hosts:
        raise Forbidden(f"host {host!r} is none of this token's hosts: use the token of that host")


def own_cell(caller: Caller, cell: str) -> None:
    """Raise Forbidden if the caller is an agent of another cell."""
    if caller.role is Role.AGENT:
        _check_named("cell", {cell}, {caller.cell} - {""})


def own_project(caller: Caller, claim_id: str, project: str) -> None:
    """Raise Forbidden if the caller is an agent that may not report local claims for a project."""
    if caller.role is Role.AGENT and project not in caller.projects:
        raise Forbidden(f"local claim {claim_id!r} is for project {project!r}, which is none of this token's projects")


def check_held(caller: Caller, held: Iterable[JournaledClaim]) -> None:
    """Raise Forbidden if an agent attests to local claims of projects that its token does not allow."""
    for claim in held:
        if claim.record.get("digest") == LOCAL:
            own_project(caller, claim.id, claim.record.get("project", ""))


def check_report(caller: Caller, report: HostReport) -> None:
    """Raise Forbidden if an agent reports a host, cell, zone, label, trait or project that its token does not allow."""
    if caller.role is not Role.AGENT:
        return
    own_host(caller, report.name)
    _check_named("cell", {report.cell}, {caller.cell} - {""})
    _check_named("zone", {report.zone}, caller.zones)
    _check_named("label", report.labels, caller.labels)
    traits = report.traits.union(*(pool.traits for pool in report.pools.values()))
    _check_named("trait", traits - {NUMA_NODE}, caller.traits)  # NUMA_NODE is added to reports, not given in them
    for claim in report.claims if isinstance(report, ReportBody) else ():
        if not claim.token:
            own_project(caller, claim.id, claim.project)


def _check_named(what: str, given: Collection[str], allowed: Collection[str]) -> None:
    """Raise Forbidden for a name that is not allowed; an empty collection allows all."""
    if allowed and (others := sorted(set(given) - set(allowed))):
        raise Forbidden(
            f"{what} {others[0]!r} may not be reported with this token, only {', '.join(sorted(allowed))}: leave it "
            "out, or ask an operator for a token with it"
        )
