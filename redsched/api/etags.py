"""ETags of declared objects, and If-Match: protection against lost updates.

A tag is a digest of the declared state only: claimed amounts, members and reports do not change it. The script that
writes compares it, so of several writers that read the same state only one succeeds.
"""

from collections.abc import Awaitable
from typing import Annotated, Protocol

from fastapi import Depends, Header, Request

from redsched.scheduler import ANY, IfMatch

_TAG = r'(W/)?"[!#-~]{0,100}"'
IfMatchHeader = Annotated[
    str,
    Header(
        alias="If-Match",
        pattern=rf"^(\*|{_TAG}( *, *{_TAG}){{0,9}})?$",
        description="Proceed only if the object has one of these ETags; `*`: only if it exists.",
        examples=['"2fd4e1c67a2d28fced849ee1bb76e7391b93eb12"'],
    ),
]


async def _declared(if_match: IfMatchHeader = "") -> None:
    """Validate the syntax of the header. The script that writes compares its tags."""


IF_MATCH = Depends(_declared)
"""The dependency of routes that honour If-Match: each passes `if_match(request)` to the scheduler's call."""


class Tagged(Protocol):
    """A service whose objects have tags."""

    def tag(self, name: str, /) -> Awaitable[str]: ...  # noqa: D102


def if_match(request: Request) -> IfMatch:
    """Return the tags in If-Match; None without the header. A weak tag matches nothing (RFC 9110, 13.1.1)."""
    wanted = request.headers.get("if-match")
    if not wanted:
        return None
    return ANY if wanted == "*" else [one.strip().strip('"') for one in wanted.split(",")]


async def etag_of(objects: Tagged, name: str) -> dict[str, str]:
    """Return the ETag header of an object. Read it before the object: a tag newer than the state would match."""
    return {"ETag": f'"{await objects.tag(name)}"'}
