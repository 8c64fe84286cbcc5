"""Following a feed whose polls the test chooses."""

import asyncio
from collections.abc import Iterable
from typing import cast

import pytest

from redsched.agent.backoff import StoreBackoff
from redsched.agent.inbox import FEW, InboxWatch, InboxWatcher
from redsched.aio import end
from redsched.store.cell import CellStore
from redsched.store.codec.replies import Change, Clock, FeedEnd, InboxEntry, Poll
from tests.support.waiting import wait_until

E1, E2 = "1790000000000-aaaaaaaa", "1790000000001-bbbbbbbb"
NAMES = [f"h{number}" for number in range(FEW + 1)]


class ScriptedFeed:
    """Ends at seq 10; returns each poll once, then nothing new."""

    name = "c1"

    def __init__(self, *polls: Poll) -> None:
        self.polls = list(polls)
        self.starts = 0
        self.filled: list[str] = []
        self.feed = self.hosts = self

    async def end(self) -> FeedEnd:
        self.starts += 1
        return FeedEnd(Clock(E1, 10, 0, True), "10-0")

    async def poll(self, after: str, most: int) -> Poll:
        if self.polls:
            return self.polls.pop(0)
        await asyncio.Event().wait()
        raise AssertionError

    async def inboxes(self, names: list[str]) -> list[list[InboxEntry]]:
        return [[InboxEntry("1-1", 1, E1, "claim", "a", "t")] if name in self.filled else [] for name in names]


def poll(*changes: Change, epoch: str = E1, seq: int = 10) -> Poll:
    return Poll(Clock(epoch, seq, 0, True), None, changes)


def change(seq: int, name: str = "h1", op: str = "claimed", kind: str = "host") -> Change:
    return Change(f"{seq}-0", seq, kind, name, seq, op, 0)


class Noted:
    """Runs a watcher over hosts that are only names, and records its notifications."""

    def __init__(self, feed: ScriptedFeed, names: Iterable[str] = NAMES) -> None:
        self.feed, self.notifications, self.elsewhere = feed, list[str](), 0
        hosts = {name: name for name in names}
        cell = cast(CellStore, feed)
        self.watch = InboxWatcher(
            cell, InboxWatch(StoreBackoff(), hosts, 0.001, self.notifications.append, self._elsewhere)
        )
        self.task = asyncio.create_task(self.watch.run())

    def _elsewhere(self) -> None:
        self.elsewhere += 1

    async def until_read(self) -> None:
        await wait_until(lambda: not self.feed.polls)
        await asyncio.sleep(0)
        await end(self.task)


async def test_only_hosts_of_ours_that_something_is_asked_of_are_notified() -> None:
    noted = Noted(
        ScriptedFeed(
            poll(change(11), change(12, "h2", "ending"), change(13, "h3", "report"), change(14, "elsewhere")),
            poll(change(15, "h4", kind="pool"), change(16, "h5"), change(17, "h6", "resizing")),
            poll(),
        )
    )
    await noted.until_read()
    assert noted.notifications == ["h1", "h2", "h5", "h6"]
    assert (noted.elsewhere, noted.feed.starts) == (0, 1)


@pytest.mark.parametrize(
    "strange",
    [poll(epoch=E2), poll(seq=3), poll(change(14, op="report"), seq=14), Poll(None, None, ())],
    ids=["another epoch", "a lower seq", "a gap", "no meta"],
)
async def test_when_the_feed_continues_elsewhere_all_hosts_are_looked_after(strange: Poll) -> None:
    noted = Noted(ScriptedFeed(poll(change(11), seq=11), strange, poll()))
    await noted.until_read()
    assert noted.elsewhere == 1
    assert noted.feed.starts == 2, "it reads on from where the feed ends now"


async def test_entries_that_came_between_the_clock_and_the_poll_are_no_gap() -> None:
    noted = Noted(ScriptedFeed(poll(change(11), change(12), seq=10), poll(change(13), seq=12), poll(seq=13)))
    await noted.until_read()
    assert (noted.notifications, noted.elsewhere) == (["h1", "h1", "h1"], 0)


async def test_few_hosts_are_looked_into_one_by_one() -> None:
    feed = ScriptedFeed()
    feed.filled = ["h2"]
    noted = Noted(feed, ["h1", "h2"])
    await wait_until(lambda: bool(noted.notifications))
    await end(noted.task)
    assert set(noted.notifications) == {"h2"}
    assert feed.starts == 0
