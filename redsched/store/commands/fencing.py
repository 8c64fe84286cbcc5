"""Fencing of hosts that are down: which may be fenced now, and what has become of it.

All of it is in the store, so that a scheduler that takes over from another one knows the limits and the failures.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from redsched.model import HostStatus
from redsched.model.validation import parse_int
from redsched.store.client.reads import exchange
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import FencingBegun
from redsched.store.commands.base import CellClient

MAX_DUE = 1000
"""The most hosts that are considered at a time: those that have been down for longest."""
MAX_REASON = 500
"""The length of the reason of a failure, in characters."""

FIRST_PAUSE_MS, LONGEST_PAUSE_MS = 30_000, 3_600_000
"""The pause after a failed attempt to fence a host. It doubles with each failure."""


class Held(StrEnum):
    """Why no host may be fenced now."""

    UNSETTLED = "unsettled"
    MOST_DOWN = "most-down"
    LIMIT = "limit"


@dataclass(frozen=True, slots=True)
class FencingLimits:
    """When hosts may be fenced: once they have been down for `after_ms`, and not too many of them.

    At most `most` hosts within `within_ms`, or `percent` of the cell's hosts if those are more.
    """

    after_ms: int
    most: int
    percent: int
    within_ms: int


@dataclass(frozen=True, slots=True)
class FencingNote:
    """The last attempt to fence a host (Unix, ms). `failures`: how many have failed in a row, the last with `problem`.

    `failed_ms`: when the last one failed; 0 if none has.
    """

    began_ms: int
    failed_ms: int = 0
    failures: int = 0
    problem: str = ""

    @property
    def is_running(self) -> bool:
        """Whether the last attempt has not failed, as far as is known."""
        return self.failed_ms < self.began_ms

    @property
    def next_ms(self) -> int:
        """When the host may be fenced again (Unix, ms); 0: at once."""
        if self.is_running or not self.failures:
            return 0
        return self.failed_ms + min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS << min(self.failures - 1, 16))


@dataclass(frozen=True, slots=True)
class HeldNote:
    """Why a host that should be fenced was not, the last time at `at_ms` (Unix, ms).

    `count` of `of`: hosts that are down, of all; or hosts fenced lately, of as many as may be, until `until_ms`.
    """

    reason: Held
    at_ms: int
    count: int
    of: int
    until_ms: int


@dataclass(frozen=True, slots=True)
class FencingNotes:
    """What is noted of the fencing of a cell's hosts, by host."""

    hosts: Mapping[str, FencingNote] = field(default_factory=dict)
    held: HeldNote | None = None


class FencingCommands:
    """Begins to fence hosts, and records failures."""

    def __init__(self, cell: CellClient) -> None:
        self._cell = cell

    async def due(self, down_since_ms: int) -> dict[str, int]:
        """Return the hosts to fence whose lease ended before a time (Unix, ms), each with that end, the oldest first.

        Hosts that were written off, that an operator has disabled, or that hold no claims are left out.
        """
        keys = self._cell.keys
        with self._cell.reading():
            down = await self._cell.reader.zrange(
                keys.hosts, "1", str(down_since_ms), byscore=True, offset=0, num=MAX_DUE, withscores=True
            )
            reads = [("HMGET", keys.host(host), "status", "claims") for host, _ in down]
            found = await exchange(self._cell.reader, reads) if reads else []
        return {
            host: int(until_ms)
            for (host, until_ms), (status, claims) in zip(down, found, strict=True)
            if status != HostStatus.DISABLED and parse_int(claims or "", 0)
        }

    async def notes(self) -> FencingNotes:
        """Return what is noted of the fencing of hosts."""
        with self._cell.reading():
            fields = await self._cell.reader.hgetall(self._cell.keys.fencing)
        names = [name.removeprefix("began_ms.") for name in fields if name.startswith("began_ms.")]
        return FencingNotes({name: _note(name, fields) for name in names}, _held(fields))

    async def begin(self, host: str, limits: FencingLimits) -> FencingBegun | Held | None:
        """Record that the fence command is about to be called for a host, and return when that began.

        Return why no host may be fenced now; None if this one needs no fencing (any more). (begin_fencing.lua)
        """
        keys = (self._cell.keys.host(host), self._cell.keys.fencing)
        arguments = (host, limits.after_ms, limits.most, limits.percent, limits.within_ms)
        answer = await self._cell.answer("begin_fencing", keys, arguments)
        if answer.outcome is Outcome.OK:
            return FencingBegun(host, answer.epoch, answer.now_ms, int(answer.facts[0]))
        return Held(answer.facts[0]) if answer.outcome is Outcome.LIMITED else None

    async def failed(self, begun: FencingBegun, reason: str) -> Outcome:
        """Record that a host was not fenced. OK | ALREADY_DONE | UNKNOWN. (fencing_failed.lua)"""
        keys = (self._cell.keys.host(begun.host), self._cell.keys.fencing)
        arguments = (begun.host, begun.began_ms, reason[:MAX_REASON])
        return (await self._cell.answer("fencing_failed", keys, arguments)).outcome


def _note(host: str, fields: Mapping[str, str]) -> FencingNote:
    began_ms, failed_ms, failures = (
        parse_int(fields.get(f"{name}.{host}", ""), 0) for name in ("began_ms", "failed_ms", "failures")
    )
    return FencingNote(began_ms, failed_ms, failures, fields.get(f"problem.{host}", ""))


def _held(fields: Mapping[str, str]) -> HeldNote | None:
    if "held" not in fields:
        return None
    at_ms, count, of, until_ms = (
        parse_int(fields.get(f"held_{name}", ""), 0) for name in ("ms", "count", "of", "until_ms")
    )
    return HeldNote(Held(fields["held"]), at_ms, count, of, until_ms)
