"""Reads the store during the whole run, in a thread of its own, and checks each read against the rules."""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.faults.suite.checks.rules import books, homes, over, quota, succession
from tests.faults.suite.checks.view import Hash, Look, View
from tests.faults.suite.reporting.errors import told

PAUSE_S = 0.15
MAX_BROKEN = 20

Parts = Sequence[Sequence[str]]
"""Return the cells grouped by what can be read at one instant."""

Read = Callable[[Sequence[str]], Look]
"""Read the cells of one part. Raises what redis raises."""


def direct(socket: str) -> "redis.Redis":
    """A client that bypasses all proxies, and neither retries nor waits."""
    return redis.Redis(
        unix_socket_path=socket, protocol=2, decode_responses=True, retry=Retry(NoBackoff(), 0), socket_timeout=2.0
    )


@dataclass(frozen=True, slots=True)
class Gone:
    """A claim that existed at one read and not at the next. Times are the store's."""

    end_reason: str
    """Its end_reason in the store, or `forgotten` if the store has none."""
    last: Hash
    """Its fields when it was last seen."""
    seen_ms: int
    """The time of that read."""
    gone_ms: int
    """The time of the read that no longer had it."""
    tried: frozenset[str] = frozenset()
    """The hosts on which it had failed."""

    @property
    def expires_ms(self) -> int | None:
        """Return the end of its lease when it was last seen; None if it had no lease."""
        return int(self.last["expires_at_ms"]) if self.last.get("expires_at_ms") else None


@dataclass(slots=True)
class Watcher:
    """The results of all reads, cell by cell."""

    read: Read
    parts: Parts
    instants: Counter[str] = field(default_factory=Counter)
    now: dict[str, View] = field(default_factory=dict)
    last: dict[str, View] = field(default_factory=dict)
    """The last views that were not empty: a wiped store is empty until the next write."""
    epochs: list[str] = field(default_factory=list)
    missed: set[str] = field(default_factory=set)
    """Claims that existed before a new epoch and not in its first view."""
    gone: dict[str, Gone] = field(default_factory=dict)
    """Claims that have vanished since this was cleared, and have not been seen again."""
    over_restored: set[str] = field(default_factory=set)
    """What exceeded its capacity because hosts restored it."""
    over_committed: int = 0
    """Instants at which something came to hold more than it has, or a host got what it must not have."""
    broken: list[str] = field(default_factory=list)
    blind_for: set[str] = field(default_factory=set)
    """Cells that no single server has now."""
    _looks: deque[Look] = field(default_factory=lambda: deque(maxlen=4))
    """The latest view that has every cell."""
    _end: threading.Event = field(default_factory=threading.Event)
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def look(self) -> None:
        """Read each part once. Raises what redis raises."""
        with self._turn:
            self.take({cell: view for part in self._seen() for cell, view in self.read(part).items()})

    def take(self, look: Look) -> None:
        """Check a read against the rules. It may cover only some of the cells, if the others are away."""
        look = {cell: view for cell, view in look.items() if cell not in self.blind_for}
        for cell, view in look.items():
            self._take_cell(cell, view)
        if len(look) == sum(map(len, self.parts)) and all(view.epoch for view in look.values()):
            self._looks.append(look)
            came = [*self._over_quota(), *homes(look)]
            self.over_committed += bool(came)
            self._note(came, "all cells")

    def _take_cell(self, cell: str, view: View) -> None:
        self.now[cell] = view
        self.instants[cell] += 1
        if not view.epoch:
            return
        former = self.last.get(cell, View())
        came = [*succession(former, view)] if former.epoch else []
        where = f"{cell} epoch {view.epoch} seq {view.meta.get('seq')}"
        self.over_committed += bool(came)
        self._note([*books(view), *came], where)
        if view.epoch != former.epoch:
            self.epochs.append(view.epoch)
            self.missed |= former.claims.keys() - view.claims.keys()
        self._note_gone(former, view)
        self.over_restored |= {f"{owner} {slot}" for owner, slot in over(view)}
        self.last[cell] = view

    def _note_gone(self, former: View, view: View) -> None:
        for claim_id in view.claims:
            self.gone.pop(claim_id, None)
        for claim_id in former.claims.keys() - view.claims.keys():
            end_reason, tried = view.ended.get(claim_id, "forgotten"), view.tried.get(claim_id, set())
            self.gone[claim_id] = Gone(
                end_reason, former.claims[claim_id], former.now_ms, view.now_ms, frozenset(tried)
            )

    def _over_quota(self) -> list[str]:
        needed = 2 if len(self.parts) == 1 else 4
        looks = [*self._looks][-needed:]
        if len(looks) < needed:
            return []
        return [*(quota(*looks) if needed == 4 else quota(looks[0], *looks))]

    def _note(self, problems: Sequence[str], where: str) -> None:
        if problems and len(self.broken) < MAX_BROKEN:
            self.broken += [f"{where}: {problem}" for problem in problems]

    def _seen(self) -> list[Sequence[str]]:
        return [part for part in self.parts if not self.blind_for.intersection(part)]

    def run(self) -> None:
        """Read until told to end. A server that is away, or loads its data, is read later."""
        while not self._end.is_set():
            try:
                self._look_where_it_can()
            except Exception as error:
                # If the watcher ended, it would find no more errors, and nobody would notice.
                self._note([told(error)], "the watcher")
            time.sleep(PAUSE_S)

    def _look_where_it_can(self) -> None:
        with self._turn:
            look: dict[str, View] = {}
            for part in self._seen():
                with suppress(redis.RedisError, OSError):
                    look |= self.read(part)
            self.take(look)

    def end(self) -> None:
        """Let `run` return."""
        self._end.set()


@contextmanager
def watching(read: Read, parts: Parts) -> Iterator[Watcher]:
    """Watch for the duration of the block."""
    watcher = Watcher(read, parts)
    thread = threading.Thread(target=watcher.run, name="watcher", daemon=True)
    thread.start()
    try:
        yield watcher
    finally:
        watcher.end()
        thread.join()
