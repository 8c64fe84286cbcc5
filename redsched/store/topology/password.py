"""The store's password from a file, so that it is neither in a URL nor in the environment."""

from dataclasses import replace
from pathlib import Path

from redsched.auth.private_file import read_private
from redsched.errors import InvalidRequest
from redsched.store.topology.url import StoreUrl, parse

FILE_SETTING = "REDSCHED_REDIS_PASSWORD_FILE"
MAX_BYTES = 4096


def with_password(url: StoreUrl, file: str) -> StoreUrl:
    """Return the URL with the password in the file, if one is named.

    Raises InvalidRequest if the URL has one too, if others may read the file, or if it is not one line.
    """
    if not file:
        return url
    if url.password is not None:
        raise InvalidRequest(f"the store URL has a password, and {FILE_SETTING} names a file with one: keep the file")
    password = read_private("password file", Path(file), MAX_BYTES).removesuffix("\n").removesuffix("\r")
    if not password or "\n" in password:
        raise InvalidRequest(f"password file {file} is not one line: write only the password into it")
    return replace(url, password=password)


def has_password(url: str) -> bool:
    """Return whether a valid store URL has a password, also one for the Sentinels."""
    found = parse(url)
    return found.password is not None or "password" in found.sentinel_login
