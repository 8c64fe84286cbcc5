"""Waiting for notifications: one reader of a cell's feed for all agents that wait, however many hosts they have.

The reader runs only while somebody waits. It looks for entries of the feed that may have added a notification, and
wakes those who wait for these hosts; they read the inboxes themselves.
"""

import asyncio
import contextlib
from collections import defaultdict
from collections.abc import Collection, Iterator

from redsched import aio, logs
from redsched.errors import Unavailable
from redsched.store.agent_calls import InboxesCall
from redsched.store.cell import CellStore
from redsched.store.codec.replies import Inboxes
from redsched.store.inbox_changes import LONGEST_PAUSE_S, MAX_CHANGES, InboxChanges, InboxNews

GROWTH = 1.5
MAX_IDLE = 20
"""After this many reads without anybody who waits, the reader ends: agents wait again within milliseconds."""
AGAIN_S = 0.5
"""Pause before the feed is read again after an error."""

_log = logs.get_logger(__name__)


class _Waiter:
    """One call that waits for notifications of its hosts."""

    __slots__ = ("reset", "woken")

    def __init__(self) -> None:
        self.woken = asyncio.Event()
        self.reset = False


class InboxFeed:
    """The shared reader of one cell."""

    def __init__(self, store: CellStore, poll_s: float) -> None:
        self._store = store
        self._poll_s = poll_s
        self._waiting: defaultdict[str, set[_Waiter]] = defaultdict(set)
        self._waiters: set[_Waiter] = set()
        self._reader: asyncio.Task[None] | None = None
        self._started = asyncio.Event()
        """Set while the reader has a position in the feed, so that no later entry is missed."""
        self._changes = InboxChanges(store.name, store.feed)
        self._is_closed = False

    async def read(self, call: InboxesCall) -> Inboxes:
        """Return the notifications after the entries `after`, by host; wait up to `timeout_s` for the first of them."""
        if call.timeout_s <= 0:
            return await self._store.call(call)
        until_s = aio.now_s() + call.timeout_s
        with self._listening(call.after) as waiter:
            await self._until_started(until_s)
            while True:
                waiter.woken.clear()
                entries = (await self._store.call(call)).entries
                if entries or waiter.reset or self._is_closed or not await _woken(waiter, until_s):
                    epoch = self._changes.clock.epoch if self._changes.clock is not None else ""
                    return Inboxes(epoch, waiter.reset, entries)

    async def close(self) -> None:
        """Answer all who wait, and end the reader."""
        self._is_closed = True
        self._started.set()
        self._wake(self._waiters)
        await aio.end(self._reader)

    @contextlib.contextmanager
    def _listening(self, hosts: Collection[str]) -> Iterator[_Waiter]:
        waiter = _Waiter()
        self._waiters.add(waiter)
        for host in hosts:
            self._waiting[host].add(waiter)
        if self._reader is None or self._reader.done():
            self._started.clear()
            self._reader = aio.detached(self._follow(), name=f"inboxes of {self._store.name}")
        try:
            yield waiter
        finally:
            self._waiters.discard(waiter)
            for host in hosts:
                self._waiting[host].discard(waiter)
                if not self._waiting[host]:
                    del self._waiting[host]

    async def _until_started(self, until_s: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(until_s):
                await self._started.wait()

    # -- the reader

    async def _follow(self) -> None:
        """Read the feed until nobody has waited for a while."""
        self._changes, idle, pause_s = InboxChanges(self._store.name, self._store.feed), 0, self._poll_s
        while idle < MAX_IDLE:
            try:
                await self._changes.begin()
                self._started.set()
                seen = await self._changes.look()
            except Unavailable as error:
                _log.warning("feed of inboxes cannot be read", cell=self._store.name, error=error.public)
                await asyncio.sleep(AGAIN_S)
                continue
            self._wake_up(seen)
            pause_s = self._poll_s if seen.count else min(max(LONGEST_PAUSE_S, self._poll_s), pause_s * GROWTH)
            idle = 0 if self._waiters else idle + 1
            if seen.count < MAX_CHANGES:
                await asyncio.sleep(pause_s)

    def _wake_up(self, seen: InboxNews) -> None:
        if seen.is_elsewhere:
            for waiter in self._waiters:
                waiter.reset = True
            self._wake(self._waiters)
        for host in seen.hosts:
            self._wake(self._waiting.get(host, ()))

    def _wake(self, waiters: Collection[_Waiter]) -> None:
        for waiter in waiters:
            waiter.woken.set()


async def _woken(waiter: _Waiter, until_s: float) -> bool:
    """Wait until the waiter is woken; return False if the time is up first."""
    try:
        async with asyncio.timeout_at(until_s):
            await waiter.woken.wait()
    except TimeoutError:
        return False
    return True
