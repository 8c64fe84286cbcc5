"""Positions in the histories of cells, and the ids that name them: `c1:1795251499598-651f2cc8:20,c2:...`.

A `seq` alone names no change: after a wipe or a failover a cell counts again from an earlier number. So each position
has the epoch in which the change was made, and an id has a position for each cell that is followed.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from redsched.errors import InvalidRequest

_CELL, _SEQ = r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", r"[0-9]{1,16}"
_POSITION = rf"{_CELL}:[0-9]{{1,16}}-[0-9a-zA-Z]{{1,16}}:{_SEQ}"
ID_PATTERN = rf"{_POSITION}(,{_POSITION})*|{_CELL}:{_SEQ}"
"""The second form, `<cell>:<seq>`, is that of releases before ids had an epoch."""
_ID = re.compile(ID_PATTERN)


@dataclass(frozen=True, slots=True)
class Position:
    """After which change of a cell a reader goes on. The epoch '' is unknown, and equal to none."""

    cell: str
    epoch: str
    seq: int

    @property
    def id(self) -> str:
        """The position as a part of an id."""
        return f"{self.cell}:{self.epoch}:{self.seq}"


def id_of(positions: Iterable[Position]) -> str:
    """Return the id for positions in different cells."""
    return ",".join([one.id for one in positions])


def parse_positions(last_id: str) -> Mapping[str, Position]:
    """Return the positions that an id names, by cell. Raises InvalidRequest."""
    if not _ID.fullmatch(last_id):
        raise InvalidRequest(
            f"Last-Event-ID {last_id[:80]!r} is not `<cell>:<epoch>:<seq>`, or several of these separated by commas: "
            "pass the id of the last event unchanged"
        )
    found: dict[str, Position] = {}
    for text in last_id.split(","):
        cell, *epoch, seq = text.split(":")
        if cell in found:
            raise InvalidRequest(f"Last-Event-ID names cell {cell} twice: pass the id of the last event unchanged")
        found[cell] = Position(cell, "".join(epoch), int(seq))
    return found
