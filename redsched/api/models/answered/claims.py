"""Claims."""

from typing import Literal

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


class ClaimsAnswer(Answer):
    """A page of claims; `next` is the `after` of the next page, null on the last."""

    claims: list[ClaimAnswer]
    next: str | None


class EndingAnswer(Answer):
    """The claim ends as soon as its host says that the work is gone."""

    claim_id: str
    state: Literal["ending"]
