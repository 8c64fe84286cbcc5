"""What the service says of itself, and of work that goes on after a response."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from redsched.model.records.fields import if_any
from redsched.model.role import Role


@dataclass(frozen=True, slots=True)
class About:
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


@dataclass(frozen=True, slots=True)
class Health:
    """The process is running."""

    status: Literal["ok"] = "ok"


@dataclass(frozen=True, slots=True)
class Ready:
    """The service is ready: the caches of all workers have caught up."""

    status: Literal["ready"] = "ready"
    detail: Annotated[str | None, if_any("Absent, as the next ones, for those who may not see details.")] = None
    hosts: Annotated[int | None, if_any()] = None
    workers: Annotated[int | None, if_any()] = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """Work in progress."""

    watch: Annotated[str, Field(description="Path that shows the progress; same as `Location`.")]


@dataclass(frozen=True, slots=True)
class Ending:
    """A claim that ends when its host reports that the work is gone."""

    claim_id: str
    state: Literal["ending"]
    watch: Annotated[str, Field(description="Path of the claim; same as `Location`.")]
