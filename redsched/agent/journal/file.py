"""The journal's file: group commit of writes, reads, and opening the file.

One SQLite file. Every write of the agent's process joins the next transaction, and one transaction is committed at a
time: the more hosts write, the more of them share an fsync. Writes run in the journal's own thread, so an fsync never
delays a heartbeat. journal.py defines what is written.
"""

import asyncio
import os
import sqlite3
from collections.abc import Awaitable, Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from redsched.agent.journal import schema as sql
from redsched.aio import detached, finish
from redsched.errors import OtherAgent, RedschedError

_DISK = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY")
"""Prefixes of SQLite's error names for faults of the disk rather than of the file."""

_BESIDE = ("-wal", "-shm", "-journal")
"""What SQLite appends to the name of the file for those beside it."""
_FOLDER = "redsched"
"""The name of the folder of journals by default."""

T = TypeVar("T")
Statement = tuple[str, tuple[Any, ...]]


class JournalBroken(RedschedError):
    """The journal cannot be written or read. The agent exits, because it must not accept claims without a journal."""

    problem, title, status, exit_code = "journal-broken", "The agent's journal is unusable", 503, 5


class _Batch:
    """The writes that share one transaction. Await it to wait until they are durable."""

    def __init__(self) -> None:
        self.statements: list[Statement] = []
        self.durable: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def __await__(self) -> Generator[None, None, None]:
        # Shielded: a cancelled waiter must not cancel the future that the others wait for.
        yield from asyncio.shield(self.durable)


class JournalFile:
    """An open file, its thread, and the pending writes. Used from one event loop; closed by `close`."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.path = path
        self.failed = asyncio.Event()
        """Set once a write has failed; `check` raises from then on."""
        self._connection = connection
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._next: _Batch | None = None
        self._writer: asyncio.Task[None] | None = None
        self._broken: JournalBroken | None = None

    async def flush(self) -> None:
        """Wait until all writes so far are durable. Raises JournalBroken."""
        while self._writer is not None:
            await asyncio.wait([self._writer])
        self.check()

    async def close(self) -> None:
        """Write what is pending and close the file, also if the caller is cancelled. Writes that fail are dropped."""
        await finish(self._close())

    async def _close(self) -> None:
        try:
            await self.flush()
        except JournalBroken:
            pass
        finally:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._connection.close)
            self._thread.shutdown()

    def check(self) -> None:
        """Raise JournalBroken if a write has failed."""
        if self._broken is not None:
            raise self._broken

    def _write(self, statement: str, values: tuple[Any, ...]) -> Awaitable[None]:
        self.check()
        if self._next is None:
            self._next = _Batch()
        self._next.statements.append((statement, values))
        if self._writer is None:
            self._writer = detached(self._write_batches(), name="journal")
        return self._next

    async def _write_batches(self) -> None:
        try:
            while (batch := self._next) is not None:
                self._next = None
                await self._commit(batch)
        finally:
            self._writer = None

    async def _commit(self, batch: _Batch) -> None:
        try:
            await self._in_thread(lambda: self._transaction(batch.statements))
        except Exception as error:  # whatever the error is, no caller may wait for ever
            self._broken = self._broken or JournalBroken(_unwritable(self.path, error))
            self.failed.set()
        if self._broken is None:
            batch.durable.set_result(None)
        else:
            batch.durable.set_exception(self._broken)
            batch.durable.exception()  # mark it as retrieved, because it is no error if no caller waits

    def _transaction(self, statements: list[Statement]) -> None:
        with self._connection:
            for statement, values in statements:
                self._connection.execute(statement, values)

    async def _read(self, read: Callable[[], T]) -> T:
        """Run a read that sees all writes before this call. Raises JournalBroken."""
        if self._next is not None:
            await self._next
        try:
            return await self._in_thread(read)
        except sqlite3.Error as error:
            raise JournalBroken(f"journal {self.path} cannot be read: {error}") from error

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def _unwritable(path: Path, error: Exception) -> str:
    return f"journal {path} cannot be written: {error}; see to its disk and start the agent again"


@contextmanager
def opening(path: Path) -> Iterator[sqlite3.Connection]:
    """Open or create the file at `path` and yield its connection, which is closed only if the caller's block fails.

    Raises OtherAgent when another process has it open, JournalBroken when the file cannot be used.
    """
    try:
        _make_private(path)
        connection = sqlite3.connect(path, timeout=0.5, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise JournalBroken(
            f"journal {path} cannot be opened: {error}; set REDSCHED_JOURNAL to another place"
        ) from error
    try:
        _prepare(connection, path)
        yield connection
    except JournalBroken:
        connection.close()
        raise
    except (sqlite3.Error, ValueError, KeyError) as error:
        connection.close()
        raise _unusable(path, error) from error


def _make_private(path: Path) -> None:
    """Create the file and its folder for this user alone, and close existing ones to others.

    An existing folder is left as it is unless it is redsched's own by its name: others may need theirs.
    """
    folder = path.parent
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
    elif folder.name == _FOLDER:
        _close_to_others(folder, 0o700)
    os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    # SQLite creates the WAL with the mode of the file; an earlier release may have left one for all to read.
    for file in (path, *(path.with_name(path.name + suffix) for suffix in _BESIDE)):
        if file.exists():
            _close_to_others(file, 0o600)


def _close_to_others(path: Path, mode: int) -> None:
    with suppress(PermissionError):  # another user's, or of a file system without modes
        path.chmod(mode)


def _unusable(path: Path, error: Exception) -> RedschedError:
    if getattr(error, "sqlite_errorname", "").startswith(_DISK):
        return JournalBroken(_unwritable(path, error))
    if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
        return OtherAgent(f"journal {path} is in use by another agent on this machine: stop that one first")
    return JournalBroken(f"journal {path} cannot be used: {error}; move it away to begin with an empty one")


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    # EXCLUSIVE: two processes that share one journal would issue the same report numbers. It also keeps the WAL index
    # out of shared memory. FULL syncs every commit to disk; NORMAL would lose the last ones on a power failure.
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    _check_schema(connection, path)
    connection.executescript(sql.TABLES)


def _check_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Upgrade a journal of the schema before. Raises JournalBroken for one of any other, and writes nothing to it."""
    has_meta = connection.execute(sql.HAS_META).fetchone()
    row = connection.execute(sql.SCHEMA).fetchone() if has_meta else None
    if row and row[0] in sql.UPGRADES:
        with connection:
            for statement in (*sql.UPGRADES[row[0]], f"UPDATE meta SET value = '{sql.VERSION}' WHERE name = 'schema'"):
                connection.execute(statement)
    elif row and row[0] != sql.VERSION:
        raise JournalBroken(
            f"journal {path} has schema {row[0]}, this release reads only schema {sql.VERSION}: start the release that "
            "wrote it and end the claims of its hosts, or move the file away to start with an empty one, which "
            "restarts the work of claims that are still there"
        )
