"""Bodies of agents that use HTTP: reports and heartbeats of hosts."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, make_dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic_core import from_json

from redsched.model import MAX_CLASSES, MAX_HOST_CLAIMS, AgentStamp, Claim, HostReport
from redsched.model.declared import MAX_TOPOLOGIES
from redsched.model.limits import MAX_HOST_SLOTS, check_size
from redsched.model.types import (
    GivenCounted,
    GivenEpoch,
    GivenLeaseS,
    GivenNeed,
    GivenSlot,
    GivenTopology,
    read_as,
)
from redsched.model.validation import check_name
from redsched.requests import Strict
from redsched.store.codec.claim_fields import ALTERNATES, FIELDS, record_with
from redsched.store.codec.replies import EndedPlacement, JournaledClaim

PLAIN_BYTES = 64 * 1024
"""Reports of up to this size are parsed without another look."""

_LEFT_OUT = {ALTERNATES, "gang", "gang_members", "gang_on_exit", "log", "resized_from", "restarts"}
"""Journaled fields that reports do not have: the hosts are in `alternates`, and the others are for redsched's agent."""
_DEFAULTS = {one.name: one.default for one in fields(Claim)}


def _default_of(name: str) -> Any:
    if name not in _DEFAULTS:
        raise TypeError(f"agents journal {name}, which Claim has no attribute for: add it, or the field to _LEFT_OUT")
    return _DEFAULTS[name]


_PLAIN = [
    (one.name, Annotated[one.kind.given, Field(description=one.doc)], _default_of(one.attribute or one.name))
    for one in FIELDS
    if one.kind and one.journaled and one.name not in _LEFT_OUT
]
"""The name, type and default of each field that a report has as the journal has it."""
_COUNTED = next(one for one in FIELDS if one.name == "counted")
_Slots = Annotated[Mapping[GivenSlot, GivenNeed], Field(max_length=MAX_CLASSES, description="Amounts by slot.")]


def _read_record(held: Any) -> None:
    """Make the record of the fields of a held claim."""
    for topology in ("host", "zone"):
        if domain := held.counted.get(topology):
            check_name(topology, domain)
    plain = ((name, getattr(held, name), default) for name, _, default in _PLAIN)
    record = {name: str(value) for name, value, default in plain if value and value != default}
    record |= {ALTERNATES: str(len(held.alternates))} if held.alternates else {}
    record |= {f"counted.{topology}": domain for topology, domain in held.counted.items()}
    object.__setattr__(held, "record", record_with(record, held.slots, {}))


HeldClaimBody = make_dataclass(
    "HeldClaimBody",
    [
        ("record", Mapping[str, str], field(init=False)),  # made of the fields below
        ("slots", _Slots),
        *_PLAIN,
        (
            "counted",
            Annotated[
                Mapping[GivenTopology, GivenCounted],
                Field(max_length=MAX_TOPOLOGIES + 3, description=_COUNTED.doc),
            ],
            field(default_factory=dict),
        ),
    ],
    bases=(JournaledClaim,),
    namespace={"__doc__": "A claim that a host holds, as recorded in its journal.", "__post_init__": _read_record},
    frozen=True,
    slots=True,
    kw_only=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportBody(HostReport):
    """A host's report about itself. A PUT replaces everything except its claims."""

    agent: AgentStamp | None = None
    epoch: Annotated[GivenEpoch, Field(description="The epoch that this report attests to.")] = ""
    claims: Annotated[
        tuple[Annotated[JournaledClaim, read_as(HeldClaimBody)], ...],
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
