"""Claims."""

from typing import Annotated, Literal

from pydantic import Field

from redsched.api.models.words import Amounts, Answer
from redsched.model import ClaimStatus, Why


class ClaimAnswer(Answer):
    """A claim as the store holds it."""

    claim_id: str
    cell: str
    host: str
    state: ClaimStatus
    token: str
    slots: Amounts
    project: str
    consumer: str
    server_group: str
    why: Why | None
    claimed_at_ms: int | None
    expires_at_ms: int | None
    origin: Annotated[str, Field(description="Where it succeeds another claim: the id by which its owner knows it.")]
    former: Annotated[str, Field(description="The claim that it is still to succeed, empty once it has.")]
    next: Annotated[str, Field(description="The claim that is to succeed it, or has.")]
    by_ms: Annotated[int | None, Field(description="When it must have been active, of a move with a deadline.")]
    wanted: Annotated[Amounts, Field(description="While its host resizes it: what it will hold.")]
    digest: Annotated[str, Field(description="Of the request. This and what follows are for its host's journal.")]
    counted: Annotated[dict[str, str], Field(description="Under which zone and label values it counts in its group.")]
    former_host: str
    former_token: str
    former_why: Why | None


class ClaimsAnswer(Answer):
    """A page of claims; `next` is the `after` of the next page, null on the last."""

    claims: list[ClaimAnswer]
    next: str | None


class EndingAnswer(Answer):
    """The claim ends as soon as its host says that the work is gone."""

    claim_id: str
    state: Literal["ending"]
