"""The gate: ASGI middleware outside all that reads a body, which authenticates each request before its body is read.

It checks the role against the table of routes (scopes.py), and for agents the host in the path. What the table calls
own projects and own claims is checked by the routes, because only they know the claim.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from redsched import origin
from redsched.api.access.agents import own_host
from redsched.api.access.callers import CALLER, STRANGER
from redsched.api.access.policies import RoutePolicies
from redsched.api.access.refused_agents import RefusedAgents
from redsched.auth.access_token import MAX_TOKEN_BYTES
from redsched.auth.authenticator import Authenticator
from redsched.auth.caller import UNRESTRICTED, Caller
from redsched.auth.policy import Access, RoutePolicy
from redsched.errors import Forbidden, RedschedError, Unauthenticated
from redsched.model.records.problems import ForbiddenFacts
from redsched.model.role import Role
from redsched.origin import Origin
from redsched.serve.problems import problem

CHALLENGE = {"WWW-Authenticate": "Bearer"}


class Gate:
    """Lets a request pass with its caller in the scope, or answers 401 or 403. Without `authenticator` all may pass."""

    def __init__(
        self,
        app: ASGIApp,
        routes: Iterable[Route],
        authenticator: Authenticator | None,
        refused_agents: RefusedAgents | None = None,
    ) -> None:
        self._app = app
        self._refused_agents = refused_agents or RefusedAgents()
        self._policies = RoutePolicies(routes)
        self._authenticator = authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102 - the protocol is ASGI
        if scope["type"] != "http" or self._authenticator is None:
            scope[CALLER] = UNRESTRICTED
            return await self._app(scope, receive, send)
        caller: Caller | None = None
        try:
            policy, parameters = self._policies.find(scope["method"], scope["path"])
            caller = await _identified(self._authenticator, policy, scope)
            _check_may(caller, policy, parameters, scope)
        except RedschedError as error:
            self._refused_agents.note(scope, error, caller)
            return await problem(error, _headers(error, scope))(scope, receive, send)
        scope[CALLER] = caller
        entered = origin.enter(Origin(caller.id, origin.current().request_id))
        try:
            return await self._app(scope, receive, send)
        finally:
            origin.leave(entered)


async def _identified(authenticator: Authenticator, policy: RoutePolicy | None, scope: Scope) -> Caller:
    """Return the caller of a request. Raises Unauthenticated, Unavailable."""
    if policy is not None and policy.is_open:
        return await _guest(authenticator, scope)
    return await authenticator.identify(bearer(scope["headers"]))


def _check_may(caller: Caller, policy: RoutePolicy | None, parameters: Mapping[str, Any], scope: Scope) -> None:
    """Raise Forbidden unless the caller may use the route; where there is none, the router answers 404 or 405."""
    if policy is None or policy.is_open or caller.role is Role.OPERATOR:
        return
    _check_role(caller, policy, scope)
    if caller.role is Role.AGENT and "host" in parameters:
        own_host(caller, parameters["host"])


async def _guest(authenticator: Authenticator, scope: Scope) -> Caller:
    """Return the caller of an open route, who needs no token."""
    try:
        return await authenticator.identify(bearer(scope["headers"]))
    except RedschedError:
        return STRANGER


def bearer(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """Return the token of a request. Raises Unauthenticated unless it has exactly one."""
    found = [value for name, value in headers if name == b"authorization"]
    if len(found) != 1:
        given = f"is given {len(found)} times: send it once" if found else "is missing: send Bearer and a token in it"
        raise Unauthenticated(f"the header Authorization {given}")
    scheme, _, token = found[0].partition(b" ")
    if scheme.lower() != b"bearer" or not token.isascii():
        raise Unauthenticated("the header Authorization has another scheme: send Bearer and a token in it")
    if len(token) > MAX_TOKEN_BYTES:
        raise Unauthenticated(f"the token has more than {MAX_TOKEN_BYTES} bytes: send a valid one")
    return token.decode("ascii").strip(" ")


def _check_role(caller: Caller, policy: RoutePolicy, scope: Scope) -> None:
    if policy.access(caller.role) is Access.NONE:
        roles = [role for role in Role if policy.access(role) is not Access.NONE]
        raise Forbidden(
            f"{caller.title} has the role {caller.role}, which may not use this route with {scope['method']}: use a "
            f"token with the role {' or '.join(roles)}, or ask an operator",
            ForbiddenFacts(caller=caller.id, role=caller.role, needs=tuple(roles)),
        )


def _headers(error: RedschedError, scope: Scope) -> dict[str, str]:
    """Return the headers of a refusal.

    A client that waits for 100 Continue may send its body after the refusal or not, so what follows on its connection
    is ambiguous: the connection is closed. Other bodies are skipped by the connection's parser.
    """
    close = {"Connection": "close"} if any(name == b"expect" for name, _ in scope["headers"]) else {}
    return {**close, **(CHALLENGE if isinstance(error, Unauthenticated) else {})}
