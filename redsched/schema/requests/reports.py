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

    inventories: Annotated[
        dict[ResourceClass, InventoryBody], Field(description="Inventories of the pool by class.")
    ] = Field(default_factory=dict)
    parent: Annotated[Name | Literal[""], Field(description="The parent pool. Empty: the host itself.")] = ""
    traits: Traits = frozenset()

    def made(self) -> Pool:
        """Convert to the model's pool. Raises InvalidRequest."""
        return Pool(**given(self))


class AgentBody(Part):
    """The agent that sends a report, and the number that orders its reports."""

    journal: Name
    nonce: Name
    number: Need

    def made(self) -> AgentStamp:
        """Convert to the model's stamp. Raises InvalidRequest."""
        return AgentStamp(self.journal, self.nonce, self.number)


WAS_ACTIVE = "Whether it had been active, and was not stopped because of a failure of its gang"


class HeldClaimBody(Strict):
    """A claim that a host holds, as recorded in its journal."""

    id: GivenName
    token: Annotated[
        GivenToken | Literal[""], Field(description="The placement's token. Empty: local work without a claim.")
    ] = ""
    state: Literal["claimed", "starting", "active", "ending"] = "active"
    slots: Annotated[dict[GivenSlot, GivenNeed], Field(description="Amounts by slot.")]
    project: GivenName | Literal[""] = ""
    consumer: GivenName | Literal[""] = ""
    digest: Annotated[str, Field(pattern="^[0-9a-f]{0,64}$")] = ""
    group: Annotated[
        GivenName | Literal[""], Field(description="The server group that counts the claim as a member.")
    ] = ""
    counted: Annotated[
        dict[GivenTopology, LabelValue], Field(description="The zone and label values under which the group counts it.")
    ] = Field(default_factory=dict)
    placed: Annotated[GivenToken | Literal[""], Field(description="The placement's name. Defaults to its token.")] = ""
    root: Annotated[
        GivenToken | Literal[""],
        Field(description="The first placement in its chain of moves and retries. Defaults to `placed`."),
    ] = ""
    on_exit: Annotated[OnExit, Field(description="What happens to the claim when its work ends by itself.")] = (
        OnExit.RELEASE
    )
    max_attempts: Annotated[
        int, Field(ge=1, le=MAX_ATTEMPTS, description="Number of placements after which the claim fails.")
    ] = 1
    alternates: Annotated[
        list[GivenName], Field(max_length=MAX_ALTERNATES, description="Hosts to try first if it fails, in order.")
    ] = Field(default_factory=list)
    was_active: Annotated[bool, Field(description=f"{WAS_ACTIVE}. Used in state ending.")] = False
    work_ended_at_ms: Annotated[
        int | None, Field(ge=0, description="When its work ended, for a claim that is kept afterwards.")
    ] = None


class EndedClaimBody(Strict):
    """A claim whose work has ended on the host."""

    id: GivenName
    token: GivenToken
    placed: Annotated[GivenToken | Literal[""], Field(description="The placement's name. Defaults to its token.")] = ""
    end_reason: Annotated[
        EndReason | Literal[""], Field(description="Why it ended, as reported by the scheduler. Empty if unknown.")
    ] = ""
    was_active: Annotated[bool, Field(description=f"{WAS_ACTIVE}.")] = False


class ReportBody(Strict):
    """A host's report about itself. A PUT replaces everything except its claims."""

    inventories: Annotated[
        dict[ResourceClass, InventoryBody], Field(description="Inventories of the host itself by class.")
    ]
    cell: Name = "c1"
    zone: Name = "default"
    labels: dict[Name, LabelValue] = Field(default_factory=dict)
    traits: Traits = frozenset()
    metrics: dict[Name, float] = Field(default_factory=dict)
    external: Annotated[dict[Slot, Amount], Field(description="Usage by slot that belongs to no claim.")] = Field(
        default_factory=dict
    )
    pools: Annotated[dict[Name, PoolBody], Field(max_length=MAX_POOLS, description="The host's pools, by name.")] = (
        Field(default_factory=dict)
    )
    lease_s: LeaseS = 30
    agent: AgentBody | None = None
    epoch: Annotated[GivenEpoch, Field(description="The epoch that this report attests to.")] = ""
    claims: Annotated[
        tuple[HeldClaimBody, ...], Field(description="Claims that the host holds. Needed to attest.")
    ] = ()
    ended: Annotated[tuple[EndedClaimBody, ...], Field(description="Claims whose work has ended on the host.")] = ()

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
    """A merge patch of a report: the members to change. null removes a member."""

    model_config = ConfigDict(extra="allow")


class HeartbeatBody(Strict):
    """A host's heartbeat."""

    lease_s: GivenLeaseS = 30
    agent: AgentBody | None = None

    model_config = ConfigDict(json_schema_extra={"examples": [{"lease_s": 30}]})
