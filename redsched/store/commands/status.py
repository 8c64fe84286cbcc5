"""What people ask about a cell as a whole: its clock, each host in a few fields, schedulers, and the last audit.

All reads are bounded by the number of hosts, not of claims: `inbox` names the claims that wait for a host.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from redsched.model.tokens import began_ms
from redsched.model.validation import parse_int
from redsched.store.client.reads import exchange, fields_of
from redsched.store.codec.fields import WRITTEN_OFF
from redsched.store.codec.wire import flat
from redsched.store.commands.base import CellClient, chunks
from redsched.store.commands.feed import no_cell, signed

ANNOUNCED_MS = 30_000
"""How long an announcement is kept that its scheduler does not repeat."""
AUDIT_KEPT_MS = 7 * 86_400_000
MAX_PROBLEMS = 20
"""How many problems of an audit are kept; their number is always kept."""
MAX_TEXT = 300
"""The length of a problem's text, in characters."""

MAX_REFUSED = 200
"""Of how many hosts it is kept that the API has refused an epoch that they have seen."""
REFUSED_KEPT_MS = 3_600_000
"""How long that is kept if no host is refused again. An agent is refused every few seconds."""

EVACUATE = "evacuate"
"""How claims leave a host that was written off."""
FENCE = "fence"
"""What has written a host off whose machine the fence command has proved to be off."""

_META = ("epoch", "settled", "settle_at_ms", "unattested", "missing", "replid", "run_id", "began_ms")
_HOST = ("epoch", "since", "written_off", "status", "alive_until_ms", "lease_ms", "claims", "starting", "draining")
_WHY = ("written_off_by", "status_reason", "over_slots", "warnings")
_AGENT = ("agent.journal", "agent.version")
_PROBLEM = "problem."


@dataclass(frozen=True, slots=True)
class CellHead:
    """The cell's epoch and the store's time (Unix, ms).

    `settled` and `settle_at_ms`: whether the cell still waits for hosts, and until when at most. `unattested`: for how
    many; after a wipe, of those that schedulers remember, or -1 if none does. `is_wiped`: whether the store has
    forgotten its hosts. `same_server`: whether the server has the data of this epoch; if not, the next write may start
    another one.
    """

    epoch: str
    now_ms: int
    settled: bool
    settle_at_ms: int
    unattested: int
    is_wiped: bool
    same_server: bool
    began_ms: int = 0
    """When the epoch began, by the clock that it began with."""


@dataclass(frozen=True, slots=True)
class HostHead:
    """A host in short. `claims`: placements on it; `starting`: those that are not active yet.

    `epoch`: that it attested to. `until_ms`: when its lease ends (Unix, ms). `has_agent`: whether an agent reports it.
    `agent_version`: the release of the agent, if known. `notified`: whether its inbox has notifications.
    `written_off_by`: FENCE or `operator`, until an operator has set its status after it has returned; '' otherwise.
    `reason`: why it takes no claims, if that is known. `over_slots`: of how many slots its claims held more than it had
    when it last reported.
    """

    name: str
    epoch: str
    since: str
    written_off: str
    status: str
    until_ms: int
    lease_ms: int
    claims: int
    starting: int
    draining: str
    has_agent: bool
    agent_version: str
    notified: bool
    written_off_by: str = ""
    reason: str = ""
    over_slots: int = 0
    warnings: str = ""
    """Of which slots nothing can ever be claimed, and why."""

    @property
    def is_written_off(self) -> bool:
        """Whether it was written off, and has not come back."""
        return self.epoch == WRITTEN_OFF

    @property
    def is_evacuated(self) -> bool:
        """Whether it was written off, and schedulers place its claims elsewhere."""
        return self.is_written_off and self.draining == EVACUATE

    @property
    def is_fenced(self) -> bool:
        """Whether it was written off because the fence command proved that its machine was off."""
        return self.written_off_by == FENCE

    def delays(self, epoch: str) -> bool:
        """Return whether the cell waits, or waited, for it to attest to an epoch."""
        return epoch not in (self.since, self.epoch, self.written_off)


@dataclass(frozen=True, slots=True)
class Notification:
    """A notification that a host has not handled: `op` is `claim`, `resize` or `end`; `at_ms`: since when."""

    host: str
    op: str
    claim: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Announcement:
    """A scheduler that runs, as it announced itself at `at_ms` (Unix, ms). `lag_ms`: how far its replica was behind.

    `fences_after_s`: how long a host must be down before it is fenced; 0 if this scheduler fences none.
    """

    id: str
    at_ms: int
    version: str
    node: str
    pid: int
    lag_ms: int
    fences_after_s: int = 0


@dataclass(frozen=True, slots=True)
class AuditNote:
    """What a check of the cell found: the numbers of problems left and repaired, and the first of those left."""

    at_ms: int
    hosts: int
    claims: int
    broken: int
    repaired: int
    problems: tuple[str, ...]


class StatusCommands:
    """Reads about the cell as a whole; announcing a scheduler, and recording an audit."""

    def __init__(self, cell: CellClient) -> None:
        self._cell = cell

    async def head(self) -> CellHead:
        """Return the cell's head. Raises StoreUnavailable if the cell does not exist."""
        pipe = self._cell.reader.pipeline(transaction=False)
        pipe.hmget(self._cell.keys.meta, *_META)
        pipe.time()
        pipe.info("replication")
        pipe.info("server")
        with self._cell.reading():
            meta, time, replication, server = await pipe.execute()
        epoch, settled, settle_at, unattested, missing, replid, run_id, began = meta
        if epoch is None:
            raise no_cell(self._cell.name)
        now_ms, settle_at_ms = int(time[0]) * 1000 + int(time[1]) // 1000, parse_int(settle_at or "", 0)
        is_same = replid == replication["master_replid"] or (run_id == server["run_id"] and has_own_data(replication))
        is_settled = settled == "1" or now_ms >= settle_at_ms
        is_wiped, began_at_ms = unattested == "-1", parse_int(began or "", began_ms(epoch))
        waits_for = signed(missing or "-1") if is_wiped else signed(unattested)
        return CellHead(epoch, now_ms, is_settled, settle_at_ms, waits_for, is_wiped, is_same, began_at_ms)

    async def hosts(self) -> list[HostHead]:
        """Return all hosts in short, in the order of their names, read in pages."""
        keys, found = self._cell.keys, list[HostHead]()
        with self._cell.reading():
            names = sorted(await self._cell.reader.zrange(keys.hosts, 0, -1))
            for some in chunks(names) if names else ():
                reads = [("HMGET", keys.host(name), *_HOST, *_AGENT, *_WHY) for name in some]
                replies = await exchange(self._cell.reader, [*reads, *(("EXISTS", keys.inbox(name)) for name in some)])
                heads = zip(some, replies, replies[len(some) :], strict=False)
                found += (_host(name, values, bool(inbox)) for name, values, inbox in heads if any(values))
        return found

    async def notifications(self, hosts: Sequence[str], most: int) -> list[Notification]:
        """Return up to `most` notifications in the inbox of each host, oldest first."""
        found = list[Notification]()
        for some in chunks(hosts) if hosts else ():
            reads = [("XRANGE", self._cell.keys.inbox(host), "-", "+", "COUNT", most) for host in some]
            with self._cell.reading():
                replies = await exchange(self._cell.reader, reads)
            pairs = [(host, one, values) for host, all_ in zip(some, replies, strict=True) for one, values in all_]
            found += (_notification(host, entry_id, fields_of(values)) for host, entry_id, values in pairs)
        return found

    async def announce(self, one: Announcement) -> None:
        """Record that a scheduler runs; the store sets `at_ms`. (announce.lua)"""
        fields = {"version": one.version, "node": one.node[:64], "pid": str(one.pid), "lag_ms": str(one.lag_ms)}
        fields["fences_after_s"] = str(one.fences_after_s)
        await self._announce(one.id, fields)

    async def withdraw(self, scheduler: str) -> None:
        """Remove the announcement of a scheduler that stops. (announce.lua)"""
        await self._announce(scheduler, {})

    async def _announce(self, scheduler: str, fields: Mapping[str, str]) -> None:
        arguments = (scheduler, ANNOUNCED_MS, *flat(fields))
        await self._cell.scripts.run("announce", (self._cell.keys.schedulers,), arguments)

    async def schedulers(self, now_ms: int) -> list[Announcement]:
        """Return the schedulers that have announced themselves lately, by node and process."""
        with self._cell.reading():
            fields = await self._cell.reader.hgetall(self._cell.keys.schedulers)
        ids = [name.removeprefix("at_ms.") for name in fields if name.startswith("at_ms.")]
        found = [_announcement(one, fields) for one in ids]
        return sorted((one for one in found if one.at_ms + ANNOUNCED_MS >= now_ms), key=lambda one: (one.node, one.pid))

    async def recorder(self) -> str:
        """Return the scheduler that writes the event log; '' if there is none."""
        with self._cell.reading():
            return str(await self._cell.reader.get(self._cell.keys.duty("record")) or "")

    async def note_audit(self, note: AuditNote) -> None:
        """Replace the note about the last audit; the store sets `at_ms`. (audited.lua)"""
        fields = {name: str(getattr(note, name)) for name in ("hosts", "claims", "broken", "repaired")}
        problems = note.problems[:MAX_PROBLEMS]
        fields |= {f"{_PROBLEM}{number}": text[:MAX_TEXT] for number, text in enumerate(problems, 1)}
        await self._cell.scripts.run("audited", (self._cell.keys.audit,), (AUDIT_KEPT_MS, *flat(fields)))

    async def note_refused(self, host: str, epoch: str) -> None:
        """Record that the API has refused to start an epoch above one that a host has seen. (refused.lua)"""
        await self._cell.run("refused", (self._cell.keys.refused,), (host, epoch, MAX_REFUSED, REFUSED_KEPT_MS))

    async def refused(self, epoch: str) -> dict[str, str]:
        """Return the epochs above the present one that hosts have seen and the API has refused, by host."""
        with self._cell.reading():
            noted = await self._cell.reader.hgetall(self._cell.keys.refused)
        return {host: seen for host, seen in sorted(noted.items()) if began_ms(seen) >= began_ms(epoch)}

    async def last_audit(self) -> AuditNote | None:
        """Return the note about the last audit by a scheduler; None if there was none in the last week."""
        with self._cell.reading():
            fields = await self._cell.reader.hgetall(self._cell.keys.audit)
        if not fields:
            return None
        at_ms, hosts, claims, broken, repaired = (
            parse_int(fields.get(name, ""), 0) for name in ("at_ms", "hosts", "claims", "broken", "repaired")
        )
        numbered = (fields.get(f"{_PROBLEM}{number}") for number in range(1, MAX_PROBLEMS + 1))
        return AuditNote(at_ms, hosts, claims, broken, repaired, tuple(text for text in numbered if text))


def has_own_data(replication: Mapping[str, str]) -> bool:
    """Return whether a server, by INFO, has its data from no other one.

    Then a new id means the same data: the first replica has connected, or the last one has left.
    """
    return not replication.get("master_replid2", "").strip("0")


def _host(name: str, values: Sequence[str | None], notified: bool) -> HostHead:
    epoch, since, written_off, status, until_ms, lease_ms, claims, starting, draining, *others = values
    journal, version, written_off_by, reason, over_slots, warnings = others
    return HostHead(
        name=name,
        epoch=epoch or "",
        since=since or "",
        written_off=written_off or "",
        status=status or "",
        until_ms=parse_int(until_ms or "", 0),
        lease_ms=parse_int(lease_ms or "", 0),
        claims=parse_int(claims or "", 0),
        starting=parse_int(starting or "", 0),
        draining=draining or "",
        has_agent=bool(journal),
        agent_version=version or "",
        notified=notified,
        written_off_by=written_off_by or "",
        reason=reason or "",
        over_slots=parse_int(over_slots or "", 0),
        warnings=warnings or "",
    )


def _notification(host: str, entry_id: str, fields: Mapping[str, str]) -> Notification:
    return Notification(host, fields.get("op", ""), fields.get("claim", ""), int(entry_id.partition("-")[0]))


def _announcement(scheduler: str, fields: Mapping[str, str]) -> Announcement:
    version, node = (fields.get(f"{name}.{scheduler}", "") for name in ("version", "node"))
    at_ms, pid, lag_ms, fences_after_s = (
        parse_int(fields.get(f"{name}.{scheduler}", ""), 0) for name in ("at_ms", "pid", "lag_ms", "fences_after_s")
    )
    return Announcement(scheduler, at_ms, version, node, pid, lag_ms, fences_after_s)
