"""Responses about selections and explanations."""

from typing import Annotated

from pydantic import Field

from redsched.model import ClaimStatus
from redsched.schema.answer import Answer
from redsched.schema.responses.problems import Miss, ReasonCount
from redsched.schema.responses.quotas import ExceededAnswer
from redsched.schema.types import Amounts


class Alternate(Answer):
    """Another host that fitted at that moment. It is not claimed."""

    host: str


class SelectionAnswer(Answer):
    """One place: its host and its claim. A dry run has no claim."""

    claim_id: str | None
    state: ClaimStatus | None
    cell: str
    host: str
    slots: Amounts
    token: str | None
    expires_at_ms: int | None
    alternates: list[Alternate]
    member: Annotated[str | None, Field(description="Of a gang: which member it is a place of.")] = None


class SelectionsAnswer(Answer):
    """All places, in the order of `claim_ids`."""

    selections: list[SelectionAnswer]


class CheckAnswer(Answer):
    """One check of one host."""

    name: str
    ok: bool
    detail: str


class HostCheckAnswer(Answer):
    """The result of each check of a host; `reason` is the first check that failed."""

    host: str
    reason: str | None
    checks: list[CheckAnswer]


class ExplanationAnswer(Answer):
    """Why hosts fit or do not."""

    hosts: int
    fits: Annotated[int, Field(description="Hosts that fit; at most so many where some are `unsearched`.")]
    unsearched: Annotated[int, Field(description="Hosts among them whose pools were not searched, and may yet fail.")]
    reasons: list[ReasonCount]
    nearest: list[Miss]
    exceeded: Annotated[
        list[ExceededAnswer] | None,
        Field(description="What the project's quota does not allow, whatever fits; null while it is being counted."),
    ]
    checks: list[HostCheckAnswer]
