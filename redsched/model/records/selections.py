"""Selections: the places that a request has got, or would get."""

from operator import not_
from typing import Annotated

from pydantic import Field

from redsched.model.claims import Amounts, ClaimStatus
from redsched.model.record import record
from redsched.model.records.fields import HIDDEN, Alternates


@record
class Selection:
    """A place: its host and its claim. A dry run has no claim. The alternates fitted at that moment."""

    claim_id: str | None
    state: ClaimStatus | None
    cell: str
    host: str
    slots: Amounts
    token: str | None
    expires_at_ms: int | None
    alternates: Alternates
    member: Annotated[
        str, Field(description="For a gang: the member that the place is for. Absent otherwise.", exclude_if=not_)
    ] = ""


@record
class Selections:
    """All places, in the order of `claim_ids`."""

    selections: tuple[Selection, ...]
    fresh: Annotated[bool, HIDDEN] = True
    """Whether this call has claimed them. Otherwise its ids were sent before, and this is the first call's outcome."""


@record
class ClaimedPlace(Selection):
    """A place that was claimed: its host, its claim and the claim's token."""

    claim_id: str
    state: ClaimStatus
    token: str


@record
class ClaimedPlaces(Selections):
    """All places that were claimed for a request, in the order of `claim_ids`."""

    selections: tuple[ClaimedPlace, ...]
