"""The agent's journal: what its hosts hold, which epochs they left, and how far report numbers were given out.

One sqlite file. Every write of the agent's process goes into the next transaction, and one transaction is on its way to
the disk at a time: the more hosts write, the more of them share an fsync. Writing happens in a thread of the journal's
own, so an fsync never holds up a heartbeat. The pages in memory show a write at once; whoever must know that it is
durable awaits it.

`write_*` return something to await for that. Where a caller does not, losing the write must be safe.
"""

import asyncio
import json
import sqlite3
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from redsched.agent import journal_schema as sql
from redsched.agent.epochs import is_newer_token
from redsched.agent.journal_schema import VERSION, HeldWork, HostPage, from_row, to_row
from redsched.errors import OtherAgent, RedschedError

BLOCK = 1000
"""Report numbers reserved at a time. A process that dies leaves the rest of its block unused."""

REMEMBER_MS = 600_000
"""How long tombstones are kept at least: the store remembers ended claims as long."""

MAX_TOMBSTONES = 200_000
"""Above this the oldest go, though no new epoch has come since: some 20 MB of file."""

MOST_IN_MEMORY = 20_000
"""Tombstones that `has_ended` knows of, the newest of all hosts."""

_DISK = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY")
"""What sqlite calls the errors that are the disk's, and not the file's."""

T = TypeVar("T")
Statement = tuple[str, tuple[Any, ...]]


class JournalBroken(RedschedError):
    """The journal cannot be written or read. An agent must not take up anything without it: it ends."""

    problem, title, status, exit_code = "journal-broken", "The agent's journal is unusable", 503, 5


class _Batch:
    """The writes that share one transaction. Awaiting it is waiting until they are durable."""

    def __init__(self) -> None:
        self.statements: list[Statement] = []
        self.durable: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def __await__(self) -> Generator[None, None, None]:
        # Shielded: one waiter that is cancelled must not cancel what the others wait for.
        yield from asyncio.shield(self.durable)


class Journal:
    """One agent process' journal. Made by `open_journal`; used from one event loop; closed by `close`."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self.path = path
        self.id = ""
        self.pages: defaultdict[str, HostPage] = defaultdict(HostPage)
        self._connection = connection
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="journal")
        self._newest: dict[tuple[str, str], str] = {}
        self._next: _Batch | None = None
        self._writer: asyncio.Task[None] | None = None
        self.failed = asyncio.Event()
        """Set once a write has failed; `check` raises from then on."""
        self._broken: JournalBroken | None = None
        self._number = 0
        self._ceiling = 0
        self._reserving = asyncio.Lock()
        self._load()

    # -- report numbers

    async def next_number(self) -> int:
        """Return the next report number: above all that this journal ever gave out, in any process."""
        while self._number >= self._ceiling:
            async with self._reserving:
                if self._number >= self._ceiling:
                    ceiling = self._ceiling + BLOCK
                    await self._write(sql.SET_META, ("ceiling", str(ceiling)))
                    self._ceiling = ceiling
        self._number += 1
        return self._number

    # -- hosts

    def write_left(self, host: str, epoch: str) -> Awaitable[None]:
        """The host leaves `epoch`: once durable, nothing stamped with it may be taken up again."""
        page = self.pages[host]
        page.left_epoch, page.attested_epoch = epoch, ""
        return self._write_page(host)

    def write_attested(self, host: str, epoch: str) -> Awaitable[None]:
        """The host has attested to `epoch`."""
        self.pages[host].attested_epoch = epoch
        return self._write_page(host)

    def write_external(self, host: str, external: dict[str, int]) -> Awaitable[None]:
        """Keep what was last measured of work that no claim explains."""
        self.pages[host].external = external
        return self._write_page(host)

    # -- claims

    def write_held(self, host: str, work: HeldWork) -> Awaitable[None]:
        """Hold a claim, or change what is known of one that is held."""
        self.pages[host].held[work.id] = work
        return self._write(sql.SET_CLAIM, to_row(host, work))

    def write_ended(self, host: str, claim_id: str, token: str, now_ms: int) -> Awaitable[None]:
        """Put a tombstone in the claim's place. `now_ms` is the store's time, which alone is used for its age."""
        self.pages[host].held.pop(claim_id, None)
        epoch = self.pages[host].attested_epoch
        self._remember(host, claim_id, token)
        self._write(sql.DELETE_CLAIM, (host, claim_id))
        return self._write(sql.SET_TOMBSTONE, (host, claim_id, token, epoch, now_ms))

    def write_forgotten(self, host: str, claim_id: str) -> Awaitable[None]:
        """Drop a claim that never became this host's: no work of it was begun, so nothing is to be said of its end."""
        self.pages[host].held.pop(claim_id, None)
        return self._write(sql.DELETE_CLAIM, (host, claim_id))

    def has_ended(self, host: str, claim_id: str, token: str) -> bool:
        """Whether this placing of a claim, or a later one, ended here, as far as the newest tombstones tell."""
        ended = self.ended_token(host, claim_id)
        return ended != "" and not is_newer_token(token, ended)

    def ended_token(self, host: str, claim_id: str) -> str:
        """The token by which a claim ended here last; '' where the newest tombstones do not tell."""
        return self._newest.get((host, claim_id), "")

    async def ended(self, host: str) -> list[tuple[str, str]]:
        """Return id and token of the claims that ended here, as far as they are remembered."""
        return await self._read(lambda: self._connection.execute(sql.TOMBSTONES, (host,)).fetchall())

    def prune(self, now_ms: int) -> None:
        """Forget tombstones older than REMEMBER_MS whose host has attested since, and the oldest above the limit."""
        self._write(sql.PRUNE_OLD, (now_ms - REMEMBER_MS,))
        self._write(sql.PRUNE_MANY, (MAX_TOMBSTONES,))

    # -- life

    async def flush(self) -> None:
        """Wait until all that was written so far is durable."""
        while self._writer is not None:
            await asyncio.wait([self._writer])
        self.check()

    async def close(self) -> None:
        """Write what is waiting and close the file. What cannot be written any more is left."""
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

    # -- inside

    def _load(self) -> None:
        meta = dict(self._connection.execute("SELECT name, value FROM meta"))
        if meta.get("schema", VERSION) != VERSION:
            raise JournalBroken(f"journal {self.path} is of schema {meta['schema']}, this redsched reads {VERSION}")
        self.id = meta.get("id") or uuid.uuid4().hex
        # Durable before the first number is used; one block on, so that a start needs no further write.
        self._number = int(meta.get("ceiling", 0))
        self._ceiling = self._number + BLOCK
        pairs = [("schema", VERSION), ("id", self.id), ("ceiling", str(self._ceiling))]
        with self._connection:
            self._connection.executemany(sql.SET_META, pairs)
        for name, left, attested, external in self._connection.execute(sql.HOSTS):
            self.pages[name] = HostPage(left, attested, json.loads(external))
        for row in self._connection.execute(sql.CLAIMS):
            host, work = from_row(row)
            self.pages[host].held[work.id] = work

        for host, claim_id, token in self._connection.execute(sql.NEWEST, (MOST_IN_MEMORY,)):
            self._newest[host, claim_id] = token

    def _remember(self, host: str, claim_id: str, token: str) -> None:
        self._newest.pop((host, claim_id), None)
        self._newest[host, claim_id] = token
        if len(self._newest) > MOST_IN_MEMORY:
            del self._newest[next(iter(self._newest))]

    def _write_page(self, host: str) -> Awaitable[None]:
        page = self.pages[host]
        return self._write(sql.SET_HOST, (host, page.left_epoch, page.attested_epoch, json.dumps(page.external)))

    def _write(self, statement: str, values: tuple[Any, ...]) -> Awaitable[None]:
        self.check()
        if self._next is None:
            self._next = _Batch()
        self._next.statements.append((statement, values))
        if self._writer is None:
            self._writer = asyncio.create_task(self._write_batches(), name="journal")
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
        except Exception as error:  # whatever it is, nobody may wait for ever
            self._broken = self._broken or JournalBroken(_unwritable(self.path, error))
            self.failed.set()
        if self._broken is None:
            batch.durable.set_result(None)
        else:
            batch.durable.set_exception(self._broken)
            batch.durable.exception()  # nobody may be waiting, and that is no error of its own

    def _transaction(self, statements: list[Statement]) -> None:
        with self._connection:
            for statement, values in statements:
                self._connection.execute(statement, values)

    async def _read(self, read: Callable[[], T]) -> T:
        """Read, with all that was written before this call."""
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


def open_journal(path: Path) -> Journal:
    """Open or make the journal at `path`; call it inside the event loop that will use it.

    Raises OtherAgent when another process has it open, JournalBroken when the file cannot be used.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, timeout=0.5, check_same_thread=False)
    except (OSError, sqlite3.Error) as error:
        raise JournalBroken(
            f"journal {path} cannot be opened: {error}; set REDSCHED_JOURNAL to another place"
        ) from error
    try:
        _prepare(connection)
        return Journal(connection, path)
    except JournalBroken:
        connection.close()
        raise
    except (sqlite3.Error, ValueError, KeyError) as error:
        connection.close()
        if getattr(error, "sqlite_errorname", "").startswith(_DISK):
            raise JournalBroken(_unwritable(path, error)) from error
        if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
            raise OtherAgent(
                f"journal {path} is in use by another agent on this machine: stop that one first"
            ) from error
        raise JournalBroken(
            f"journal {path} cannot be used: {error}; move it away to begin with an empty one"
        ) from error


def _prepare(connection: sqlite3.Connection) -> None:
    # Exclusive: two processes that share one journal would give out the same numbers. It also keeps WAL out of shared
    # memory. FULL makes every commit of a WAL reach the disk; NORMAL would lose the last ones with the power.
    connection.execute("PRAGMA locking_mode = EXCLUSIVE")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.executescript(sql.TABLES)
    _migrate(connection)


def _migrate(connection: sqlite3.Connection) -> None:
    """Bring a journal of an older redsched up to this schema. A newer one is refused when it is loaded."""
    while row := connection.execute("SELECT value FROM meta WHERE name = 'schema'").fetchone():
        if row[0] not in sql.MIGRATIONS:
            return
        connection.executescript(sql.MIGRATIONS[row[0]])
