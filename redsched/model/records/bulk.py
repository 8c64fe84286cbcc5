"""Results of calls for many claims."""

from dataclasses import dataclass
from enum import StrEnum
from operator import not_
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, InstanceOf, PlainSerializer, WithJsonSchema

from redsched.errors import RedschedError
from redsched.model.claims import Claim, ClaimStatus
from redsched.model.records.problems import error_of, members


class BulkOutcome(StrEnum):
    """The outcome of a bulk call for one claim."""

    SELECTED = "selected"
    """The claim matches, and was not changed: the call was a dry run."""
    RELEASED = "released"
    RENEWED = "renewed"
    UNCHANGED = "unchanged"
    """The claim is active and has no lease to renew."""
    SHELVED = "shelved"
    UNSHELVED = "unshelved"
    ENDING = "ending"
    """It will be released or shelved once its host confirms that the work is gone."""
    REFUSED = "refused"


def _as_error(found: Any) -> Any:
    return error_of(found) if isinstance(found, dict) else found


Problem = Annotated[
    InstanceOf[RedschedError],
    BeforeValidator(_as_error),
    PlainSerializer(members, return_type=dict[str, Any]),
    WithJsonSchema({"$ref": "#/components/schemas/Problem"}),
]
"""An error, which JSON shows as a problem."""


@dataclass(frozen=True, slots=True)
class BulkResult:
    """The result of a bulk call for one claim, as it was when it was listed."""

    claim_id: str
    project: str
    host: str
    state: Annotated[ClaimStatus, Field(description="State of the claim when it was selected.")]
    outcome: BulkOutcome
    problem: Annotated[
        Problem | None,
        Field(description="For a refused claim: the problem that a call for this claim alone would return."),
    ] = None

    @classmethod
    def of(cls, claim: Claim, outcome: BulkOutcome, problem: RedschedError | None = None) -> "BulkResult":
        """Return the result for a claim."""
        return cls(claim.claim_id, claim.project, claim.host, claim.state, outcome, problem)


@dataclass(frozen=True, slots=True)
class BulkPage:
    """A page of results, one for each claim. `next` is the `after` of the next call, null at the end."""

    results: tuple[BulkResult, ...]
    next: str | None = None
    watch: Annotated[
        str | None, Field(description="Path that lists the claims that are still ending. Null if there are none.")
    ] = None
    of_others: Annotated[
        int,
        Field(
            description="On the first page: how many further claims match, and may be changed by other owners only.",
            exclude_if=not_,
        ),
    ] = 0
