"""A store whose clock can be set: scripts and reads add a number of seconds, which is a field of the meta of a cell.

The field is part of the store: a wipe sets the clock right, and replicas have the same field.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
import redis

from redsched.store.client import scripts
from redsched.store.codec.keys import Keys
from redsched.store.codec.replies import Clock
from redsched.store.commands import feed

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
FIELD = "ahead_s"

_READ = "local time = redis.call('TIME')\n"
_SHIFT = f"  time[1] = time[1] + (redis.call('HGET', KEYS[1], '{FIELD}') or 0)\n"
"""What follows where the fence reads the time. All scripts pass the cell's meta, which agents' users may read."""

_SET = f"""
if redis.call('EXISTS', KEYS[1]) == 1 then
  redis.call('HSET', KEYS[1], '{FIELD}', ARGV[1])
end
"""


def set_ahead(client: "redis.Redis", cell: str, seconds: int) -> None:
    """Set the clock of a cell's store ahead of the server's, or behind it if negative. Leaves a wiped cell as it is."""
    client.eval(_SET, 1, Keys(cell).meta, str(seconds))


class StoreTime:
    """The clock of a cell's store."""

    def __init__(self, url: str, cell: str = "c1") -> None:
        self._url = url
        self._cell = cell

    def set_ahead(self, ms: int) -> None:
        """Set the clock ahead of the server's, or behind it if negative."""
        with redis.Redis.from_url(self._url, protocol=2) as client:
            client.hset(Keys(self._cell).meta, FIELD, str(ms // 1000))


def go_by_stores(patch: pytest.MonkeyPatch) -> None:
    """Have this process read the clock that is set, in all scripts and reads."""
    included, clock_of, fields = scripts.includes(), feed.clock_of, (*feed.CLOCK, FIELD)

    def ahead(meta: Sequence[str | None], time: Sequence[int]) -> Clock | None:
        *known, ahead_s = meta
        return clock_of(known, (int(time[0]) + int(ahead_s or 0), *time[1:]))

    assert included["fence"].count(_READ) == 1
    patch.setitem(included, "fence", included["fence"].replace(_READ, _READ + _SHIFT))
    patch.setattr(feed, "clock_of", ahead)
    patch.setattr(feed, "CLOCK", fields)
    scripts.load_all.cache_clear()


@contextmanager
def settable() -> Iterator[None]:
    """Have this process read the clock that is set, in this block."""
    with pytest.MonkeyPatch.context() as patch:
        go_by_stores(patch)
        yield
    scripts.load_all.cache_clear()
