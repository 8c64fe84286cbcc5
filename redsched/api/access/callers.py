"""The caller of a request, in its ASGI scope."""

from collections.abc import MutableMapping
from typing import Any

from redsched.auth.caller import Caller
from redsched.model.role import Role

CALLER = "redsched.caller"
"""The scope's key of the caller."""

STRANGER = Caller(id="", role=Role.TENANT)
"""The caller of an open route without a valid token: a tenant of no project."""

_SEES_ALL = (Role.OPERATOR, Role.READER)


def caller_of(scope: MutableMapping[str, Any]) -> Caller:
    """Return the caller of a request. Raises KeyError if the gate has not seen it: such a request must fail."""
    found: Caller = scope[CALLER]
    return found


def sees_hosts(caller: Caller) -> bool:
    """Return whether the caller may see the names of all hosts."""
    return caller.role in _SEES_ALL or caller.sees_hosts


def sees_all_claims(caller: Caller) -> bool:
    """Return whether the caller may see the claims of all projects on all hosts."""
    return caller.role in _SEES_ALL
