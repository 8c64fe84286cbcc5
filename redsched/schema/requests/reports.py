"""Bodies of agents that use HTTP: reports and heartbeats of hosts."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from redsched.model import (
    MAX_ALTERNATES,
    MAX_ATTEMPTS,
    MAX_RATIO,
    AgentStamp,
    EndReason,
    HostReport,
    Inventory,
    OnExit,
    Pool,
)
from redsched.model.hosts import MAX_POOLS
from redsched.schema.requests.converting import Part, given
from redsched.schema.requests.lists import Traits
from redsched.schema.types import (
    Amount,
    GivenEpoch,
    GivenLeaseS,
    GivenName,
    GivenNeed,
    GivenSlot,
    GivenToken,
    GivenTopology,
    LabelValue,
    LeaseS,
    Name,
    Need,
    ResourceClass,
    Slot,
    Strict,
)

Ratio = Annotated[float, WithJsonSchema({"type": "number", "exclusiveMinimum": 0, "maximum": MAX_RATIO})]


class InventoryBody(Part):
    """The inventory of a slot. capacity = floor((total - reserved) * allocation_ratio)."""

    total: Amount
    reserved: Amount = 0
    allocation_ratio: Ratio = 1.0
    min_unit: Need = 1
    max_unit: Need | None = None
    step_size: Need = 1

    def made(self) -> Inventory:
        """Convert to the model's inventory. Raises InvalidRequest."""
        return Inventory(**given(self))


class PoolBody(Part):
    """A part of a host that amounts are taken from: a NUMA node, a GPU, a group of identical devices."""

    inventories: Annotated[dict[ResourceClass, InventoryBody], Field(description="What it has, by class.")] = Field(
        default_factory=dict
    )
    parent: Annotated[Name | Literal[""], Field(description="The pool it lies in. Empty: the host itself.")] = ""
    traits: Traits = frozenset()

    def made(self) -> Pool:
        """Convert to the model's pool. Raises InvalidRequest."""
        return Pool(**given(self))


class AgentBody(Part):
    """The agent that sends a report, and the report's number, which orders its reports."""

    journal: Name
    nonce: Name
    number: Need

    def made(self) -> AgentStamp:
        """Convert to the model's stamp. Raises InvalidRequest."""
        return AgentStamp(self.journal, self.nonce, self.number)


WAS_ACTIVE = "It had been active, and was not stopped because its gang failed."


class HeldClaimBody(Strict):
    """A claim that a host holds, as its journal has it."""

    id: GivenName
    token: Annotated[GivenToken | Literal[""], Field(description="Empty: local work, not claimed for.")] = ""
    state: Literal["claimed", "starting", "active", "ending"] = "active"
    slots: Annotated[dict[GivenSlot, GivenNeed], Field(description="Amounts by slot.")]
    project: GivenName | Literal[""] = ""
    consumer: GivenName | Literal[""] = ""
    digest: Annotated[str, Field(pattern="^[0-9a-f]{0,64}$")] = ""
    group: Annotated[GivenName | Literal[""], Field(description="The server group that it counts in.")] = ""
    counted: Annotated[
        dict[GivenTopology, LabelValue], Field(description="Under which zone and label values it counts there.")
    ] = Field(default_factory=dict)
    placed: Annotated[GivenToken | Literal[""], Field(description="The placement's name; its token if left out.")] = ""
    root: Annotated[GivenToken | Literal[""], Field(description="What it descends from; `placed` if left out.")] = ""
    on_exit: Annotated[OnExit, Field(description="What becomes of it when its work ends.")] = OnExit.RELEASE
    max_attempts: Annotated[int, Field(ge=1, le=MAX_ATTEMPTS, description="Hosts tried before it has failed.")] = 1
    alternates: Annotated[
        list[GivenName], Field(max_length=MAX_ALTERNATES, description="Hosts where it goes next if it fails.")
    ] = Field(default_factory=list)
    was_active: Annotated[bool, Field(description=f"Of one that is ending: {WAS_ACTIVE.lower()}")] = False
    work_ended_at_ms: Annotated[int | None, Field(ge=0, description="When its work ended, where it is kept.")] = None


class EndedClaimBody(Strict):
    """A claim whose work has ended on the host."""

    id: GivenName
    token: GivenToken
    placed: Annotated[GivenToken | Literal[""], Field(description="The placement's name; its token if left out.")] = ""
    end_reason: Annotated[EndReason | Literal[""], Field(description="Why it ended, as it was answered then.")] = ""
    was_active: Annotated[bool, Field(description=WAS_ACTIVE)] = False


class ReportBody(Strict):
    """A host's report about itself. A PUT replaces everything except the claims."""

    inventories: Annotated[dict[ResourceClass, InventoryBody], Field(description="What the host has, by class.")]
    cell: Name = "c1"
    zone: Name = "default"
    labels: dict[Name, LabelValue] = Field(default_factory=dict)
    traits: Traits = frozenset()
    metrics: dict[Name, float] = Field(default_factory=dict)
    external: Annotated[dict[Slot, Amount], Field(description="Usage by slot that no claim explains.")] = Field(
        default_factory=dict
    )
    pools: Annotated[dict[Name, PoolBody], Field(max_length=MAX_POOLS, description="The host's pools, by name.")] = (
        Field(default_factory=dict)
    )
    lease_s: LeaseS = 30
    agent: AgentBody | None = None
    epoch: Annotated[GivenEpoch, Field(description="The epoch that this report attests to.")] = ""
    claims: Annotated[tuple[HeldClaimBody, ...], Field(description="What runs here. Matters when attesting.")] = ()
    ended: Annotated[tuple[EndedClaimBody, ...], Field(description="Claims whose work has ended here.")] = ()

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "zone": "az1",
                    "labels": {"rack": "r4"},
                    "traits": ["HW_CPU_X86_AVX2"],
                    "inventories": {"VCPU": {"total": 64, "allocation_ratio": 4.0}, "MEMORY_MB": {"total": 262144}},
                    "external": {"VCPU": 1},
                }
            ]
        }
    )

    def report(self, host: str) -> HostReport:
        """Convert to the model's report of `host`. Raises InvalidRequest."""
        return HostReport(host, **given(self, _NOT_OF_THE_HOST))


_NOT_OF_THE_HOST = frozenset(("agent", "epoch", "claims", "ended"))


class ReportPatch(BaseModel):
    """A merge patch of a report: the members to change, with null for those to remove."""

    model_config = ConfigDict(extra="allow")


class HeartbeatBody(Strict):
    """A host's heartbeat."""

    lease_s: GivenLeaseS = 30
    agent: AgentBody | None = None

    model_config = ConfigDict(json_schema_extra={"examples": [{"lease_s": 30}]})
