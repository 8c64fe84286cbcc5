"""Changes, and what those who run redsched ask for."""

from typing import Any, Literal

from redsched.api.models.words import Answer


class ChangeAnswer(Answer):
    """The data of a `change` event: new absolute values of what changed."""

    cell: str
    seq: int
    kind: str
    name: str
    version: int
    op: str
    fields: dict[str, Any]


class HealthAnswer(Answer):
    """The process answers."""

    status: Literal["ok"]


class ReadyAnswer(Answer):
    """Every worker's cache has caught up."""

    status: Literal["ready"]
    detail: str
    hosts: int
    workers: int
