"""Reading JSON from a provider over HTTPS, within limits of size and time and without redirects. Blocks."""

import json
import time
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, ProxyHandler, Request, build_opener

from redsched.auth.addresses import is_this_machine
from redsched.errors import InvalidRequest

SOCKET_TIMEOUT_S = 5.0
MAX_TIME_S = 10.0
MAX_BYTES = 524_288
PART_BYTES = 65_536


class FetchFailed(Exception):
    """A document could not be fetched. The text says why."""


class _NoRedirects(HTTPRedirectHandler):
    """Refuses redirects: the keys are where the configuration says, and nowhere else."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Return no request, which makes the redirect an HTTPError."""
        return


def check_url(what: str, url: str) -> str:
    """Return `url` if it is an https URL, or an http URL of this machine, else raise InvalidRequest."""
    try:
        parts = urlsplit(url)
        is_whole = bool(parts.hostname) and parts.port != 0 and not (parts.username or parts.password or parts.fragment)
    except ValueError:
        is_whole = False
    if not is_whole or (
        parts.scheme != "https" and not (parts.scheme == "http" and is_this_machine(parts.hostname or ""))
    ):
        raise InvalidRequest(f"{what} {url[:80]!r} must be an https:// URL; http:// is for this machine only")
    return url


def fetch_json(url: str) -> dict[str, Any]:
    """Return the JSON object at a URL. Raises FetchFailed."""
    try:
        check_url("the address", url)
        found = json.loads(_fetch(url))
    except HTTPError as error:
        with error:
            raise FetchFailed(f"{url} answered with status {error.code}") from None
    except (OSError, HTTPException, ValueError, RecursionError) as error:
        reason = error.reason if isinstance(error, URLError) else error
        raise FetchFailed(f"{url}: {reason or type(error).__name__}") from error
    if not isinstance(found, dict):
        raise FetchFailed(f"{url} is not a JSON object")
    return found


def _fetch(url: str) -> bytes:
    deadline = time.monotonic() + MAX_TIME_S
    proxies = [ProxyHandler({})] if is_this_machine(urlsplit(url).hostname or "") else []
    opener = build_opener(_NoRedirects, *proxies)
    content = b""
    with opener.open(Request(url, headers={"Accept": "application/json"}), timeout=SOCKET_TIMEOUT_S) as response:
        while part := response.read1(PART_BYTES):
            content += part
            if len(content) > MAX_BYTES:
                raise FetchFailed(f"{url} has more than {MAX_BYTES} bytes")
            if time.monotonic() > deadline:
                raise FetchFailed(f"{url} took more than {MAX_TIME_S:g} s")
    return content
