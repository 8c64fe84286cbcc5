"""Where the API is, how its certificate is verified, and the token that is sent to it."""

import ssl
from pathlib import Path
from urllib.parse import urlsplit

from redsched import logs
from redsched.auth.addresses import is_this_machine
from redsched.auth.certificates import load_authorities, load_pair
from redsched.auth.private_file import FileVersion, version_of
from redsched.auth.secret_file import read_secret
from redsched.errors import InvalidRequest

_log = logs.get_logger(__name__)


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
