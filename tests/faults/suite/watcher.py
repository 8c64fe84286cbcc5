"""Looks at the store as long as a run goes on, in a thread of its own, and holds what it sees to the rules."""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.faults.suite.errors import told
from tests.faults.suite.rules import books, over, quota, succession
from tests.faults.suite.view import Hash, Look, View

PAUSE_S = 0.15
MAX_BROKEN = 20

Parts = Sequence[Sequence[str]]
"""The cells by what can be read at one instant."""

Read = Callable[[Sequence[str]], Look]
"""Reads the cells of one part. Raises what redis raises."""


def direct(socket: str) -> "redis.Redis":
    """A client that goes past every proxy, and neither tries again nor waits."""
    return redis.Redis(
        unix_socket_path=socket, protocol=2, decode_responses=True, retry=Retry(NoBackoff(), 0), socket_timeout=2.0
    )


@dataclass(frozen=True, slots=True)
class Gone:
    """A claim that was there at one look and not at the next. Times are the store's."""

    end_reason: str
    """Why it ended, as the store says; `forgotten` where it says nothing."""
    last: Hash
    """Its fields when it was seen last."""
    seen_ms: int
    """When that was."""
    gone_ms: int
    """When it was gone."""
    tried: frozenset[str] = frozenset()
    """The hosts on which it had failed."""

    @property
    def expires_ms(self) -> int | None:
        """Return when its lease was to run out, as it was seen last; None where none ran."""
        return int(self.last["expires_at_ms"]) if self.last.get("expires_at_ms") else None


@dataclass(slots=True)
class Watcher:
    """What was seen, cell by cell."""

    read: Read
    parts: Parts
    instants: Counter[str] = field(default_factory=Counter)
    now: dict[str, View] = field(default_factory=dict)
    last: dict[str, View] = field(default_factory=dict)
    """The last ones with anything in them: a wiped store is empty until somebody says something."""
    epochs: list[str] = field(default_factory=list)
    missed: set[str] = field(default_factory=set)
    """Claims that were there before a new epoch and not when it was first seen."""
    gone: dict[str, Gone] = field(default_factory=dict)
    """Claims that have gone since this was cleared, and have not been seen again."""
    over_restored: set[str] = field(default_factory=set)
    """What was over because hosts brought it back."""
    over_committed: int = 0
    """Instants at which something had come to hold more than it has, or a host had got what it must not have."""
    broken: list[str] = field(default_factory=list)
    blind_for: set[str] = field(default_factory=set)
    """Cells that no single server has now."""
    _looks: deque[Look] = field(default_factory=lambda: deque(maxlen=4))
    """The latest in which every cell was seen."""
    _end: threading.Event = field(default_factory=threading.Event)
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def look(self) -> None:
        """Read each part once. Raises what redis raises."""
        with self._turn:
            self.take({cell: view for part in self._seen() for cell, view in self.read(part).items()})

    def take(self, look: Look) -> None:
        """Hold a look to the rules. It may be of some of the cells: the others are away."""
        look = {cell: view for cell, view in look.items() if cell not in self.blind_for}
        for cell, view in look.items():
            self._take_cell(cell, view)
        if len(look) == sum(map(len, self.parts)) and all(view.epoch for view in look.values()):
            self._looks.append(look)
            came = self._over_quota()
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
        """Look until told to end. A server that is away, or loads its data, is looked at later."""
        while not self._end.is_set():
            try:
                self._look_where_it_can()
            except Exception as error:
                # A watcher that has ended would find nothing wrong any more, and nobody would know.
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
    """Watch as long as the block lasts."""
    watcher = Watcher(read, parts)
    thread = threading.Thread(target=watcher.run, name="watcher", daemon=True)
    thread.start()
    try:
        yield watcher
    finally:
        watcher.end()
        thread.join()
