"""Bodies of agents that use HTTP: reports and heartbeats of hosts."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import from_json

from redsched.model import (
    MAX_ATTEMPTS,
    MAX_CLASSES,
    MAX_HOST_CLAIMS,
    MAX_RUNTIME_S,
    AgentStamp,
    EndReason,
    HostReport,
    OnExit,
)
from redsched.model.declared import MAX_TOPOLOGIES
from redsched.model.limits import MAX_HOST_SLOTS, check_size
from redsched.model.types import GivenName, GivenOwner
from redsched.model.validation import check_name
from redsched.origin import MAX_ACTOR, MAX_REQUEST_ID
from redsched.scheduler import EndedPlacement, JournaledClaim
from redsched.schema.types import GivenCounted, GivenEpoch, GivenLeaseS, GivenNeed, GivenSlot, GivenTopology, Strict
from redsched.store.codec.claim_fields import ALTERNATES, FIELDS, record_with

PLAIN_BYTES = 64 * 1024
"""Reports of up to this size are parsed without another look."""

_ABOUT = {one.name: Field(description=one.doc) for one in FIELDS}
_PLAIN = frozenset(one.name for one in FIELDS if one.journaled and not one.is_family) - {ALTERNATES}


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldClaimBody(JournaledClaim):
    """A claim that a host holds, as recorded in its journal."""

    record: Mapping[str, str] = field(init=False)  # made of the fields below
    slots: Annotated[Mapping[GivenSlot, GivenNeed], Field(max_length=MAX_CLASSES, description="Amounts by slot.")]
    project: Annotated[GivenName | Literal[""], _ABOUT["project"]] = ""
    consumer: Annotated[GivenName | Literal[""], _ABOUT["consumer"]] = ""
    owner: Annotated[GivenOwner | Literal[""], _ABOUT["owner"]] = ""
    actor: Annotated[str, Field(pattern=rf"^[^\x00-\x1f\x7f]{{0,{MAX_ACTOR}}}$"), _ABOUT["actor"]] = ""
    request_id: Annotated[str, Field(pattern=rf"^[A-Za-z0-9._-]{{0,{MAX_REQUEST_ID}}}$"), _ABOUT["request_id"]] = ""
    digest: Annotated[str, Field(pattern="^[0-9a-f]{0,64}$")] = ""
    claimed_at_ms: Annotated[Annotated[int, Field(ge=0)] | None, _ABOUT["claimed_at_ms"]] = None
    group: Annotated[GivenName | Literal[""], _ABOUT["group"]] = ""
    counted: Annotated[
        Mapping[GivenTopology, GivenCounted], Field(max_length=MAX_TOPOLOGIES + 3), _ABOUT["counted"]
    ] = field(default_factory=dict)
    on_exit: Annotated[OnExit, _ABOUT["on_exit"]] = OnExit.RELEASE
    max_attempts: Annotated[int, Field(ge=1, le=MAX_ATTEMPTS), _ABOUT["max_attempts"]] = 1
    max_runtime_s: Annotated[int, Field(ge=0, le=MAX_RUNTIME_S), _ABOUT["max_runtime_s"]] = 0
    runtime_deadline_ms: Annotated[Annotated[int, Field(ge=0)] | None, _ABOUT["runtime_deadline_ms"]] = None
    work_ended_at_ms: Annotated[Annotated[int, Field(ge=0)] | None, _ABOUT["work_ended_at_ms"]] = None
    end_reason: Annotated[EndReason | None, _ABOUT["end_reason"]] = None

    def __post_init__(self) -> None:
        for topology in ("host", "zone"):
            if domain := self.counted.get(topology):
                check_name(topology, domain)
        plain = ((one.name, getattr(self, one.name), one.default) for one in fields(self) if one.name in _PLAIN)
        record = {name: str(value) for name, value, default in plain if value and value != default}
        record |= {ALTERNATES: str(len(self.alternates))} if self.alternates else {}
        record |= {f"counted.{topology}": domain for topology, domain in self.counted.items()}
        object.__setattr__(self, "record", record_with(record, self.slots, {}))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportBody(HostReport):
    """A host's report about itself. A PUT replaces everything except its claims."""

    agent: AgentStamp | None = None
    epoch: Annotated[GivenEpoch, Field(description="The epoch that this report attests to.")] = ""
    claims: Annotated[
        tuple[HeldClaimBody, ...],
        Field(
            max_length=MAX_HOST_CLAIMS,
            fail_fast=True,
            description="Claims that the host holds. Needed to attest.",
        ),
    ] = ()
    ended: Annotated[
        tuple[EndedPlacement, ...],
        Field(max_length=MAX_HOST_CLAIMS, fail_fast=True, description="Claims whose work has ended on the host."),
    ] = ()


class ReportPatch(BaseModel):
    """A merge patch of a report: the members to change. null removes a member."""

    model_config = ConfigDict(extra="allow")


class HeartbeatBody(Strict):
    """A host's heartbeat."""

    lease_s: GivenLeaseS = 30
    agent: AgentStamp | None = None

    model_config = ConfigDict(json_schema_extra={"examples": [{"lease_s": 30}]})


def check_report_size(text: bytes) -> None:
    """Raise InvalidRequest for a large report with too many inventories. Building each would take 10 us."""
    if len(text) <= PLAIN_BYTES:
        return
    try:
        found = from_json(text)
    except ValueError:
        return  # parsing it describes the error
    parts = [found, *_members(found, "pools").values()]
    slots = [slot for part in parts for slot in _members(part, "inventories")]
    check_size("inventories of the host and its pools", slots, MAX_HOST_SLOTS)


def _members(found: object, name: str) -> Mapping[str, object]:
    member = found.get(name) if isinstance(found, dict) else None
    return member if isinstance(member, dict) else {}
