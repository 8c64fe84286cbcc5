"""Problems: the bodies of all 4xx and 5xx responses."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from typing_extensions import TypeAliasType

from redsched.model import ReasonCount
from redsched.model.kept_for import KeptFor
from redsched.model.records.explanations import Miss, PlacesMiss
from redsched.schema.answer import Answer

# The API fills in the enum, because it defines further problems.
ProblemType = TypeAliasType("ProblemType", Annotated[str, WithJsonSchema({"type": "string", "enum": []})])


class Problem(BaseModel):
    """An RFC 9457 problem. Further members are details for programs."""

    model_config = ConfigDict(extra="allow")

    type: ProblemType
    title: str
    status: int
    detail: Annotated[str, Field(description="The value seen, the rule it broke, and the next step.")]
    request_id: Annotated[str | None, Field(description="The same as in the header `X-Request-Id`.")] = None


class FieldError(BaseModel):
    """One invalid field."""

    field: str
    message: str


class InvalidProblem(Problem):
    """422: `errors` lists the invalid fields."""

    errors: list[FieldError] | None = None


class FailedAttempt(Answer):
    """A placement that did not become active, and why."""

    claim_id: str
    host: str
    at_ms: Annotated[int, Field(description="When it ended, or when a scheduler found that it had.")]
    kind: Annotated[
        str, Field(description="An end reason such as `failed` or `expired`; `not-confirmed`; `unknown`: it was lost.")
    ]
    reason: Annotated[str, Field(description="The cause as text; empty if none was given.")]


class NotConfirmedProblem(Problem):
    """504: a selection with `until: active` was not confirmed in time; its failed attempts on each host."""

    claim_ids: list[str] | None = None
    failed_attempts: Annotated[
        list[FailedAttempt] | None,
        Field(description="Failed attempts by claim, in the order in which they were found."),
    ] = None


class NoValidHostProblem(Problem):
    """409: no host fits; the reasons, and the nearest misses."""

    reasons: list[ReasonCount] | None = None
    nearest: list[Miss] | None = None
    cut_short: Annotated[
        bool | None, Field(description="true: the search for changes took too long, so that some may be missing.")
    ] = None
    places: Annotated[
        PlacesMiss | None, Field(description="Hosts fit one place, but not all: the rule, and how many fit.")
    ] = None
    slot: Annotated[str | None, Field(description="Of a resize: the slot that refuses its amount.")] = None
    asked: Annotated[int | None, Field(description="Of a resize: that amount.")] = None
    rule: Annotated[
        str | None,
        Field(description="Of a resize: what refuses it: `room`, `kept`, `min_unit`, `max_unit` or `step_size`."),
    ] = None
    value: Annotated[
        int | None,
        Field(description="Of a resize: the value of the rule; of `room`, the most that it may have."),
    ] = None
    next: Annotated[
        list[int] | None, Field(description="Of a resize: the next smaller and larger amount that it can get, or has.")
    ] = None
    kept: Annotated[KeptFor | None, Field(description="Of a resize: what the host keeps for a request that waits.")] = (
        None
    )
