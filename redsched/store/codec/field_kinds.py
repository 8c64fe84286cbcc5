"""The kinds of values in a claim's hash: how a text is read and written, and which texts and JSON a host may report."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field

from redsched.errors import InvalidRequest
from redsched.model.claims import LOCAL, LOG_PATH
from redsched.model.tokens import Token
from redsched.model.types import GivenName, GivenOwner
from redsched.model.validation import MAX_AMOUNT, check_name, check_owner, parse_int, shown
from redsched.origin import MAX_ACTOR, MAX_REQUEST_ID, Origin, checked

Check = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of value.

    `check` raises InvalidRequest for a text that no journal can contain. `read` returns what a text stands for, `write`
    the text for it. `given`: the type of the value in the JSON of a report.
    """

    check: Check
    read: Callable[[str], Any] = str
    write: Callable[[Any], str] = str
    given: Any = str


def matching(pattern: str, given: Any = str) -> Kind:
    """Return the kind of texts that match a pattern as a whole."""
    compiled = re.compile(rf"(?:{pattern})\Z")

    def check(text: str) -> None:
        if not compiled.match(text):
            raise InvalidRequest(f"{shown(text)} is malformed: report what the store returned")

    return Kind(check, given=given)


def whole(low: int, high: int = MAX_AMOUNT, absent: int = 0, given: Any = None) -> Kind:
    """Return the kind of whole numbers from `low` to `high`; an unreadable one is read as `absent`."""

    def check(text: str) -> None:
        if not low <= parse_int(text, -1) <= high:
            raise InvalidRequest(f"must be a whole number from {low} to {high}, not {shown(text)}")

    def read(text: str) -> int:
        return parse_int(text, absent)

    return Kind(check, read, given=given or Annotated[int, Field(ge=min(low, absent), le=high)])


def one_of(kind: type[StrEnum], given: Any = None) -> Kind:
    """Return the kind of the values of an enumeration."""
    values = frozenset(one.value for one in kind)

    def check(text: str) -> None:
        if text not in values:
            raise InvalidRequest(f"must be one of {', '.join(sorted(values))}, not {shown(text)}")

    return Kind(check, kind, given=given or kind)


def _name(text: str) -> None:
    if text:
        check_name("name", text)


def gang_members_text(members: Mapping[str, Iterable[str]]) -> str:
    """Return the claims of each member of a gang, in the form that a claim's hash stores."""
    return " ".join(f"{name}={','.join(ids)}" for name, ids in members.items())


def _gang_members(text: str) -> dict[str, tuple[str, ...]]:
    pairs = (one.partition("=") for one in text.split())
    return {name: tuple(ids.split(",")) for name, _, ids in pairs}


_NameOrNone = GivenName | Literal[""]
_OwnerOrNone = GivenOwner | Literal[""]
_TimeOrNone = Annotated[int, Field(ge=0)] | None

NAME = Kind(_name, given=_NameOrNone)
OWNER = Kind(check_owner, given=_OwnerOrNone)
ACTOR = Kind(
    lambda text: checked(Origin(actor=text)),
    given=Annotated[str, Field(pattern=rf"^[^\x00-\x1f\x7f]{{0,{MAX_ACTOR}}}$")],
)
REQUEST_ID = Kind(
    lambda text: checked(Origin(request_id=text)),
    given=Annotated[str, Field(pattern=rf"^[A-Za-z0-9._-]{{0,{MAX_REQUEST_ID}}}$")],
)
DIGEST = matching(rf"[0-9a-f]{{1,64}}|{LOCAL}", Annotated[str, Field(pattern="^[0-9a-f]{0,64}$")])
TOKEN = Kind(Token.parse)
COUNT = whole(0)
TIME = whole(0, given=_TimeOrNone)
"""Unix, ms."""

_MEMBER = r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}"
_GROUP = rf"{_MEMBER}={_MEMBER}(?:,{_MEMBER})*"
"""A member with its claims: `db=a,b`. There is one way to read each text, so a match takes linear time."""
GANG_MEMBERS = Kind(matching(rf"{_GROUP}(?: {_GROUP})*").check, _gang_members, gang_members_text)
LOG = matching(rf"{_MEMBER}:{LOG_PATH}")
