"""Problems: the bodies of all 4xx and 5xx responses."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema
from typing_extensions import TypeAliasType

from redsched.schema.answer import Answer
from redsched.schema.types import Amounts

# The API fills in the enum, because it defines further problems.
ProblemType = TypeAliasType("ProblemType", Annotated[str, WithJsonSchema({"type": "string", "enum": []})])


class Problem(BaseModel):
    """An RFC 9457 problem. Further members have facts for programs."""

    model_config = ConfigDict(extra="allow")

    type: ProblemType
    title: str
    status: int
    detail: Annotated[str, Field(description="What was wrong, the value seen, and what to do.")]


class FieldError(BaseModel):
    """One invalid field."""

    field: str
    message: str


class ReasonCount(Answer):
    """The number of hosts that were excluded for one reason."""

    reason: str
    hosts: int


class Miss(Answer):
    """A host that nearly fitted."""

    host: str
    needs: Amounts
    free: Amounts
    changes: Annotated[list[str], Field(description="What together would make it fit; empty where none was found.")]
    after: Annotated[str | None, Field(description="A claim after whose end it would fit.")] = None
    member: Annotated[str | None, Field(description="The gang's member of which one place is meant.")] = None


class InvalidProblem(Problem):
    """422: `errors` lists the invalid fields."""

    errors: list[FieldError] | None = None


class FailedAttempt(Answer):
    """A placement that did not become active."""

    claim_id: str
    host: str
    at_ms: Annotated[int, Field(description="When it ended, or a scheduler saw that it had.")]
    kind: Annotated[
        str, Field(description="`failed`, `expired`, `released` or the like; `not-confirmed`; `unknown`: it was lost.")
    ]
    reason: Annotated[str, Field(description="What was seen, in words; empty where nothing was said.")]


class NotConfirmedProblem(Problem):
    """504 of a selection with `until: active`: its failed attempts on each host."""

    claim_ids: list[str] | None = None
    failed_attempts: Annotated[
        list[FailedAttempt] | None, Field(description="By claim, in the order in which they were seen.")
    ] = None


class NoValidHostProblem(Problem):
    """409 of a selection: the reasons why no host fits."""

    reasons: list[ReasonCount] | None = None
    nearest: list[Miss] | None = None
