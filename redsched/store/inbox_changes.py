"""Follow a cell's feed for changes that may have added notifications to the inboxes of hosts."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from redsched import logs
from redsched.store.codec.replies import Clock, Poll
from redsched.store.commands.feed import FeedCommands

MAX_CHANGES = 1000
LONGEST_PAUSE_S = 0.1
"""The longest pause between two reads of a feed in which nothing changes."""

_INBOX_OPS = frozenset(("claimed", "resizing", "resized", "ending"))
"""Changes that may have added an inbox entry."""

_log = logs.get_logger("redsched.store")


@dataclass(frozen=True, slots=True)
class InboxNews:
    """One read: the number of changes, and the hosts of those that may have added a notification, in their order.

    `is_elsewhere`: the feed is interrupted, by another epoch or by missing entries, so anything may have changed.
    """

    count: int
    hosts: Sequence[str] = ()
    is_elsewhere: bool = False


@dataclass(slots=True)
class InboxChanges:
    """A position in the feed of one cell. A call that raises an error changes nothing, and can be repeated."""

    cell: str
    feed: FeedCommands
    clock: Clock | None = None
    _seq: int = field(default=0, init=False)
    _after: str = field(default="", init=False)

    async def begin(self) -> None:
        """Begin at the end of the feed, unless there is a position already."""
        if not self._after:
            end = await self.feed.end()
            self._after, self.clock = end.entry_id, end.clock

    async def look(self) -> InboxNews:
        """Read the next changes. After an interruption, the next read begins at the end again."""
        await self.begin()
        poll = await self.feed.poll(self._after, MAX_CHANGES)
        if self._is_elsewhere(poll):
            self._after = ""
            return InboxNews(1, is_elsewhere=True)
        if poll.changes:
            self._after, self._seq = poll.changes[-1].entry_id, poll.changes[-1].seq
        hosts = [one.name for one in poll.changes if one.kind == "host" and one.op in _INBOX_OPS]
        return InboxNews(len(poll.changes), hosts)

    def _is_elsewhere(self, poll: Poll) -> bool:
        """Return whether the feed is interrupted, by another epoch or missing entries."""
        before, self.clock = self.clock, poll.clock
        if before is None or poll.clock is None:
            return before is not poll.clock
        first = poll.changes[0].seq if poll.changes else self._seq + 1
        is_gap = self._seq > 0 and first != self._seq + 1
        is_elsewhere = poll.clock.epoch != before.epoch or poll.clock.seq < before.seq or is_gap
        if is_elsewhere:
            self._seq = 0
            _log.info("feed continues on another server", cell=self.cell, epoch=poll.clock.epoch, seq=poll.clock.seq)
        return is_elsewhere
