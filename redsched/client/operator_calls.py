"""The calls of operators: hosts, many claims at once, declared objects, plans and the status. See `calls.py`."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import httpx

from redsched.client.call_parts import Names, Pages, listed, pages, path_of, query, reader, reader_if_any
from redsched.client.exchange import Call
from redsched.model import AtDeadline, Request
from redsched.model.records.bulk import BulkPage, BulkResult
from redsched.model.records.capacity import Capacity, CapacityRow
from redsched.model.records.declared import AggregateView, QuotaView, ServerGroupView, SharedPoolView
from redsched.model.records.plans import AddingPlan, Applied, CapacityPlan, LeavingPlan, RebalancePlan
from redsched.model.records.status import StatusReport
from redsched.schema.pages import AGGREGATES, SERVER_GROUPS, SHARED_POOLS
from redsched.schema.responses import (
    AcceptedAnswer,
)

PLAN_S = 120.0
"""How long a plan may take, beyond an ordinary reply."""


def status() -> Call[StatusReport]:
    """Return what runs, and what is wrong or stuck."""
    return Call("GET", "/v1/status", reader(StatusReport))


def capacity(by: str = "") -> Call[tuple[CapacityRow, ...]]:
    """Return how much there is, claimed and free by class, and by `zone`, `aggregate`, `project` or `consumer`.

    Tenants get what is free to each of their projects, within its quota.
    """
    read = reader(Capacity)
    return Call("GET", "/v1/capacity", lambda content: read(content).capacity, query(by=by))


def enable_host(host: str, cell: str = "") -> Call[None]:
    """Allow new claims on a host. `cell`: needed only if two cells have a host with this name, here and below."""
    return _host_verb(host, "enable", cell)


def disable_host(host: str, reason: str = "", ahead: bool = False, cell: str = "") -> Call[None]:
    """Stop new claims on a host; existing claims stay. `reason` is shown with the host until it is enabled.

    `ahead`: also before its first report.
    """
    given = {"reason": reason or None, "ahead": ahead or None}
    return _host_verb(host, "disable", cell, **given)


def drain_host(
    host: str,
    move: bool = False,
    deadline_s: int = 0,
    then: AtDeadline | None = None,
    reason: str = "",
    cell: str = "",
) -> Call[None]:
    """Stop new claims on a host and empty it; with `move`, its claims are moved to other hosts.

    `reason` is shown with the host until it is enabled.
    """
    return _host_verb(host, "drain", cell, move=move, deadline_s=deadline_s, then=then, reason=reason)


def write_off_host(
    host: str, evacuate: bool = False, force: bool = False, reason: str = "", cell: str = ""
) -> Call[None]:
    """Declare a host dead; with `evacuate`, its claims are placed on other hosts. `force`: while its lease is valid.

    `reason` is shown with the host until it is enabled.
    """
    return _host_verb(host, "write-off", cell, evacuate=evacuate, force=force, reason=reason)


def remove_host(host: str, force: bool = False, cell: str = "") -> Call[None]:
    """Remove a host. `force`: although it holds claims, which end with it, or its lease runs."""
    return Call("DELETE", path_of("hosts", host), _nothing, query(force=force, cell=cell))


def bulk_release(*, force: bool = False, dry_run: bool = False, **filters: Names) -> Pages[BulkResult]:
    """Release all claims that match the filters of `list_claims`, a page at a time."""
    return _bulk("DELETE", "/v1/claims", filters, force=force, dry_run=dry_run)


def bulk_renew(lease_s: int, *, dry_run: bool = False, **filters: Names) -> Pages[BulkResult]:
    """Renew the leases of all claims that match the filters of `list_claims`, a page at a time."""
    return _bulk("POST", "/v1/claims/renew", filters, lease_s=lease_s, dry_run=dry_run)


def bulk_shelve(*, dry_run: bool = False, **filters: Names) -> Pages[BulkResult]:
    """Shelve all claims that match the filters of `list_claims`, a page at a time."""
    return _bulk("POST", "/v1/claims/shelve", filters, dry_run=dry_run)


def bulk_unshelve(*, dry_run: bool = False, **filters: Names) -> Pages[BulkResult]:
    """Place all shelved claims that match the filters of `list_claims` again, a page at a time."""
    return _bulk("POST", "/v1/claims/unshelve", filters, dry_run=dry_run)


def put_quota(project: str, limits: Mapping[str, int]) -> Call[QuotaView]:
    """Declare the quota of a project: limits by class, and of `claims`."""
    return Call("PUT", path_of("quotas", project), reader(QuotaView), body={"limits": dict(limits)})


def delete_quota(project: str) -> Call[None]:
    """Delete the quota of a project, which then has no limits."""
    return Call("DELETE", path_of("quotas", project), _nothing)


def get_aggregate(name: str) -> Call[AggregateView]:
    """Return an aggregate."""
    return Call("GET", path_of("aggregates", name), reader(AggregateView))


def list_aggregates(*, page_size: int = 100, after: str = "") -> Pages[AggregateView]:
    """Return all aggregates, sorted by name. `after`: where to begin."""
    return listed("/v1/aggregates", query(limit=page_size), AGGREGATES, after)


def put_aggregate(
    name: str, metadata: Mapping[str, str] | None = None, hosts: Collection[str] = ()
) -> Call[AggregateView]:
    """Declare an aggregate: its metadata, and its hosts by name."""
    body = {"metadata": dict(metadata or {}), "hosts": sorted(hosts)}
    return Call("PUT", path_of("aggregates", name), reader(AggregateView), body=body)


def delete_aggregate(name: str, force: bool = False) -> Call[None]:
    """Delete an aggregate. `force`: even if it has hosts."""
    return Call("DELETE", path_of("aggregates", name), _nothing, query(force=force))


def get_server_group(name: str) -> Call[ServerGroupView]:
    """Return a server group, with its number of members by location."""
    return Call("GET", path_of("server-groups", name), reader(ServerGroupView))


def list_server_groups(*, page_size: int = 100, after: str = "") -> Pages[ServerGroupView]:
    """Return all server groups, sorted by name. `after`: where to begin."""
    return listed("/v1/server-groups", query(limit=page_size), SERVER_GROUPS, after)


def put_server_group(name: str, body: Mapping[str, Any]) -> Call[ServerGroupView]:
    """Declare a server group: `policy`, and if wanted `by`, `max_per_host` and `count_by`."""
    return Call("PUT", path_of("server-groups", name), reader(ServerGroupView), body=body)


def delete_server_group(name: str, force: bool = False) -> Call[None]:
    """Delete a server group. `force`: even if it has members, which stay where they are."""
    return Call("DELETE", path_of("server-groups", name), _nothing, query(force=force))


def get_shared_pool(name: str) -> Call[SharedPoolView]:
    """Return a shared pool, with its claimed and free amounts."""
    return Call("GET", path_of("shared-pools", name), reader(SharedPoolView))


def list_shared_pools(*, page_size: int = 100, after: str = "") -> Pages[SharedPoolView]:
    """Return all shared pools, sorted by name. `after`: where to begin."""
    return listed("/v1/shared-pools", query(limit=page_size), SHARED_POOLS, after)


def put_shared_pool(name: str, body: Mapping[str, Any]) -> Call[SharedPoolView]:
    """Declare a shared pool: `inventories`, and if wanted `traits`, `aggregates` and `cell`."""
    return Call("PUT", path_of("shared-pools", name), reader(SharedPoolView), body=body)


def delete_shared_pool(name: str, force: bool = False) -> Call[None]:
    """Delete a shared pool. `force`: even while some of it is claimed."""
    return Call("DELETE", path_of("shared-pools", name), _nothing, query(force=force))


def plan_capacity(request: Request, n_plus_one: str = "") -> Call[CapacityPlan]:
    """Return how many more of a request fit; with `n_plus_one`, also without any one host, zone or label value."""
    return _plan("capacity", reader(CapacityPlan), request=request.body(), n_plus_one=n_plus_one)


def plan_drain(hosts: Collection[str]) -> Call[LeavingPlan]:
    """Return where the claims of hosts would go in a drain."""
    return _plan("drain", reader(LeavingPlan), hosts=list(hosts))


def plan_without(hosts: Collection[str]) -> Call[LeavingPlan]:
    """Return where the claims of hosts would go if the hosts died."""
    return _plan("without", reader(LeavingPlan), hosts=list(hosts))


def plan_with(hosts: Sequence[Mapping[str, Any]], request: Request | None = None) -> Call[AddingPlan]:
    """Return what further hosts would change. A host is its report with its name, as JSON."""
    given = {} if request is None else {"request": request.body()}
    return _plan("with", reader(AddingPlan), hosts=list(hosts), **given)


def plan_rebalance(
    aim: str, max_moves: int = 10, request: Request | None = None, hosts: Collection[str] = (), policy: str = ""
) -> Call[RebalancePlan]:
    """Return moves for an aim: `request`, `waiting`, `drain` or `policy`."""
    given: dict[str, Any] = {} if request is None else {"request": request.body()}
    body = {"for": aim, "max_moves": max_moves, "hosts": list(hosts), "policy": policy, **given}
    return _plan("rebalance", reader(RebalancePlan), **body)


def apply_moves(moves: Sequence[Mapping[str, Any]], timeout_s: int = 60) -> Call[Applied]:
    """Make the moves of a plan, one after the other. Repeating the call makes no move twice."""
    body = {"moves": list(moves), "timeout_s": timeout_s}
    waits_s = float(timeout_s * len(moves))
    path = "/v1/plans/rebalance/apply"
    return Call("POST", path, reader(Applied), body=body, is_repeatable=True, waits_s=waits_s)


def _nothing(_: httpx.Response) -> None:
    return None


def _host_verb(host: str, verb: str, cell: str, **body: Any) -> Call[None]:
    """Return the call of a verb of a host. Each sets a state, so it can be repeated."""
    read_any = reader_if_any(AcceptedAnswer)

    def read(reply: httpx.Response) -> None:
        read_any(reply)

    given = {name: value for name, value in body.items() if value is not None}
    url = f"{path_of('hosts', host)}/{verb}"
    return Call("POST", url, read, query(cell=cell), body=given or None, is_repeatable=True)


def _bulk(method: str, path: str, filters: Mapping[str, Names], **given: int | bool) -> Pages[BulkResult]:
    asked = query(**filters, **given, limit=1000)
    return pages(path, asked, BulkPage, lambda page: page.results, method=method)


def _plan(kind: str, read: Any, **body: Any) -> Call[Any]:
    return Call("POST", f"/v1/plans/{kind}", read, body=body, is_repeatable=True, waits_s=PLAN_S)
