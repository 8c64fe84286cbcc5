"""The agent's journal: the placements of its hosts, the epochs that they left, and the report numbers issued.

The pages in memory show a write at once. The `write_*` methods return an awaitable that completes when the write is
durable; a caller that does not await it must be safe against losing the write. How writes reach the disk is in
file.py.
"""

import asyncio
import json
import sqlite3
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from redsched.agent.device_pools import devices_of
from redsched.agent.journal import schema as sql
from redsched.agent.journal.file import JournalFile, opening
from redsched.agent.journal.schema import VERSION, HostPage, JournalEntry, from_row, to_row
from redsched.agent.journal.steady_clock import Reading, SteadyClock, read_clocks
from redsched.agent.store_clock import StoreClock
from redsched.errors import InvalidRequest
from redsched.model import ClaimStatus
from redsched.model.payload import payload_in
from redsched.model.tokens import is_newer_token
from redsched.store.codec.claim_fields import request_name
from redsched.store.codec.replies import EndedPlacement

BLOCK = 1000
"""The number of report numbers reserved at a time. A process that dies leaves the rest of its block unused."""

REMEMBER_MS = 600_000
"""The least time, by the journal's clock, for which tombstones are kept; the store remembers ended claims as long."""

MAX_NAMED = 5
"""The most claims that a message names."""

MAX_TOMBSTONES = 200_000
"""The most tombstones, about 20 MB of file. Above it the oldest are deleted, even if no host has attested since."""

_CLOCK = "clock"
"""The name in `meta` of the last reading of the machine's clocks, and of the journal's time then."""

_CELL = "cell:"
"""The beginning of the names in `meta` of the hosts' cells; the name of the host follows."""

_DEVICES = "devices:"
"""The beginning of the names in `meta` of the hosts' devices; the name of the host follows."""

MAX_IN_MEMORY = 20_000
"""The number of tombstones, the newest of all hosts, that `has_ended` and `ended_token` consult."""


class Journal(JournalFile):
    """The journal of one agent process. Created by `open_journal`; used from one event loop; closed by `close`."""

    def __init__(self, connection: sqlite3.Connection, path: Path, read: Callable[[], Reading] = read_clocks) -> None:
        super().__init__(connection, path)
        self.id = ""
        self.clock: SteadyClock
        """The time by which work has run and tombstones have become old."""
        self.pages: defaultdict[str, HostPage] = defaultdict(HostPage)
        self.texts: dict[str, str] = {}
        """The long texts that held placements refer to, by name."""
        self.limits: dict[tuple[str, str], int | None] = {}
        """When the work of held placements has to stop (the journal's time, ms), by host and `placed`; most have no
        limit. None: the journal of an earlier release does not have it."""
        self.devices: dict[str, Mapping[str, str]] = {}
        """The devices of each host by the names of their pools. Without an entry, it may have named some elsewhere."""
        self._store_clocks: dict[str, StoreClock] = {}
        self._cells: dict[str, str] = {}
        """The cells of the hosts, as the last agent represented them."""
        self._ended: dict[tuple[str, str], str] = {}
        """The tokens with which placements ended, by host and `placed`."""
        self._with_ended: set[str] = set()
        """The hosts that may have tombstones, so that `ended` reads nothing for the others."""
        self._newest: dict[tuple[str, str], str] = {}
        """The newest tokens with which claims ended, by host and claim id."""
        self._number = 0
        self._ceiling = 0
        self._reserving = asyncio.Lock()
        self._load(read)

    # -- report numbers

    async def next_number(self) -> int:
        """Return the next report number, higher than any that this journal has issued, in any process."""
        while self._number >= self._ceiling:
            async with self._reserving:
                if self._number >= self._ceiling:
                    ceiling = self._ceiling + BLOCK
                    await self._write(sql.SET_META, ("ceiling", str(ceiling)))
                    self._ceiling = ceiling
        self._number += 1
        return self._number

    # -- clocks

    def store_clock(self, cell: str) -> StoreClock:
        """Return the clock of a cell's store, which all hosts of the cell share."""
        return self._store_clocks.setdefault(cell, StoreClock())

    def left_ms(self, host: str, placed: str) -> int | None:
        """Return how long the work of a held placement may still run; None for no limit, or one that is not known."""
        ends_at_ms = self.limits.get((host, placed))
        return None if ends_at_ms is None else ends_at_ms - self.clock.now_ms()

    def write_limit(self, host: str, placed: str, left_ms: int) -> Awaitable[None]:
        """Record how long the work of a held placement may run from now on."""
        ends_at_ms = self.clock.now_ms() + left_ms
        self.limits[host, placed] = ends_at_ms
        return self._write(sql.SET_LIMIT, (host, placed, ends_at_ms))

    # -- hosts

    def represent(self, hosts: Mapping[str, str]) -> None:
        """Record which hosts the agent represents, with their cells.

        What the journal knows of another cell is forgotten: its epochs and ended placements are nothing to this one.
        Raises InvalidRequest if the journal has placements of other hosts, or of a host in another cell: their work
        runs on this machine, and would be neither counted nor stopped.
        """
        for host, page in self.pages.items():
            if page.held and host not in hosts:
                raise InvalidRequest(_left_behind(self.path, host, page))
            cell = self._cells.get(host, "")
            if page.held and cell and cell != hosts[host]:
                raise InvalidRequest(_left_behind(self.path, host, page, cell))
        self._leave_cells({host for host, cell in hosts.items() if self._cells.get(host, cell) != cell})
        for host, cell in hosts.items():
            if self._cells.get(host) != cell:
                self._cells[host] = cell
                self._write(sql.SET_META, (f"{_CELL}{host}", cell))

    def write_left_epoch(self, host: str, epoch: str) -> Awaitable[None]:
        """Record that the host leaves `epoch`: once durable, no notification of that epoch may be acted on."""
        page = self.pages[host]
        page.left_epoch, page.attested_epoch = epoch, ""
        return self._write_page(host)

    def write_attested(self, host: str, epoch: str) -> Awaitable[None]:
        """Record that the host has attested to `epoch`."""
        self.pages[host].attested_epoch = epoch
        return self._write_page(host)

    def write_external(self, host: str, external: dict[str, int]) -> Awaitable[None]:
        """Store the last measured usage of work that belongs to no claim."""
        self.pages[host].external = external
        return self._write_page(host)

    def write_devices(self, host: str, devices: Mapping[str, str]) -> Awaitable[None]:
        """Record the devices of a host by the names of their pools: a name must not pass to another device."""
        self.devices[host] = dict(devices)
        return self._write(sql.SET_META, (f"{_DEVICES}{host}", json.dumps(self.devices[host])))

    def devices_of(self, host: str, work: JournalEntry) -> dict[str, str]:
        """Return the devices that a placement holds amounts of, by the names of their pools."""
        return devices_of([*work.amounts, *work.resizing_to], self.devices.get(host, {}))

    # -- placements

    def write_held(self, host: str, work: JournalEntry, left_ms: int | None = None) -> Awaitable[None]:
        """Store a placement, or update a stored one. `left_ms`: how long the work of a new one may run, if limited."""
        self._hold(host, work)
        if left_ms is not None and self.limits.get((host, work.placed), 0) is None:
            self.write_limit(host, work.placed, left_ms)
        return self._write(sql.SET_PLACEMENT, to_row(host, work))

    def write_ended(self, host: str, work: JournalEntry, end_reason: str = "") -> Awaitable[None]:
        """Replace a placement by its tombstone, whose age counts from now.

        `end_reason` is the reason that the store replied with, kept to restore it to a store that has lost it.
        """
        page = self.pages[host]
        self._delete(host, work.placed)
        self._remember(host, work.placed, work.id, work.token)
        was_active = work.was_active or work.state is ClaimStatus.ACTIVE
        self._with_ended.add(host)
        row = (
            host,
            work.placed,
            work.id,
            work.token,
            end_reason,
            page.attested_epoch,
            int(was_active),
            self.clock.now_ms(),
        )
        return self._write(sql.SET_TOMBSTONE, row)

    def write_forgotten(self, host: str, placed: str) -> Awaitable[None]:
        """Delete a placement whose work was never started. It needs no tombstone, because there is no end to report."""
        return self._delete(host, placed)

    def has_ended(self, host: str, placed: str, token: str) -> bool:
        """Return whether a placement ended here with this token or a newer one, according to the newest tombstones."""
        ended = self._ended.get((host, placed), "")
        return ended != "" and not is_newer_token(token, ended)

    def ended_token(self, host: str, claim_id: str) -> str:
        """Return the newest token with which a claim ended here; '' if it is not among the newest tombstones."""
        return self._newest.get((host, claim_id), "")

    async def ended(self, host: str) -> list[EndedPlacement]:
        """Return the placements that ended here and whose tombstones have not been pruned."""
        if host not in self._with_ended:
            return []
        rows = await self._read(lambda: self._connection.execute(sql.TOMBSTONES, (host,)).fetchall())
        now_ms = self.clock.now_ms()
        return [
            EndedPlacement(one, token, placed, end_reason, bool(was_active), max(0, now_ms - at_ms))
            for one, token, placed, end_reason, was_active, at_ms in rows
        ]

    # -- texts

    def write_text(self, name: str, text: str) -> Awaitable[None]:
        """Store a text that placements refer to."""
        self.texts[name] = text
        return self._write(sql.SET_TEXT, (name, text))

    def payload_of(self, work: JournalEntry) -> Any:
        """Return what the request of a placement gives to the hook; None for nothing."""
        return payload_in(self.texts.get(request_name(work.digest)))

    def prune(self) -> None:
        """Delete tombstones older than REMEMBER_MS whose host has attested since, and the oldest above the limit.

        Delete texts too that no held placement refers to. Record the time, from which the next process continues.
        """
        self._write_clock()
        self._write(sql.PRUNE_OLD, (self.clock.now_ms() - REMEMBER_MS,))
        self._write(sql.PRUNE_MANY, (MAX_TOMBSTONES,))
        named = {name for page in self.pages.values() for work in page.held.values() for name in work.texts}
        for name in self.texts.keys() - named:
            del self.texts[name]
            self._write(sql.DELETE_TEXT, (name,))

    # -- inside

    def _load(self, read: Callable[[], Reading]) -> None:
        meta = dict(self._connection.execute("SELECT name, value FROM meta"))
        self.id = meta.get("id") or uuid.uuid4().hex
        # The ceiling is durable before the first number is used, and one block ahead, so that a start needs one write.
        self._number = int(meta.get("ceiling", 0))
        self._ceiling = self._number + BLOCK
        self.clock = SteadyClock(_kept_clock(meta.get(_CLOCK, "")), read)
        pairs = [("schema", VERSION), ("id", self.id), ("ceiling", str(self._ceiling)), (_CLOCK, self._clock_text())]
        with self._connection:
            self._connection.executemany(sql.SET_META, pairs)
            self._connection.execute(sql.DELETE_STALE_LIMITS)
        known = {(host, placed): ends_at_ms for host, placed, ends_at_ms in self._connection.execute(sql.LIMITS)}
        self._cells = {name.removeprefix(_CELL): cell for name, cell in meta.items() if name.startswith(_CELL)}
        self.devices = {
            name.removeprefix(_DEVICES): json.loads(text) for name, text in meta.items() if name.startswith(_DEVICES)
        }
        for name, left, attested, external in self._connection.execute(sql.HOSTS):
            self.pages[name] = HostPage(left, attested, json.loads(external))
        for row in self._connection.execute(sql.PLACEMENTS):
            host, work = from_row(row)
            self._hold(host, work)
        self.limits |= known
        self.texts = dict(self._connection.execute(sql.TEXTS))
        self._with_ended = {host for (host,) in self._connection.execute(sql.WITH_TOMBSTONES)}
        for host, placed, claim_id, token in self._connection.execute(sql.NEWEST, (MAX_IN_MEMORY,)):
            self._remember(host, placed, claim_id, token)

    def _hold(self, host: str, work: JournalEntry) -> None:
        self.pages[host].held[work.placed] = work
        if work.runtime_deadline_ms is not None:
            self.limits.setdefault((host, work.placed))
        else:
            self.limits.pop((host, work.placed), None)

    def _delete(self, host: str, placed: str) -> Awaitable[None]:
        self.pages[host].held.pop(placed, None)
        if (host, placed) in self.limits:
            del self.limits[host, placed]
            self._write(sql.DELETE_LIMIT, (host, placed))
        return self._write(sql.DELETE_PLACEMENT, (host, placed))

    def _leave_cells(self, hosts: set[str]) -> None:
        """Forget the epochs and the ended placements of hosts that have come to another cell."""
        for host in hosts:
            page = self.pages[host]
            page.left_epoch = page.attested_epoch = ""
            self._write_page(host)
            self._write(sql.DELETE_TOMBSTONES, (host,))
        if hosts:
            self._with_ended -= hosts
            self._ended = {key: token for key, token in self._ended.items() if key[0] not in hosts}
            self._newest = {key: token for key, token in self._newest.items() if key[0] not in hosts}

    def _clock_text(self) -> str:
        reading, now_ms = self.clock.reading()
        return json.dumps([reading.boot_id, reading.up_ms, reading.wall_ms, now_ms])

    def _write_clock(self) -> None:
        # Nobody waits for it: after a crash, the next process continues from the one before.
        self._write(sql.SET_META, (_CLOCK, self._clock_text()))

    def _remember(self, host: str, placed: str, claim_id: str, token: str) -> None:
        for newest, name in ((self._ended, placed), (self._newest, claim_id)):
            before = newest.pop((host, name), "")
            newest[host, name] = token if is_newer_token(token, before) else before
            if len(newest) > MAX_IN_MEMORY:
                del newest[next(iter(newest))]

    def _write_page(self, host: str) -> Awaitable[None]:
        page = self.pages[host]
        return self._write(sql.SET_HOST, (host, page.left_epoch, page.attested_epoch, json.dumps(page.external)))


def _kept_clock(text: str) -> tuple[Reading, int] | None:
    if not text:
        return None
    boot_id, up_ms, wall_ms, now_ms = json.loads(text)
    return Reading(boot_id, up_ms, wall_ms), now_ms


def _left_behind(path: Path, host: str, page: HostPage, cell: str = "") -> str:
    """Return why an agent must not start, for a host that it does not represent, or represents in another cell."""
    ids = sorted({work.id for work in page.held.values()})
    named = ", ".join(ids[:MAX_NAMED]) + (f" and {len(ids) - MAX_NAMED} more" if len(ids) > MAX_NAMED else "")
    claims, where = f"{len(ids)} claim{'s' * (len(ids) != 1)}", f" in cell {cell}" if cell else ""
    return (
        f"the journal {path} has {claims} of host {host}{where}, which this agent does not represent: {named}. To keep "
        f"them, start it as host {host}{where}. To end them, do so, and `redsched host drain {host}`. If their work no "
        f"longer runs on this machine, move the journal away, and `redsched host write-off {host}`"
    )


def open_journal(path: Path, read: Callable[[], Reading] = read_clocks) -> Journal:
    """Open or create the journal at `path`. Call it inside the event loop that will use it.

    Raises OtherAgent when another process has it open, JournalBroken when the file cannot be used.
    """
    with opening(path) as connection:
        return Journal(connection, path, read)


def placements_beside(path: Path) -> dict[str, int]:
    """Return the numbers of placements, by host, in the other journals of a folder that no process has open."""
    found = dict[str, int]()
    for other in sorted(path.parent.glob("*.sqlite")):
        if other != path:
            with (
                suppress(sqlite3.Error),
                closing(sqlite3.connect(f"{other.resolve().as_uri()}?mode=ro", uri=True, timeout=0)) as one,
            ):
                found |= dict(one.execute(sql.PLACEMENTS_BY_HOST))
    return found
