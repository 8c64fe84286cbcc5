"""Notice new inbox entries: a process with few hosts polls their inboxes, one with many polls the feed.

The polling interval grows, and is reset as soon as an entry arrives.
"""

import asyncio
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from redsched.agent.backoff import StoreBackoff
from redsched.store.cell import CellStore
from redsched.store.inbox_changes import LONGEST_PAUSE_S, MAX_CHANGES, InboxChanges

FEW = 8
"""Up to this many hosts of a cell, polling each inbox costs the store less than following the whole feed."""

LONGEST_INBOX_PAUSE_S = 0.5
GROWTH = 1.5


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


@dataclass(slots=True)
class InboxWatcher:
    """Watches the inboxes of one cell's hosts in the store itself."""

    cell: CellStore
    watch: InboxWatch
    _changes: InboxChanges = field(init=False)

    def __post_init__(self) -> None:
        self._changes = InboxChanges(self.cell.name, self.cell.feed)

    async def run(self) -> None:
        """Poll until cancelled."""
        is_few = len(self.watch.hosts) <= FEW
        look, longest_s = (self._poll_inboxes, LONGEST_INBOX_PAUSE_S) if is_few else (self._follow, LONGEST_PAUSE_S)
        pause_s = self.watch.poll_s
        while True:
            found = await look()
            pause_s = self.watch.poll_s if found else min(max(longest_s, self.watch.poll_s), pause_s * GROWTH)
            if found < MAX_CHANGES:
                await asyncio.sleep(pause_s * random.uniform(0.8, 1.2))

    async def _poll_inboxes(self) -> int:
        names = list(self.watch.hosts)
        inboxes = await self.watch.backoff.call(lambda: self.cell.hosts.inboxes(names))
        filled = [name for name, entries in zip(names, inboxes, strict=True) if entries and name in self.watch.hosts]
        for name in filled:
            self.watch.on_inbox(name)
        return len(filled)

    async def _follow(self) -> int:
        # Begins at the end of the feed: existing inbox entries are read when the hosts open.
        seen = await self.watch.backoff.call(self._changes.look)
        if seen.is_elsewhere:
            self.watch.on_epoch()
        for host in seen.hosts:
            if host in self.watch.hosts:
                self.watch.on_inbox(host)
        return seen.count
