"""ETags of declared objects, If-Match and If-None-Match: protection against lost updates.

A tag is a digest of the declared state only: claimed amounts, members and reports do not change it. The script that
writes compares it, so of several writers that read the same state only one succeeds.
"""

from collections.abc import Awaitable
from typing import Annotated, Protocol

from fastapi import Depends, Header, Request

from redsched.errors import InvalidRequest
from redsched.model.conditions import ABSENT, EXISTS, IfMatch

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
IfNoneMatchHeader = Annotated[
    str,
    Header(
        alias="If-None-Match",
        pattern=r"^\*?$",
        description="`*`: proceed only if the object does not exist. Not with `If-Match`.",
        examples=["*"],
    ),
]


async def _of_write(if_match: IfMatchHeader = "") -> None:
    """Validate the syntax of the header. The script that writes compares its tags."""


async def _of_put(if_match: IfMatchHeader = "", if_none_match: IfNoneMatchHeader = "") -> None:
    """Validate the syntax of both headers."""
    if if_match and if_none_match:
        raise InvalidRequest(
            "If-Match requires that the object exists, If-None-Match that it does not: send one of them"
        )


IF_MATCH = Depends(_of_write)
"""The dependency of routes that honour If-Match: each passes `if_match(request)` to the scheduler's call."""
IF_EITHER = Depends(_of_put)
"""The same for routes that create objects too, and so honour If-None-Match: each passes `condition(request)`."""


class Tagged(Protocol):
    """A service whose objects have tags."""

    def tag(self, name: str, /) -> Awaitable[str]: ...  # noqa: D102


def if_match(request: Request) -> IfMatch:
    """Return the tags in If-Match; None without the header. A weak tag matches nothing (RFC 9110, 13.1.1)."""
    wanted = request.headers.get("if-match")
    if not wanted:
        return None
    return EXISTS if wanted == "*" else [one.strip().strip('"') for one in wanted.split(",")]


def condition(request: Request) -> IfMatch:
    """Return the condition in If-Match or If-None-Match; None without both headers."""
    return ABSENT if request.headers.get("if-none-match") else if_match(request)


async def etag_of(objects: Tagged, name: str) -> dict[str, str]:
    """Return the ETag header of an object. Read it before the object: a tag newer than the state would match."""
    return header_of(await objects.tag(name))


def header_of(tag: str) -> dict[str, str]:
    """Return the ETag header for a tag."""
    return {"ETag": f'"{tag}"'}
