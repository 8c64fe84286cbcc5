"""The table of routes and roles: who may use which route, and with which restriction.

HEAD follows GET, and OPTIONS is for all who may use any method of the path. Operators may use all routes. A route
without a row is refused to everyone; tests/api/access/test_scopes.py fails for one.
"""

from collections.abc import Mapping

from redsched.api.former_agent_calls import FORMER
from redsched.auth.policy import AGENTS, OPEN, OWN_HOSTS, READ, READ_OWN_HOSTS, READ_OWN_PROJECTS, RoutePolicy
from redsched.operations.table import BY_ROUTE

SCOPES: Mapping[tuple[str, str], RoutePolicy] = {
    **{key: one.route.policy for key, one in BY_ROUTE.items()},
    ("PUT", "/v1/hosts/{host}/report"): OWN_HOSTS,
    ("PATCH", "/v1/hosts/{host}/report"): OWN_HOSTS,
    ("POST", "/v1/hosts/{host}/heartbeat"): OWN_HOSTS,
    ("GET", "/v1/hosts/{host}/inbox"): READ_OWN_HOSTS,
    ("GET", "/v1/agent"): AGENTS,
    ("POST", "/v1/agent/calls/{name}"): OWN_HOSTS,
    **{(one.method, one.path): OWN_HOSTS for one in FORMER},
    ("GET", "/v1/changes"): READ_OWN_PROJECTS,
    ("GET", "/metrics"): READ,
    ("GET", "/"): OPEN,
    ("GET", "/assets/{name}"): OPEN,
    ("GET", "/healthz"): OPEN,
    ("GET", "/readyz"): OPEN,
    ("GET", "/openapi.json"): OPEN,
    ("GET", "/docs"): OPEN,
    ("GET", "/docs/oauth2-redirect"): OPEN,
    ("GET", "/redoc"): OPEN,
}
"""By method and path of the route: those of operations, and those that callers have no method for."""

ASSETS = "/static-offline-docs/"
"""The files of /docs, which are open as that is."""
