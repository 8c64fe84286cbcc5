"""Responses about changes, events and the service itself."""

from typing import Annotated, Any, Literal

from pydantic import Field

from redsched.scheduler import Change
from redsched.schema.answer import Answer


class ChangeAnswer(Answer, shows=Change):
    """The data of a `change` event: the new absolute values of the changed fields."""

    cell: str
    seq: int
    kind: str
    name: str
    version: int
    op: str
    fields: dict[str, Any]


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
