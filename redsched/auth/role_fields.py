"""What a caller of each role may do: the fields that a token, or a role of an OpenID Connect provider, is given."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from difflib import get_close_matches
from typing import Any

from redsched.auth.caller import Limits
from redsched.errors import InvalidRequest
from redsched.model.limits import check_range
from redsched.model.role import Role
from redsched.model.validation import check_name, check_trait, shown

MAX_CLAIM_PREFIX = 40
MAX_LIMIT = 1_000_000
ROLE = "role"

_COMMON = frozenset((ROLE, "limits"))
FIELDS_OF_ROLE: Mapping[Role, frozenset[str]] = {
    Role.TENANT: _COMMON | {"projects", "project_wide", "claim_prefix", "sees_hosts"},
    Role.AGENT: _COMMON | {"hosts", "cell", "zones", "labels", "traits", "projects"},
    Role.OPERATOR: _COMMON,
    Role.READER: _COMMON,
}
"""The fields that each role may have."""
NEEDED_FIELD: Mapping[Role, str] = {Role.TENANT: "projects", Role.AGENT: "hosts"}
"""The field without which a caller of the role could do nothing."""


def read_role(given: Mapping[str, Any], is_partial: bool = False) -> dict[str, Any]:
    """Return the fields of a Caller. `is_partial`: what the role needs may come from elsewhere. Raises InvalidRequest.

    `given` has known fields only.
    """
    role = _role(given.get(ROLE))
    if foreign := sorted(given.keys() - FIELDS_OF_ROLE[role]):
        raise InvalidRequest(f"{foreign[0]} is not for the role {role}: remove it, or choose another role")
    found = {name: _READERS[name](name, value) for name, value in given.items() if name != ROLE}
    needed = NEEDED_FIELD.get(role)
    if needed and not is_partial and not found.get(needed):
        raise InvalidRequest(f"{needed} is empty: the role {role} needs at least one")
    return {ROLE: role, **found}


def check_mapping(what: str, value: object, known: Iterable[str]) -> dict[str, Any]:
    """Return `value` if it is a mapping with known fields only, else raise InvalidRequest."""
    if not isinstance(value, dict):
        raise InvalidRequest(f"{what} must be a mapping of fields to values, not {shown_kind(value)}")
    allowed = sorted(known)
    for name in value:
        if name not in allowed:
            closest = get_close_matches(str(name), allowed, 1)
            hint = f"did you mean {closest[0]}?" if closest else f"use {', '.join(allowed)}"
            raise InvalidRequest(f"{what} has the unknown field {str(name)[:80]!r}: {hint}")
    return value


def shown_kind(value: object) -> str:
    """Return what kind of value was given. Values are not shown where they may be secrets."""
    return "nothing" if value is None else f"a {type(value).__name__}"


def project_name(value: object) -> str:
    """Return a project's name, or '' for the empty project, which is a project like any other."""
    if not isinstance(value, str):
        raise InvalidRequest(f"a project must be a text, not {shown(value)}: put it in quotes")
    return check_name("project", value) if value else value


def names(field: str, value: object, check: Callable[[object], str]) -> frozenset[str]:
    """Return a list of names as a set. Raises InvalidRequest for a name that is malformed or given twice."""
    if not isinstance(value, list):
        raise InvalidRequest(f"{field} must be a list, such as [one, two], not {shown(value)}")
    found = [check(one) for one in value]
    if twice := sorted({one for one in found if found.count(one) > 1} if len(set(found)) < len(found) else ()):
        raise InvalidRequest(f"{field} has {twice[0]!r} twice: name it once")
    return frozenset(found)


def _role(value: object) -> Role:
    try:
        return Role(str(value))
    except ValueError:
        given = "role is missing" if value is None else f"unknown role {shown(value)}"
        raise InvalidRequest(f"{given}: use {', '.join(Role)}") from None


def _text(what: str, value: object, check: Callable[[str, str], str] = check_name) -> str:
    if not isinstance(value, str):
        raise InvalidRequest(f"{what} must be a text, not {shown(value)}: put it in quotes")
    return check(what, value)


def _names_of(what: str) -> Callable[[str, object], frozenset[str]]:
    return lambda field, value: names(field, value, lambda one: _text(what, one))


def _projects(field: str, value: object) -> frozenset[str]:
    return names(field, value, project_name)


def _traits(field: str, value: object) -> frozenset[str]:
    return names(field, value, lambda one: _text("trait", one, lambda _, name: check_trait(name)))


def _claim_prefix(field: str, value: object) -> str:
    found = _text(field, value)
    if len(found) > MAX_CLAIM_PREFIX:
        raise InvalidRequest(f"{field} has {len(found)} characters: at most {MAX_CLAIM_PREFIX} leave room for ids")
    return found


def _flag(field: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidRequest(f"{field} must be true or false, not {shown(value)}")
    return value


def _limits(field: str, value: object) -> Limits:
    given = check_mapping(field, value, (one.name for one in fields(Limits)))
    for name, limit in given.items():
        check_range(f"{field}.{name}", limit, 1 if name == "requests" else 0, MAX_LIMIT)
    return Limits(**given)


_READERS: Mapping[str, Callable[[str, Any], Any]] = {
    "projects": _projects,
    "claim_prefix": _claim_prefix,
    "project_wide": _flag,
    "sees_hosts": _flag,
    "hosts": _names_of("host"),
    "cell": _text,
    "zones": _names_of("zone"),
    "labels": _names_of("label"),
    "traits": _traits,
    "limits": _limits,
}
FIELDS = frozenset(_READERS) | {ROLE}
"""All fields of roles."""
