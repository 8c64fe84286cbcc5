"""Responses about claims."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from redsched.model import (
    Amounts,
    Claim,
    ClaimStatus,
    EndReason,
    FromWhy,
    GangOnExit,
    HostCondition,
    KeptDecision,
    OnExit,
    Placement,
    Reason,
    ReasonCount,
)
from redsched.scheduler import BulkOutcome, BulkPage, BulkResult, Page
from redsched.schema.answer import Answer, From
from redsched.schema.problem import members
from redsched.schema.responses.problems import Problem
from redsched.schema.responses.selections import Alternate, RankedHostAnswer


class ReasonAnswer(Answer, shows=Reason):
    """Why a claim failed, expired, or lost its work."""

    at_ms: int
    host: Annotated[str, Field(description="The host of that placement.")]
    token: Annotated[str, Field(description="The token of the placement that failed.")]
    text: Annotated[str, Field(description="The cause: a hook's exit code and last output, a slot, a deadline.")]


class PlacementAnswer(Answer, shows=Placement):
    """A placement that still holds amounts on its host."""

    placed: Annotated[str, Field(description="The placement's name: its first token.")]
    token: str
    root: Annotated[str, Field(description="The first placement in its chain of moves and retries.")]
    host: str
    state: ClaimStatus
    slots: Annotated[Amounts, From("amounts")]
    end_reason: EndReason | None
    expires_at_ms: int | None
    move_deadline_ms: Annotated[
        int | None, Field(description="For a move with a deadline: when the placement must be active.")
    ]
    from_host: Annotated[
        str,
        Field(description="The host that it came from: it was moved, or placed again. Absent otherwise."),
    ] = ""
    from_why: Annotated[FromWhy | None, Field(description="Why it left that host. Likewise absent.")] = None
    placed_at_ms: Annotated[int | None, Field(description="When it was moved or placed again. Likewise absent.")] = None


class DecisionAnswer(Answer, shows=KeptDecision):
    """How the host of a placement was chosen, as decided on the hosts of its cell at that time."""

    token: Annotated[str, Field(description="The placement that it is about, by its first token.")]
    host: Annotated[str, Field(description="The host of that placement.")]
    at_ms: int
    hosts: Annotated[int, Field(description="Number of hosts looked at.")]
    fits: Annotated[int, Field(description="Number of these hosts that fitted.")]
    reasons: Annotated[
        list[ReasonCount],
        Field(description="The others, each counted under the first reason that ruled it out; `other`: rare reasons."),
    ]
    candidate: Annotated[
        int,
        Field(description="Which of the candidates was taken, from 1. Those before it had no room any more."),
    ]
    ranked: Annotated[
        list[RankedHostAnswer],
        Field(
            description="The host to be tried first and the next two, with their scores. The first is a random one of "
            "the best (`REDSCHED_PICK_FROM`)."
        ),
    ]
    policy: str
    release: Annotated[str, Field(description="The release of the scheduler that decided.")]


def _group(claim: Claim) -> str | None:
    return None if claim.state is ClaimStatus.ENDED else claim.group


def _alternates(claim: Claim) -> list[dict[str, Any]] | None:
    return None if claim.state is ClaimStatus.ENDED else [Alternate.of(host) for host in claim.alternates]


class ClaimAnswer(Answer, shows=Claim):
    """A claim as stored."""

    claim_id: Annotated[str, From("id")]
    cell: str
    host: str
    state: ClaimStatus
    token: str
    host_condition: Annotated[
        HostCondition | None,
        Field(description="Its host in one word. Null without a placement, and in responses to calls of agents."),
    ]
    host_down_since_ms: Annotated[
        int | None,
        Field(description="When the lease of its host ran out, Unix ms: since then nothing is known of its work."),
    ]
    leaving: Annotated[
        str,
        Field(description="`move` or `evacuate`: its host is drained, or was written off. Absent if it stays there."),
    ] = ""
    unmovable: Annotated[
        str, Field(description="Why it has no other place now. Absent in lists, and if it has one, or stays.")
    ] = ""
    slots: Annotated[Amounts, From("amounts")]
    project: str
    consumer: str
    owner: Annotated[
        str, Field(description="Who in the project owns it: a token, a subject, or whom an operator named; else empty.")
    ]
    actor: Annotated[str, Field(description="Who made it: a token, a subject, `cli:<user>` ...; empty if not known.")]
    request_id: Annotated[str, Field(description="The request that made it; empty if not known.")]
    server_group: Annotated[
        str | None,
        From(_group, "group", lambda name: name or ""),
        Field(description="Null for an ended claim, because it is not kept."),
    ]
    end_reason: EndReason | None
    claimed_at_ms: int | None
    expires_at_ms: int | None
    closed: Annotated[
        str, Field(description="Token up to which the claim was given up. Placements up to it are obsolete.")
    ]
    closed_by: Annotated[str, Field(description="Who released or shelved it, as `actor`. Absent if not known.")] = ""
    attempts: Annotated[int, Field(description="Number of placements since it was last active.")]
    max_attempts: Annotated[int, Field(description="Number of attempts after which it fails.")]
    max_runtime_s: Annotated[int, Field(description="Seconds that its work may run. 0: no limit.")]
    runtime_deadline_ms: Annotated[
        int | None,
        Field(description="When its host stops the work, `max_runtime_s` after it was claimed or unshelved."),
    ]
    restarts: Annotated[
        int,
        Field(
            description="With `on_exit: replace`: how often its work ended by itself, or was stopped with its gang, "
            "since it last ran for 10 min."
        ),
    ]
    next_attempt_at_ms: Annotated[
        int | None,
        Field(description="For a pending claim: time of the next attempt to place it. Null in lists."),
    ]
    alternates: Annotated[
        list[Alternate] | None,
        From(_alternates, "chosen_alternates", lambda hosts: tuple(one.host for one in hosts or ())),
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
        Mapping[str, str], Field(description="The zone and label values under which its server group counts it.")
    ]
    on_exit: Annotated[OnExit, Field(description="What happens to it when its work ends by itself.")]
    gang_on_exit: Annotated[
        GangOnExit,
        Field(description="What happens to the other members of its active gang when it ends by itself."),
    ]
    log: Annotated[
        str,
        Field(description="File with the log of its newest work, as `host:path`. Empty if its hook has named none."),
    ]
    payload: Annotated[
        Any,
        Field(description="What its request gives to the hook, any JSON value. Null in lists, and if there is none."),
    ]
    work_ended_at_ms: Annotated[
        int | None, Field(description="When its work was found to have ended. Null while it runs.")
    ]
    reason: Annotated[
        ReasonAnswer | None, Field(description="Why it failed, expired, or lost its work. Null if not kept.")
    ]
    decision: Annotated[
        DecisionAnswer | None,
        Field(description="How the host of its newest placement was chosen. Null in lists, and if it is not known."),
    ]


class AcceptedClaimAnswer(ClaimAnswer):
    """A claim that is being moved, resized or shelved, which its host or target host has yet to complete."""

    watch: Annotated[str, Field(description="Path that shows the progress; same as `Location`.")]


class ClaimsAnswer(Answer, shows=Page):
    """A page of claims. `next` is the `after` of the next page, null on the last one."""

    claims: Annotated[list[ClaimAnswer], From("items")]
    next: str | None


def _problem(result: BulkResult) -> dict[str, Any] | None:
    return members(result.error) if result.error else None


class BulkClaimAnswer(Answer, shows=BulkResult):
    """The result of a bulk call for one claim."""

    claim_id: Annotated[str, From("claim.id")]
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
