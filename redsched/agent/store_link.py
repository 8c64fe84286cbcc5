"""The link of an agent that has access to the store: each call is a command of the store."""

from collections.abc import Collection, Sequence

from redsched.agent.inbox import InboxWatcher
from redsched.agent.link import InboxWatch
from redsched.model import AgentStamp, Amounts, Claim, EndReason, HostReport
from redsched.store.cell import CellStore
from redsched.store.codec.results import (
    AttestAnswer,
    EndedPlacement,
    InboxEntry,
    JournaledClaim,
    ReportAnswer,
    ScriptResult,
)
from redsched.store.store import Store


class StoreLink:
    """A connection to the store itself."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def cell(self, name: str) -> "StoreCellLink":
        """Return the calls to one cell."""
        return StoreCellLink(self.store.cell(name))


class StoreCellLink:
    """The calls to one cell of the store. `redsched.agent.link.CellLink` describes them."""

    def __init__(self, cell: CellStore) -> None:
        self._cell = cell
        self.name = cell.name

    async def report(self, report: HostReport, stamp: AgentStamp) -> ReportAnswer:
        """Run report.lua."""
        return await self._cell.hosts.report(report, stamp)

    async def attest(
        self,
        host: str,
        epoch: str,
        stamp: AgentStamp,
        held: Sequence[JournaledClaim],
        ended: Sequence[EndedPlacement],
        lease_s: int,
    ) -> AttestAnswer:
        """Run attest.lua."""
        return await self._cell.hosts.attest(host, epoch, stamp, held, ended, lease_s)

    async def heartbeat(self, host: str, lease_s: int, stamp: AgentStamp) -> ScriptResult:
        """Run heartbeat.lua. Calls of hosts that are due together share a round trip."""
        return await self._cell.hosts.heartbeat(host, lease_s, stamp)

    async def raise_epoch(self, host: str, above: str) -> ScriptResult:  # noqa: ARG002 - the store does not ask who
        """Run raise_epoch.lua."""
        return await self._cell.raise_epoch(above)

    async def devices(self, host: str) -> dict[str, str]:
        """Read the host's attributes."""
        return await self._cell.hosts.devices(host)

    async def inboxes(self, hosts: Sequence[str]) -> list[list[InboxEntry]]:
        """Read the inboxes over the connection that carries the reports."""
        return await self._cell.hosts.inboxes(hosts)

    async def watch(self, watch: InboxWatch) -> None:
        """Poll the inboxes of few hosts, or the feed for many."""
        await InboxWatcher(self._cell, watch).run()

    async def claim_ids_of(self, hosts: Sequence[str]) -> list[set[str]]:
        """Read the sets of claims of the hosts."""
        return await self._cell.hosts.claim_ids_of(hosts)

    async def claims(self, hosts: Collection[str], ids: Sequence[str]) -> dict[str, Claim]:  # noqa: ARG002
        """Read the claims. Those that have left the hosts are returned too, without a placement there."""
        return await self._cell.claims.read(ids)

    async def texts(self, host: str, claim_id: str, names: Sequence[str]) -> dict[str, str]:  # noqa: ARG002
        """Read the texts."""
        return await self._cell.texts.read(names)

    async def missing_texts(self, host: str, names: Collection[str]) -> list[str]:  # noqa: ARG002
        """Check which keys exist."""
        return await self._cell.texts.missing(names)

    async def restore_text(self, host: str, claim_id: str, name: str, text: str) -> None:  # noqa: ARG002
        """Run keep.lua."""
        await self._cell.texts.restore(name, text)

    async def accept(self, host: str, claim_id: str, token: str, lease_s: int, entry_id: str) -> ScriptResult:
        """Run accept.lua."""
        return await self._cell.claims.accept(host, claim_id, token, lease_s, entry_id)

    async def confirm(self, host: str, claim_id: str, token: str, epoch: str, log: str) -> ScriptResult:
        """Run confirm.lua."""
        return await self._cell.claims.confirm(host, claim_id, token, epoch=epoch, log=log)

    async def renew(self, host: str, claim_id: str, token: str, lease_s: int) -> ScriptResult:
        """Run renew.lua."""
        return await self._cell.claims.renew(host, claim_id, token, lease_s)

    async def fail(
        self, host: str, claim_id: str, token: str, is_gone: bool, objects: Collection[str], reason: str
    ) -> ScriptResult:
        """Run fail.lua."""
        return await self._cell.claims.fail(host, claim_id, token, is_gone, objects, reason=reason)

    async def work_ended(self, host: str, claim_id: str, token: str, reason: str) -> ScriptResult:
        """Run work_ended.lua."""
        return await self._cell.claims.work_ended(host, claim_id, token, reason)

    async def stop_failed(self, host: str, claim_id: str, token: str, reason: str) -> ScriptResult:
        """Run stop_failed.lua."""
        return await self._cell.claims.stop_failed(host, claim_id, token, reason)

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
        """Run gone.lua."""
        return await self._cell.claims.gone(
            host, claim_id, token, end_reason, external, entry_id, objects, reason=reason
        )

    async def resized(
        self, host: str, claim_id: str, token: str, amounts: Amounts, objects: Collection[str]
    ) -> ScriptResult:
        """Run resized.lua."""
        return await self._cell.claims.resized(host, claim_id, token, amounts, objects)

    async def report_local(
        self, host: str, claim_id: str, amounts: Amounts, project: str, consumer: str, token: str
    ) -> ScriptResult:
        """Run local.lua."""
        return await self._cell.claims.report_local(host, claim_id, amounts, project, consumer, token)
