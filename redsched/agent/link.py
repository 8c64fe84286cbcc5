"""What an agent reports to its cells and asks of them: the same over Redis and over REST.

`store_link` calls the scripts of a store, `rest` the routes of an API that calls them. Every call may be repeated: a
repeated one has no further effect and gets the same reply. Every call raises StoreUnavailable, and OutcomeUnknown if it
was sent and no reply came; the agent then repeats it.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from redsched.agent.backoff import StoreBackoff
from redsched.model import AgentStamp, Amounts, Claim, EndReason, HostReport
from redsched.store.codec.results import (
    AttestAnswer,
    EndedPlacement,
    InboxEntry,
    JournaledClaim,
    ReportAnswer,
    ScriptResult,
)


@dataclass(frozen=True, slots=True)
class InboxWatch:
    """What to watch for in a cell. `hosts` is the agent's own dict: hosts that stop leave it."""

    backoff: StoreBackoff
    hosts: Mapping[str, object]
    poll_s: float
    on_inbox: Callable[[str], None]
    """Called with the name of a host whose inbox has, or may have, new entries."""
    on_epoch: Callable[[], None]
    """Called when changes may have been missed, or in a new epoch, to which all hosts must attest."""


class CellLink(Protocol):
    """The calls of an agent to one cell. Outcomes are those of the scripts: see `redsched.store.commands`."""

    @property
    def name(self) -> str:
        """The name of the cell."""

    # -- hosts

    async def report(self, report: HostReport, stamp: AgentStamp) -> ReportAnswer:
        """Replace all fields that the host's agent owns. OK | ALREADY_DONE | NOT_OWNER."""

    async def attest(
        self,
        host: str,
        epoch: str,
        stamp: AgentStamp,
        held: Sequence[JournaledClaim],
        ended: Sequence[EndedPlacement],
        lease_s: int,
    ) -> AttestAnswer:
        """Attest to an epoch with all claims that the host knows."""

    async def heartbeat(self, host: str, lease_s: int, stamp: AgentStamp) -> ScriptResult:
        """Renew the host's lease. OK | NOT_ATTESTED | UNKNOWN (report first) | NOT_OWNER."""

    async def raise_epoch(self, host: str, above: str) -> ScriptResult:
        """Start a new epoch unless the current one is above `above`. `host`: the one that has seen the store go back.

        OK | ALREADY_DONE.
        """

    async def devices(self, host: str) -> dict[str, str]:
        """Return the devices of a host's last report, by the names of their pools."""

    async def inboxes(self, hosts: Sequence[str]) -> list[list[InboxEntry]]:
        """Return the notifications in some hosts' inboxes."""

    async def watch(self, watch: InboxWatch) -> None:
        """Watch the inboxes of hosts until cancelled."""

    # -- claims

    async def claim_ids_of(self, hosts: Sequence[str]) -> list[set[str]]:
        """Return the ids of the claims on each of some hosts."""

    async def claims(self, hosts: Collection[str], ids: Sequence[str]) -> dict[str, Claim]:
        """Return by id those of the claims that have a placement on one of these hosts."""

    async def texts(self, host: str, claim_id: str, names: Sequence[str]) -> dict[str, str]:
        """Return texts that a claim on this host refers to, by name, without those that are no longer kept."""

    async def missing_texts(self, host: str, names: Collection[str]) -> list[str]:
        """Return the names of texts that are no longer kept."""

    async def restore_text(self, host: str, claim_id: str, name: str, text: str) -> None:
        """Restore a text that the store has lost, and that a claim on this host refers to."""

    async def accept(self, host: str, claim_id: str, token: str, lease_s: int, entry_id: str) -> ScriptResult:
        """Record that the host has accepted the claim, and delete the notification `entry_id`, if it is not ''."""

    async def confirm(self, host: str, claim_id: str, token: str, epoch: str, log: str) -> ScriptResult:
        """Record that the work runs. `epoch`: the one to which the host has attested."""

    async def renew(self, host: str, claim_id: str, token: str, lease_s: int) -> ScriptResult:
        """Renew the lease of a claim that is not active yet."""

    async def fail(
        self, host: str, claim_id: str, token: str, is_gone: bool, objects: Collection[str], reason: str
    ) -> ScriptResult:
        """Record that the work could not be started. `is_gone`: nothing is left of it.

        `objects`: what counts the claim besides its host, which may save a call.
        """

    async def work_ended(self, host: str, claim_id: str, token: str, reason: str) -> ScriptResult:
        """Record that the work has ended by itself, without ending the claim."""

    async def stop_failed(self, host: str, claim_id: str, token: str, reason: str) -> ScriptResult:
        """Record that the work of a placement that is ending could not be stopped."""

    async def gone(
        self,
        host: str,
        claim_id: str,
        token: str,
        end_reason: EndReason,
        external: Amounts,
        entry_id: str,
        objects: Collection[str],
        reason: str,
    ) -> ScriptResult:
        """Record that the work is gone, with the host's new external usage. `objects` as in `fail`."""

    async def resized(
        self, host: str, claim_id: str, token: str, amounts: Amounts, objects: Collection[str]
    ) -> ScriptResult:
        """Record the amounts that the work has now. `objects` as in `fail`."""

    async def report_local(
        self, host: str, claim_id: str, amounts: Amounts, project: str, consumer: str, token: str
    ) -> ScriptResult:
        """Record work that the host runs without a claim, or new amounts of such work."""


class AgentLink(Protocol):
    """The connection of an agent."""

    def cell(self, name: str) -> CellLink:
        """Return the calls to one cell."""
