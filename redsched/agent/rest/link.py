"""The link of an agent without access to the store: each call is a request to the API, which relays it.

Notifications are waited for in one request for up to 200 hosts, which the API answers when there is one.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import TypeVar, cast

from pydantic_core import to_json

from redsched import aio
from redsched.agent.inbox import InboxWatch
from redsched.agent.rest.client import ApiClient
from redsched.agent.rest.heartbeats import HeartbeatBatcher
from redsched.errors import NotFound, StoreUnavailable
from redsched.model.limits import MAX_CALL_HOSTS
from redsched.settings import Settings
from redsched.store.agent_calls import CALLS, NAMES, AgentCall, HeartbeatsCall, InboxesCall, ReportCall
from redsched.store.codec.replies import Inboxes

R = TypeVar("R")
WAIT_S = 20.0
"""How long the API waits before it replies that there is nothing: shorter than proxies keep a silent connection."""

Wait = Callable[[InboxesCall], Awaitable[Inboxes]]
"""Return the notifications that the call waits for."""


class RestLink:
    """A connection to the API, opened by `RestLink.connect`."""

    def __init__(self, client: ApiClient, ends_if_refused: bool) -> None:
        self._client, self._ends_if_refused = client, ends_if_refused
        self._cells: dict[str, RestCell] = {}

    @classmethod
    @asynccontextmanager
    async def connect(
        cls, settings: Settings, cells: Collection[str], ends_if_refused: bool = True, hosts: Sequence[str] = ()
    ) -> AsyncIterator["RestLink"]:
        """Open a connection, and check that the API accepts the token, has these cells and relays each call.

        `hosts`: those of the agent, for the API's log. `ends_if_refused`: the first report of a host raises Forbidden
        or Unauthenticated if the API refuses it: the token is not that of this host. Later refusals, or without it all,
        are outages.

        Raises InvalidRequest, Unauthenticated, Forbidden, NotFound, StoreUnavailable, and OutcomeUnknown if the API
        accepts the connection but does not reply.
        """
        async with ApiClient.connect(settings, hosts) as client:
            offered = await client.first()
            if missing := sorted(set(cells) - set(offered.cells)):
                known = ", ".join(offered.cells)
                raise NotFound(f"the API at {client.url} has no cell {missing[0]!r}: it serves {known}")
            if unknown := sorted(CALLS.keys() - set(offered.calls)):
                raise StoreUnavailable(
                    f"the API at {client.url} is of a release that does not relay {unknown[0]!r} to the store, which "
                    "this agent needs: upgrade the API first"
                )
            link = cls(client, ends_if_refused)
            try:
                yield link
            finally:
                await aio.finish(link._close())

    async def _close(self) -> None:
        for cell in self._cells.values():
            await cell.close()

    def cell(self, name: str) -> "RestCell":
        """Return a cell."""
        if name not in self._cells:
            self._cells[name] = RestCell(self._client, name, self._ends_if_refused)
        return self._cells[name]

    async def watch(self, cell: str, watch: InboxWatch) -> None:
        """Have the API wait for notifications."""
        await watch_inboxes(self.cell(cell).call, watch)


class RestCell:
    """One cell over REST, a `redsched.agent.link.CellLink`."""

    def __init__(self, client: ApiClient, name: str, ends_if_refused: bool = False) -> None:
        self._client, self._ends_if_refused = client, ends_if_refused
        self._accepted: set[str] = set()
        """The hosts of which the API has accepted a report."""
        self.name = name
        self._heartbeats = HeartbeatBatcher(self._send)

    async def close(self) -> None:
        """End what no caller waits for."""
        await self._heartbeats.close()

    async def call(self, call: AgentCall[R], objects: Collection[str] = ()) -> R:  # noqa: ARG002 - the API refuses names of keys
        """Return the reply to a call. Raises what `ApiClient.call` raises."""
        if isinstance(call, HeartbeatsCall):
            return cast(R, await self._heartbeats.send(call))
        reply = await self._send(call)
        if isinstance(call, ReportCall):
            self._accepted.add(call.name)
        return reply

    async def _send(self, call: AgentCall[R]) -> R:
        name, body = NAMES[type(call)], to_json(call.within_limits())
        timeout_s = call.timeout_s if isinstance(call, InboxesCall) else 0.0
        is_first = self._ends_if_refused and isinstance(call, ReportCall) and call.name not in self._accepted
        text = await self._client.call(name, body, self.name, timeout_s, is_first=is_first)
        try:
            return call.reply_from(text, self.name)
        except ValueError as error:
            raise StoreUnavailable(
                f"what answers at {self._client.url} is not redsched, or is of a release that this agent cannot read: "
                f"its reply to {name} is not one that this release knows"
            ) from error


async def watch_inboxes(wait: Wait, watch: InboxWatch) -> None:
    """Watch the inboxes of an agent's hosts in one cell until cancelled."""
    names = list(watch.hosts)
    starts = range(0, len(names), MAX_CALL_HOSTS)
    await aio.gather(_watch_some(wait, watch, names[first : first + MAX_CALL_HOSTS]) for first in starts)


async def _watch_some(wait: Wait, watch: InboxWatch, names: Sequence[str]) -> None:
    after, epoch = dict.fromkeys(names, ""), ""
    while after := {name: entry_id for name, entry_id in after.items() if name in watch.hosts}:
        call = InboxesCall(after, WAIT_S)
        found = await watch.backoff.call(lambda call=call: wait(call))  # type: ignore[misc]
        if found.reset or (epoch and found.epoch != epoch):
            # Ids of notifications may go back with the store.
            after = dict.fromkeys(after, "")
            watch.on_epoch()
        epoch = found.epoch
        for name, entries in found.entries.items():
            if entries and name in watch.hosts:
                after[name] = entries[-1].entry_id
                watch.on_inbox(name)
        if not found.entries:
            await asyncio.sleep(watch.poll_s)
