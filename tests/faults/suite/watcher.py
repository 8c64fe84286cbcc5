"""Looks at the store as long as a run goes on, in a thread of its own, and holds what it sees to the rules."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from tests.faults.suite.rules import books, over, succession
from tests.faults.suite.view import View, read_view

PAUSE_S = 0.15
MOST_BROKEN = 20

Connect = Callable[[], "redis.Redis"]
"""A client of the server that is the primary now."""


def direct(socket: str) -> "redis.Redis":
    """A client that goes past every proxy, and neither tries again nor waits."""
    return redis.Redis(
        unix_socket_path=socket, protocol=2, decode_responses=True, retry=Retry(NoBackoff(), 0), socket_timeout=2.0
    )


@dataclass(slots=True)
class Watcher:
    """What was seen."""

    connect: Connect
    instants: int = 0
    now: View = field(default_factory=View)
    last: View = field(default_factory=View)
    """The last one with anything in it: a wiped store is empty until somebody says something."""
    epochs: list[str] = field(default_factory=list)
    missed: set[str] = field(default_factory=set)
    """Claims that were there before a new epoch and not when it was first seen."""
    over_restored: set[str] = field(default_factory=set)
    """What was over because hosts brought it back."""
    over_committed: int = 0
    """Instants at which something had come to hold more than it has, or a host had got what it must not have."""
    broken: list[str] = field(default_factory=list)
    is_blind: bool = False
    """Set while no single server has the cell."""
    _end: threading.Event = field(default_factory=threading.Event)

    def look(self) -> None:
        """Read one instant. Raises what redis raises."""
        with self.connect() as client:
            view = read_view(client)
        if not self.is_blind:
            self.take(view)

    def take(self, view: View) -> None:
        """Hold one instant to the rules."""
        self.now = view
        self.instants += 1
        if not view.epoch:
            return
        came = [*succession(self.last, view)] if self.last.epoch else []
        self.over_committed += bool(came)
        problems = [*books(view), *came]
        if problems and len(self.broken) < MOST_BROKEN:
            self.broken += [f"epoch {view.epoch} seq {view.meta.get('seq')}: {problem}" for problem in problems]
        if view.epoch != self.last.epoch:
            self.epochs.append(view.epoch)
            self.missed |= self.last.claims.keys() - view.claims.keys()
        self.over_restored |= {f"{owner} {slot}" for owner, slot in over(view)}
        self.last = view

    def run(self) -> None:
        """Look until told to end. A store that is away, or loads its data, is looked at later."""
        while not self._end.is_set():
            with suppress(redis.RedisError, OSError):
                if not self.is_blind:
                    self.look()
            time.sleep(PAUSE_S)

    def end(self) -> None:
        """Let `run` return."""
        self._end.set()


@contextmanager
def watching(connect: Connect) -> Iterator[Watcher]:
    """Watch as long as the block lasts."""
    watcher = Watcher(connect)
    thread = threading.Thread(target=watcher.run, name="watcher", daemon=True)
    thread.start()
    try:
        yield watcher
    finally:
        watcher.end()
        thread.join()
