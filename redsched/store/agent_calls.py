"""The calls that agents have: what each says, what it does in the store, and what it returns.

An agent with access to the store runs a call on its cell, by `CellStore.call`. Any other sends it as JSON to the API,
at POST /v1/agent/calls/{name} (`redsched.agent.rest`). There it is checked as its types and
`redsched.api.access.agents` say, and run by `redsched.scheduler.agents.calls`. So a new call is one class here, an
example in `redsched.api.examples`, and a row of docs/rest.md.

Every call may be repeated: a repeated one has no further effect and gets the same reply. Each raises StoreUnavailable,
and OutcomeUnknown if it was sent and no reply came; the agent then repeats it.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar

from pydantic import AfterValidator, Field
from typing_extensions import override

from redsched import aio
from redsched.model import MAX_HOST_CLAIMS, AgentStamp, Claim, EndReason, HostReport
from redsched.model.claims import LOG_PATH, plain_text
from redsched.model.limits import MAX_CALL_CLAIMS, MAX_CALL_HOSTS, MAX_HOST_SLOTS, MAX_REASON
from redsched.model.record import adapter, record
from redsched.model.records.fields import Names, Texts
from redsched.model.types import (
    Amount,
    Body,
    GivenEntryId,
    GivenEpoch,
    GivenHost,
    GivenLeaseS,
    GivenName,
    GivenNeed,
    GivenSlot,
    GivenToken,
    Host,
    read_as,
)
from redsched.store.cell import CellStore
from redsched.store.codec.fields import claim_from
from redsched.store.codec.replies import (
    AttestReply,
    EndedPlacement,
    Inboxes,
    JournaledClaim,
    ReportReply,
    ScriptResult,
)

CALLS_PATH = "/v1/agent/calls/"
"""The path of a call, without its name."""
MAX_INBOX_WAIT_S = 60
MAX_TEXT = 65_536
PRIVATE = frozenset(("call_id",))
"""Fields of claims that no host gets."""

EntryId = Annotated[GivenEntryId, Field(description="The id of a notification in the host's inbox. Empty: none.")]
TextName = Annotated[str, Field(pattern=r"^(request:[0-9a-f]{1,64}|alternates:[A-Za-z0-9][A-Za-z0-9._-]{0,62})$")]
ReasonText = Annotated[str, Field(max_length=MAX_REASON, description="Why, as text."), AfterValidator(plain_text)]
Hosts = Annotated[tuple[GivenHost, ...], Field(min_length=1, max_length=MAX_CALL_HOSTS)]
GivenAmounts = Annotated[Mapping[GivenSlot, GivenNeed], Field(max_length=MAX_HOST_SLOTS)]

R = TypeVar("R")


class AgentCall(Body, Generic[R]):
    """A call of an agent. Its fields are those of its JSON; they are checked where JSON is read."""

    __slots__ = ()
    hosts_in: ClassVar[str]
    """The name of the field that has its host, or its hosts."""
    is_large: ClassVar[bool] = False
    """Whether its JSON may be as large as REDSCHED_MAX_BODY_BYTES, and not only MAX_REQUEST_BYTES."""

    @property
    def about(self) -> Collection[str]:
        """The hosts that it is about: the API accepts it only from the agent of all of them."""
        found: str | Collection[str] = getattr(self, self.hosts_in)
        return (found,) if isinstance(found, str) else found

    async def run(self, cell: CellStore, objects: Collection[str]) -> R:
        """Do in the store what it says. `objects`: what counts its claim besides its host, which may save a call."""
        raise NotImplementedError

    def within_limits(self) -> Self:
        """Return it with no more than the API takes."""
        return self

    @classmethod
    def reply_type(cls) -> Any:
        """Return the record that its reply is in JSON; None for a call without a reply."""
        return cls.run.__annotations__["return"]

    @classmethod
    def reply_json(cls, reply: R) -> bytes:
        """Return a reply as JSON text."""
        return adapter(cls.reply_type()).dump_json(reply, by_alias=True)

    @classmethod
    def reply_from(cls, text: bytes, cell: str) -> R:  # noqa: ARG003 - claims know their cell
        """Return the reply of a cell. Raises ValueError for JSON that is none."""
        found: R = adapter(cls.reply_type()).validate_json(text or b"null")
        return found


@record
class AgentApi:
    """What an API offers to agents: the names of its cells, and those of the calls that it relays."""

    cells: tuple[str, ...]
    calls: tuple[str, ...] = ()


# -- about hosts


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCall(HostReport, AgentCall[ReportReply]):
    """Replace all fields that the host's agent owns, without attesting. OK | ALREADY_DONE | NOT_OWNER."""

    hosts_in, is_large = "name", True

    name: Host
    agent: AgentStamp

    @classmethod
    def of(cls, report: HostReport, stamp: AgentStamp) -> Self:
        """Return the call that sends a report."""
        return cls(**{one.name: getattr(report, one.name) for one in fields(HostReport)}, agent=stamp)

    @override
    async def run(self, cell: CellStore, objects: Collection[str]) -> ReportReply:
        return await cell.hosts.report(self, self.agent)


@dataclass(frozen=True, slots=True)
class _OfHost(AgentCall[R]):
    hosts_in = "host"

    host: GivenHost


@dataclass(frozen=True, slots=True)
class AttestCall(_OfHost[AttestReply]):
    """Attest to an epoch with all claims that the host knows.

    OK | ALREADY_DONE | WRONG_EPOCH | UNKNOWN (report first) | NOT_OWNER.
    """

    is_large = True

    epoch: GivenEpoch
    agent: AgentStamp
    held: Annotated[tuple[JournaledClaim, ...], Field(max_length=MAX_HOST_CLAIMS, fail_fast=True)] = ()
    ended: Annotated[tuple[EndedPlacement, ...], Field(max_length=MAX_HOST_CLAIMS, fail_fast=True)] = ()
    lease_s: GivenLeaseS = 120

    @override
    def within_limits(self) -> Self:
        """Return it with the newest of the ended placements."""
        return replace(self, ended=self.ended[-MAX_HOST_CLAIMS:])

    @override
    async def run(self, cell: CellStore, objects: Collection[str]) -> AttestReply:
        return await cell.hosts.attest(self.host, self.epoch, self.agent, self.held, self.ended, self.lease_s)


@dataclass(frozen=True, slots=True)
class Beat(Body):
    """The heartbeat of one host: its lease, and who sends it."""

    lease_s: GivenLeaseS
    agent: AgentStamp


@record
class HeartbeatReplies:
    """The outcomes of heartbeats, by host."""

    hosts: Mapping[str, ScriptResult]


@dataclass(frozen=True, slots=True)
class HeartbeatsCall(AgentCall[HeartbeatReplies]):
    """Renew the leases of hosts.

    Each gets OK, NOT_ATTESTED (a new epoch: attest), UNKNOWN (report first) or NOT_OWNER (another agent has it).
    """

    hosts_in = "hosts"

    hosts: Annotated[Mapping[GivenHost, Beat], Field(min_length=1, max_length=MAX_CALL_HOSTS)]

    @override
    async def run(self, cell: CellStore, objects: Collection[str]) -> HeartbeatReplies:
        calls = [cell.hosts.heartbeat(host, one.lease_s, one.agent) for host, one in self.hosts.items()]
        # Most are of one host, which needs no task.
        found = [await calls[0]] if len(calls) == 1 else await aio.gather(calls)
        return HeartbeatReplies(dict(zip(self.hosts, found, strict=True)))


@dataclass(frozen=True, slots=True)
class RaiseEpochCall(_OfHost[ScriptResult]):
    """Start a new epoch unless the current one is above `above`: the host has seen the store go back.

    OK | ALREADY_DONE.
    """

    above: Annotated[str, Field(pattern=r"^[0-9]{1,16}-[A-Za-z0-9]{1,16}$")]

    @override
    async def run(self, cell: CellStore, objects: Collection[str]) -> ScriptResult:
        return await cell.raise_epoch(self.above)


@record
class Devices:
    """The devices of a host, by the names of their pools."""

    devices: Texts


@dataclass(frozen=True, slots=True)
class DevicesCall(_OfHost[Devices]):
    """Read the devices of the host's last report: an agent whose journal was lost asks. None for an unknown host."""

    @override
    async def run(self, cell: CellStore, objects: Collection[str]) -> Devices:
        return Devices(await cell.hosts.devices(self.host))


@dataclass(frozen=True, slots=True)
class InboxesCall(AgentCall[Inboxes]):
    """Read the notifications of hosts. With `timeout_s`, the API waits for the first one."""

    hosts_in = "after"

    after: Annotated[
        Mapping[GivenHost, EntryId],
        Field(min_length=1, max_length=MAX_CALL_HOSTS, description="By host, the last `entry_id` read. Empty: none."),
    ]
    timeout_s: Annotated[
        float, Field(ge=0, le=MAX_INBOX_WAIT_S, description="How long to wait if there is no notification.")
    ] = 0.0

    @override
    async def run(self, cell: CellStore, objects: Collection[str]) -> Inboxes:
        inboxes = await cell.hosts.inboxes(list(self.after))
        found = {
            host: [one for one in entries if not after or _number(one.entry_id) > _number(after)]
            for (host, after), entries in zip(self.after.items(), inboxes, strict=True)
        }
        return Inboxes("", False, {host: entries for host, entries in found.items() if entries})


def _number(entry_id: str) -> tuple[int, int]:
    ms, _, number = entry_id.partition("-")
    return int(ms or 0), int(number or 0)


@record
class ClaimIds:
    """The ids of the claims on hosts, by host."""

    ids: Mapping[str, Names]


@dataclass(frozen=True, slots=True)
class ClaimIdsCall(AgentCall[ClaimIds]):
    """Read the ids of the claims on each of some hosts."""

    hosts_in = "hosts"

    hosts: Hosts

    @override
    async def run(self, cell: CellStore, objects: Collection[str]) -> ClaimIds:
        found = await cell.hosts.claim_ids_of(self.hosts)
        return ClaimIds(dict(zip(self.hosts, map(frozenset, found), strict=True)))


@record
class HeldClaims:
    """Claims on hosts by id, with the fields that the store has of them."""

    claims: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class ClaimsCall(AgentCall[dict[str, Claim]]):
    """Read those of the claims that have a placement on one of the hosts, by id."""

    hosts_in = "hosts"

    hosts: Hosts
    ids: Annotated[tuple[GivenName, ...], Field(max_length=MAX_CALL_CLAIMS)]

    @override
    async def run(self, cell: CellStore, objects: Collection[str]) -> dict[str, Claim]:
        found = await cell.claims.read(self.ids)
        return {one: claim for one, claim in found.items() if _is_on(claim, self.hosts)}

    @classmethod
    @override
    def reply_type(cls) -> Any:
        """Return the record of the claims as they are stored: agents need fields that no other caller is shown."""
        return HeldClaims

    @classmethod
    @override
    def reply_json(cls, reply: dict[str, Claim]) -> bytes:
        """Return claims as JSON text, without what no host gets."""
        shown = {
            one: {name: value for name, value in claim.raw.items() if name not in PRIVATE}
            for one, claim in reply.items()
        }
        return adapter(HeldClaims).dump_json(HeldClaims(shown))

    @classmethod
    @override
    def reply_from(cls, text: bytes, cell: str) -> dict[str, Claim]:
        """Return the claims of a reply."""
        found: HeldClaims = adapter(HeldClaims).validate_json(text)
        return {one: claim_from(cell, one, about) for one, about in found.claims.items()}


def _is_on(claim: Claim, hosts: Collection[str]) -> bool:
    """Return whether a claim has a placement on one of these hosts."""
    return any(one.host in hosts for one in claim.placements)


@record
class MissingTexts:
    """The names of texts that the store has lost."""

    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MissingTextsCall(_OfHost[MissingTexts]):
    """Ask which texts the store no longer has: requests of claims, and lists of alternates."""

    is_large = True

    names: Annotated[tuple[TextName, ...], Field(max_length=2 * MAX_HOST_CLAIMS, fail_fast=True)]

    @override
    async def run(self, cell: CellStore, objects: Collection[str]) -> MissingTexts:
        return MissingTexts(tuple(await cell.texts.missing(self.names)))


# -- about a claim


@dataclass(frozen=True, slots=True)
class _OfClaim(_OfHost[R]):
    claim_id: GivenName


@record
class ClaimTexts:
    """Texts by name, without those that are no longer kept."""

    texts: Texts


@dataclass(frozen=True, slots=True)
class TextsCall(_OfClaim[ClaimTexts]):
    """Read texts that a claim on this host refers to: its request, and its list of alternates."""

    names: Annotated[tuple[TextName, ...], Field(max_length=2)] = ()

    @override
    async def run(self, cell: CellStore, objects: Collection[str]) -> ClaimTexts:
        return ClaimTexts(await cell.texts.read(self.names))


@dataclass(frozen=True, slots=True)
class RestoreTextCall(_OfClaim[None]):
    """Restore a text that the store has lost, as it had it, and that a claim on this host refers to."""

    name: TextName
    text: Annotated[str, Field(max_length=MAX_TEXT)]

    @override
    async def run(self, cell: CellStore, objects: Collection[str]) -> None:
        await cell.texts.restore(self.name, self.text)


@dataclass(frozen=True, slots=True)
class LocalCall(_OfClaim[ScriptResult]):
    """Record work that the host runs without a claim, or new amounts of such work."""

    amounts: GivenAmounts
    project: GivenName | Literal[""] = ""
    consumer: GivenName | Literal[""] = ""
    token: Annotated[GivenToken | Literal[""], Field(description="Of its last placement known to the host.")] = ""

    @override
    async def run(self, cell: CellStore, objects: Collection[str]) -> ScriptResult:
        return await cell.claims.report_local(
            self.host, self.claim_id, self.amounts, self.project, self.consumer, self.token
        )


# -- about a placement, by its token


@dataclass(frozen=True, slots=True)
class _OfPlacement(_OfClaim[ScriptResult]):
    token: GivenToken


@dataclass(frozen=True, slots=True)
class AcceptCall(_OfPlacement):
    """Record that the host has accepted the claim, and is about to start its work, until when its lease runs.

    Delete the notification `entry_id`, which is no longer needed.
    """

    lease_s: GivenLeaseS
    entry_id: EntryId = ""

    @override
    async def run(self, cell: CellStore, objects: Collection[str]) -> ScriptResult:
        return await cell.claims.accept(self.host, self.claim_id, self.token, self.lease_s, self.entry_id)


@dataclass(frozen=True, slots=True)
class ConfirmCall(_OfPlacement):
    """Record that the work runs. `epoch`: the one to which the host has attested; `log`: that of the work, if known."""

    epoch: GivenEpoch
    log: Annotated[str, Field(pattern=rf"^({LOG_PATH})?$")] = ""

    @override
    async def run(self, cell: CellStore, objects: Collection[str]) -> ScriptResult:
        return await cell.claims.confirm(self.host, self.claim_id, self.token, epoch=self.epoch, log=self.log)


@dataclass(frozen=True, slots=True)
class RenewCall(_OfPlacement):
    """Renew the lease of a claim that is not active yet."""

    lease_s: GivenLeaseS

    @override
    async def run(self, cell: CellStore, objects: Collection[str]) -> ScriptResult:
        return await cell.claims.renew(self.host, self.claim_id, self.token, self.lease_s)


@dataclass(frozen=True, slots=True)
class _WithReason(_OfPlacement):
    reason: ReasonText = ""

    @override
    def within_limits(self) -> Self:
        return replace(self, reason=self.reason[:MAX_REASON])


@dataclass(frozen=True, slots=True, kw_only=True)
class FailCall(_WithReason):
    """Record that the work could not be started. `is_gone`: nothing is left of it, so that its amounts are free."""

    is_gone: Annotated[bool, Field(description="Whether nothing is left of the work.")]

    @override
    async def run(self, cell: CellStore, objects: Collection[str]) -> ScriptResult:
        return await cell.claims.fail(self.host, self.claim_id, self.token, self.is_gone, objects, reason=self.reason)


@dataclass(frozen=True, slots=True)
class WorkEndedCall(_WithReason):
    """Record that the work has ended by itself, without ending the claim."""

    @override
    async def run(self, cell: CellStore, objects: Collection[str]) -> ScriptResult:
        return await cell.claims.work_ended(self.host, self.claim_id, self.token, self.reason)


@dataclass(frozen=True, slots=True)
class StopFailedCall(_WithReason):
    """Record why the work of a placement that is ending could not be stopped. Its amounts stay taken."""

    @override
    async def run(self, cell: CellStore, objects: Collection[str]) -> ScriptResult:
        return await cell.claims.stop_failed(self.host, self.claim_id, self.token, self.reason)


_GoneReason = Annotated[Literal["released", "work-ended", "max-runtime"], AfterValidator(lambda text: EndReason(text))]


@dataclass(frozen=True, slots=True, kw_only=True)
class GoneCall(_WithReason):
    """Record that nothing is left of the work, with the host's new external usage, and free its amounts."""

    end_reason: Annotated[EndReason, read_as(_GoneReason)] = EndReason.RELEASED
    external: Annotated[Mapping[GivenSlot, Amount], Field(max_length=MAX_HOST_SLOTS)] = field(default_factory=dict)
    entry_id: EntryId = ""

    @override
    async def run(self, cell: CellStore, objects: Collection[str]) -> ScriptResult:
        placement = (self.host, self.claim_id, self.token)
        return await cell.claims.gone(
            *placement, self.end_reason, self.external, self.entry_id, objects, reason=self.reason
        )


@dataclass(frozen=True, slots=True)
class ResizedCall(_OfPlacement):
    """Record the amounts that the work has now: the requested or the old ones."""

    amounts: GivenAmounts

    @override
    async def run(self, cell: CellStore, objects: Collection[str]) -> ScriptResult:
        return await cell.claims.resized(self.host, self.claim_id, self.token, self.amounts, objects)


def _name(call: type[AgentCall[Any]]) -> str:
    """Return the name of a call: `work-ended` of WorkEndedCall."""
    return re.sub(r"(?<=.)(?=[A-Z])", "-", call.__name__.removesuffix("Call")).lower()


CALLS: Mapping[str, type[AgentCall[Any]]] = {
    _name(one): one
    for one in (
        ReportCall,
        AttestCall,
        HeartbeatsCall,
        RaiseEpochCall,
        DevicesCall,
        InboxesCall,
        ClaimIdsCall,
        ClaimsCall,
        MissingTextsCall,
        TextsCall,
        RestoreTextCall,
        LocalCall,
        AcceptCall,
        ConfirmCall,
        RenewCall,
        FailCall,
        WorkEndedCall,
        StopFailedCall,
        GoneCall,
        ResizedCall,
    )
}
"""The calls by their names. An API relays these, and nothing else."""
NAMES = {call: name for name, call in CALLS.items()}
