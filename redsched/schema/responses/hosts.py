"""Hosts, their reports, heartbeats and inboxes."""

from typing import Annotated, Literal

from pydantic import Field

from redsched.model import HostStatus
from redsched.scheduler import DrainState
from redsched.schema.types import Answer


class SlotAnswer(Answer):
    """One slot of a host. free = capacity - claimed - external; below 0 where the host is over-committed."""

    total: int
    reserved: int
    allocation_ratio: float
    min_unit: int
    max_unit: int
    step_size: int
    capacity: int
    claimed: int
    external: int
    free: int


class PoolAnswer(Answer):
    """A pool of a host: the pool it lies in (empty: the host itself), and its traits."""

    parent: str
    traits: list[str]


class StuckAnswer(Answer):
    """A claim that is to leave its host, and why it cannot."""

    claim_id: str
    reason: str


class FailedMovesAnswer(Answer):
    """A claim whose last move off its host has failed."""

    claim_id: str
    count: Annotated[int, Field(description="How many moves in a row have failed.")]
    next_at_ms: Annotated[int, Field(description="When it is moved again, Unix ms.")]
    reason: Annotated[str, Field(description="Why the last one failed; empty where nothing was said.")]


class HostAnswer(Answer):
    """A host as the scheduler sees it. `slots` has those of its pools too, as `gpu0/CUSTOM_GPU_MILLI`."""

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
        list[StuckAnswer], Field(description="Those of them that have no other place now. Not told in lists.")
    ]
    failed_moves: Annotated[
        list[FailedMovesAnswer], Field(description="Those whose move has failed at its target. Not told in lists.")
    ]


class DrainAnswer(Answer):
    """How far a host's drain or evacuation is."""

    host: str
    state: Annotated[
        DrainState,
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
    unmovable: list[StuckAnswer]
    failed_moves: list[FailedMovesAnswer]


class AcceptedAnswer(Answer):
    """It goes on."""

    watch: Annotated[str, Field(description="The path that tells how far it is. `Location` says the same.")]


class HostsAnswer(Answer):
    """A page of hosts; `next` is the `after` of the next page, null on the last."""

    hosts: list[HostAnswer]
    next: str | None


class ReportAnswer(Answer):
    """What became of a report. `attested` false: send the claims and this `epoch`. `drop`: stop these."""

    outcome: Literal["OK", "ALREADY_DONE"]
    epoch: str
    attested: bool
    version: int
    drop: list[str]


class HeartbeatAnswer(Answer):
    """OK, or NOT_ATTESTED: the store is in a new epoch, send a report that attests to it."""

    outcome: Literal["OK", "NOT_ATTESTED"]


class InboxEntryAnswer(Answer):
    """One hint for a host's agent."""

    entry_id: str
    number: int
    epoch: str
    op: Literal["claim", "end"]
    claim_id: str
    token: str


class InboxAnswer(Answer):
    """What waits for the host's agent."""

    entries: list[InboxEntryAnswer]
