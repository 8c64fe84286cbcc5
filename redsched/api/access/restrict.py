"""What tenants, agents and readers may put into a request: projects, claim ids, other claims, hosts, filters."""

from collections.abc import Iterable
from dataclasses import fields, replace

from redsched.api.access.callers import sees_all_claims, sees_hosts
from redsched.api.access.owned import owns, refuse_force
from redsched.api.access.redact import named_projects
from redsched.auth.caller import Caller
from redsched.errors import Forbidden
from redsched.model import Request, values_of
from redsched.model.filters import ME, ClaimFilter, EventFilter
from redsched.model.records.capacity import CapacityBy
from redsched.model.records.problems import ForbiddenFacts
from redsched.model.role import Role
from redsched.requests.filters import BulkQuery, ClaimsQuery, ExplainQuery
from redsched.scheduler.cells import Cells
from redsched.scheduler.claims.by_id import find_claim, refuse_unknown

HOST_VARIABLE = "$host"
"""The variable of a query that is a host's name."""
NOBODY = "/"
"""A text that is no project's name."""
FILTERS = {one.name for one in fields(ClaimFilter)}


async def selection(caller: Caller, asked: Request, cells: Cells) -> Request:
    """Return the request with its caller's project. Raises Forbidden, and NotFound for claims of others in its hints.

    Readers may only send dry runs.
    """
    if caller.role is Role.OPERATOR:
        return asked
    if caller.role is Role.READER:
        refuse_writing(caller, is_dry_run=not asked.claim)
        return asked
    own = _with_project(caller, asked)
    _check_ids(caller, own.claim_ids)
    for one in (own, *(member.request for member in own.members)):
        _check_hosts(caller, one)
        for claim_id in sorted(one.hints.same_host | one.hints.different_host):
            if not owns(caller, (await find_claim(cells, claim_id))[1]):
                await refuse_unknown(cells, claim_id)
    return own


async def explanation(caller: Caller, asked: Request, query: ExplainQuery, cells: Cells) -> Request:
    """Return the request to explain with its caller's project. Raises as `selection` does."""
    if not sees_hosts(caller) and (query.host or query.limit):
        raise _names_hosts(caller, "host and limit")
    return asked if caller.role is Role.READER else await selection(caller, asked, cells)


def refuse_hosts(caller: Caller, hosts: Iterable[str] | None) -> None:
    """Raise Forbidden if a caller names hosts who may not see their names."""
    if hosts and not sees_hosts(caller):
        raise _names_hosts(caller, "hosts")


def refuse_writing(caller: Caller, is_dry_run: bool) -> None:
    """Raise Forbidden if a reader sends a call that writes."""
    if caller.role is Role.READER and not is_dry_run:
        raise Forbidden(f"{caller.title} is a reader's, which changes nothing: send it as a dry run")


def claim_filter(caller: Caller, query: ClaimsQuery) -> ClaimFilter | None:
    """Return the filter that a query stands for, within the caller's claims; None if it can match none of them."""
    return _of_caller(caller, _filter_of(query))


def _filter_of(query: ClaimsQuery) -> ClaimFilter:
    return ClaimFilter(**query.model_dump(include=FILTERS))


def _of_caller(caller: Caller, wanted: ClaimFilter) -> ClaimFilter | None:
    given = _with_owners(caller, wanted)
    if sees_all_claims(caller):
        return given
    if caller.role is Role.AGENT:
        hosts = _within(values_of(given.host), caller.hosts)
        return replace(given, host=hosts) if hosts else None
    refuse_hosts(caller, values_of(given.host))
    projects = _within(values_of(given.project), caller.projects)
    return replace(given, project=projects) if projects else None


def bulk_filter(caller: Caller, query: BulkQuery, force: bool = False) -> ClaimFilter | None:
    """Return the filter of a bulk call as `claim_filter` does, within the claims that the caller may change.

    Raises Forbidden, and InvalidRequest without a filter: the caller has to give one even if its projects are one.
    """
    given = _filter_of(query)
    given.require_any()
    refuse_writing(caller, query.dry_run)
    if not query.dry_run:
        refuse_force(caller, force)
    wanted = _of_caller(caller, given)
    return _changed_by(caller, wanted) if wanted and caller.own_only else wanted


def visible_projects(caller: Caller) -> tuple[str, ...] | None:
    """Return the projects that a caller is restricted to; None for no restriction, and for none one that nobody has."""
    return None if sees_all_claims(caller) else tuple(caller.projects) or (NOBODY,)


def capacity_by(caller: Caller, by: CapacityBy | None) -> CapacityBy | None:
    """Return what capacity is summed by. Raises Forbidden if a tenant asks for parts of the fleet."""
    if not sees_all_claims(caller) and by in (CapacityBy.ZONE, CapacityBy.AGGREGATE):
        raise Forbidden(
            f"{caller.title} is a tenant's, which sees what is free to its projects: leave out by={by}, or sum by "
            "project or consumer"
        )
    return by


def event_filter(caller: Caller, wanted: EventFilter) -> EventFilter:
    """Return the filter, for a tenant within the events of its own claims. Raises Forbidden if a tenant names hosts."""
    if sees_all_claims(caller):
        return wanted
    refuse_hosts(caller, wanted.host)
    return replace(wanted, of_projects=caller.projects)


def _with_owners(caller: Caller, wanted: ClaimFilter) -> ClaimFilter:
    """Return the filter with the caller in place of ME, which the scheduler refuses if the caller is nobody known."""
    owners = values_of(wanted.owner)
    if ME not in owners or not caller.owner:
        return wanted
    return replace(wanted, owner=tuple(caller.owner if one == ME else one for one in owners))


def _changed_by(caller: Caller, wanted: ClaimFilter) -> ClaimFilter:
    """Return the filter within the claims of a caller's owner and of nobody. Raises Forbidden if it names another."""
    owners = values_of(wanted.owner) or (caller.owner, "")
    if others := [one for one in owners if one not in (caller.owner, "")]:
        raise Forbidden(
            f"{caller.title} changes only claims of {caller.owner!r}, and the filter names the owner "
            f"{others[0][:80]!r}: leave owner out, or ask an operator for a token that is project-wide"
        )
    return replace(wanted, owner=owners)


def _with_project(caller: Caller, asked: Request) -> Request:
    if asked.owner not in ("", caller.owner):
        raise Forbidden(
            f"{caller.title} claims for {caller.owner!r}, not for {asked.owner[:80]!r}: leave owner out, because only "
            "operators claim for others"
        )
    if asked.project in caller.projects:
        return asked
    if not asked.project and len(caller.projects) == 1:
        return replace(asked, project=next(iter(caller.projects)))
    raise Forbidden(f"{caller.title} is for {named_projects(caller.projects)}, and the request {_asked_for(asked)}")


def _asked_for(asked: Request) -> str:
    """Return what is wrong with the project of a request, and the next step."""
    if not asked.project:
        return "names none: name one of them"
    return f"is for {asked.project!r}: name another project, or ask an operator for a token that is for this one"


def _check_ids(caller: Caller, claim_ids: Iterable[str]) -> None:
    for claim_id in claim_ids:
        if not claim_id.startswith(caller.claim_prefix):
            raise Forbidden(
                f"claim id {claim_id!r} does not begin with {caller.claim_prefix!r}, as those of {caller.title} must: "
                "use another id, or leave it out to get one",
                ForbiddenFacts(claim_prefix=caller.claim_prefix),
            )


def _check_hosts(caller: Caller, asked: Request) -> None:
    if sees_hosts(caller):
        return
    if asked.hosts or asked.exclude_hosts:
        raise _names_hosts(caller, "hosts and exclude_hosts")
    if asked.query and HOST_VARIABLE in _words(asked.query):
        raise _names_hosts(caller, f"{HOST_VARIABLE} in a query")


def _words(query: object) -> set[str]:
    """Return all texts in a query."""
    if isinstance(query, tuple | list):
        return {word for one in query for word in _words(one)}
    return {query} if isinstance(query, str) else set()


def _within(given: Iterable[str], own: Iterable[str]) -> tuple[str, ...]:
    """Return the values that are both given and own; all own ones if none are given."""
    wanted = set(given)
    return tuple(sorted(one for one in own if not wanted or one in wanted))


def _names_hosts(caller: Caller, what: str) -> Forbidden:
    return Forbidden(f"{caller.title} may not name hosts ({what}): leave them out, or ask for one that sees hosts")
