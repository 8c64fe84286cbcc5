"""Responses about claims."""

from typing import Annotated, Any, Literal

from pydantic import Field

from redsched.model import ClaimStatus
from redsched.scheduler import BulkOutcome, BulkPage, BulkResult
from redsched.schema.answer import Answer, From
from redsched.schema.problem import members
from redsched.schema.responses.problems import Problem


def _problem(result: BulkResult) -> dict[str, Any] | None:
    return members(result.error) if result.error else None


class BulkClaimAnswer(Answer, shows=BulkResult):
    """The result of a bulk call for one claim."""

    claim_id: Annotated[str, From("claim.claim_id")]
    project: Annotated[str, From("claim.project")]
    host: Annotated[str, From("claim.host")]
    state: Annotated[ClaimStatus, From("claim.state"), Field(description="State of the claim when it was selected.")]
    outcome: BulkOutcome
    problem: Annotated[
        Problem | None,
        From(_problem),
        Field(description="For a refused claim: the problem that a call for this claim alone would return."),
    ]


class BulkAnswer(Answer, shows=BulkPage):
    """A page of results, one for each claim. `next` is the `after` of the next call, null at the end."""

    results: Annotated[list[BulkClaimAnswer], From("items")]
    next: str | None
    watch: Annotated[
        str | None,
        From(lambda _: None),  # the route knows its query
        Field(description="Path that lists the claims that are still ending. Null if there are none."),
    ]
    of_others: Annotated[
        int,
        Field(description="On the first page: how many further claims match, and may be changed by other owners only."),
    ] = 0


class EndingAnswer(Answer):
    """A claim that ends when its host reports that the work is gone."""

    claim_id: str
    state: Literal["ending"]
    watch: Annotated[str, Field(description="Path of the claim; same as `Location`.")]
