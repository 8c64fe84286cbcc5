"""Access tokens: `rst_<id>_<secret>`, of which the token file has only the id and a SHA-256 digest.

The secret has 256 random bits, so a fast digest is enough: there is nothing to guess.
"""

import hashlib
import secrets

from redsched.errors import InvalidRequest
from redsched.model.validation import check_name

PREFIX = "rst_"
SECRET_BYTES = 32
MAX_TOKEN_BYTES = 8192
"""The longest token that a request may have: those of OpenID Connect may have a few KB."""
SECRET_LENGTH = 43
"""Characters of 32 bytes in base64url. They may be `_` too, and so may those of the id: only the length separates."""


def new_token(token_id: str) -> str:
    """Return a new random token."""
    return f"{PREFIX}{token_id}_{secrets.token_urlsafe(SECRET_BYTES)}"


def id_of(token: str) -> str:
    """Return the id in a token's text; '' if it does not have the form of a token."""
    before, secret = token[: -SECRET_LENGTH - 1], token[-SECRET_LENGTH - 1 :]
    return before.removeprefix(PREFIX) if before.startswith(PREFIX) and secret.startswith("_") else ""


def digest_of(token: str) -> bytes:
    """Return the SHA-256 digest of a token's whole text."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def check_id(value: object) -> str:
    """Return `value` if it can be the id of a token, else raise InvalidRequest."""
    if not isinstance(value, str):
        raise InvalidRequest(f"id must be a text, not {str(value)[:80]}: put it in quotes")
    if value.startswith(PREFIX):
        raise InvalidRequest(f"id begins with {PREFIX!r}, as tokens do: give the id alone, not a token")
    return check_name("token id", value)
