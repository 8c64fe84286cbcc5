"""The token file: who may call the API, and with which role. Its YAML, and how it is checked.

tokens:
  - id: web-ci
    sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
    role: tenant
    projects: [web]
    expires: 2027-01-31T00:00:00Z
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any, TypeVar

from redsched.auth import role_fields
from redsched.auth.access_token import PREFIX, check_id
from redsched.auth.caller import Caller
from redsched.auth.oidc.config import OidcConfig, read_oidc
from redsched.auth.private_file import read_private
from redsched.errors import InvalidRequest
from redsched.model.role import Role
from redsched.model.validation import check_owner, shown
from redsched.yaml_io import parse_yaml

MAX_BYTES = 2**20
"""About 8,000 tokens, which take 4 s of processor time to parse; one token may be for many hosts."""
SECTIONS = frozenset(("tokens", "oidc"))
TOKEN_FIELDS = role_fields.FIELDS | {"id", "sha256", "owner", "expires"}
Part = TypeVar("Part")
_DIGEST = re.compile("[0-9a-fA-F]{64}\\Z")


@dataclass(frozen=True, slots=True)
class TokenEntry:
    """One token: the digest of its text, and whom it stands for."""

    digest: bytes
    caller: Caller


@dataclass(frozen=True, slots=True)
class TokenFile:
    """The contents of a token file."""

    tokens: Mapping[str, TokenEntry]
    """By id."""
    oidc: OidcConfig | None = None

    def keeping(self, earlier: "TokenFile") -> "TokenFile":
        """Return the same contents with the objects of an earlier version for all that has not changed."""
        tokens = {name: _same(entry, earlier.tokens.get(name)) for name, entry in self.tokens.items()}
        return TokenFile(tokens, _same(self.oidc, earlier.oidc))


def _same(new: Part, earlier: Part | None) -> Part:
    return earlier if earlier is not None and earlier == new else new


def read_token_file(path: Path) -> TokenFile:
    """Read a token file. Raises InvalidRequest with one line that names the file, the entry and the remedy."""
    text = read_private("token file", path, MAX_BYTES)
    try:
        return parse_token_file(text)
    except InvalidRequest as error:
        raise InvalidRequest(f"token file {path}: {error}") from error


def parse_token_file(text: str) -> TokenFile:
    """Parse the text of a token file. Raises InvalidRequest with one line that names the entry."""
    document = parse_yaml(text, quotes=False)
    if document is None:
        raise InvalidRequest("it is empty: add a token with `redsched token new`")
    return check_document(document)


def check_document(document: object) -> TokenFile:
    """Return the contents of a parsed token file. Raises InvalidRequest with one line that names the entry."""
    given = role_fields.check_mapping("it", document, SECTIONS)
    oidc = read_oidc(given["oidc"]) if "oidc" in given else None
    has_only_oidc = oidc is not None and "tokens" not in given
    return TokenFile({} if has_only_oidc else _tokens(given.get("tokens")), oidc)


def _tokens(value: object) -> dict[str, TokenEntry]:
    if not isinstance(value, list):
        raise InvalidRequest(f"tokens must be a list, [] if nobody has one, not {role_fields.shown_kind(value)}")
    found: dict[str, TokenEntry] = {}
    digests: dict[bytes, str] = {}
    for number, given in enumerate(value, 1):
        entry = _named_entry(number, given)
        token_id = entry.caller.id
        if token_id in found:
            raise InvalidRequest(f"token {number} has the id {token_id!r}, as an earlier one has: ids must be unique")
        if (other := digests.setdefault(entry.digest, token_id)) != token_id:
            raise InvalidRequest(f"token {number} ({token_id}) has the sha256 of {other}: give each its own token")
        found[token_id] = entry
    return found


def _named_entry(number: int, given: object) -> TokenEntry:
    token_id = given.get("id") if isinstance(given, dict) else None
    name = f" ({token_id})" if isinstance(token_id, str) and not token_id.startswith(PREFIX) else ""
    try:
        return _entry(role_fields.check_mapping("it", given, TOKEN_FIELDS))
    except InvalidRequest as error:
        raise InvalidRequest(f"token {number}{name[:80]}: {error}") from error


def _entry(given: dict[str, Any]) -> TokenEntry:
    for needed in ("id", "sha256"):
        if needed not in given:
            raise InvalidRequest(f"{needed} is missing: `redsched token new` writes it")
    role = role_fields.read_role({name: value for name, value in given.items() if name in role_fields.FIELDS})
    expires_at_s = expiry(given["expires"]) if "expires" in given else None
    owner = _owner(given["owner"], role["role"]) if "owner" in given else ""
    caller = Caller(id=check_id(given["id"]), claims_for=owner, expires_at_s=expires_at_s, **role)
    return TokenEntry(_digest(given["sha256"]), caller)


def _owner(value: object, role: Role) -> str:
    if role not in (Role.TENANT, Role.OPERATOR):
        raise InvalidRequest(f"owner is not for the role {role}, which makes no claims: remove it")
    if not isinstance(value, str):
        raise InvalidRequest(f"owner must be a text, not {shown(value)}: put it in quotes")
    return check_owner(value)


def _digest(value: object) -> bytes:
    # Never shown: it may be the token itself, by mistake.
    if not isinstance(value, str) or not _DIGEST.match(value):
        raise InvalidRequest("sha256 must be 64 hexadecimal digits in quotes: the digest of the whole token")
    return bytes.fromhex(value)


def expiry(value: object) -> float:
    """Return the Unix time of an ISO time in UTC, or of the beginning of a day. Raises InvalidRequest."""
    found = _moment(value)
    if found is None:
        raise InvalidRequest(f"expires must be a time such as 2027-01-31T00:00:00Z, not {shown(value)}")
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _moment(value: object) -> datetime | None:
    if isinstance(value, str):
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, datetime):
        return value
    return datetime.combine(value, time(), UTC) if isinstance(value, date) else None
