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
    """Why a claim failed, expired, or lost its work."""

    at_ms: int
    host: Annotated[str, Field(description="The host of that placement.")]
    token: Annotated[str, Field(description="The token of the placement that failed.")]
    text: Annotated[str, Field(description="The cause: a hook's exit code and last output, a slot, a deadline.")]


class PlacementAnswer(Answer):
    """A placement that still holds amounts on its host."""

    placed: Annotated[str, Field(description="The placement's name: its first token.")]
    token: str
    root: Annotated[str, Field(description="The first placement in its chain of moves and retries.")]
    host: str
    state: ClaimStatus
    slots: Amounts
    end_reason: EndReason | None
    expires_at_ms: int | None
    move_deadline_ms: Annotated[
        int | None, Field(description="For a move with a deadline: when the placement must be active.")
    ]


class ClaimAnswer(Answer):
    """A claim as stored."""

    claim_id: str
    cell: str
    host: str
    state: ClaimStatus
    token: str
    slots: Amounts
    project: str
    consumer: str
    server_group: Annotated[str | None, Field(description="Null for an ended claim, because it is not kept.")]
    end_reason: EndReason | None
    claimed_at_ms: int | None
    expires_at_ms: int | None
    closed: Annotated[
        str, Field(description="Token up to which the claim was given up. Placements up to it are obsolete.")
    ]
    attempts: Annotated[int, Field(description="Number of placements since it was last active.")]
    max_attempts: Annotated[int, Field(description="Number of attempts after which it fails.")]
    restarts: Annotated[
        int,
        Field(description="With `on_exit: replace`: how often its work ended by itself since it last ran for 10 min."),
    ]
    next_attempt_at_ms: Annotated[
        int | None,
        Field(description="For a pending claim: time of the next attempt to place it. Null in lists."),
    ]
    alternates: Annotated[
        list[Alternate] | None,
        Field(
            description="Hosts selected along with its first host. If it fails, the first of them that still fits is "
            "used next. Null for an ended claim, because they are not kept."
        ),
    ]
    placements: Annotated[
        list[PlacementAnswer],
        Field(description="Placements that still hold amounts, the main one first. More than one during a move."),
    ]
    resizing_to: Annotated[Amounts, Field(description="While its host resizes it: the new amounts.")]
    digest: Annotated[
        str, Field(description="Digest of the request. This field and the next ones are for its host's journal.")
    ]
    counted: Annotated[
        dict[str, str], Field(description="The zone and label values under which its server group counts it.")
    ]
    on_exit: Annotated[OnExit, Field(description="What happens to it when its work ends by itself.")]
    work_ended_at_ms: Annotated[
        int | None, Field(description="When its work was found to have ended. Null while it runs.")
    ]
    reason: Annotated[
        ReasonAnswer | None, Field(description="Why it failed, expired, or lost its work. Null if not kept.")
    ]


class AcceptedClaimAnswer(ClaimAnswer):
    """A claim that is being moved, resized or shelved, which its host or target host has yet to complete."""

    watch: Annotated[str, Field(description="Path that shows the progress; same as `Location`.")]


class ClaimsAnswer(Answer):
    """A page of claims. `next` is the `after` of the next page, null on the last one."""

    claims: list[ClaimAnswer]
    next: str | None


class BulkClaimAnswer(Answer):
    """The result of a bulk call for one claim."""

    claim_id: str
    host: str
    state: Annotated[ClaimStatus, Field(description="State of the claim when it was selected.")]
    outcome: BulkOutcome
    problem: Annotated[
        Problem | None,
        Field(description="For a refused claim: the problem that a call for this claim alone would return."),
    ]


class BulkAnswer(Answer):
    """A page of results, one for each claim. `next` is the `after` of the next call, null at the end."""

    results: list[BulkClaimAnswer]
    next: str | None
    watch: Annotated[
        str | None, Field(description="Path that lists the claims that are still ending. Null if there are none.")
    ]


class EndingAnswer(Answer):
    """A claim that ends when its host reports that the work is gone."""

    claim_id: str
    state: Literal["ending"]
    watch: Annotated[str, Field(description="Path of the claim; same as `Location`.")]
