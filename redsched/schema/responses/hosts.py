"""Responses about hosts, their reports, heartbeats and inboxes."""

from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import Field

from redsched.model import HostStatus
from redsched.scheduler import DrainState, HostView, InboxEntry, PoolView, ReportResult, SlotView
from redsched.schema.answer import Answer, From


class SlotAnswer(Answer, shows=SlotView):
    """One slot of a host. free = capacity - claimed - external; it is below 0 if the host is overcommitted."""

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


class PoolAnswer(Answer, shows=PoolView):
    """A pool of a host: its parent pool (empty: the host itself) and its traits."""

    parent: str
    traits: list[str]


class UnmovableAnswer(Answer):
    """A claim that must leave its host, and why it cannot."""

    claim_id: str
    reason: str


class FailedMovesAnswer(Answer):
    """A claim whose last move away from its host has failed."""

    claim_id: str
    count: Annotated[int, Field(description="How many moves in a row have failed.")]
    next_at_ms: Annotated[int, Field(description="When it is moved again, Unix ms.")]
    reason: Annotated[str, Field(description="Why the last one failed; empty where nothing was said.")]


def _unmovable(host: HostView) -> list[dict[str, Any]]:
    return [{"claim_id": claim_id, "reason": reason} for claim_id, reason in sorted(host.unmovable.items())]


def _failed_moves(host: HostView) -> list[dict[str, Any]]:
    return [{"claim_id": claim_id, **asdict(move)} for claim_id, move in sorted(host.failed_moves.items())]


class HostAnswer(Answer, shows=HostView):
    """A host as the scheduler sees it. `slots` includes the slots of its pools, such as `gpu0/CUSTOM_GPU_MILLI`."""

    name: str
    cell: str
    zone: str
    status: HostStatus
    alive: bool
    attested: bool
    written_off: Annotated[bool, Field(description="It was written off, and has not come back.")]
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
        Field(description="How its claims leave: placed elsewhere, or (stop) released at the deadline of a drain."),
    ]
    drain_deadline_ms: Annotated[int | None, Field(description="The deadline of a drain with moves, Unix ms.")]
    drain_then: Annotated[
        Literal["", "stop", "keep"], Field(description="What becomes of the claims that are left at that deadline.")
    ]
    unmovable: Annotated[
        list[UnmovableAnswer],
        From(_unmovable),
        Field(description="Those of them that have no other place now. Not told in lists."),
    ]
    failed_moves: Annotated[
        list[FailedMovesAnswer],
        From(_failed_moves),
        Field(description="Those whose move has failed at its target. Not told in lists."),
    ]


class DrainAnswer(Answer, shows=HostView):
    """The progress of a host's drain or evacuation."""

    host: Annotated[str, From("name")]
    state: Annotated[
        DrainState,
        From("drain_state"),
        Field(
            description="moving and stopping go on by themselves; waiting: until its claims end; overdue: the deadline "
            "has passed, and the rest stays; empty: done; none: it is not being emptied."
        ),
    ]
    status: HostStatus
    draining: Literal["", "move", "evacuate", "stop"]
    claims: Annotated[int, Field(description="How many are left.")]
    drain_deadline_ms: int | None
    drain_then: Literal["", "stop", "keep"]
    unmovable: Annotated[list[UnmovableAnswer], From(_unmovable)]
    failed_moves: Annotated[list[FailedMovesAnswer], From(_failed_moves)]


class AcceptedAnswer(Answer):
    """Work in progress."""

    watch: Annotated[str, Field(description="The path that tells how far it is. `Location` says the same.")]


class HostsAnswer(Answer):
    """A page of hosts; `next` is the `after` of the next page, null on the last."""

    hosts: list[HostAnswer]
    next: str | None


class ReportAnswer(Answer, shows=ReportResult):
    """The result of a report. `attested` false: send the claims and this `epoch`. `drop`: placements to stop."""

    outcome: Literal["OK", "ALREADY_DONE"]
    epoch: str
    attested: bool
    version: int
    drop: list[str]


class HeartbeatAnswer(Answer):
    """OK, or NOT_ATTESTED: the store is in a new epoch, so send a report that attests to it."""

    outcome: Literal["OK", "NOT_ATTESTED"]


class InboxEntryAnswer(Answer, shows=InboxEntry):
    """One hint for a host's agent."""

    entry_id: str
    number: int
    epoch: str
    op: Literal["claim", "end"]
    claim_id: str
    token: str


class InboxAnswer(Answer):
    """The pending hints for the host's agent."""

    entries: list[InboxEntryAnswer]
