"""Responses about hosts, their reports, heartbeats and inboxes."""

from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import Field

from redsched.model import HostCondition, HostStatus
from redsched.scheduler import DrainState, HostView, InboxEntry, Page, PoolView, ReportResult, SlotView
from redsched.scheduler.results import FailedMoves
from redsched.schema.answer import Answer, From


class SlotAnswer(Answer, shows=SlotView):
    """A slot of a host. free = capacity - claimed - external; it is negative if the slot is overcommitted."""

    total: int
    reserved: int
    allocation_ratio: Annotated[float, From("ratio")]
    min_unit: Annotated[int, From("min")]
    max_unit: Annotated[int, From("max")]
    step_size: Annotated[int, From("step")]
    capacity: int
    claimed: int
    external: int
    free: int
    kept: Annotated[
        int, Field(description="Kept for a request that waits, free or not: other claims do not get it.")
    ] = 0


class PoolAnswer(Answer, shows=PoolView):
    """A pool of a host: its parent pool (empty for the host itself) and its traits."""

    parent: str
    traits: list[str]
    device: Annotated[
        str, Field(description="The device that the pool is: its UUID, or PCI address. Empty if it is none.")
    ] = ""


class UnmovableAnswer(Answer):
    """A claim that has to leave its host, and the reason why it cannot."""

    claim_id: str
    reason: str


class FailedMovesAnswer(Answer):
    """A claim whose last move off its host failed."""

    claim_id: str
    count: Annotated[int, Field(description="Number of consecutive failed moves.")]
    next_at_ms: Annotated[int, Field(description="Time of the next attempt, Unix ms.")]
    reason: Annotated[str, Field(description="Why the last move failed; empty if no reason was given.")]


def _unmovable(host: HostView) -> list[dict[str, Any]]:
    return [{"claim_id": claim_id, "reason": reason} for claim_id, reason in sorted(host.unmovable.items())]


def _failed_moves(host: HostView) -> list[dict[str, Any]]:
    return [{"claim_id": claim_id, **asdict(move)} for claim_id, move in sorted(host.failed_moves.items())]


def _failed(one: FailedMovesAnswer) -> FailedMoves:
    return FailedMoves(one.count, one.next_at_ms, one.reason)


class HostAnswer(Answer, shows=HostView):
    """A host as the scheduler sees it. `slots` includes the slots of its pools, such as `gpu0/CUSTOM_GPU_MILLI`."""

    name: str
    cell: str
    zone: str
    status: HostStatus
    alive: bool
    attested: bool
    condition: Annotated[
        HostCondition,
        Field(description="The host in one word: up, or what keeps it from taking claims. Follows from the others."),
    ]
    down_since_ms: Annotated[int | None, Field(description="When its lease ran out, Unix ms. Null while it runs.")]
    written_off: Annotated[bool, Field(description="Whether it was written off and has not returned since.")]
    version: int
    lease_s: int
    slots: dict[str, SlotAnswer]
    traits: list[str]
    labels: dict[str, str]
    metrics: dict[str, float]
    claims: int
    pools: dict[str, PoolAnswer]
    aggregates: list[str]
    draining: Annotated[
        Literal["", "move", "evacuate", "stop"],
        Field(description="How claims leave: moved, evacuated, or (stop) released at the deadline of a drain."),
    ]
    drain_deadline_ms: Annotated[int | None, Field(description="Deadline of a drain with `move`, Unix ms.")]
    drain_then: Annotated[
        Literal["", "stop", "keep"], Field(description="What happens to the remaining claims at that deadline.")
    ]
    status_reason: Annotated[
        str, Field(description="Why it takes no claims, if an operator said so, or it was fenced.")
    ]
    unmovable: Annotated[
        list[UnmovableAnswer],
        From(_unmovable, "unmovable", lambda claims: {one.claim_id: one.reason for one in claims}),
        Field(description="Claims to be moved that fit on no other host now. Empty in lists."),
    ]
    failed_moves: Annotated[
        list[FailedMovesAnswer],
        From(_failed_moves, "failed_moves", lambda claims: {one.claim_id: _failed(one) for one in claims}),
        Field(description="Claims whose move failed at the target. Empty in lists."),
    ]
    reservation: Annotated[
        str, Field(description="The id under which it is reserved for a request that waits; empty if it is not.")
    ]
    reservation_until_ms: Annotated[int | None, Field(description="End of the reservation unless renewed, Unix ms.")]
    reservation_request: Annotated[
        str,
        Field(
            description="That request: its claim id, if it names one, else its request id or that of the reservation."
        ),
    ] = ""
    reservation_project: Annotated[str, Field(description="The project of that request.")] = ""
    kept: Annotated[dict[str, int], Field(description="What is kept for that request, by slot.")]


class DrainAnswer(Answer, shows=HostView):
    """The progress of a host's drain or evacuation."""

    host: Annotated[str, From("name")]
    state: Annotated[
        DrainState,
        From("drain_state"),
        Field(
            description="moving, stopping: in progress; waiting: its claims stay until they end; overdue: the deadline "
            "has passed and the remaining claims stay; empty: done; none: it is not being emptied."
        ),
    ]
    status: HostStatus
    draining: Literal["", "move", "evacuate", "stop"]
    claims: Annotated[int, Field(description="Number of remaining claims.")]
    drain_deadline_ms: int | None
    drain_then: Literal["", "stop", "keep"]
    unmovable: Annotated[list[UnmovableAnswer], From(_unmovable)]
    failed_moves: Annotated[list[FailedMovesAnswer], From(_failed_moves)]


class AcceptedAnswer(Answer):
    """Work in progress."""

    watch: Annotated[str, Field(description="Path that shows the progress; same as `Location`.")]


class HostsAnswer(Answer, shows=Page):
    """A page of hosts. `next` is the `after` of the next page, null on the last one."""

    hosts: Annotated[list[HostAnswer], From("items")]
    next: str | None


class ReportAnswer(Answer, shows=ReportResult):
    """The result of a report. `attested` false: send `claims` and this `epoch`. `drop`: placements to stop.

    `warnings`: of which slots nothing can ever be claimed, and why.
    """

    outcome: Literal["OK", "ALREADY_DONE"]
    epoch: str
    attested: bool
    version: int
    drop: list[str]
    warnings: Annotated[list[str], Field(default_factory=list)]


class HeartbeatAnswer(Answer):
    """OK, or NOT_ATTESTED: the store is in a new epoch; send a report that attests to it."""

    outcome: Literal["OK", "NOT_ATTESTED"]


class InboxEntryAnswer(Answer, shows=InboxEntry):
    """A notification for a host's agent: a claim to start, resize or end."""

    entry_id: str
    number: int
    epoch: str
    op: Literal["claim", "resize", "end"]
    claim_id: str
    token: str
    actor: Annotated[str, From("origin.actor"), Field(description="Who caused it; empty if not known.")]
    request_id: Annotated[str, From("origin.request_id"), Field(description="The request that caused it, likewise.")]


class InboxAnswer(Answer):
    """The pending notifications for the host's agent."""

    entries: list[InboxEntryAnswer]
