"""Responses about claims."""

from typing import Annotated, Literal

from pydantic import Field

from redsched.model import ClaimStatus, EndReason, OnExit
from redsched.scheduler import BulkOutcome
from redsched.schema.answer import Answer
from redsched.schema.responses.problems import Problem
from redsched.schema.responses.selections import Alternate
from redsched.schema.types import Amounts


class ReasonAnswer(Answer):
    """Why a claim failed, expired or lost its work."""

    at_ms: int
    host: Annotated[str, Field(description="The host that it is about.")]
    token: Annotated[str, Field(description="The token of the placement that it is about.")]
    text: Annotated[str, Field(description="What was seen: a hook's exit code and last output, a slot, a deadline.")]


class PlacementAnswer(Answer):
    """A placement of a claim that still holds amounts on its host."""

    placed: Annotated[str, Field(description="Its name: the token that it was placed with.")]
    token: str
    root: Annotated[str, Field(description="The placement that it descends from by moves and retries.")]
    host: str
    state: ClaimStatus
    slots: Amounts
    end_reason: EndReason | None
    expires_at_ms: int | None
    move_deadline_ms: Annotated[
        int | None, Field(description="When it must have been active, of a move with a deadline.")
    ]


class ClaimAnswer(Answer):
    """A claim as the store has it."""

    claim_id: str
    cell: str
    host: str
    state: ClaimStatus
    token: str
    slots: Amounts
    project: str
    consumer: str
    server_group: Annotated[str | None, Field(description="Null of a claim that has ended: it is not kept.")]
    end_reason: EndReason | None
    claimed_at_ms: int | None
    expires_at_ms: int | None
    closed: Annotated[
        str, Field(description="Up to which token it was given back: nothing placed until then is wanted.")
    ]
    attempts: Annotated[int, Field(description="Placements since it was active last.")]
    max_attempts: Annotated[int, Field(description="How many of them there are before it has failed.")]
    restarts: Annotated[
        int,
        Field(description="How often its work ended by itself, with `on_exit: replace`, since it last ran for 10 min."),
    ]
    next_attempt_at_ms: Annotated[
        int | None,
        Field(description="While it is pending: when a place is looked for next. Null in lists."),
    ]
    alternates: Annotated[
        list[Alternate] | None,
        Field(
            description="Chosen with its first host: where it goes next if it fails, if they fit. Null of a claim that "
            "has ended: they are not kept."
        ),
    ]
    placements: Annotated[
        list[PlacementAnswer],
        Field(description="Those that still hold something, the main one first; more than one while it moves."),
    ]
    resizing_to: Annotated[Amounts, Field(description="While its host resizes it: what it will hold.")]
    digest: Annotated[str, Field(description="Of the request. This and what follows are for its host's journal.")]
    counted: Annotated[dict[str, str], Field(description="Under which zone and label values it counts in its group.")]
    on_exit: Annotated[OnExit, Field(description="What becomes of it when its work ends by itself.")]
    work_ended_at_ms: Annotated[int | None, Field(description="When its work was found to have ended, null if not.")]
    reason: Annotated[ReasonAnswer | None, Field(description="Why it failed, expired or lost its work, while kept.")]


class AcceptedClaimAnswer(ClaimAnswer):
    """A claim that is being moved, resized or shelved: its host or its target host has yet to do its part."""

    watch: Annotated[str, Field(description="The path that tells how far it is. `Location` says the same.")]


class ClaimsAnswer(Answer):
    """A page of claims; `next` is the `after` of the next page, null on the last."""

    claims: list[ClaimAnswer]
    next: str | None


class BulkClaimAnswer(Answer):
    """The result of a bulk call for one claim, with the claim as it was listed."""

    claim_id: str
    host: str
    state: Annotated[ClaimStatus, Field(description="As it was listed.")]
    outcome: BulkOutcome
    problem: Annotated[Problem | None, Field(description="Of a claim that was refused: what it alone would answer.")]


class BulkAnswer(Answer):
    """A page of results, one for each claim; `next` is the `after` of the next call, null at the end."""

    results: list[BulkClaimAnswer]
    next: str | None
    watch: Annotated[str | None, Field(description="The list of those that are ending; null if none of them is.")]


class EndingAnswer(Answer):
    """A claim that ends as soon as its host reports that the work is gone."""

    claim_id: str
    state: Literal["ending"]
    watch: Annotated[str, Field(description="The path of the claim. `Location` says the same.")]
