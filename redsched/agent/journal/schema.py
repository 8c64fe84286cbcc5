"""The journal's tables and statements, and the mapping between its rows and the agent's objects."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from redsched.agent.collectors.base import Named
from redsched.model import Amounts, ClaimStatus, OnExit
from redsched.model.claims import LOCAL
from redsched.model.validation import parse_int
from redsched.origin import UNKNOWN, Origin
from redsched.store.codec.claim_fields import AMOUNT, RESIZING_TO, amounts_in, record_with, texts_of

T = TypeVar("T")

VERSION = "8"
UPGRADES = {"7": ("ALTER TABLE placement ADD COLUMN origin TEXT NOT NULL DEFAULT ''",)}
"""What makes a journal of the schema before one of VERSION. An earlier release does not read it any more."""

TABLES = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS host (
    name TEXT PRIMARY KEY, left_epoch TEXT NOT NULL, attested_epoch TEXT NOT NULL, external TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS placement (
    host TEXT, placed TEXT, id TEXT NOT NULL, token TEXT NOT NULL, root TEXT NOT NULL, state TEXT NOT NULL,
    is_running INTEGER NOT NULL, named TEXT NOT NULL, record TEXT NOT NULL, before TEXT NOT NULL, moves TEXT NOT NULL,
    work_end TEXT NOT NULL, was_active INTEGER NOT NULL, origin TEXT NOT NULL DEFAULT '', PRIMARY KEY (host, placed)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS run_limit (
    host TEXT, placed TEXT, ends_at_ms INTEGER NOT NULL, PRIMARY KEY (host, placed)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS text (name TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tombstone (
    host TEXT, placed TEXT, id TEXT NOT NULL, token TEXT NOT NULL, end_reason TEXT NOT NULL, epoch TEXT NOT NULL,
    was_active INTEGER NOT NULL, ended_at_ms INTEGER NOT NULL, PRIMARY KEY (host, placed)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS tombstone_age ON tombstone (ended_at_ms);
"""

HAS_META = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'meta'"
SCHEMA = "SELECT value FROM meta WHERE name = 'schema'"
SET_META = "INSERT OR REPLACE INTO meta VALUES (?, ?)"
HOSTS = "SELECT name, left_epoch, attested_epoch, external FROM host"
SET_HOST = "INSERT OR REPLACE INTO host VALUES (?, ?, ?, ?)"
PLACEMENTS = """SELECT host, placed, id, token, root, state, is_running, named, record, before, moves, work_end,
    was_active, origin FROM placement"""
PLACEMENTS_BY_HOST = "SELECT host, count(*) FROM placement GROUP BY host"
SET_PLACEMENT = "INSERT OR REPLACE INTO placement VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
DELETE_PLACEMENT = "DELETE FROM placement WHERE host = ? AND placed = ?"
LIMITS = "SELECT host, placed, ends_at_ms FROM run_limit"
SET_LIMIT = "INSERT OR REPLACE INTO run_limit VALUES (?, ?, ?)"
DELETE_LIMIT = "DELETE FROM run_limit WHERE host = ? AND placed = ?"
DELETE_STALE_LIMITS = """DELETE FROM run_limit WHERE NOT EXISTS
    (SELECT 1 FROM placement WHERE (host, placed) = (run_limit.host, run_limit.placed))"""
TEXTS = "SELECT name, text FROM text"
SET_TEXT = "INSERT OR REPLACE INTO text VALUES (?, ?)"
DELETE_TEXT = "DELETE FROM text WHERE name = ?"
TOMBSTONES = """SELECT id, token, placed, end_reason, was_active, ended_at_ms FROM tombstone
    WHERE host = ? ORDER BY ended_at_ms"""
WITH_TOMBSTONES = "SELECT DISTINCT host FROM tombstone"
SET_TOMBSTONE = "INSERT OR REPLACE INTO tombstone VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
NEWEST = """SELECT host, placed, id, token FROM
    (SELECT * FROM tombstone ORDER BY ended_at_ms DESC LIMIT ?) ORDER BY ended_at_ms"""
DELETE_TOMBSTONES = "DELETE FROM tombstone WHERE host = ?"
PRUNE_OLD = """DELETE FROM tombstone WHERE ended_at_ms < ? AND epoch !=
    (SELECT attested_epoch FROM host WHERE name = tombstone.host) AND
    (SELECT attested_epoch FROM host WHERE name = tombstone.host) != ''"""
PRUNE_MANY = """DELETE FROM tombstone WHERE (host, placed) IN
    (SELECT host, placed FROM tombstone ORDER BY ended_at_ms DESC LIMIT -1 OFFSET ?)"""


@dataclass(frozen=True, slots=True)
class WorkEnd:
    """The end of work that ended by itself: what was observed, and when (the store's time)."""

    text: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """A placement as the journal holds it: `id` is its claim, `placed` its name, `token` its fencing token.

    `record` is the store's part of the claim, which an attestation returns unchanged; only a resize changes its
    amounts. `state` CLAIMED: not known to be accepted yet. `is_running`: the hook has started the work. `named` is the
    work that the hook named. During a resize, `resizing_to` has the amounts that the placement will hold, `before` the
    amounts of its work, and `amounts` the larger of both. `moves` has the host and token of the placement that this one
    replaces in a move. `work_end` is set once the work has ended by itself. `was_active`: it is ending, was active
    before, and its gang has not failed. `origin`: who caused what the host was last asked to do with it. A local claim
    has the digest LOCAL.
    """

    id: str
    placed: str
    token: str
    root: str
    record: Mapping[str, str] = field(default_factory=dict)
    state: ClaimStatus = ClaimStatus.CLAIMED
    is_running: bool = False
    named: Named | None = None
    before: Amounts = field(default_factory=dict)
    moves: Mapping[str, str] = field(default_factory=dict)
    work_end: WorkEnd | None = None
    was_active: bool = False
    origin: Origin = UNKNOWN

    @property
    def on_exit(self) -> OnExit:
        """The action to take when its work ends by itself."""
        return OnExit(self.record.get("on_exit", OnExit.RELEASE))

    @property
    def runtime_deadline_ms(self) -> int | None:
        """When its host has to stop its work, by the store's clock when it was placed here; None for no limit, or if it
        is unreadable. The agent counts the time that is left then on its own clock."""
        return parse_int(self.record.get("runtime_deadline_ms", ""), 0) or None

    @property
    def amounts(self) -> dict[str, int]:
        """The amounts that it holds, by slot."""
        return amounts_in(self.record, AMOUNT)

    @property
    def resizing_to(self) -> dict[str, int]:
        """The amounts that it will hold after its resize, by slot; {} if it is not being resized."""
        return amounts_in(self.record, RESIZING_TO)

    @property
    def project(self) -> str:
        """The project that the claim belongs to."""
        return self.record.get("project", "")

    @property
    def owner(self) -> str:
        """Who in the project owns the claim; '' if nobody does."""
        return self.record.get("owner", "")

    @property
    def consumer(self) -> str:
        """The consumer that the claim is for."""
        return self.record.get("consumer", "")

    @property
    def digest(self) -> str:
        """The digest of the claim's request."""
        return self.record.get("digest", "")

    @property
    def group(self) -> str:
        """The server group that the claim is a member of."""
        return self.record.get("group", "")

    @property
    def gang(self) -> str:
        """The gang that the claim belongs to."""
        return self.record.get("gang", "")

    @property
    def texts(self) -> tuple[str, ...]:
        """The names of the long texts that the claim refers to: its request and its alternates."""
        return texts_of(self.id, self.record)

    @property
    def log(self) -> str:
        """The path of the log of its work; '' if the hook has named none."""
        return self.named.log if self.named is not None else ""

    @property
    def is_local(self) -> bool:
        """Whether this host made the claim itself, for local work."""
        return self.digest == LOCAL

    def with_amounts(self, amounts: Amounts, resizing_to: Amounts, before: Amounts) -> "JournalEntry":
        """Return a copy with other amounts."""
        return dataclasses.replace(self, record=record_with(self.record, amounts, resizing_to), before=before)


@dataclass(slots=True)
class HostPage:
    """The journal's data on one host. `held`: its placements, by `placed`."""

    left_epoch: str = ""
    attested_epoch: str = ""
    external: dict[str, int] = field(default_factory=dict)
    held: dict[str, JournalEntry] = field(default_factory=dict)


def to_row(host: str, work: JournalEntry) -> tuple[Any, ...]:
    """Return the row for the table `placement`, in the order of its columns."""
    return (
        host,
        work.placed,
        work.id,
        work.token,
        work.root,
        work.state.value,
        int(work.is_running),
        _named_to_text(work.named),
        json.dumps(dict(work.record)),
        json.dumps(dict(work.before)),
        json.dumps(dict(work.moves)),
        "" if work.work_end is None else json.dumps(asdict(work.work_end)),
        int(work.was_active),
        "" if work.origin == UNKNOWN else json.dumps(asdict(work.origin)),
    )


def from_row(row: tuple[Any, ...]) -> tuple[str, JournalEntry]:
    """Return the host and the placement of a row of the table `placement`."""
    host, placed, claim_id, token, root, state, is_running, named, record, before, moves, work_end, *last = row
    was_active, caused_by = last
    return host, JournalEntry(
        id=claim_id,
        placed=placed,
        token=token,
        root=root,
        record=json.loads(record),
        state=ClaimStatus(state),
        is_running=bool(is_running),
        named=_named_from_text(named),
        before=json.loads(before),
        moves=json.loads(moves),
        work_end=WorkEnd(**json.loads(work_end)) if work_end else None,
        was_active=bool(was_active),
        origin=Origin(**json.loads(caused_by)) if caused_by else UNKNOWN,
    )


def _named_to_text(named: Named | None) -> str:
    if named is None:
        return ""
    return json.dumps(asdict(named))


def _named_from_text(text: str) -> Named | None:
    if not text:
        return None
    fields = json.loads(text)
    pids, started = _by_pid(fields["pids"]), _by_pid(fields.get("started", {}))
    watched, status_file = fields.get("is_watched", False), fields.get("status_file", "")
    return Named(fields["domain"], fields["cgroup"], pids, started, watched, status_file, fields.get("log", ""))


def _by_pid(fields: Mapping[str, T]) -> dict[int, T]:
    return {int(pid): value for pid, value in fields.items()}
