"""The progress of long commands on stderr, if that is a terminal and the command takes more than a second."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

from redsched import aio, progress

if TYPE_CHECKING:
    from rich.progress import Progress

BEGIN_S = 1.0
"""Commands that end within this time show nothing."""
REFRESH_S = 0.25


@contextmanager
def shown(verb: str) -> Iterator[None]:
    """Show what the block reports as `exporting: 1200 of 9000 hosts`, and leave nothing of it behind.

    `verb`: what the command does.
    """
    if not _is_drawn():
        yield
        return
    line = _Line(verb)
    try:
        with progress.watched(line.show):
            yield
    finally:
        line.end()


@asynccontextmanager
async def waiting(verb: str) -> AsyncIterator[None]:
    """Show for how long the block has been waiting, as `planning 0:00:03`, and leave nothing of it behind.

    It is drawn by a task, because work that is waited for may be a fork of this process: no thread of it may draw then.
    """
    task = asyncio.create_task(_draw(verb)) if _is_drawn() else None
    try:
        yield
    finally:
        await aio.end(task)


async def _draw(verb: str) -> None:
    await asyncio.sleep(BEGIN_S)
    drawn = _progress(auto_refresh=False)
    drawn.add_task(verb, total=None)
    with drawn:
        while True:
            drawn.refresh()
            await asyncio.sleep(REFRESH_S)


def _is_drawn() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"  # which cannot erase the line


class _Line:
    """A line that is drawn again and again, from a thread of rich."""

    def __init__(self, verb: str) -> None:
        self._verb, self._from_s = verb, time.monotonic() + BEGIN_S
        self._drawn: Progress | None = None
        self._tasks: dict[str, int] = {}

    def show(self, what: str, done: int, total: int | None) -> None:
        """Show how far it is."""
        if self._drawn is None:
            if time.monotonic() < self._from_s:
                return
            self._drawn = _progress()
            self._drawn.start()
        if what not in self._tasks:
            for earlier in self._tasks.values():
                self._drawn.remove_task(earlier)  # type: ignore[arg-type] # a NewType of int
            self._tasks = {what: self._drawn.add_task(f"{self._verb}:", total=total)}
        of = f" of {total}" if total is not None else ""
        self._drawn.update(
            self._tasks[what],  # type: ignore[arg-type]
            completed=done,
            total=total,
            description=f"{self._verb}: {done}{of} {what}",
        )

    def end(self) -> None:
        """Remove the line."""
        if self._drawn is not None:
            self._drawn.stop()


def _progress(*, auto_refresh: bool = True) -> "Progress":
    from rich.console import Console  # takes long to load, and most commands need none of it
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=auto_refresh)
