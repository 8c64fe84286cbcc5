"""Find the policy of a request: the row of the route that the router will choose for it."""

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Any

from starlette.routing import Route

from redsched.api.access.scopes import ASSETS, SCOPES
from redsched.auth.policy import OPEN, OPERATORS, RoutePolicy
from redsched.errors import Forbidden

Rows = Mapping[tuple[str, str], RoutePolicy]


class RoutePolicies:
    """The policies of an app's routes, by method, in the order in which the router tries them."""

    def __init__(self, routes: Iterable[Route], rows: Rows = SCOPES) -> None:
        declared = [
            (method, route.path_regex, rows.get((method, route.path)))
            for route in routes
            for method in sorted((route.methods or set()) - {"HEAD"})
        ]
        self._by_path = [(pattern, policy) for _, pattern, policy in declared]
        self._by_method = {
            method: [(pattern, policy) for one, pattern, policy in declared if one == method]
            for method in {method for method, _, _ in declared}
        }

    def find(self, method: str, path: str) -> tuple[RoutePolicy | None, Mapping[str, Any]]:
        """Return the policy of a request and the parameters of its path; None if no route takes it.

        Raises Forbidden for a route without a row.
        """
        for pattern, policy in self._by_method.get("GET" if method == "HEAD" else method, ()):
            if match := pattern.match(path):
                if policy is None:
                    raise Forbidden("nobody may use this route: it has no row in the table of routes and roles")
                return policy, match.groupdict()
        return self._of_no_route(method, path), {}

    def _of_no_route(self, method: str, path: str) -> RoutePolicy | None:
        if path.startswith(ASSETS):
            return OPEN
        if method != "OPTIONS":
            return None
        found = [policy or OPERATORS for pattern, policy in self._by_path if pattern.match(path)]
        return reduce(RoutePolicy.either, found) if found else None
