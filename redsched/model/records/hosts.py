"""Hosts as they are stored: their slots and pools, what is claimed of them, and how they are being emptied."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from operator import not_
from typing import Annotated

from pydantic import Field, computed_field

from redsched.model.hosts import HostCondition, HostStatus, condition_of
from redsched.model.records.fields import Names, Numbers, Texts, sorted_keys
from redsched.model.reserved_for import ReservedFor


@dataclass(frozen=True, slots=True)
class SlotView:
    """A slot, in units of its class. free = capacity - claimed - external; it is negative if it is overcommitted."""

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
    kept: Annotated[
        int,
        Field(description="Kept for a request that waits, free or not: other claims do not get it.", exclude_if=not_),
    ] = 0


Slots = Annotated[Mapping[str, SlotView], sorted_keys(dict[str, SlotView])]
"""Slots by name, as `gpu0/CUSTOM_GPU_MILLI`."""


@dataclass(frozen=True, slots=True)
class PoolView:
    """A pool of a host, without its slots: its parent pool (empty for the host itself) and its traits."""

    parent: str
    traits: Names
    device: Annotated[
        str,
        Field(
            description="The device that the pool is: its UUID, or PCI address. Absent if it is none.", exclude_if=not_
        ),
    ] = ""


@dataclass(frozen=True, slots=True)
class UnmovableClaim:
    """A claim that has to leave its host, and the reason why it cannot."""

    claim_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class FailedMoves:
    """A claim whose last move off its host failed."""

    claim_id: str
    count: Annotated[int, Field(description="Number of consecutive failed moves.")]
    next_at_ms: Annotated[int, Field(description="Time of the next attempt, Unix ms.")]
    reason: Annotated[str, Field(description="Why the last move failed; empty if no reason was given.")]


Draining = Annotated[str, Field(json_schema_extra={"enum": ["", "move", "evacuate", "stop"]})]
"""How the claims of a host leave: `move` (a drain places them elsewhere), `evacuate` (it was written off, and they are
placed elsewhere), `stop` (a drain reached its deadline, and they are released), or '' if they stay."""
DrainThen = Annotated[str, Field(json_schema_extra={"enum": ["", "stop", "keep"]})]
"""What happens to the remaining claims at the deadline of a drain."""


class DrainState(StrEnum):
    """The progress of a host's drain or evacuation."""

    MOVING = "moving"
    """Its claims are being placed elsewhere."""
    STOPPING = "stopping"
    """The deadline has passed, and the remaining claims are being released."""
    WAITING = "waiting"
    """It gets no new claims, and its claims stay until they end."""
    OVERDUE = "overdue"
    """The deadline has passed, and the remaining claims stay."""
    EMPTY = "empty"
    NONE = "none"
    """It is neither drained nor evacuated."""


@dataclass(frozen=True, slots=True)
class DrainProgress:
    """The progress of a host's drain or evacuation."""

    host: str
    state: Annotated[
        DrainState,
        Field(
            description="moving, stopping: in progress; waiting: its claims stay until they end; overdue: the deadline "
            "has passed and the remaining claims stay; empty: done; none: it is not being emptied."
        ),
    ]
    status: HostStatus
    draining: Draining
    claims: Annotated[int, Field(description="Number of remaining claims.")]
    drain_deadline_ms: int | None
    drain_then: DrainThen
    unmovable: tuple[UnmovableClaim, ...]
    failed_moves: tuple[FailedMoves, ...]


@dataclass(frozen=True, slots=True)
class HostView:
    """A host as the scheduler sees it. `slots` includes the slots of its pools, such as `gpu0/CUSTOM_GPU_MILLI`."""

    name: str
    cell: str
    zone: str
    status: HostStatus
    alive: bool
    attested: bool
    version: int
    lease_s: int
    slots: Slots
    traits: Names
    labels: Texts
    metrics: Annotated[Mapping[str, float], sorted_keys(dict[str, float])]
    claims: int
    pools: Annotated[Mapping[str, PoolView], sorted_keys(dict[str, PoolView])] = field(default_factory=dict)
    aggregates: Names = frozenset()
    draining: Annotated[
        Draining,
        Field(description="How claims leave: moved, evacuated, or (stop) released at the deadline of a drain."),
    ] = ""
    drain_deadline_ms: Annotated[int | None, Field(description="Deadline of a drain with `move`, Unix ms.")] = None
    drain_then: Annotated[DrainThen, Field(description="What happens to the remaining claims at that deadline.")] = ""
    unmovable: Annotated[
        tuple[UnmovableClaim, ...],
        Field(description="Claims to be moved that fit on no other host now. Empty in lists."),
    ] = ()
    failed_moves: Annotated[
        tuple[FailedMoves, ...], Field(description="Claims whose move failed at the target. Empty in lists.")
    ] = ()
    status_reason: Annotated[
        str, Field(description="Why it takes no claims, if an operator said so, or it was fenced.")
    ] = ""
    written_off: Annotated[bool, Field(description="Whether it was written off and has not returned since.")] = False
    reservation: Annotated[
        str, Field(description="The id under which it is reserved for a request that waits; empty if it is not.")
    ] = ""
    reservation_until_ms: Annotated[
        int | None, Field(description="End of the reservation unless renewed, Unix ms.")
    ] = None
    kept: Annotated[Numbers, Field(description="What is kept for that request, by slot.")] = field(default_factory=dict)
    reservation_request: Annotated[
        str,
        Field(
            description="That request: its claim id, if it names one, else its request id or that of the reservation.",
            exclude_if=not_,
        ),
    ] = ""
    reservation_project: Annotated[str, Field(description="The project of that request.", exclude_if=not_)] = ""
    down_since_ms: Annotated[int | None, Field(description="When its lease ran out, Unix ms. Null while it runs.")] = (
        None
    )

    @computed_field(  # type: ignore[prop-decorator]  # mypy knows no decorator on a property
        description="The host in one word: up, or what keeps it from taking claims. Follows from the others."
    )
    @property
    def condition(self) -> HostCondition:
        """The host in one word: `up`, or what keeps it from taking claims."""
        return condition_of(self.status, self.alive, self.attested, self.written_off)

    @property
    def kept_for(self) -> ReservedFor:
        """What it keeps, and for whom."""
        return ReservedFor(self.kept, self.reservation_request, self.reservation_project)

    @property
    def drain_state(self) -> DrainState:
        """The progress of its drain or evacuation, in one word."""
        if not self.draining and self.status is not HostStatus.DRAINING:
            return DrainState.NONE
        if not self.claims:
            return DrainState.EMPTY
        if self.draining:
            return DrainState.STOPPING if self.draining == "stop" else DrainState.MOVING
        return DrainState.WAITING if self.drain_deadline_ms is None else DrainState.OVERDUE

    @property
    def drain(self) -> DrainProgress:
        """The progress of its drain or evacuation."""
        return DrainProgress(
            self.name,
            self.drain_state,
            self.status,
            self.draining,
            self.claims,
            self.drain_deadline_ms,
            self.drain_then,
            self.unmovable,
            self.failed_moves,
        )
