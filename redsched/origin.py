"""The origin of what this process is doing: who asked for it, and by which request.

The API sets it for each request, and everything that the request causes reads it: log lines, claims, events, hooks.
"""

from contextvars import ContextVar, Token
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Origin:
    """Who caused something, and in which request."""

    actor: str = ""
    """The id of a token, the subject of an OpenID Connect token, or what redsched calls itself; empty: not known."""
    request_id: str = ""
    """The id of the request, the same in REST, the log, the claim, its events and its hooks."""


UNKNOWN = Origin()

_current: ContextVar[Origin] = ContextVar("redsched_origin", default=UNKNOWN)


def current() -> Origin:
    """Return the origin of what runs now."""
    return _current.get()


def enter(origin: Origin) -> Token[Origin]:
    """Make `origin` the origin of what this task does from now on. Returns what `leave` takes."""
    return _current.set(origin)


def leave(token: Token[Origin]) -> None:
    """Restore the origin that was current before `enter`."""
    _current.reset(token)
