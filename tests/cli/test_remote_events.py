"""Following events over REST: those of all cells, each once, and from where it is asked to begin."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from redsched.client.async_client import AsyncEvents
from redsched.model.filters import EventFilter
from redsched.model.records.events import Event
from redsched.model.records.pages import Page
from redsched.operations.events import Events


def event(cell: str, number: int, kind: str = "claimed", beside: str = "") -> Event:
    """Return an event of a claim, whose id also has the places `beside`."""
    event_id = f"{cell}:{1000 + number}-0"
    named = f"{event_id},{beside}" if beside else event_id
    return Event(named, cell, 1000 + number, number, kind, {}, {"claim": f"{cell}-{number}"})


@dataclass
class Played:
    """The link of a client: the latest events, and of each further call one more of the plays."""

    latest: Sequence[Event]
    plays: list[Page[Event]]
    asked: list[str] = field(default_factory=list)
    """Where these began."""
    blocks = False

    async def carry_out(self, operation: Any, arguments: Mapping[str, Any]) -> Any:
        if operation is Events.newest:
            return self.latest
        self.asked.append(arguments["after"])
        return self.plays.pop(0)


async def followed(played: Played, after: str, count: int, wanted: EventFilter = EventFilter()) -> list[str]:  # noqa: B008
    """Return the first events that are followed."""
    found = list[str]()
    async for one in AsyncEvents(played).follow(0.0, after, wanted):
        found.append(one.facts.get("claim", one.kind))
        if len(found) == count:
            break
    return found


def played(latest: Sequence[Event], *plays: Page[Event]) -> Played:
    return Played(latest, list(plays))


async def test_new_events_come_once_and_all_of_them() -> None:
    """However many there are in a turn: it goes on page by page."""
    first = Page((event("c1", 2), event("c1", 3)), "c1:1003-0,c2:1001-0")
    over = played(
        [event("c1", 1, beside="c2:1001-0")], first, Page((event("c2", 4),)), Page(()), Page((event("c1", 5),))
    )
    assert await followed(over, "", 4) == ["c1-2", "c1-3", "c2-4", "c1-5"]
    assert over.asked[:2] == ["c1:1001-0,c2:1001-0", "c1:1003-0,c2:1001-0"]
    assert over.asked[3] == "c2:1004-0"


async def test_it_begins_after_an_event_and_shows_what_may_be_missing() -> None:
    reset = Event("c2:0-0,c1:1002-0", "c2", 9, 0, "reset", {}, {})
    over = played([event("c1", 9)], Page((event("c1", 2), reset, event("c2", 4))))
    assert await followed(over, "c1:1001-0", 3, EventFilter(kind="claimed")) == ["c1-2", "reset", "c2-4"]
    assert over.asked == ["c1:1001-0"]


async def test_a_cell_without_events_at_the_beginning_has_missed_none() -> None:
    reset = Event("c2:0-0,c1:1001-0", "c2", 9, 0, "reset", {}, {})
    over = played([event("c1", 1)], Page((reset, event("c2", 4))), Page((reset, event("c2", 5))))
    assert await followed(over, "", 3) == ["c2-4", "reset", "c2-5"]


async def test_other_kinds_are_left_out() -> None:
    over = played([event("c1", 1)], Page((event("c1", 2), event("c1", 3, "active"), event("c1", 4))))
    assert await followed(over, "", 1, EventFilter(kind="active")) == ["c1-3"]
