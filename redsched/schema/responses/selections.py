"""Responses about selections and explanations."""

from typing import Annotated

from pydantic import Field

from redsched.model import ClaimStatus
from redsched.schema.answer import Answer
from redsched.schema.responses.problems import Miss, ReasonCount
from redsched.schema.responses.quotas import ExceededAnswer
from redsched.schema.types import Amounts


class Alternate(Answer):
    """Another host that fitted at the time of the selection. It is not claimed."""

    host: str


class SelectionAnswer(Answer):
    """A place: its host and its claim. A dry run has no claim."""

    claim_id: str | None
    state: ClaimStatus | None
    cell: str
    host: str
    slots: Amounts
    token: str | None
    expires_at_ms: int | None
    alternates: list[Alternate]
    member: Annotated[str | None, Field(description="For a gang: the member that the place is for.")] = None


class SelectionsAnswer(Answer):
    """All places, in the order of `claim_ids`."""

    selections: list[SelectionAnswer]


class CheckAnswer(Answer):
    """A check of a host."""

    name: str
    ok: bool
    detail: str


class HostCheckAnswer(Answer):
    """The results of all checks of a host. `reason` is the first check that failed."""

    host: str
    reason: str | None
    checks: list[CheckAnswer]


class ExplanationAnswer(Answer):
    """Why hosts fit or do not fit."""

    hosts: int
    fits: Annotated[int, Field(description="Number of hosts that fit; an upper bound if some are `unsearched`.")]
    unsearched: Annotated[
        int, Field(description="Number of these hosts whose pools were not searched, so they may not fit.")
    ]
    reasons: list[ReasonCount]
    nearest: list[Miss]
    exceeded: Annotated[
        list[ExceededAnswer] | None,
        Field(description="Limits of the project's quota that the request exceeds; null while usage is being counted."),
    ]
    checks: list[HostCheckAnswer]
