"""One request for the heartbeats of all hosts of a cell that are due together."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

from redsched import aio
from redsched.errors import StoreUnavailable
from redsched.model import AgentStamp
from redsched.model.limits import MAX_CALL_HOSTS
from redsched.store.codec.results import ScriptResult

GATHERED_IN_LEASE = 20
LONGEST_GATHER_S = 1.0
"""How long the first heartbeat of a request waits for those of other hosts: this, or a part of its lease."""

Beats = Mapping[str, tuple[int, AgentStamp]]
"""The lease and the sender of each heartbeat, by host."""


class HeartbeatBatcher:
    """Sends heartbeats together. `send` returns the outcomes by host."""

    def __init__(self, send: Callable[[Beats], Awaitable[Mapping[str, ScriptResult]]]) -> None:
        self._send = send
        self._next: dict[str, tuple[int, AgentStamp]] | None = None
        self._replies: asyncio.Task[Mapping[str, ScriptResult]] | None = None
        self._running: set[asyncio.Task[Mapping[str, ScriptResult]]] = set()

    async def beat(self, host: str, lease_s: int, stamp: AgentStamp) -> ScriptResult:
        """Send a heartbeat with the next request, and return its outcome. Raises what the request raises."""
        if self._next is None or self._replies is None or len(self._next) >= MAX_CALL_HOSTS:
            self._next = {}
            self._replies = asyncio.create_task(self._send_soon(self._next, lease_s))
            self._running.add(self._replies)
            self._replies.add_done_callback(self._done)
        self._next[host] = (lease_s, stamp)
        # Shielded, because the other hosts need the replies even if this one's caller is cancelled.
        found = (await asyncio.shield(self._replies)).get(host)
        if found is None:
            raise StoreUnavailable(f"the API's reply to heartbeats lacks host {host}")
        return found

    async def close(self) -> None:
        """End the requests in progress, whose callers have gone."""
        await aio.end_all(self._running)

    def _done(self, task: "asyncio.Task[Mapping[str, ScriptResult]]") -> None:
        self._running.discard(task)
        # Read the error of a request of which every caller was cancelled: asyncio would log it.
        if not task.cancelled():
            task.exception()

    async def _send_soon(self, beats: dict[str, tuple[int, AgentStamp]], lease_s: int) -> Mapping[str, ScriptResult]:
        await asyncio.sleep(min(LONGEST_GATHER_S, lease_s / GATHERED_IN_LEASE))
        if self._next is beats:
            self._next = None
        return await self._send(beats)
