"""One request for the heartbeats of all hosts of a cell that are due together."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from redsched import aio
from redsched.errors import StoreUnavailable
from redsched.model.limits import MAX_CALL_HOSTS
from redsched.store.agent_calls import Beat, HeartbeatReplies, HeartbeatsCall

GATHERED_IN_LEASE = 20
LONGEST_GATHER_S = 1.0
"""How long the first heartbeat of a request waits for those of other hosts: this, or a part of its lease."""


class HeartbeatBatcher:
    """Sends heartbeats together, by `send`."""

    def __init__(self, send: Callable[[HeartbeatsCall], Awaitable[HeartbeatReplies]]) -> None:
        self._send = send
        self._next: dict[str, Beat] | None = None
        self._replies: asyncio.Task[HeartbeatReplies] | None = None
        self._running: set[asyncio.Task[HeartbeatReplies]] = set()

    async def send(self, call: HeartbeatsCall) -> HeartbeatReplies:
        """Send heartbeats with the next request, and return their outcomes. Raises what the request raises."""
        lease_s = min(one.lease_s for one in call.hosts.values())
        if self._next is None or self._replies is None or len(self._next) + len(call.hosts) > MAX_CALL_HOSTS:
            self._next = {}
            self._replies = asyncio.create_task(self._send_soon(self._next, lease_s))
            self._running.add(self._replies)
            self._replies.add_done_callback(self._done)
        self._next.update(call.hosts)
        # Shielded, because the other hosts need the replies even if this one's caller is cancelled.
        found = (await asyncio.shield(self._replies)).hosts
        if missing := call.hosts.keys() - found.keys():
            raise StoreUnavailable(f"the API's reply to heartbeats lacks host {min(missing)}")
        return HeartbeatReplies({host: found[host] for host in call.hosts})

    async def close(self) -> None:
        """End the requests in progress, whose callers have gone."""
        await aio.end_all(self._running)

    def _done(self, task: "asyncio.Task[HeartbeatReplies]") -> None:
        self._running.discard(task)
        # Read the error of a request of which every caller was cancelled: asyncio would log it.
        if not task.cancelled():
            task.exception()

    async def _send_soon(self, beats: Mapping[str, Beat], lease_s: int) -> HeartbeatReplies:
        await asyncio.sleep(min(LONGEST_GATHER_S, lease_s / GATHERED_IN_LEASE))
        if self._next is beats:
            self._next = None
        return await self._send(HeartbeatsCall(beats))
