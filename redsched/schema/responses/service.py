"""Responses about changes, events and the service itself."""

from typing import Annotated, Literal

from pydantic import Field

from redsched.schema.answer import Answer


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
