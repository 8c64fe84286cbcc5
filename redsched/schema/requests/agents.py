"""Bodies and queries of agents without access to the store: what a host reports, and what it asks for."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import AfterValidator, ConfigDict, Field
from pydantic.config import JsonDict

from redsched.model import MAX_HOST_CLAIMS, AgentStamp, EndReason, HostReport
from redsched.model.claims import plain_text
from redsched.model.limits import MAX_CALL_CLAIMS, MAX_CALL_HOSTS, MAX_HOST_SLOTS, MAX_REASON
from redsched.model.types import Amount, GivenHost, GivenName, GivenToken
from redsched.scheduler import EndedPlacement, JournaledClaim
from redsched.schema.types import GivenEpoch, GivenLeaseS, GivenLogPath, GivenNeed, GivenSlot, Strict

MAX_INBOX_WAIT_S = 60
MAX_TEXT = 65_536
TOKEN = "1790000000000-9f3a12cd.4711"
EPOCH = "1790000000000-9f3a12cd"
LOG = f"/var/log/redsched/jobs/{TOKEN}/log"
AGENT: JsonDict = {"journal": "f00d", "nonce": "1b2c", "number": 7}

EntryId = Annotated[
    str, Field(pattern=r"^([0-9]{1,19}(-[0-9]{1,19})?)?$", description="The id of a notification in the host's inbox.")
]
TextName = Annotated[str, Field(pattern=r"^(request:[0-9a-f]{1,64}|alternates:[A-Za-z0-9][A-Za-z0-9._-]{0,62})$")]
ReasonText = Annotated[str, Field(max_length=MAX_REASON, description="Why, as text."), AfterValidator(plain_text)]
Hosts = Annotated[tuple[GivenHost, ...], Field(min_length=1, max_length=MAX_CALL_HOSTS)]


class CellQuery(Strict):
    """The cell of the hosts."""

    cell: Annotated[GivenName | Literal[""], Field(description="The hosts' cell. Empty: the only one.")] = ""


class TextsQuery(CellQuery):
    """The cell of the host, and the names of texts."""

    name: Annotated[list[TextName], Field(max_length=2, description="Repeatable.")] = Field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReportBody(HostReport):
    """A host's report about itself, and who reports it."""

    agent: AgentStamp


class AttestBody(Strict):
    """All that the host's journal knows of claims, for one epoch of the store."""

    epoch: GivenEpoch
    agent: AgentStamp
    held: Annotated[tuple[JournaledClaim, ...], Field(max_length=MAX_HOST_CLAIMS, fail_fast=True)] = ()
    ended: Annotated[tuple[EndedPlacement, ...], Field(max_length=MAX_HOST_CLAIMS, fail_fast=True)] = ()
    lease_s: GivenLeaseS = 120

    model_config = ConfigDict(json_schema_extra={"examples": [{"epoch": EPOCH, "agent": AGENT}]})


class Beat(Strict):
    """The heartbeat of one host."""

    lease_s: GivenLeaseS
    agent: AgentStamp


class HeartbeatsBody(Strict):
    """Heartbeats of hosts, by host."""

    hosts: Annotated[dict[GivenHost, Beat], Field(min_length=1, max_length=MAX_CALL_HOSTS)]

    model_config = ConfigDict(json_schema_extra={"examples": [{"hosts": {"h17": {"lease_s": 30, "agent": AGENT}}}]})


class RaiseEpochBody(Strict):
    """An epoch that a host has seen, and that the store's must be above."""

    above: Annotated[str, Field(pattern=r"^[0-9]{1,16}-[A-Za-z0-9]{1,16}$")]

    model_config = ConfigDict(json_schema_extra={"examples": [{"above": EPOCH}]})


class InboxesBody(Strict):
    """The hosts whose inboxes are read, and how long to wait for a notification."""

    after: Annotated[
        dict[GivenHost, EntryId],
        Field(min_length=1, max_length=MAX_CALL_HOSTS, description="By host, the last `entry_id` read. Empty: none."),
    ]
    timeout_s: Annotated[
        float, Field(ge=0, le=MAX_INBOX_WAIT_S, description="How long to wait if there is no notification.")
    ] = 0

    model_config = ConfigDict(json_schema_extra={"examples": [{"after": {"h17": ""}, "timeout_s": 20}]})


class HostsBody(Strict):
    """Some hosts."""

    hosts: Hosts

    model_config = ConfigDict(json_schema_extra={"examples": [{"hosts": ["h17"]}]})


class ClaimsOfHostsBody(HostsBody):
    """Some hosts, and the ids of claims on them."""

    ids: Annotated[tuple[GivenName, ...], Field(max_length=MAX_CALL_CLAIMS)]

    model_config = ConfigDict(json_schema_extra={"examples": [{"hosts": ["h17"], "ids": ["6f1c"]}]})


class TextBody(Strict):
    """A text that the store has lost, as it had it."""

    name: TextName
    text: Annotated[str, Field(max_length=MAX_TEXT)]

    model_config = ConfigDict(json_schema_extra={"examples": [{"name": "alternates:6f1c", "text": "h3 h4"}]})


class TextNamesBody(Strict):
    """The names of texts."""

    names: Annotated[tuple[TextName, ...], Field(max_length=2 * MAX_HOST_CLAIMS, fail_fast=True)]

    model_config = ConfigDict(json_schema_extra={"examples": [{"names": ["alternates:6f1c"]}]})


class PlacementBody(Strict):
    """The token of a placement on the host."""

    token: GivenToken

    model_config = ConfigDict(json_schema_extra={"examples": [{"token": TOKEN}]})


class AcceptBody(PlacementBody):
    """The token, the lease until the work runs, and the notification that is no longer needed."""

    lease_s: GivenLeaseS
    entry_id: EntryId = ""

    model_config = ConfigDict(json_schema_extra={"examples": [{"token": TOKEN, "lease_s": 30}]})


class AgentConfirmBody(PlacementBody):
    """The token, the epoch to which the host has attested, and the path of the work's log, if the hook has named it."""

    epoch: GivenEpoch
    log: GivenLogPath = ""

    model_config = ConfigDict(json_schema_extra={"examples": [{"token": TOKEN, "epoch": EPOCH, "log": LOG}]})


class AgentRenewBody(PlacementBody):
    """The token, and the requested lease."""

    lease_s: GivenLeaseS

    model_config = ConfigDict(json_schema_extra={"examples": [{"token": TOKEN, "lease_s": 30}]})


class AgentFailBody(PlacementBody):
    """The token, and why the work could not be started."""

    is_gone: Annotated[bool, Field(description="Whether nothing is left of the work.")]
    reason: ReasonText = ""

    model_config = ConfigDict(json_schema_extra={"examples": [{"token": TOKEN, "is_gone": True, "reason": "no disk"}]})


class WorkEndedBody(PlacementBody):
    """The token, and how the work was found to have ended."""

    reason: ReasonText = ""

    model_config = ConfigDict(json_schema_extra={"examples": [{"token": TOKEN, "reason": "no process 17 is left"}]})


class StopFailedBody(PlacementBody):
    """The token, and why the work could not be stopped."""

    reason: ReasonText = ""

    model_config = ConfigDict(json_schema_extra={"examples": [{"token": TOKEN, "reason": "target is busy"}]})


class GoneBody(PlacementBody):
    """The token, why the work is gone, and what is in use now that no claim explains."""

    end_reason: Literal["released", "work-ended", "max-runtime"] = EndReason.RELEASED.value
    external: Annotated[dict[GivenSlot, Amount], Field(max_length=MAX_HOST_SLOTS)] = Field(default_factory=dict)
    entry_id: EntryId = ""
    reason: ReasonText = ""

    model_config = ConfigDict(json_schema_extra={"examples": [{"token": TOKEN, "external": {"VCPU": 1}}]})


class ResizedBody(PlacementBody):
    """The token, and the amounts that the work has now."""

    amounts: Annotated[dict[GivenSlot, GivenNeed], Field(max_length=MAX_HOST_SLOTS)]

    model_config = ConfigDict(json_schema_extra={"examples": [{"token": TOKEN, "amounts": {"VCPU": 4}}]})


class LocalBody(Strict):
    """Work that a host runs without a claim."""

    amounts: Annotated[dict[GivenSlot, GivenNeed], Field(max_length=MAX_HOST_SLOTS)]
    project: GivenName | Literal[""] = ""
    consumer: GivenName | Literal[""] = ""
    token: Annotated[GivenToken | Literal[""], Field(description="Of its last placement known to the host.")] = ""

    model_config = ConfigDict(json_schema_extra={"examples": [{"amounts": {"VCPU": 2}, "project": "web"}]})
