"""Notice new inbox entries: a process with few hosts polls their inboxes, one with many polls the feed.

The polling interval grows, and is reset as soon as an entry arrives.
"""

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from redsched import logs
from redsched.agent.backoff import StoreBackoff
from redsched.agent.host_session import Host
from redsched.store.cell import CellStore
from redsched.store.codec.results import Clock, Poll

FEW = 8
"""Up to this many hosts of a cell, polling each inbox costs the store less than following the whole feed."""

MAX_CHANGES = 1000
LONGEST_FEED_PAUSE_S = 0.1
LONGEST_INBOX_PAUSE_S = 0.5
GROWTH = 1.5

_INBOX_OPS = frozenset(("claimed", "resizing", "resized", "ending"))
"""Changes that may have added an inbox entry."""

_log = logs.get_logger("redsched.agent")


@dataclass(slots=True)
class InboxWatcher:
    """Watches the inboxes of one cell's hosts. `hosts` is the agent's own dict: hosts that stop leave it."""

    cell: CellStore
    backoff: StoreBackoff
    hosts: Mapping[str, Host]
    poll_s: float
    on_inbox: Callable[[Host], None]
    on_epoch: Callable[[Iterable[Host]], None]
    """Called with all hosts when the feed is interrupted by a gap, or by a new epoch, to which they must attest."""
    _seq: int = field(default=0, init=False)
    _after: str = field(default="", init=False)
    _clock: Clock | None = field(default=None, init=False)

    async def run(self) -> None:
        """Poll until cancelled."""
        is_few = len(self.hosts) <= FEW
        look, longest_s = (
            (self._poll_inboxes, LONGEST_INBOX_PAUSE_S) if is_few else (self._follow, LONGEST_FEED_PAUSE_S)
        )
        pause_s = self.poll_s
        while True:
            found = await look()
            pause_s = self.poll_s if found else min(max(longest_s, self.poll_s), pause_s * GROWTH)
            if found < MAX_CHANGES:
                await asyncio.sleep(pause_s * random.uniform(0.8, 1.2))

    async def _poll_inboxes(self) -> int:
        names = list(self.hosts)
        inboxes = await self.backoff.call(lambda: self.cell.hosts.inboxes(names))
        filled = [name for name, entries in zip(names, inboxes, strict=True) if entries and name in self.hosts]
        for name in filled:
            self.on_inbox(self.hosts[name])
        return len(filled)

    async def _follow(self) -> int:
        if not self._after:
            # Start at the end: existing inbox entries are read when the hosts open.
            end = await self.backoff.call(self.cell.feed.end)
            self._after, self._clock = end.entry_id, end.clock
        poll = await self.backoff.call(lambda: self.cell.feed.poll(self._after, MAX_CHANGES))
        if self._is_elsewhere(poll):
            self._after = ""
            self.on_epoch(list(self.hosts.values()))
            return 1
        for change in poll.changes:
            if change.kind == "host" and change.op in _INBOX_OPS and (host := self.hosts.get(change.name)):
                self.on_inbox(host)
        if poll.changes:
            self._after, self._seq = poll.changes[-1].entry_id, poll.changes[-1].seq
        return len(poll.changes)

    def _is_elsewhere(self, poll: Poll) -> bool:
        """Return whether the feed is interrupted, by another epoch or missing entries. All hosts are checked then."""
        before, self._clock = self._clock, poll.clock
        if before is None or poll.clock is None:
            return before is not poll.clock
        first = poll.changes[0].seq if poll.changes else self._seq + 1
        is_gap = self._seq > 0 and first != self._seq + 1
        is_elsewhere = poll.clock.epoch != before.epoch or poll.clock.seq < before.seq or is_gap
        if is_elsewhere:
            self._seq = 0
            _log.info(
                "feed continues on another server", cell=self.cell.name, epoch=poll.clock.epoch, seq=poll.clock.seq
            )
        return is_elsewhere
