"""The table of routes and roles: who may use which route, and with which restriction.

HEAD follows GET, and OPTIONS is for all who may use any method of the path. Operators may use all routes. A route
without a row is refused to everyone; tests/api/access/test_scopes.py fails for one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from redsched.auth.caller import Role
from redsched.schema.former_agent_calls import FORMER


class Access(StrEnum):
    """What a role may do with a route."""

    NONE = "no"
    ALL = "yes"
    PROJECTS = "own projects"
    """Only claims, usage and quotas of the caller's projects; other claims are unknown to it (404)."""
    HOSTS = "own hosts"
    """Only the caller's hosts (403 for others), and the claims that are placed on them."""
    DRY_RUNS = "dry runs"
    """Only calls that write nothing."""


@dataclass(frozen=True, slots=True)
class RoutePolicy:
    """Who may use a route. `is_open`: everyone, without a token."""

    tenant: Access = Access.NONE
    agent: Access = Access.NONE
    reader: Access = Access.NONE
    is_open: bool = False

    def access(self, role: Role) -> Access:
        """Return what a role may do with the route."""
        if self.is_open or role is Role.OPERATOR:
            return Access.ALL
        if role is Role.TENANT:
            return self.tenant
        return self.agent if role is Role.AGENT else self.reader

    def either(self, other: "RoutePolicy") -> "RoutePolicy":
        """Return the policy of those who may use this route or the other."""

        return RoutePolicy(
            _either(self.tenant, other.tenant),
            _either(self.agent, other.agent),
            _either(self.reader, other.reader),
            self.is_open or other.is_open,
        )


def _either(one: Access, other: Access) -> Access:
    return other if one is Access.NONE else one


OPEN = RoutePolicy(is_open=True)
OPERATORS = RoutePolicy()
READ = RoutePolicy(reader=Access.ALL)
OWN_PROJECTS = RoutePolicy(tenant=Access.PROJECTS)
READ_OWN_PROJECTS = RoutePolicy(tenant=Access.PROJECTS, reader=Access.ALL)
READ_OWN_CLAIMS = RoutePolicy(tenant=Access.PROJECTS, agent=Access.HOSTS, reader=Access.ALL)
OWN_CLAIMS = RoutePolicy(tenant=Access.PROJECTS, agent=Access.HOSTS)
OWN_PROJECTS_OR_DRY_RUNS = RoutePolicy(tenant=Access.PROJECTS, reader=Access.DRY_RUNS)
OWN_HOSTS = RoutePolicy(agent=Access.HOSTS)
AGENTS = RoutePolicy(agent=Access.ALL)
READ_OWN_HOSTS = RoutePolicy(agent=Access.HOSTS, reader=Access.ALL)

SCOPES: Mapping[tuple[str, str], RoutePolicy] = {
    ("POST", "/v1/selections"): OWN_PROJECTS_OR_DRY_RUNS,
    ("POST", "/v1/explain"): READ_OWN_PROJECTS,
    ("GET", "/v1/claims"): READ_OWN_CLAIMS,
    ("DELETE", "/v1/claims"): OWN_PROJECTS_OR_DRY_RUNS,
    ("POST", "/v1/claims/renew"): OWN_PROJECTS_OR_DRY_RUNS,
    ("POST", "/v1/claims/shelve"): OWN_PROJECTS_OR_DRY_RUNS,
    ("POST", "/v1/claims/unshelve"): OWN_PROJECTS_OR_DRY_RUNS,
    ("GET", "/v1/claims/{claim_id}"): READ_OWN_CLAIMS,
    ("GET", "/v1/claims/{claim_id}/events"): READ_OWN_PROJECTS,
    ("POST", "/v1/claims/{claim_id}/confirm"): OWN_CLAIMS,
    ("POST", "/v1/claims/{claim_id}/renew"): OWN_CLAIMS,
    ("POST", "/v1/claims/{claim_id}/fail"): OWN_CLAIMS,
    ("POST", "/v1/claims/{claim_id}/move"): OWN_PROJECTS,
    ("POST", "/v1/claims/{claim_id}/resize"): OWN_PROJECTS,
    ("POST", "/v1/claims/{claim_id}/shelve"): OWN_PROJECTS,
    ("POST", "/v1/claims/{claim_id}/unshelve"): OWN_PROJECTS,
    ("DELETE", "/v1/claims/{claim_id}"): OWN_PROJECTS,
    ("PUT", "/v1/hosts/{host}/report"): OWN_HOSTS,
    ("PATCH", "/v1/hosts/{host}/report"): OWN_HOSTS,
    ("POST", "/v1/hosts/{host}/heartbeat"): OWN_HOSTS,
    ("GET", "/v1/hosts/{host}/inbox"): READ_OWN_HOSTS,
    ("GET", "/v1/agent"): AGENTS,
    ("POST", "/v1/agent/calls/{name}"): OWN_HOSTS,
    **{(one.method, one.path): OWN_HOSTS for one in FORMER},
    ("GET", "/v1/hosts"): READ,
    ("GET", "/v1/hosts/{host}"): READ_OWN_HOSTS,
    ("GET", "/v1/hosts/{host}/drain"): READ_OWN_HOSTS,
    ("POST", "/v1/hosts/{host}/drain"): OPERATORS,
    ("POST", "/v1/hosts/{host}/enable"): OPERATORS,
    ("POST", "/v1/hosts/{host}/disable"): OPERATORS,
    ("POST", "/v1/hosts/{host}/write-off"): OPERATORS,
    ("DELETE", "/v1/hosts/{host}"): OPERATORS,
    ("GET", "/v1/aggregates"): READ,
    ("GET", "/v1/aggregates/{name}"): READ,
    ("PUT", "/v1/aggregates/{name}"): OPERATORS,
    ("DELETE", "/v1/aggregates/{name}"): OPERATORS,
    ("GET", "/v1/server-groups"): READ,
    ("GET", "/v1/server-groups/{name}"): READ,
    ("PUT", "/v1/server-groups/{name}"): OPERATORS,
    ("DELETE", "/v1/server-groups/{name}"): OPERATORS,
    ("GET", "/v1/shared-pools"): READ,
    ("GET", "/v1/shared-pools/{name}"): READ,
    ("PUT", "/v1/shared-pools/{name}"): OPERATORS,
    ("DELETE", "/v1/shared-pools/{name}"): OPERATORS,
    ("GET", "/v1/quotas"): READ_OWN_PROJECTS,
    ("GET", "/v1/quotas/{project}"): READ_OWN_PROJECTS,
    ("PUT", "/v1/quotas/{project}"): OPERATORS,
    ("DELETE", "/v1/quotas/{project}"): OPERATORS,
    ("POST", "/v1/plans/capacity"): READ,
    ("POST", "/v1/plans/drain"): READ,
    ("POST", "/v1/plans/without"): READ,
    ("POST", "/v1/plans/with"): READ,
    ("POST", "/v1/plans/rebalance"): READ,
    ("POST", "/v1/plans/rebalance/apply"): OPERATORS,
    ("GET", "/v1/status"): READ,
    ("GET", "/v1/usage"): READ_OWN_PROJECTS,
    ("GET", "/v1/capacity"): READ_OWN_PROJECTS,
    ("GET", "/v1/changes"): READ_OWN_PROJECTS,
    ("GET", "/v1/events"): READ_OWN_PROJECTS,
    ("GET", "/metrics"): READ,
    ("GET", "/"): OPEN,
    ("GET", "/assets/{name}"): OPEN,
    ("GET", "/v1"): OPEN,
    ("GET", "/healthz"): OPEN,
    ("GET", "/readyz"): OPEN,
    ("GET", "/openapi.json"): OPEN,
    ("GET", "/docs"): OPEN,
    ("GET", "/docs/oauth2-redirect"): OPEN,
    ("GET", "/redoc"): OPEN,
}
"""By method and path of the route."""

ASSETS = "/static-offline-docs/"
"""The files of /docs, which are open as that is."""
