"""What all clients of the REST API share: agents without access to the store, and `redsched.client`.

The API's URL and how its certificate is verified, the token that is sent to it, the options of connections, and sending
that may be cancelled. httpx is imported when a client connects.
"""

import asyncio
import ssl
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from redsched import aio, logs
from redsched.auth.addresses import is_this_machine
from redsched.auth.certificates import load_authorities, load_pair
from redsched.auth.private_file import FileVersion, version_of
from redsched.auth.secret_file import read_secret
from redsched.errors import InvalidRequest

if TYPE_CHECKING:
    import httpx

_log = logs.get_logger(__name__)

KEPT = 32
"""The most idle connections that are kept."""
KEEP_S = 4.0
"""How long an idle connection is kept: less than the API keeps it, or requests would meet its end."""
CONNECTED_S = 0.01
"""How often an abandoned request is looked at while it connects."""


def checked_url(given: str, insecure: bool, allowed_by: str) -> str:
    """Return the base URL of the API. Raises InvalidRequest unless it is https, or http to this machine.

    `insecure` allows http to other machines; `allowed_by` is what its error says about how to allow that.
    """
    url = given.rstrip("/")
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as error:
        raise InvalidRequest(f"the API's URL {given[:200]!r} is malformed: {error}") from None
    if parts.username or parts.password:
        raise InvalidRequest("the API's URL has a user or password: put a token into a file and name it as token_file")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise InvalidRequest(f"the API's URL {given[:200]!r} is not one: give https://HOST:PORT")
    if parts.scheme == "http" and not is_this_machine(parts.hostname) and not insecure:
        raise InvalidRequest(
            f"{url} is plain http to another machine: the token could be read on the way. Use https, or {allowed_by} "
            "in a network where nobody listens"
        )
    return url


def tls_context(ca: str, cert: str, key: str) -> ssl.SSLContext:
    """Return how to verify the API, and the client certificate for it: paths of PEM files, '' for none.

    Without `ca`, the authorities of the system are trusted. Raises InvalidRequest.
    """
    if bool(cert) != bool(key):
        raise InvalidRequest("a client certificate needs both the certificate and its key: give both or neither")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca:
        load_authorities(context, Path(ca))
    else:
        context.load_default_certs()
    if cert:
        load_pair(context, Path(cert), Path(key))
    return context


class TokenFile:
    """The token in a file, which is read again when the file changes, so that tokens can be replaced."""

    def __init__(self, path: str) -> None:
        """Read the file; '' is none. Raises InvalidRequest."""
        self._path = Path(path) if path else None
        self._version: FileVersion | None = None
        self._token = ""
        self._unusable = ""
        """The reason that was logged last."""
        if self._path is not None:
            self._version = version_of(self._path)
            self._token = read_secret(self._path)

    def token(self) -> str:
        """Return the token; '' if there is no file. A version that cannot be used is logged, and changes nothing."""
        if self._path is None or (version := version_of(self._path)) == self._version:
            return self._token
        self._version = version
        try:
            token = read_secret(self._path)
        except InvalidRequest as error:
            self._log_once(error.detail)
            return self._token
        if token != self._token:
            self._token, self._unusable = token, ""
            _log.info("token read again", path=str(self._path))
        return self._token

    def _log_once(self, reason: str) -> None:
        if reason != self._unusable:
            self._unusable = reason
            _log.error("token file cannot be used, keeping the last token", reason=reason)

    def look_again(self) -> None:
        """Read the file at the next call even if it seems unchanged: its token was refused."""
        self._version = None


def options(url: str, tls: ssl.SSLContext, name: str) -> dict[str, Any]:
    """Return the arguments of an httpx client of the API at this URL. Raises ModuleNotFoundError without httpx."""
    import httpx

    return {
        "base_url": url,
        "verify": tls,
        "headers": {"User-Agent": name},
        # The token goes to this URL and nowhere else: through no proxy of the environment, and to no redirect.
        "trust_env": False,
        "follow_redirects": False,
        "limits": httpx.Limits(max_connections=None, max_keepalive_connections=KEPT, keepalive_expiry=KEEP_S),
    }


async def send(client: "httpx.AsyncClient", request: "httpx.Request") -> "httpx.Response":
    """Send a request. If the caller is cancelled while it connects, end it only once it has connected.

    uvloop leaves a socket open if connecting is cancelled.
    """
    connecting = set[str]()

    async def trace(event: str, _: object) -> None:
        name, _, step = event.rpartition(".")
        if name.endswith("connect_tcp"):
            connecting.add(name) if step == "started" else connecting.discard(name)

    request.extensions = {**request.extensions, "trace": trace}
    sending = asyncio.ensure_future(client.send(request))
    try:
        return await asyncio.shield(sending)
    except asyncio.CancelledError:
        await aio.finish(_end_connected(sending, connecting))
        raise


async def _end_connected(sending: "asyncio.Future[httpx.Response]", connecting: Collection[str]) -> None:
    while connecting and not sending.done():
        await asyncio.wait([sending], timeout=CONNECTED_S)
    sending.cancel()
    await asyncio.wait([sending])
    if not sending.cancelled():
        sending.exception()  # nobody is left to tell


def reason_of(error: Exception) -> str:
    """Return why a connection failed, as text that is never empty."""
    return str(error) or type(error).__name__
