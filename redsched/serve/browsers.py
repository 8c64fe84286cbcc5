"""Protection from pages in browsers, which can send requests to any address that their user's machine reaches.

Programs send neither `Origin` nor `Sec-Fetch-Site`, so their requests cost one look at the names of their headers.
"""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass

from starlette.types import ASGIApp, Receive, Scope, Send

from redsched.errors import Forbidden, RedschedError
from redsched.requests.parsing import shown_text
from redsched.serve.problems import UnsupportedMediaType, problem
from redsched.settings import Settings

LOCALHOST = "localhost"
MAX_KNOWN = 64
"""The most accepted values of `Host` that are remembered."""

_BY_BROWSER = frozenset({b"origin", b"sec-fetch-site", b"sec-fetch-mode", b"sec-fetch-dest"})
_JSON = b"application/json"
_FOREIGN = (b"cross-site", b"same-site")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


@dataclass(frozen=True, slots=True)
class TrustedHosts:
    """The names under which clients reach the API; IP addresses and `localhost` are always trusted.

    A name that is not listed may be an attacker's that resolves to this API: its pages would have the same origin.
    """

    names: frozenset[str]

    @classmethod
    def of(cls, settings: Settings, bound: str = "") -> "TrustedHosts | None":
        """Return the hosts of the settings, and `bound`, on which the API listens. None if any name is accepted."""
        if settings.auth and not settings.trusted_hosts:
            return None  # a page has no token to send
        return cls(frozenset(name.lower() for name in (*settings.trusted_hosts, bound, LOCALHOST) if name))

    def accept(self, host: str) -> bool:
        """Return whether a `Host` header, which may have a port, is trusted."""
        name = _name(host).removesuffix(".")
        return name in self.names or _is_address(name)


class Browsers:
    """ASGI middleware, outside the gate: it refuses requests of foreign pages, and those for a host not trusted."""

    def __init__(self, app: ASGIApp, trusted: TrustedHosts | None) -> None:
        self._app, self._trusted = app, trusted
        self._known: set[bytes] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: D102 - the protocol is ASGI
        if scope["type"] == "http" and (refusal := self._refusal(scope)) is not None:
            return await problem(refusal)(scope, receive, send)
        return await self._app(scope, receive, send)

    def _refusal(self, scope: Scope) -> RedschedError | None:
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"")
        if self._trusted is not None and host not in self._known and not self._accept(host):
            return _not_trusted(host)
        is_browser = not _BY_BROWSER.isdisjoint(headers)
        if is_browser and not _opens_dashboard(scope, headers) and (foreign := _foreign(headers, host)) is not None:
            return Forbidden(f"the request comes from a page of {foreign}: only pages of this API itself may send one")
        if scope["method"] in _WITH_BODY and not _is_json(headers, is_browser):
            return UnsupportedMediaType(
                "the body is not declared as JSON: send the header Content-Type: application/json"
            )
        return None

    def _accept(self, host: bytes) -> bool:
        assert self._trusted is not None
        if host and not self._trusted.accept(host.decode("latin-1")):  # HTTP/1.0 may have none, and browsers send one
            return False
        if len(self._known) < MAX_KNOWN:
            self._known.add(host)
        return True


def _opens_dashboard(scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
    """Return whether a link leads to the dashboard, wherever the link is. Not in a frame; the page holds no data."""
    is_link = (headers.get(b"sec-fetch-mode"), headers.get(b"sec-fetch-dest")) == (b"navigate", b"document")
    return is_link and scope["path"] == "/" and scope["method"] == "GET"


def _foreign(headers: Mapping[bytes, bytes], host: bytes) -> str | None:
    """Return where the page comes from that sends the request; None if it is of this API, or there is none."""
    origin = headers.get(b"origin")
    if origin is not None and not _is_same(origin.decode("latin-1"), host.decode("latin-1")):
        return f"origin {shown_text(origin.decode('latin-1'))!r}"
    return "another site" if headers.get(b"sec-fetch-site", b"").strip().lower() in _FOREIGN else None


def _is_same(origin: str, host: str) -> bool:
    """Return whether an `Origin` is that of the `Host`: the same name and port. Its scheme may be that of a proxy."""
    scheme, separator, place = origin.strip().lower().partition("://")
    default = _DEFAULT_PORTS.get(scheme, "")
    return bool(separator and default) and place.removesuffix(default) == host.strip().lower().removesuffix(default)


def _is_json(headers: Mapping[bytes, bytes], is_browser: bool) -> bool:
    """Return whether a body is declared as JSON, or there is none: a browser must declare that too, so no form can."""
    declared = headers.get(b"content-type", b"")
    if declared == _JSON:
        return True
    media_type = declared.partition(b";")[0].strip().lower()
    if media_type.startswith(b"application/") and media_type.endswith((b"/json", b"+json")):
        return True
    has_body = headers.get(b"content-length", b"").strip(b"0 ") or b"transfer-encoding" in headers
    return not (has_body or is_browser)


def _name(host: str) -> str:
    """Return the name or address in a `Host` header, in lower case, without port and brackets."""
    host = host.strip().lower()
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _not_trusted(host: bytes) -> Forbidden:
    shown = shown_text(host.decode("latin-1"))
    return Forbidden(
        f"the host {shown!r} is not trusted: send requests to the address, or list the name in REDSCHED_TRUSTED_HOSTS"
    )
