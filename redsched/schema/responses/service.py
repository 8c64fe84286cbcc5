"""Changes, and what those who run redsched ask for."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from redsched.scheduler import Change
from redsched.schema.answer import Answer


class ChangeAnswer(Answer, shows=Change):
    """The data of a `change` event: new absolute values of what changed."""

    cell: str
    seq: int
    kind: str
    name: str
    version: int
    op: str
    fields: dict[str, Any]


class EventAnswer(Answer):
    """What happened, when, by which change of the cell; and what else is known of it."""

    model_config = ConfigDict(extra="allow")

    id: str
    cell: str
    at_ms: int
    seq: int
    kind: str
    slots: dict[str, int] = Field(default_factory=dict)


class EventsAnswer(Answer):
    """A page of events. `next`: the `after` of the next one; null where there is no more now."""

    events: list[EventAnswer]
    next: str | None


class AboutAnswer(Answer):
    """What answers here, and where it is described."""

    name: str
    version: str
    summary: str
    openapi: Annotated[str, Field(description="The path of the OpenAPI document.")]
    docs: Annotated[str, Field(description="The path of a page to try it at.")]


class HealthAnswer(Answer):
    """The process answers."""

    status: Literal["ok"]


class ReadyAnswer(Answer):
    """Every worker's cache has caught up."""

    status: Literal["ready"]
    detail: str
    hosts: int
    workers: int
