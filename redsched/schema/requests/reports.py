"""Bodies of agents that use HTTP: reports and heartbeats of hosts."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from redsched.model import MAX_ALTERNATES, MAX_ATTEMPTS, AgentStamp, EndReason, HostReport, OnExit
from redsched.model.types import LabelValue
from redsched.schema.types import (
    GivenEpoch,
    GivenLeaseS,
    GivenName,
    GivenNeed,
    GivenSlot,
    GivenToken,
    GivenTopology,
    Strict,
)

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportBody(HostReport):
    """A host's report about itself. A PUT replaces everything except its claims."""

    agent: AgentStamp | None = None
    epoch: Annotated[GivenEpoch, Field(description="The epoch that this report attests to.")] = ""
    claims: Annotated[
        tuple[HeldClaimBody, ...], Field(description="Claims that the host holds. Needed to attest.")
    ] = ()
    ended: Annotated[tuple[EndedClaimBody, ...], Field(description="Claims whose work has ended on the host.")] = ()


class ReportPatch(BaseModel):
    """A merge patch of a report: the members to change. null removes a member."""

    model_config = ConfigDict(extra="allow")


class HeartbeatBody(Strict):
    """A host's heartbeat."""

    lease_s: GivenLeaseS = 30
    agent: AgentStamp | None = None

    model_config = ConfigDict(json_schema_extra={"examples": [{"lease_s": 30}]})
