"""The operations on the log of events."""

from redsched.auth.policy import READ_OWN_PROJECTS
from redsched.errors import InvalidRequest, NotFound
from redsched.model import OneOf
from redsched.model.filters import ALL, EventFilter
from redsched.model.records.events import Event
from redsched.model.records.pages import EVENTS, Page
from redsched.operations.operation import Arguments, Mode, Part, Reply, Sent, listing, operation, query
from redsched.operations.route import Route

LIST = Route(
    id="list_events",
    method="GET",
    path="/v1/events",
    tag="changes",
    summary="List events",
    policy=READ_OWN_PROJECTS,
    answers={200: EVENTS},
    errors=(NotFound,),
    query="EventsQuery",
    notes="With `newest`, return the latest events.",
)


def _asked(arguments: Arguments) -> Sent:
    *rest, (_, wanted) = arguments.items()  # the filter is the last
    if wanted.of_projects is not None:
        raise InvalidRequest("of_projects is for programs with access to the store: name projects instead")
    return Sent(query=query(**wanted.given, **dict(rest)))


def _latest(arguments: Arguments) -> Sent:
    return Sent(query=(*_asked(arguments).query, *query(newest=True)))


def _events(reply: Reply) -> tuple[Event, ...]:
    return EVENTS.read(reply.content).items


class Events(Part[Mode]):
    """The log of events."""

    group = "events"

    @listing(Event, LIST, sends=_asked)
    def list(self, limit: int = 100, after: str = "", wanted: EventFilter = ALL) -> Page[Event]:
        """Return a page of events, cell by cell, oldest first."""

    @operation(LIST, sends=_latest, reads=_events)
    def newest(self, limit: int = 100, wanted: EventFilter = ALL) -> tuple[Event, ...]:
        """Return the latest events of all cells, ordered by time."""

    @listing(
        Event,
        Route(
            id="list_claim_events",
            method="GET",
            path="/v1/claims/{claim_id}/events",
            tag="changes",
            summary="List a claim's events",
            policy=READ_OWN_PROJECTS,
            answers={200: EVENTS},
            errors=(NotFound,),
            query="ClaimEventsQuery",
        ),
    )
    def of_claim(
        self, claim_id: str, kind: OneOf = None, newest: bool = False, limit: int = 100, after: str = ""
    ) -> Page[Event]:
        """Return a page of the events of one claim; an empty page if none are known."""
