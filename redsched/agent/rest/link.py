"""The link of an agent without access to the store: each call is a request to the API."""

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from redsched import aio, logs
from redsched.agent.link import InboxWatch
from redsched.agent.rest import wire
from redsched.agent.rest.client import ApiClient
from redsched.agent.rest.heartbeats import Beats, HeartbeatBatcher
from redsched.agent.rest.watcher import Notifications, watch_inboxes
from redsched.errors import InvalidRequest, NotFound
from redsched.model import MAX_HOST_CLAIMS, AgentStamp, Amounts, Claim, EndReason, HostReport
from redsched.model.limits import MAX_CALL_CLAIMS, MAX_CALL_HOSTS, MAX_REASON
from redsched.settings import Settings
from redsched.store.codec.fields import claim_from
from redsched.store.codec.results import (
    AttestAnswer,
    EndedPlacement,
    InboxEntry,
    JournaledClaim,
    ReportAnswer,
    ScriptResult,
)

_log = logs.get_logger("redsched.agent")


class RestLink:
    """A connection to the API, opened by `RestLink.connect`."""

    def __init__(self, client: ApiClient, ends_if_refused: bool) -> None:
        self._client, self._ends_if_refused = client, ends_if_refused
        self._cells: dict[str, RestCellLink] = {}

    @classmethod
    @asynccontextmanager
    async def connect(
        cls, settings: Settings, cells: Collection[str], ends_if_refused: bool = True, hosts: Sequence[str] = ()
    ) -> AsyncIterator["RestLink"]:
        """Open a connection, and check that the API accepts the token and has these cells.

        `hosts`: those of the agent, for the API's log. `ends_if_refused`: the first report of a host raises Forbidden
        or Unauthenticated if the API refuses it: the token is not that of this host. Later refusals, or without it all,
        are outages.

        Raises InvalidRequest, Unauthenticated, Forbidden, NotFound, StoreUnavailable, and OutcomeUnknown if the API
        accepts the connection but does not reply.
        """
        async with ApiClient.connect(settings, hosts) as client:
            known = (await client.first())["cells"]
            if missing := sorted(set(cells) - set(known)):
                raise NotFound(f"the API at {client.url} has no cell {missing[0]!r}: it serves {', '.join(known)}")
            link = cls(client, ends_if_refused)
            try:
                yield link
            finally:
                await aio.finish(link._close())

    async def _close(self) -> None:
        for cell in self._cells.values():
            await cell.close()

    def cell(self, name: str) -> "RestCellLink":
        """Return the calls to one cell."""
        if name not in self._cells:
            self._cells[name] = RestCellLink(self._client, name, self._ends_if_refused)
        return self._cells[name]


class RestCellLink:
    """The calls to one cell over REST. `redsched.agent.link.CellLink` describes them."""

    def __init__(self, client: ApiClient, name: str, ends_if_refused: bool = False) -> None:
        self._client, self._ends_if_refused = client, ends_if_refused
        self._accepted: set[str] = set()
        """The hosts of which the API has accepted a report."""
        self.name = name
        self._query = (("cell", name),)
        self._heartbeats = HeartbeatBatcher(self._send_heartbeats)

    async def close(self) -> None:
        """End what no caller waits for."""
        await self._heartbeats.close()

    async def report(self, report: HostReport, stamp: AgentStamp) -> ReportAnswer:
        """PUT .../report."""
        path, body = f"/v1/agent/hosts/{report.name}/report", wire.report_body(report, stamp)
        is_first = self._ends_if_refused and report.name not in self._accepted
        answer = wire.reported_from(await self._client.call("PUT", path, body, is_first=is_first))
        self._accepted.add(report.name)
        return answer

    async def attest(
        self,
        host: str,
        epoch: str,
        stamp: AgentStamp,
        held: Sequence[JournaledClaim],
        ended: Sequence[EndedPlacement],
        lease_s: int,
    ) -> AttestAnswer:
        """POST .../attest."""
        # Of the ended placements that the journal remembers, the newest.
        body = {
            "epoch": epoch,
            "agent": wire.stamp_body(stamp),
            "held": [wire.held_body(one) for one in held],
            "ended": [wire.ended_body(one) for one in ended[-MAX_HOST_CLAIMS:]],
            "lease_s": lease_s,
        }
        return wire.attested_from(await self._post(f"/v1/agent/hosts/{host}/attest", body))

    async def heartbeat(self, host: str, lease_s: int, stamp: AgentStamp) -> ScriptResult:
        """POST /v1/agent/heartbeats, with those of all hosts that are due."""
        return await self._heartbeats.beat(host, lease_s, stamp)

    async def _send_heartbeats(self, beats: Beats) -> Mapping[str, ScriptResult]:
        hosts = {host: {"lease_s": lease_s, "agent": wire.stamp_body(one)} for host, (lease_s, one) in beats.items()}
        reply = await self._post("/v1/agent/heartbeats", {"hosts": hosts})
        return {host: wire.outcome_from(one) for host, one in reply["hosts"].items()}

    async def raise_epoch(self, host: str, above: str) -> ScriptResult:
        """POST .../raise-epoch."""
        return wire.outcome_from(await self._post(f"/v1/agent/hosts/{host}/raise-epoch", {"above": above}))

    async def devices(self, host: str) -> dict[str, str]:
        """GET .../devices."""
        reply = await self._client.call("GET", f"/v1/agent/hosts/{host}/devices", query=self._query)
        return dict(reply["devices"])

    async def inboxes(self, hosts: Sequence[str]) -> list[list[InboxEntry]]:
        """POST /v1/agent/inboxes, without waiting."""
        found = dict[str, Sequence[InboxEntry]]()
        for some in _parts(hosts, MAX_CALL_HOSTS):
            found.update((await self._notifications(dict.fromkeys(some, ""), 0.0)).entries)
        return [list(found.get(host, ())) for host in hosts]

    async def watch(self, watch: InboxWatch) -> None:
        """POST /v1/agent/inboxes, waiting."""
        await watch_inboxes(self._notifications, watch)

    async def _notifications(self, after: Mapping[str, str], timeout_s: float) -> Notifications:
        reply = await self._post("/v1/agent/inboxes", {"after": dict(after), "timeout_s": timeout_s}, timeout_s)
        entries = {host: wire.entries_from(one) for host, one in reply["entries"].items()}
        return Notifications(reply["epoch"], reply["reset"], entries)

    async def claim_ids_of(self, hosts: Sequence[str]) -> list[set[str]]:
        """POST /v1/agent/claim-ids."""
        found = dict[str, list[str]]()
        for some in _parts(hosts, MAX_CALL_HOSTS):
            found.update((await self._post("/v1/agent/claim-ids", {"hosts": list(some)}))["ids"])
        return [set(found[host]) for host in hosts]

    async def claims(self, hosts: Collection[str], ids: Sequence[str]) -> dict[str, Claim]:
        """POST /v1/agent/claims."""
        found = dict[str, Claim]()
        for some in _parts(ids, MAX_CALL_CLAIMS):
            reply = await self._post("/v1/agent/claims", {"hosts": list(hosts), "ids": list(some)})
            found |= {one: claim_from(self.name, one, fields) for one, fields in reply["claims"].items()}
        return found

    async def texts(self, host: str, claim_id: str, names: Sequence[str]) -> dict[str, str]:
        """GET .../texts. A claim that has left the host has none for it."""
        query = [*self._query, *(("name", name) for name in names)]
        reply = await self._client.call("GET", f"{_claim(host, claim_id)}/texts", query=query)
        return dict(reply["texts"])

    async def missing_texts(self, host: str, names: Collection[str]) -> list[str]:
        """POST .../texts/missing."""
        reply = await self._post(f"/v1/agent/hosts/{host}/texts/missing", {"names": list(names)})
        return list(reply["missing"])

    async def restore_text(self, host: str, claim_id: str, name: str, text: str) -> None:
        """PUT .../texts. The API refuses a text that is not what its name says."""
        body = {"name": name, "text": text}
        try:
            await self._client.call("PUT", f"{_claim(host, claim_id)}/texts", body, self._query)
        except InvalidRequest as error:
            _log.error("text not restored", host=host, claim=claim_id, text=name, reason=error.detail)

    async def accept(self, host: str, claim_id: str, token: str, lease_s: int, entry_id: str) -> ScriptResult:
        """POST .../accept."""
        return await self._verb(host, claim_id, "accept", token, lease_s=lease_s, entry_id=entry_id)

    async def confirm(self, host: str, claim_id: str, token: str, epoch: str, log: str) -> ScriptResult:
        """POST .../confirm."""
        more = {"log": log} if log else {}  # earlier releases of the API do not know it
        return await self._verb(host, claim_id, "confirm", token, epoch=epoch, **more)

    async def renew(self, host: str, claim_id: str, token: str, lease_s: int) -> ScriptResult:
        """POST .../renew."""
        return await self._verb(host, claim_id, "renew", token, lease_s=lease_s)

    async def fail(
        self,
        host: str,
        claim_id: str,
        token: str,
        is_gone: bool,
        objects: Collection[str],  # noqa: ARG002 - the API takes no names of keys from a host
        reason: str,
    ) -> ScriptResult:
        """POST .../fail."""
        return await self._verb(host, claim_id, "fail", token, is_gone=is_gone, reason=reason[:MAX_REASON])

    async def work_ended(self, host: str, claim_id: str, token: str, reason: str) -> ScriptResult:
        """POST .../work-ended."""
        return await self._verb(host, claim_id, "work-ended", token, reason=reason[:MAX_REASON])

    async def stop_failed(self, host: str, claim_id: str, token: str, reason: str) -> ScriptResult:
        """POST .../stop-failed."""
        return await self._verb(host, claim_id, "stop-failed", token, reason=reason[:MAX_REASON])

    async def gone(
        self,
        host: str,
        claim_id: str,
        token: str,
        end_reason: EndReason,
        external: Amounts,
        entry_id: str,
        objects: Collection[str],  # noqa: ARG002 - as in `fail`
        reason: str,
    ) -> ScriptResult:
        """POST .../gone."""
        about = {"end_reason": end_reason.value, "external": dict(external), "entry_id": entry_id}
        return await self._verb(host, claim_id, "gone", token, **about, reason=reason[:MAX_REASON])

    async def resized(
        self,
        host: str,
        claim_id: str,
        token: str,
        amounts: Amounts,
        objects: Collection[str],  # noqa: ARG002 - as in `fail`
    ) -> ScriptResult:
        """POST .../resized."""
        return await self._verb(host, claim_id, "resized", token, amounts=dict(amounts))

    async def report_local(
        self, host: str, claim_id: str, amounts: Amounts, project: str, consumer: str, token: str
    ) -> ScriptResult:
        """PUT .../local."""
        body = {"amounts": dict(amounts), "project": project, "consumer": consumer, "token": token}
        reply = await self._client.call("PUT", f"{_claim(host, claim_id)}/local", body, self._query)
        return wire.outcome_from(reply)

    async def _verb(self, host: str, claim_id: str, verb: str, token: str, **more: Any) -> ScriptResult:
        return wire.outcome_from(await self._post(f"{_claim(host, claim_id)}/{verb}", {"token": token, **more}))

    async def _post(self, path: str, body: object, timeout_s: float = 0.0) -> Mapping[str, Any]:
        return await self._client.call("POST", path, body, self._query, timeout_s)


def _claim(host: str, claim_id: str) -> str:
    return f"/v1/agent/hosts/{host}/claims/{claim_id}"


def _parts(items: Collection[str], most: int) -> list[Sequence[str]]:
    listed = list(items)
    return [listed[first : first + most] for first in range(0, len(listed), most)]
