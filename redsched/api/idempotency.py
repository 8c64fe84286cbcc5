"""Idempotency-Key: claim ids derived from a key, for clients that send a key instead of claim ids."""

import hashlib
import re
from dataclasses import replace

from starlette.requests import Request as HttpRequest

from redsched.auth.caller import Caller
from redsched.errors import InvalidRequest
from redsched.model import Request
from redsched.model.role import Role

HEADER = "Idempotency-Key"
PATTERN = r"^[!-~]{1,255}$"
PREFIXED_BYTES = 7
"""The length of a digest after a prefix of a claim id: as long as the longest id allows with the longest prefix."""

PARAMETER = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "schema": {"type": "string", "pattern": PATTERN},
    "description": "Derives `claim_ids`: the same key gives the same ids. Cannot be combined with `claim_ids`.",
    "example": "9f3a12cd-order-4711",
}
"""The header in the OpenAPI document."""


def with_key(asked: Request, http: HttpRequest, caller: Caller) -> Request:
    """Return the request with the claim ids derived from its Idempotency-Key, if it has one. Raises InvalidRequest.

    Tenants cannot meet each other's ids: a tenant's begin with its prefix, and depend on the project, and on the owner
    unless its token is for all claims of the project.
    """
    keys = http.headers.getlist(HEADER)
    return replace(asked, claim_ids=_ids(asked, keys, caller)) if keys else asked


def _ids(asked: Request, keys: list[str], caller: Caller) -> tuple[str, ...]:
    if asked.claim_ids:
        raise InvalidRequest(f"{HEADER} and claim_ids both set the claim ids: use one of them")
    if len(keys) > 1:
        raise InvalidRequest(f"{HEADER} is given {len(keys)} times: give it once")
    if not re.search(PATTERN, keys[0]):
        raise InvalidRequest(f"{HEADER}: must be 1 to 255 visible ASCII characters, not {keys[0][:80]!r}")
    stem = _stem(keys[0], asked.project, caller)
    return tuple(f"{stem}-{number}" for number in range(asked.places))


def _stem(key: str, project: str, caller: Caller) -> str:
    """Return the common beginning of the ids. Those of tenants cannot meet each other, whatever keys they choose."""
    if caller.role is not Role.TENANT:
        return f"key-{hashlib.blake2b(key.encode(), digest_size=16).hexdigest()}"
    whose = f"{project}\n{caller.owner}" if caller.own_only else project
    digest = hashlib.blake2b(f"{whose}\n{key}".encode(), digest_size=PREFIXED_BYTES if caller.claim_prefix else 16)
    return f"{caller.claim_prefix}key-{digest.hexdigest()}"
