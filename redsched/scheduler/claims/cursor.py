"""The `next` of a page of claims: a place in the order of a list, and since when claims may have moved past it.

Claims are listed by host, so one that moves to a host that was passed would come nowhere. Each pass over the hosts
therefore notes how far every cell had come when it began. After it comes another pass, over the claims that were
placed anew or lost their place since then; and so on until there are none.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from redsched.errors import InvalidRequest
from redsched.model.positions import Position

MOST_PASSES = 10
"""After this many passes a list ends, though claims go on moving."""

Place = tuple[str, str]
"""The sort key of a claim in lists: host and id. A claim without a placement has the host ''."""
Marks = Mapping[str, Position]
"""How far cells had come, by name. Whatever happened before is unknown of a cell that is not named."""

_MARK = re.compile("([^:,~]+):([0-9]+-[0-9A-Za-z]+):([0-9]{1,16})")


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a list of claims goes on. `began`: how far the cells had come when this pass began.

    `since`: the same of the pass before, for all passes but the first.
    """

    number: int
    began: Marks
    since: Marks = field(default_factory=dict)
    place: Place = ("", "")

    def __str__(self) -> str:
        return f"{self.number}~{_text(self.began)}~{_text(self.since)}~{':'.join(self.place)}"


def parse_cursor(after: str) -> Cursor:
    """Parse the `next` of a page. Raises InvalidRequest."""
    number, began, since, place = after.split("~", 3) if "~" in after and after.count("~") >= 3 else _former(after)
    host, colon, claim_id = place.partition(":")
    if not (colon and (claim_id or not host) and number.isdecimal() and 1 <= int(number[:3]) <= MOST_PASSES):
        raise _not_a_next(after)
    return Cursor(int(number), _marks(began, after), _marks(since, after), (host, claim_id))


def _former(after: str) -> tuple[str, str, str, str]:
    """Return the parts of a `next` of former releases, `<host>:<id>`: it does not tell when its list began."""
    if "~" in after or after == ":":
        raise _not_a_next(after)
    return "1", "", "", after


def _text(marks: Marks) -> str:
    return ",".join([one.id for one in marks.values()])


def _marks(text: str, after: str) -> Marks:
    found: dict[str, Position] = {}
    for one in text.split(",") if text else ():
        parts = _MARK.fullmatch(one)
        if parts is None or parts[1] in found:
            raise _not_a_next(after)
        found[parts[1]] = Position(parts[1], parts[2], int(parts[3]))
    return found


def _not_a_next(after: str) -> InvalidRequest:
    return InvalidRequest(f"after {after[:140]!r} is not the `next` of a page of claims: pass it unchanged")
