"""The latest changes of the cells, each rendered once for all readers of a process.

A task renders the entries that the replicas have applied, while there are readers, and wakes these. It never holds the
event loop for long: it renders for RENDER_S at a stretch, wakes WAKE_AT_ONCE readers at a time, and rests for a
multiple of the time that a round of waking took. What it keeps is bounded in bytes: a reader that is further behind
gets a Reset.

A rendered event ends with its id and an empty line. With several cells, the id of an event depends on where its reader
is in the other cells, so that is appended for each reader.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from time import perf_counter

from redsched import aio
from redsched.model.positions import Position, id_of
from redsched.model.records.changes import Change, Reset
from redsched.operate.observe.changes import change_of, known_positions
from redsched.scheduler.cells import Cell, Cells

MAX_BYTES = 4 * 1024 * 1024
"""The most bytes that are kept of each cell, and so how far a reader may be behind."""
SLICE_BYTES = 64 * 1024
"""A reader takes about this much at a time: the rest stays in the log, and not in the buffer of its connection."""
RENDER_S = 0.001
WAKE_AT_ONCE = 8
REST = 3
"""Waking rests for this many times as long as it took, up to MAX_REST_S: it uses at most a quarter of the loop."""
MAX_REST_S = 0.25

Render = Callable[[Change | Reset], bytes]
Show = Callable[[Sequence[Change]], Awaitable[Sequence[Change | None]]]
"""Returns each change as a reader may see it; None if it may not."""


class ChangeLog:
    """The rendered changes of all cells, and their readers."""

    def __init__(self, cells: Cells, render: Render) -> None:
        self._logs = [_CellLog(cell, render) for cell in cells]
        self._cells = cells
        self._render = render
        self._readers: dict[ChangeReader, None] = {}
        self._task: asyncio.Task[None] | None = None

    def reader(self, last_id: str = "", show: Show | None = None) -> "ChangeReader":
        """Return a reader of the changes from now on; with `last_id`, of those after the event with this id.

        `show` limits it to some changes, which are rendered for it alone. Raises InvalidRequest or NotFound for an
        invalid `last_id`.
        """
        known = known_positions(self._cells, last_id)
        for log in self._logs:
            log.restart_after_gap()
        return ChangeReader(self, [_ReaderInCell(log, known) for log in self._logs], show)

    def add(self, reader: "ChangeReader") -> None:
        """Wake the reader for each change from now on."""
        self._readers[reader] = None
        if self._task is None:
            self._task = aio.detached(self._run(), name="redsched-change-log")
            self._task.add_done_callback(self._wake_all)

    async def remove(self, reader: "ChangeReader") -> None:
        """Forget the reader. Without readers nothing is rendered."""
        self._readers.pop(reader, None)
        if not self._readers:
            ending, self._task = self._task, None
            await aio.end(ending)

    def check(self) -> None:
        """Raise the error with which rendering has ended, if it has."""
        if self._task is not None and self._task.done():
            self._task.result()

    def render(self, one: Change | Reset) -> bytes:
        """Return the bytes of what only one reader gets."""
        return self._render(one)

    async def _run(self) -> None:
        while True:
            moves = [asyncio.ensure_future(log.moved()) for log in self._logs]  # before reading: none is missed
            try:
                await self._render_all()
                began = aio.now_s()
                await self._wake_readers()
                await asyncio.sleep(min(MAX_REST_S, REST * (aio.now_s() - began)))
                await asyncio.wait(moves, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for move in moves:
                    move.cancel()

    async def _render_all(self) -> None:
        for log in self._logs:
            while log.render_some():  # noqa: ASYNC110 - it yields between two stretches of work, and waits for nothing
                await asyncio.sleep(0)
            await asyncio.sleep(0)

    def _wake_all(self, _: object) -> None:
        for reader in self._readers:
            reader.wake()

    async def _wake_readers(self) -> None:
        for number, reader in enumerate(list(self._readers), 1):
            reader.wake()
            if number % WAKE_AT_ONCE == 0:
                await asyncio.sleep(0)


class ChangeReader:
    """One reader: its position in each cell, and what wakes it. Use it as a context."""

    def __init__(self, log: ChangeLog, in_cells: "list[_ReaderInCell]", show: Show | None) -> None:
        self._log = log
        self._in_cells = in_cells
        self._show = show
        self._woken = asyncio.Event()
        """A latch: it is reset before a look at the log, so what comes between a look and the wait ends the wait."""
        self.is_ended = False

    async def __aenter__(self) -> "ChangeReader":
        self._log.add(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._log.remove(self)

    def wake(self) -> None:
        """Let `next` look again."""
        self._woken.set()

    def end(self) -> None:
        """Let `next` return."""
        self.is_ended = True
        self._woken.set()

    async def next(self, within_s: float) -> bytes:
        """Return the next events, about SLICE_BYTES of each cell at most.

        Returns b"" if none comes within the time, and at the end.
        """
        deadline = aio.now_s() + within_s
        while not (events := await self._take()) and not self.is_ended:
            self._log.check()
            try:
                async with asyncio.timeout_at(deadline):
                    await self._woken.wait()
            except TimeoutError:
                break
        return events

    async def _take(self) -> bytes:
        while True:
            self._woken.clear()
            taken = [(*one.take(), self._positions_beside(one)) for one in self._in_cells]
            events = b"".join([await self._shown(*one) for one in taken])
            if events or not any(entries for entries, *_ in taken):
                return events
            await asyncio.sleep(0)  # this reader may see none of them, and more may follow

    def _positions_beside(self, cell: "_ReaderInCell") -> str:
        return id_of(one.position for one in self._in_cells if one is not cell and one.position is not None)

    async def _shown(self, entries: "Sequence[_Entry]", events: bytes, reset: Reset | None, beside: str) -> bytes:
        if reset is not None:
            return _with_positions(self._log.render(reset), beside)
        if self._show is None or not entries:
            return b"".join([_with_positions(one.event, beside) for one in entries]) if beside else events
        shown = await self._show([one.change for one in entries])
        return b"".join([_with_positions(self._log.render(one), beside) for one in shown if one is not None])


def _with_positions(event: bytes, beside: str) -> bytes:
    """Return a rendered event whose id also has the positions of its reader in other cells."""
    return event.removesuffix(b"\n\n") + f",{beside}\n\n".encode() if beside else event


class _Entry:
    __slots__ = ("change", "event")

    def __init__(self, change: Change, event: bytes) -> None:
        self.change, self.event = change, event


class _CellLog:
    """The latest rendered changes of one cell: a dense run that ends before `_next`."""

    def __init__(self, cell: Cell, render: Render) -> None:
        self.name = cell.name
        self.generation = 0
        """Counts the gaps: the changes of two generations do not continue each other."""
        self._cell, self._render = cell, render
        self._entries: deque[_Entry] = deque()
        self._bytes = 0
        self._epoch, self._next = "", 0
        self._slice: tuple[int, int, list[_Entry], bytes] = (0, 0, [], b"")
        """The slice that was taken last, with its start and generation: most readers take the same."""

    @property
    def head(self) -> int:
        """The seq of the latest change applied, rendered or not."""
        return self._cell.updater.seq

    @property
    def position(self) -> Position:
        """Where a reader of new changes begins."""
        return Position(self.name, self._epoch, self.head)

    @property
    def oldest(self) -> int:
        """The seq of the oldest change kept."""
        return self._next - len(self._entries)

    def moved(self) -> Awaitable[bool]:
        """Wait until there may be more to render than there was at this call."""
        return self._cell.updater.moved()

    def restart_after_gap(self) -> None:
        """Forget everything if what is kept does not continue in the replica: start from the oldest that it has."""
        recent = self._cell.updater.recent
        oldest = recent[0].seq if recent else self.head + 1
        if self._epoch == self._cell.updater.epoch and oldest <= self._next <= self.head + 1:
            return
        self._entries.clear()
        self._bytes, self._epoch, self._next = 0, self._cell.updater.epoch, oldest
        self.generation += 1

    def render_some(self) -> bool:
        """Render for up to RENDER_S. Returns whether there is more."""
        self.restart_after_gap()
        recent, began = self._cell.updater.recent, perf_counter()
        while self._next <= self.head and perf_counter() - began < RENDER_S:
            change = change_of(self.name, self._epoch, recent[self._next - recent[0].seq])
            self._append(_Entry(change, self._render(change)))
        return self._next <= self.head

    def _append(self, entry: _Entry) -> None:
        self._entries.append(entry)
        self._next += 1
        self._bytes += len(entry.event)
        while self._bytes > MAX_BYTES:
            self._bytes -= len(self._entries.popleft().event)

    def slice_after(self, seq: int) -> tuple[list[_Entry], bytes]:
        """Return what follows `seq`, one entry at least if there is one, with its bytes."""
        start, generation, entries, events = self._slice
        is_whole = start + len(entries) == self._next - 1 or len(events) >= SLICE_BYTES
        if (start, generation) != (seq, self.generation) or not is_whole:
            entries = self._entries_after(seq)
            events = b"".join([one.event for one in entries])
            self._slice = (seq, self.generation, entries, events)
        return entries, events

    def _entries_after(self, seq: int) -> list[_Entry]:
        found, size = [], 0
        for number in range(seq + 1, self._next):
            entry = self._entries[number - self.oldest]
            found.append(entry)
            size += len(entry.event)
            if size >= SLICE_BYTES:
                break
        return found


class _ReaderInCell:
    """The position of a reader in one cell; None until a Reset has told it."""

    __slots__ = ("_generation", "_log", "position")

    def __init__(self, log: _CellLog, known: Mapping[str, Position] | None) -> None:
        self._log, self._generation = log, log.generation
        self.position = log.position if known is None else known.get(log.name)
        if self.position is not None and self.position.epoch != log.position.epoch:
            self.position = None

    def take(self) -> tuple[Sequence[_Entry], bytes, Reset | None]:
        """Return the next entries with their bytes, or the Reset that takes their place."""
        log, at = self._log, self.position
        log.restart_after_gap()
        if at is None or self._generation != log.generation or not log.oldest - 1 <= at.seq <= log.head:
            self.position, self._generation = log.position, log.generation
            return (), b"", Reset(log.name, log.head, log.position.id)
        entries, events = log.slice_after(at.seq)
        if entries:
            self.position = replace(at, seq=at.seq + len(entries))
        return entries, events, None
