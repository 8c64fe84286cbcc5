"""The updater of one cell's replica in memory, by short polls of the feed.

It polls with a pause instead of blocking, because blocked readers cost the server more (200 readers of 2000 entries:
0.88 s of its time instead of 0.18 s). A request that needs the current state waits for a poll that begins after the
request arrived; one such poll serves all waiting requests.
"""

import asyncio
import contextlib
import secrets
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from redsched import aio, logs
from redsched.cache.feed import Gap
from redsched.cache.remembered import RememberedHosts
from redsched.cache.replica import CellReplica
from redsched.errors import RedschedError, StoreUnavailable
from redsched.model.tokens import is_newer
from redsched.pacing import paced
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import Change, ClaimReply, Clock

if TYPE_CHECKING:
    from redsched.cache.columns import Columns

MAX_ENTRIES = 1000
KEPT_CHANGES = 20_000
LONGEST_PAUSE_S = 2.0
GIVE_BACK_EVERY_S = 1.0

T = TypeVar("T")


class Listener(Protocol):
    """A subscriber that gets each batch of entries as it is applied. Its methods must not block."""

    def on_changes(self, changes: Sequence[Change]) -> None:
        """Handle entries that were just applied."""

    def on_reset(self) -> None:
        """Handle a snapshot: the entries before it were not delivered."""


log = logs.get_logger(__name__)


@dataclass(slots=True)
class UpdaterStats:
    """Totals since the start."""

    entries: int = 0
    snapshots: int = 0
    gaps: int = 0
    polls: int = 0


class ReplicaUpdater:
    """The columns of one cell, and the task that keeps them up to date."""

    def __init__(self, cell: CellStore, settings: Settings) -> None:
        self.cell = cell
        self._replica = CellReplica(None, "", "", 0)
        self.stats = UpdaterStats()
        self.recent: deque[Change] = deque(maxlen=KEPT_CHANGES)
        """The latest entries applied, for clients that follow the feed through this process."""
        self._clock = Clock("", 0, 0, settled=False)
        self.highest_epoch = ""
        """The highest epoch of the cell with which the store has replied to this process. A wipe does not lose it."""
        self.next_deadline_ms: int | None = None
        self._settings = settings
        self._listeners: list[Listener] = []
        self._read_at = 0.0
        self._remembered, self._id = RememberedHosts(), secrets.token_hex(8)
        self._caught_up_at: float | None = None
        self._caught_up_clock: Clock | None = None
        """The clock of the last poll after which the columns had reached the feed's end."""
        self._waiting: list[_Reader] = []
        self._reading = False
        self._needs_snapshot = False
        self._replies: list[ClaimReply] = []
        self._wake = asyncio.Event()
        self._moved = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False
        self._gave_back_at_s = 0.0

    @property
    def columns(self) -> "Columns":
        """The hosts. A new object after each snapshot."""
        return self._replica.columns

    @property
    def epoch(self) -> str:
        """The epoch of the columns, or the one that `read_clock` read; '' before that."""
        return self._replica.epoch

    @property
    def seq(self) -> int:
        """The cell's seq up to which the columns are complete, once there has been a snapshot."""
        return self._replica.seq

    @property
    def is_started(self) -> bool:
        """Whether the columns are being kept up to date, or will be."""
        return self._task is not None

    @property
    def is_loaded(self) -> bool:
        """Whether the columns have caught up since they were last empty."""
        return self._caught_up_at is not None

    @property
    def settled(self) -> bool:
        """Whether the cell was settled when the clock was last read."""
        return self._clock.settled

    @property
    def clock(self) -> Clock:
        """The clock that was last read, at the store's present time."""
        return replace(self._clock, now_ms=self.now_ms())

    def now_ms(self) -> int:
        """Return the store's time (Unix, ms): the last one read, plus the time since. Never this machine's clock."""
        return self._clock.now_ms + int((aio.now_s() - self._read_at) * 1000)

    def lag_s(self) -> float | None:
        """Return how long ago the columns last reached the feed's end, in seconds; None if they never did."""
        return None if self._caught_up_at is None else aio.now_s() - self._caught_up_at

    def add_listener(self, listener: Listener) -> None:
        """Notify the listener of each entry from now on."""
        self._listeners.append(listener)

    async def start(self) -> None:
        """Start the task unless it runs, and wait until the columns have caught up, however long a snapshot takes.

        Raises StoreUnavailable.
        """
        await self._read(lambda: None)

    async def read_clock(self) -> None:
        """Read the epoch and the store's time alone. The first call of `read_at_head` then starts the task.

        Raises StoreUnavailable.
        """
        while (end := await self.cell.feed.end()).clock is None:
            await self.cell.tick()  # gives a new or wiped cell its epoch
        self._replica = CellReplica(None, end.clock.epoch, end.entry_id, end.clock.seq)
        self._needs_snapshot = True
        self._record_clock(end.clock)

    def _begin(self) -> None:
        # Loads NumPy: if that is not installed, the caller raises the error, and not the task.
        import redsched.cache.snapshot  # noqa: F401

        self._task = aio.detached(self._run(), name=f"redsched-updater-{self.cell.name}")

    async def stop(self) -> None:
        """Stop the task; all waiting callers raise StoreUnavailable."""
        self._is_closed = True
        await aio.end(self._task)
        self._release(StoreUnavailable("this scheduler is closing"))

    async def catch_up(self) -> None:
        """Wait until the columns reflect all replies of the store before this call. Raises StoreUnavailable."""
        await self.read_at_head(lambda: None)

    async def read_at_head(self, read: Callable[[], T]) -> T:
        """Call `read` when the columns reflect all replies of the store before this call, and no later change.

        Only then do all hosts show the same instant. If a claim's reply were applied in between, its hosts would show a
        later state than the others, and a fleet that always had room could look full. Raises StoreUnavailable if the
        columns do not catch up in time, and whatever `read` raises.
        """
        try:
            async with asyncio.timeout(self._settings.catch_up_timeout_s):
                return await self._read(read)
        except TimeoutError as error:
            raise StoreUnavailable(
                f"cell {self.cell.name}: the feed was not read to its end within "
                f"{self._settings.catch_up_timeout_s:g} s; try again"
            ) from error

    async def _read(self, read: Callable[[], T]) -> T:
        self._require_open()
        if self._task is None:
            self._begin()
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Reader(read, done))
        self._wake.set()
        return await done

    def _require_open(self) -> None:
        if self._is_closed or (self._task is not None and self._task.done()):
            raise StoreUnavailable(f"cell {self.cell.name}: this scheduler is closed")

    def force_snapshot(self) -> None:
        """Take a snapshot at the next poll in any case. Call it if the columns are found to be wrong."""
        self._needs_snapshot = True
        self._wake.set()

    def moved(self) -> Coroutine[Any, Any, bool]:
        """Wait until the columns change after this call: entries are applied, or a snapshot is taken."""
        # This is no coroutine function: its body would run only when awaited, and miss a change before that.
        return self._moved.wait()

    def _notify_listeners(self) -> None:
        # Current waiters hold the old event; later ones wait for the next change.
        self._moved.set()
        self._moved = asyncio.Event()

    def apply_reply(self, answer: ClaimReply) -> None:
        """Apply a claim's reply to the hosts, groups and pools in it, so that own claims are visible at once.

        During a poll that callers wait for, replies are applied right after it instead: see `read_at_head`.
        """
        if self._reading:
            self._replies.append(answer)
            return
        placed = Counter(one.host for one in answer.placed) if answer.outcome is Outcome.OK else {}
        for host in answer.looked_at:
            self.columns.from_reply(host, answer.epoch, placed.get(host.host, 0))
        if answer.epoch == self.columns.epoch:
            for changed in answer.objects:
                self.columns.declared.from_reply(changed)

    def _apply_replies(self) -> None:
        self._reading = False
        replies, self._replies = self._replies, []
        for answer in replies:
            self.apply_reply(answer)

    async def _run(self) -> None:
        pause = self._settings.poll_s
        while True:
            # Later callers need another poll, because the data of this one may be older than their calls.
            waiting, self._waiting = self._waiting, []
            self._wake.clear()
            self._reading = bool(waiting)
            try:
                await self._read_to_end()
                pause = self._settings.poll_s
                # Replies wait until all have read: each of them sees the same instant.
                async for one in paced(waiting):
                    one.take()
            except RedschedError as error:
                log.warning("feed read failed", cell=self.cell.name, problem=error.detail)
                pause = min(max(pause, 0.05) * 2, LONGEST_PAUSE_S)
                _fail(waiting, error)
            except asyncio.CancelledError:
                self._waiting[:0] = waiting  # `stop` fails them
                raise
            except Exception as error:  # a defect must not stop the updates silently
                log.exception("feed update failed", cell=self.cell.name)
                _fail(waiting, StoreUnavailable(f"cell {self.cell.name}: the feed could not be applied: {error!r}"))
            self._apply_replies()
            self._give_back()
            # Not wait_for: before Python 3.12 it can lose a cancellation that arrives together with the wake-up.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await self._wake.wait()

    def _give_back(self) -> None:
        now_s = aio.now_s()
        if self.epoch and now_s - self._gave_back_at_s >= GIVE_BACK_EVERY_S:
            self._gave_back_at_s = now_s
            self.columns.give_back()

    async def _read_to_end(self) -> None:
        if not self._replica.epoch or self._needs_snapshot:
            await self._restart()
        while True:
            poll = await self.cell.feed.poll(self._replica.entry_id, MAX_ENTRIES)
            self.stats.polls += 1
            self.next_deadline_ms = poll.next_deadline_ms
            if poll.clock is None or poll.clock.epoch != self.epoch or poll.clock.seq < self.seq:
                log.info("taking a snapshot", cell=self.cell.name, reason="the store has a new epoch, or has gone back")
                await self._raise_epoch_if_rolled_back(poll.clock)
                await self._restart()
                continue
            self._record_clock(poll.clock)
            try:
                batch = await self._replica.advance(self.cell, poll.changes, poll.clock.seq)
            except Gap as gap:
                self.stats.gaps += 1
                log.info("taking a snapshot", cell=self.cell.name, reason=str(gap))
                await self._restart()
                continue
            if batch:
                self.recent.extend(batch)
                self._notify_listeners()
                for one in self._listeners:
                    one.on_changes(batch)
            self.stats.entries += len(batch)
            # An object that was read by itself may be newer than the others, until another poll has updated these.
            if self.seq >= poll.clock.seq and not self._replica.ahead:
                self._caught_up_at, self._caught_up_clock = aio.now_s(), poll.clock
                if self._remembered.is_new:
                    await self._report_missing_soon()
                return

    async def _raise_epoch_if_rolled_back(self, clock: Clock | None) -> None:
        """Start a new epoch if the store has lost changes of this epoch that its fence has not noticed."""
        if clock is not None and clock.epoch == self.epoch and clock.seq < self.seq:
            log.warning("store has gone back", cell=self.cell.name, epoch=clock.epoch, seq=clock.seq, had=self.seq)
            if not self.cell.is_read_only:
                await self.cell.raise_epoch(clock.epoch)

    async def report_missing(self) -> None:
        """After a wipe, report how many of the hosts that this replica remembers have yet to attest.

        Does nothing if the store knows its hosts, or if this replica may not have known all. Raises StoreUnavailable,
        OutcomeUnknown.
        """
        if self._clock.epoch != self.epoch:
            return  # a new epoch has begun, and the clock is still that of the one before
        if self._clock.knows_hosts:
            self._remembered.forget()
            return
        missing = self._remembered.missing(self.columns)
        if missing is not None and not self.cell.is_read_only:
            await self.cell.report_missing(self.epoch, self._id, missing)

    async def _report_missing_soon(self) -> None:
        """Report it for the first time in an epoch, so that the cell does not settle before. Sweeps repeat it."""
        try:
            await self.report_missing()
        except RedschedError as error:
            log.warning("missing hosts not reported", cell=self.cell.name, problem=error.detail)

    async def _restart(self) -> None:
        self._needs_snapshot = True  # until it has been taken: the columns may be empty
        from redsched.cache.snapshot import take_snapshot  # loaded by `_begin`

        former = self._replica
        self._replica = await take_snapshot(self.cell)
        if former.epoch != self.epoch and (clock := self._caught_up_clock) is not None:
            # The cell waits for no host that was written off.
            hosts = [one for one in former.columns.names() if not former.columns.is_written_off(one)]
            self._remembered.begin(hosts, clock, self.epoch)
        self.recent.clear()  # at once: these are entries of the epoch before
        self._needs_snapshot = False
        # The cause, such as FLUSHALL, may have removed the list of cells too.
        await self.cell.enter()
        self.stats.snapshots += 1
        self._notify_listeners()
        for one in self._listeners:
            one.on_reset()

    def note_epoch(self, epoch: str) -> None:
        """Record an epoch that the store has replied with."""
        if epoch != self.highest_epoch and is_newer(epoch, self.highest_epoch):
            self.highest_epoch = epoch

    def _record_clock(self, clock: Clock) -> None:
        self._clock, self._read_at = clock, aio.now_s()
        self.note_epoch(clock.epoch)

    def _release(self, error: RedschedError) -> None:
        waiting, self._waiting = self._waiting, []
        _fail(waiting, error)


class _Reader:
    """A caller waiting to read columns that have caught up."""

    __slots__ = ("_done", "_read")

    def __init__(self, read: Callable[[], T], done: "asyncio.Future[T]") -> None:
        self._read: Callable[[], object] = read
        self._done: asyncio.Future[Any] = done

    def take(self) -> None:
        """Call `read` now, and pass on its result or error."""
        if self._done.done():
            return
        try:
            self._done.set_result(self._read())
        except Exception as error:
            self._done.set_exception(error)

    def fail(self, error: RedschedError) -> None:
        """Fail the caller with this error."""
        if not self._done.done():
            self._done.set_exception(error)


def _fail(waiting: Sequence[_Reader], error: RedschedError) -> None:
    for one in waiting:
        one.fail(error)
