"""Responses about changes, events and the service itself."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from redsched.auth.caller import Role
from redsched.model import Amounts
from redsched.scheduler import Change, EventView, Page
from redsched.schema.answer import Answer, From


class ChangeAnswer(Answer, shows=Change):
    """The data of a `change` event: the new absolute values of the changed fields."""

    cell: str
    seq: int
    kind: str
    name: str
    version: int
    op: str
    fields: dict[str, Any]


class EventAnswer(Answer, shows=EventView):
    """An event: its kind, its time, the change of the cell that caused it (`seq`), and further fields."""

    model_config = ConfigDict(extra="allow")

    id: str
    cell: str
    at_ms: int
    seq: int
    kind: str
    slots: Amounts = Field(default_factory=dict)

    @classmethod
    def of(cls, thing: EventView) -> dict[str, Any]:
        """Return the response for an event: its facts are members beside the others."""
        shown = super().of(thing)
        slots = {"slots": shown.pop("slots")} if thing.slots else {}
        return {**shown, **thing.facts, **slots}


class EventsAnswer(Answer, shows=Page):
    """A page of events. `next` is the `after` of the next page, null if there are no more events yet."""

    events: Annotated[list[EventAnswer], From("items")]
    next: str | None


class AboutAnswer(Answer):
    """The service and the paths of its documentation."""

    name: str
    version: str
    summary: str
    openapi: Annotated[str, Field(description="Path of the OpenAPI document.")]
    docs: Annotated[str, Field(description="Path of an interactive page for trying out the API.")]
    role: Annotated[
        Role | None,
        Field(description="What the caller may do; `operator` without authentication, null without a valid token."),
    ]


class HealthAnswer(Answer):
    """The process is running."""

    status: Literal["ok"]


class ReadyAnswer(Answer):
    """The service is ready: the caches of all workers have caught up."""

    status: Literal["ready"]
    detail: Annotated[str | None, Field(description="Absent, as the next ones, for those who may not see details.")] = (
        None
    )
    hosts: int | None = None
    workers: int | None = None
