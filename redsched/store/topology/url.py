"""Store URLs: their syntax and their meaning. router.py connects.

    redis://[user:password@]host[:port][/db]                               one server
    rediss://...                                                           the same over TLS
    unix://[user:password@]/path/to.sock[?db=0]                            one server, by its unix socket
    sentinel://[user:password@]host[:port],host[:port]/master[/db]         the primary that Sentinels know by that name
    cluster://[user:password@]host[:port],host[:port]                      a cluster, found through any of these nodes

Options after `?`: `db`; `tls=yes` and the `ssl_` options for TLS; `sentinel_username` and `sentinel_password` if the
Sentinels have credentials of their own. Everything else is refused: timeouts and the like are settings of redsched, and
an option of the client library could break what redsched relies on.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from redsched.errors import InvalidRequest

Address = tuple[str, int]

SHAPES = (
    "redis://host:port/0 (the port a number up to 65535), rediss://..., unix:///path, "
    "sentinel://host:port,host:port/master or cluster://host:port,host:port"
)
TLS_OPTIONS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs", "ssl_check_hostname")

_DB_OPTION, _TLS_OPTION, _SENTINEL_OPTIONS = "db", "tls", ("sentinel_username", "sentinel_password")
_ALLOWED = {
    "redis": (_DB_OPTION,),
    "rediss": (_DB_OPTION, *TLS_OPTIONS),
    "unix": (_DB_OPTION,),
    "sentinel": (_DB_OPTION, _TLS_OPTION, *_SENTINEL_OPTIONS, *TLS_OPTIONS),
    "cluster": (_TLS_OPTION, *TLS_OPTIONS),
}
_DEFAULT_PORT = {"redis": 6379, "rediss": 6379, "sentinel": 26379, "cluster": 6379}
_YES_NO = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
_HOST = re.compile(r"\[(?P<v6>[0-9A-Fa-f:.%]+)\](?::(?P<port6>\d+))?|(?P<host>[^\[\]:,/@]+)(?::(?P<port>\d+))?")


class Kind(StrEnum):
    """The kind of store that a URL names."""

    SERVER = "server"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """A parsed store URL. `nodes` are servers or Sentinels; a unix socket has a `path` and no nodes."""

    text: str
    kind: Kind
    nodes: tuple[Address, ...] = ()
    path: str = ""
    master: str = ""
    db: int = 0
    tls: bool = False
    username: str | None = None
    password: str | None = None
    options: Mapping[str, str | bool] = field(default_factory=dict)
    """The `ssl_` options, as redis-py's connections take them."""
    sentinel_login: Mapping[str, str] = field(default_factory=dict)
    """`username` and `password` for the Sentinels themselves."""


def parse(url: str) -> StoreUrl:
    """Parse a store URL. Raises InvalidRequest, whose message never shows a password."""
    try:
        parts = urlsplit(url)
        if parts.scheme not in _ALLOWED:
            raise _SafeReason(f"it begins with none of {', '.join(f'{one}://' for one in _ALLOWED)}")
        return _parsed(url, parts, _options(parts))
    except ValueError as error:
        # An @ after the addresses ends a password that contains / # or ?: what was parsed is then part of the password.
        shown = isinstance(error, _SafeReason) and "@" not in re.sub("^[^/]*//[^/?#]*", "", url)
        why = f": {error}" if shown else ""
        raise InvalidRequest(
            f"store URL {_hidden(url)!r} is not valid{why}: use {SHAPES}, "
            "and write / # ? @ , in a password as %2F %23 %3F %40 %2C"
        ) from None


def check_url(url: str) -> str:
    """Return the URL if it is a valid store URL, else raise InvalidRequest."""
    parse(url)
    return url


def without_password(url: str) -> str:
    """Return the URL without its password, as it may be shown and logged."""
    shown = re.sub(r"(sentinel_password=)[^&]*", r"\1***", url)
    login, at, rest = shown.partition("://")[2].rpartition("@")
    user, colon, _ = login.partition(":")
    return f"{shown.partition('://')[0]}://{user}:***{at}{rest}" if colon else shown


class _SafeReason(ValueError):
    """A reason that quotes nothing secret."""


def _hidden(url: str) -> str:
    return re.sub("//.*@", "//***@", re.sub(r"(sentinel_password=)[^&]*", r"\1***", url))


def _parsed(url: str, parts: SplitResult, options: dict[str, str]) -> StoreUrl:
    login, _, places = parts.netloc.rpartition("@")
    username, _, password = login.partition(":")
    kind = Kind(parts.scheme) if parts.scheme in ("sentinel", "cluster") else Kind.SERVER
    master, db = _path(kind, parts, options)
    unix = parts.scheme == "unix"
    if unix and (places or not parts.path.strip("/")):
        raise _SafeReason("the path of a unix socket begins with a third /")
    return StoreUrl(
        text=url,
        kind=kind,
        nodes=() if unix else tuple(_node(one, parts.scheme) for one in _places(kind, places)),
        path=unquote(parts.path) if unix else "",
        master=master,
        db=db,
        tls=parts.scheme == "rediss" or _is_yes(options, _TLS_OPTION),
        username=unquote(username) or None,
        password=unquote(password) or None,
        options=_tls(options),
        sentinel_login={name.removeprefix("sentinel_"): options[name] for name in _SENTINEL_OPTIONS if name in options},
    )


def _options(parts: SplitResult) -> dict[str, str]:
    if parts.fragment:
        raise _SafeReason("nothing may follow a #")
    found = dict(parse_qsl(parts.query, keep_blank_values=True))
    allowed = _ALLOWED[parts.scheme]
    for name in found:
        if name not in allowed:
            raise _SafeReason(f"option {name!r} is not one of {', '.join(allowed)}; timeouts and the like are settings")
    if _TLS_OPTION in allowed and not _is_yes(found, _TLS_OPTION) and any(name in TLS_OPTIONS for name in found):
        raise _SafeReason("ssl_ options need tls=yes")
    return found


def _path(kind: Kind, parts: SplitResult, options: Mapping[str, str]) -> tuple[str, int]:
    """Return the primary's name and the database number."""
    segments = [] if parts.scheme == "unix" else [unquote(word) for word in parts.path.split("/")[1:]]
    master = ""
    if kind is Kind.SENTINEL:
        master = segments.pop(0) if segments else ""
        if not master:
            raise _SafeReason("the name by which the Sentinels know the primary is missing after the addresses")
    db = segments.pop(0) if segments else ""
    if any(segments) or (kind is Kind.CLUSTER and db):
        raise _SafeReason("nothing may follow there" if kind is not Kind.CLUSTER else "a cluster has no databases")
    return master, _number("db", options.get(_DB_OPTION, db) or "0")


def _places(kind: Kind, places: str) -> list[str]:
    if kind is Kind.SERVER:
        return [places or "localhost"]
    return places.split(",")


def _node(place: str, scheme: str) -> Address:
    found = _HOST.fullmatch(place)
    if not found:
        raise _SafeReason(f"{place!r} is not of the form host:port") if "@" not in place else ValueError
    port = int(found["port6"] or found["port"] or _DEFAULT_PORT[scheme])
    if not 0 < port < 65_536:
        raise _SafeReason(f"port {port} is not one of 1 to 65535")
    return unquote(found["v6"] or found["host"]), port


def _tls(options: Mapping[str, str]) -> dict[str, str | bool]:
    found: dict[str, str | bool] = {name: options[name] for name in TLS_OPTIONS if name in options}
    if "ssl_check_hostname" in found:
        found["ssl_check_hostname"] = _is_yes(options, "ssl_check_hostname")
    if found.get("ssl_cert_reqs", "required") not in ("required", "optional", "none"):
        raise _SafeReason("ssl_cert_reqs is required, optional or none")
    return found


def _is_yes(options: Mapping[str, str], name: str) -> bool:
    value = options.get(name, "no").lower()
    if value not in _YES_NO:
        raise _SafeReason(f"{name} is yes or no, not {value!r}")
    return _YES_NO[value]


def _number(name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise _SafeReason(f"{name} is a number, not {text!r}")
    return int(text)
