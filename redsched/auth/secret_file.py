"""The token files of clients: one token in one line."""

from pathlib import Path

from redsched.auth.access_token import MAX_TOKEN_BYTES
from redsched.auth.private_file import read_private
from redsched.errors import InvalidRequest


def read_secret(path: Path) -> str:
    """Return the token in a file. Raises InvalidRequest if it is not one line of a private file.

    The text is not checked otherwise: it may be a token of an OpenID Connect provider.
    """
    text = read_private("token file", path, MAX_TOKEN_BYTES + len("\r\n"))
    secret = text.removesuffix("\n").removesuffix("\r")
    # The value is never shown: it may be the right secret with something beside it.
    if not secret:
        raise InvalidRequest(f"token file {path} is empty: write the token into it")
    if not (secret.isascii() and secret.isprintable()) or " " in secret:
        raise InvalidRequest(f"token file {path} is not one line of printable characters: write only the token into it")
    return secret
