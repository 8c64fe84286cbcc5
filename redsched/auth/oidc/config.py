"""The section `oidc` of the token file: which provider's tokens are accepted, and which of their claims give a role.

oidc:
  issuer: https://login.example.com/realms/main
  audience: redsched
  role_claim: groups
  roles:
    redsched-operators: {role: operator}
    web-team: {role: tenant, projects: [web]}
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from redsched.auth.oidc.fetch import check_url
from redsched.auth.role_fields import FIELDS, ROLE, check_mapping, read_role
from redsched.errors import InvalidRequest
from redsched.extras import pip_install
from redsched.model.validation import shown

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures by a private key. Never `none`, nor HS*, with which whoever can verify a token can make one."""
NEEDED = ("issuer", "audience", "role_claim", "roles")
OIDC_FIELDS = frozenset((*NEEDED, "jwks_url", "algorithms", "projects_claim"))
MODULES = ("jwt", "cryptography")
MAX_TEXT = 255


@dataclass(frozen=True, slots=True)
class OidcConfig:
    """One provider, and the roles of its tokens."""

    issuer: str
    audience: tuple[str, ...]
    """A token must be for one of these."""
    role_claim: str
    roles: Mapping[str, Mapping[str, Any]]
    """The fields of a Caller by a value of the role claim. The first that a token has counts."""
    jwks_url: str = ""
    """Where the provider's keys are; empty: where its discovery document says."""
    algorithms: tuple[str, ...] = ("RS256",)
    projects_claim: str = ""
    """The claim with further projects; empty: none."""


def read_oidc(value: object) -> OidcConfig:
    """Return the section's content. Raises InvalidRequest."""
    try:
        return _read(check_mapping("it", value, OIDC_FIELDS))
    except InvalidRequest as error:
        raise InvalidRequest(f"oidc: {error}") from error


def _read(given: dict[str, Any]) -> OidcConfig:
    if absent := [one for one in MODULES if find_spec(one) is None]:
        raise InvalidRequest(f"the package of {absent[0]!r} is not installed: {pip_install('oidc')}")
    if missing := [one for one in NEEDED if one not in given]:
        raise InvalidRequest(f"{missing[0]} is missing: add it")
    projects_claim = _text("projects_claim", given["projects_claim"]) if "projects_claim" in given else ""
    return OidcConfig(
        issuer=check_url("issuer", _text("issuer", given["issuer"])),
        audience=_texts("audience", given["audience"]),
        role_claim=_text("role_claim", given["role_claim"]),
        roles=_roles(given["roles"], bool(projects_claim)),
        jwks_url=check_url("jwks_url", _text("jwks_url", given["jwks_url"])) if "jwks_url" in given else "",
        algorithms=_algorithms(given.get("algorithms", ["RS256"])),
        projects_claim=projects_claim,
    )


def _roles(value: object, is_partial: bool) -> dict[str, dict[str, Any]]:
    if not isinstance(value, dict) or not value:
        raise InvalidRequest("roles must be a mapping of values of the role claim to fields of a token, such as role")
    return {_text("a key of roles", name): _role(name, given, is_partial) for name, given in value.items()}


def _role(name: str, given: object, is_partial: bool) -> dict[str, Any]:
    try:
        fields = check_mapping("it", given, FIELDS)
        return read_role(fields, is_partial and fields.get(ROLE) == "tenant")
    except InvalidRequest as error:
        raise InvalidRequest(f"roles: {name}: {error}") from error


def _algorithms(value: object) -> tuple[str, ...]:
    found = _texts("algorithms", value)
    if unknown := [one for one in found if one not in ALGORITHMS]:
        raise InvalidRequest(f"algorithm {unknown[0]!r} is not accepted: use any of {', '.join(ALGORITHMS)}")
    return found


def _texts(what: str, value: object) -> tuple[str, ...]:
    values = value if isinstance(value, list) else [value]
    if not values:
        raise InvalidRequest(f"{what} is empty: give at least one")
    return tuple(_text(what, one) for one in values)


def _text(what: str, value: object) -> str:
    if not isinstance(value, str) or not value or len(value) > MAX_TEXT or not value.isprintable():
        raise InvalidRequest(f"{what} must be a text of 1 to {MAX_TEXT} printable characters, not {shown(value)}")
    return value
