"""The journal's tables and statements, and how its rows become the agent's words and back."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from redsched.agent.collector import Named
from redsched.model import Amounts, ClaimStatus, Why
from redsched.store.agent_calls import LOCAL

VERSION = "4"

TABLES = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS host (
    name TEXT PRIMARY KEY, left_epoch TEXT NOT NULL, attested_epoch TEXT NOT NULL, external TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS claim (
    host TEXT, id TEXT, token TEXT NOT NULL, state TEXT NOT NULL, is_running INTEGER NOT NULL, amounts TEXT NOT NULL,
    project TEXT NOT NULL, consumer TEXT NOT NULL, digest TEXT NOT NULL, named TEXT NOT NULL,
    server_group TEXT NOT NULL DEFAULT '', counted TEXT NOT NULL DEFAULT '{}', wanted TEXT NOT NULL DEFAULT '{}',
    before TEXT NOT NULL DEFAULT '{}', succession TEXT NOT NULL DEFAULT '{}', gang TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (host, id)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tombstone (
    host TEXT, id TEXT, token TEXT NOT NULL, epoch TEXT NOT NULL, ended_at_ms INTEGER NOT NULL, PRIMARY KEY (host, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS tombstone_age ON tombstone (ended_at_ms);
"""

MIGRATIONS = {
    "1": """
BEGIN;
ALTER TABLE claim ADD COLUMN server_group TEXT NOT NULL DEFAULT '';
ALTER TABLE claim ADD COLUMN counted TEXT NOT NULL DEFAULT '{}';
UPDATE meta SET value = '2' WHERE name = 'schema';
COMMIT;
""",
    "2": """
BEGIN;
ALTER TABLE claim ADD COLUMN wanted TEXT NOT NULL DEFAULT '{}';
ALTER TABLE claim ADD COLUMN before TEXT NOT NULL DEFAULT '{}';
ALTER TABLE claim ADD COLUMN succession TEXT NOT NULL DEFAULT '{}';
ALTER TABLE claim ADD COLUMN gang TEXT NOT NULL DEFAULT '';
ALTER TABLE claim ADD COLUMN quota INTEGER NOT NULL DEFAULT 0;
UPDATE meta SET value = '3' WHERE name = 'schema';
COMMIT;
""",
    "3": """
BEGIN;
ALTER TABLE claim DROP COLUMN quota;
UPDATE meta SET value = '4' WHERE name = 'schema';
COMMIT;
""",
}
"""From each older schema to the next, whole or not at all.

Schema 2 keeps a claim's server group, schema 3 a resize under way, and what the claim succeeds; schema 4
no longer whether a quota counts it.
"""

SET_META = "INSERT OR REPLACE INTO meta VALUES (?, ?)"
SET_HOST = "INSERT OR REPLACE INTO host VALUES (?, ?, ?, ?)"
SET_CLAIM = "INSERT OR REPLACE INTO claim VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
DELETE_CLAIM = "DELETE FROM claim WHERE host = ? AND id = ?"
SET_TOMBSTONE = "INSERT OR REPLACE INTO tombstone VALUES (?, ?, ?, ?, ?)"
TOMBSTONES = "SELECT id, token FROM tombstone WHERE host = ? ORDER BY ended_at_ms"
CLAIMS = """SELECT host, id, token, state, is_running, amounts, project, consumer, digest, named, server_group, counted,
    wanted, before, succession, gang FROM claim"""
NEWEST = """SELECT host, id, token FROM
    (SELECT * FROM tombstone ORDER BY ended_at_ms DESC LIMIT ?) ORDER BY ended_at_ms"""
HOSTS = "SELECT name, left_epoch, attested_epoch, external FROM host"
PRUNE_OLD = """DELETE FROM tombstone WHERE ended_at_ms < ? AND epoch !=
    (SELECT attested_epoch FROM host WHERE name = tombstone.host) AND
    (SELECT attested_epoch FROM host WHERE name = tombstone.host) != ''"""
PRUNE_MANY = """DELETE FROM tombstone WHERE (host, id) IN
    (SELECT host, id FROM tombstone ORDER BY ended_at_ms DESC LIMIT -1 OFFSET ?)"""


@dataclass(frozen=True, slots=True)
class Succession:
    """Which claim this one is to succeed, as in Claim. `origin`: the id by which its owner knows it."""

    origin: str = ""
    former: str = ""
    former_host: str = ""
    former_token: str = ""
    former_why: Why | None = None


@dataclass(frozen=True, slots=True)
class HeldWork:
    """A claim as the journal holds it.

    `state` CLAIMED: not known to be accepted yet. `is_running`: its hook said that the work was started. `named` is
    what the hook named as that work. `group` is the server group that the claim counts in, `counted` under which zone
    and label values. While it is resized, `wanted` is what it will hold and `before` what its work has; `amounts` are
    the larger of both. A local claim has the digest LOCAL.
    """

    id: str
    token: str
    amounts: Amounts
    state: ClaimStatus = ClaimStatus.CLAIMED
    is_running: bool = False
    project: str = ""
    consumer: str = ""
    digest: str = ""
    named: Named | None = None
    group: str = ""
    counted: Mapping[str, str] = field(default_factory=dict)
    wanted: Amounts = field(default_factory=dict)
    before: Amounts = field(default_factory=dict)
    succession: Succession = Succession()
    gang: str = ""

    @property
    def is_local(self) -> bool:
        """Whether this host made it, for work that it found."""
        return self.digest == LOCAL


@dataclass(slots=True)
class HostPage:
    """All that the journal knows of one host."""

    left_epoch: str = ""
    attested_epoch: str = ""
    external: dict[str, int] = field(default_factory=dict)
    held: dict[str, HeldWork] = field(default_factory=dict)


def to_row(host: str, work: HeldWork) -> tuple[Any, ...]:
    """Return the row of table `claim`, in the order of its columns."""
    return (
        host,
        work.id,
        work.token,
        work.state.value,
        int(work.is_running),
        json.dumps(dict(work.amounts)),
        work.project,
        work.consumer,
        work.digest,
        _named_to_text(work.named),
        work.group,
        json.dumps(dict(work.counted)),
        json.dumps(dict(work.wanted)),
        json.dumps(dict(work.before)),
        json.dumps(asdict(work.succession)),
        work.gang,
    )


def from_row(row: tuple[Any, ...]) -> tuple[str, HeldWork]:
    """Return the host and the claim of a row of table `claim`."""
    host, claim_id, token, state, is_running, amounts, project, consumer, digest, named, group, counted, *life = row
    wanted, before, succession, gang = life
    return host, HeldWork(
        id=claim_id,
        token=token,
        state=ClaimStatus(state),
        is_running=bool(is_running),
        amounts=json.loads(amounts),
        project=project,
        consumer=consumer,
        digest=digest,
        named=_named_from_text(named),
        group=group,
        counted=json.loads(counted),
        wanted=json.loads(wanted),
        before=json.loads(before),
        succession=_succession(json.loads(succession)),
        gang=gang,
    )


def _succession(words: dict[str, Any]) -> Succession:
    why = words.pop("former_why", None)
    return Succession(**words, former_why=Why(why) if why else None)


def _named_to_text(named: Named | None) -> str:
    if named is None:
        return ""
    return json.dumps({"domain": named.domain, "cgroup": named.cgroup, "pids": dict(named.pids)})


def _named_from_text(text: str) -> Named | None:
    if not text:
        return None
    words = json.loads(text)
    return Named(words["domain"], words["cgroup"], {int(pid): started for pid, started in words["pids"].items()})
