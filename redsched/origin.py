"""The origin of what this process is doing: who asked for it, and by which request.

The API sets it for each request, and everything that the request causes reads it: log lines, claims, events, hooks.
"""

import re
from contextvars import ContextVar, Token
from dataclasses import dataclass

from redsched.errors import InvalidRequest


@dataclass(frozen=True, slots=True)
class Origin:
    """Who caused something, and in which request."""

    actor: str = ""
    """The id of a token, the subject of an OpenID Connect token, or what redsched calls itself; empty: not known."""
    request_id: str = ""
    """The id of the request, the same in REST, the log, the claim, its events and its hooks."""


UNKNOWN = Origin()
SCHEDULER = Origin("scheduler")
"""What schedulers do in the background: expiry, drains, evacuations, repairs."""

MAX_ACTOR, MAX_REQUEST_ID = 255, 64
"""The most characters of an actor and of a request id that the store keeps."""

_REQUEST_ID = re.compile(rf"[A-Za-z0-9._-]{{1,{MAX_REQUEST_ID}}}")
_current: ContextVar[Origin] = ContextVar("redsched_origin", default=UNKNOWN)


def current() -> Origin:
    """Return the origin of what runs now."""
    return _current.get()


def agent_of(host: str) -> str:
    """Return the actor of what a host's agent does by itself."""
    return f"agent:{host}"


def enter(origin: Origin) -> Token[Origin]:
    """Make `origin` the origin of what this task does from now on. Returns what `leave` takes."""
    return _current.set(origin)


def leave(token: Token[Origin]) -> None:
    """Restore the origin that was current before `enter`."""
    _current.reset(token)


def checked(origin: Origin) -> Origin:
    """Return an origin that can be stored. Raises InvalidRequest for one that is too long or not printable."""
    if not origin.actor.isprintable() or len(origin.actor) > MAX_ACTOR:
        raise InvalidRequest(
            f"the actor {origin.actor[:80]!r} is not up to {MAX_ACTOR} printable characters: use a shorter, plain id"
        )
    if not is_request_id(origin.request_id) and origin.request_id:
        raise InvalidRequest(
            f"the request id {origin.request_id[:80]!r} is not 1 to {MAX_REQUEST_ID} letters, digits, '.', '_' or '-'"
        )
    return origin


def is_request_id(text: str) -> bool:
    """Return whether a text may be the id of a request: 1 to MAX_REQUEST_ID letters, digits, `.`, `_` and `-`."""
    return _REQUEST_ID.fullmatch(text) is not None
