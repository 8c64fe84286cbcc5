"""A store whose clock tests set: scripts and reads of this process get a time that is so far ahead of the server's."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest
import redis

from redsched.store.client import scripts
from redsched.store.codec.keys import Keys
from redsched.store.codec.results import Clock
from redsched.store.commands import feed, summary

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

_READ = "local time = redis.call('TIME')\n"
_SHIFT = "  time[1] = time[1] + (redis.call('HGET', KEYS[1], 'ahead_s') or 0)\n"
"""What follows where the fence reads the time. All scripts pass the cell's meta, which agents' users may read."""


class StoreTime:
    """The clock of a cell's store. A wipe sets that of the scripts right."""

    ahead_s = 0

    def __init__(self, url: str, cell: str = "c1") -> None:
        self._url = url
        self._meta = Keys(cell).meta

    def set_ahead(self, ms: int) -> None:
        """Set the clock ahead of the server's, or behind it if negative."""
        StoreTime.ahead_s = ms // 1000
        with redis.Redis.from_url(self._url, protocol=2) as client:
            client.hset(self._meta, "ahead_s", str(ms // 1000))


@contextmanager
def settable() -> Iterator[None]:
    """Have this process read the clock that StoreTime sets, in all scripts and reads of this block."""
    included, clock_of = scripts.includes(), feed.clock_of

    def ahead(meta: Sequence[str | None], time: Sequence[int]) -> Clock | None:
        return clock_of(meta, (int(time[0]) + StoreTime.ahead_s, *time[1:]))

    with pytest.MonkeyPatch.context() as patch:
        assert included["fence"].count(_READ) == 1
        patch.setitem(included, "fence", included["fence"].replace(_READ, _READ + _SHIFT))
        for module in (feed, summary):
            patch.setattr(module, "clock_of", ahead)
        scripts.load_all.cache_clear()
        yield
    StoreTime.ahead_s = 0
    scripts.load_all.cache_clear()
