"""Following events over REST: those of all cells, each once, and from where it is asked to begin."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from redsched.cli.remote.events import RemoteEvents
from redsched.errors import InvalidRequest
from redsched.scheduler import EventFilter, EventView


def event(cell: str, number: int, kind: str = "claimed") -> EventView:
    """Return an event of a claim."""
    return EventView(f"{cell}:{1000 + number}-0", cell, 1000 + number, number, kind, {}, {"claim": f"{cell}-{number}"})


@dataclass(frozen=True)
class Played(RemoteEvents):
    """Events over REST, of which each call sees one more of the plays."""

    plays: list[Sequence[EventView]] = field(default_factory=list)

    async def newest(self, limit: int, wanted: EventFilter) -> Sequence[EventView]:
        return self.plays.pop(0) if len(self.plays) > 1 else self.plays[0]


async def followed(after: str, wanted: EventFilter, count: int, *plays: Sequence[EventView]) -> list[str]:
    """Return the claims of the first events that are followed."""
    found = list[str]()
    async for one in Played(None, list(plays)).follow(0.0, after, wanted):  # type: ignore[arg-type] # it is not used
        found.append(one.facts["claim"])
        if len(found) == count:
            break
    return found


async def test_new_events_of_each_cell_come_once() -> None:
    before = [event("c1", 1), event("c2", 1)]
    then = [*before, event("c1", 2)]
    last = [*then, event("c2", 3), event("c1", 4)]
    assert await followed("", EventFilter(), 3, before, then, then, last) == ["c1-2", "c2-3", "c1-4"]


async def test_it_begins_after_an_event_in_its_cell() -> None:
    known = [event("c1", 1), event("c2", 1), event("c1", 2), event("c1", 3)]
    later = [*known, event("c2", 4)]
    assert await followed("c1:1001-0", EventFilter(), 3, known, known, later) == ["c1-2", "c1-3", "c2-4"]
    with pytest.raises(InvalidRequest, match="not an event's id"):
        await followed("yesterday", EventFilter(), 1, known)


async def test_other_kinds_are_left_out() -> None:
    then = [event("c1", 2), event("c1", 3, "active"), event("c1", 4)]
    assert await followed("", EventFilter(kind="active"), 1, [event("c1", 1)], then) == ["c1-3"]
