"""Long work in an event loop: what grows with the number of claims or hosts goes on in slices, and others run between.

An audit of a million claims is a minute of plain Python. Nothing here is quicker for it; but a request, or the tick of
the store's clock, waits for one slice and not for the minute. Knows nothing else of redsched.
"""

import asyncio
import gc
import heapq
import time
from collections.abc import AsyncIterator, Iterable, Iterator, MutableMapping
from itertools import islice
from typing import TypeVar

T = TypeVar("T")
V = TypeVar("V")

SLICE_S = 0.005
"""How long one piece of work keeps the loop. Several may be under way in a process, each with a slice per turn."""

SHARDS = 128
RUN = 5000
"""Items sorted in one go: some milliseconds."""

clock = time.perf_counter


async def paced(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield the items; whenever they have taken SLICE_S, let the event loop run once before the next.

    An iterator that skips most of what it goes through is not to be paced: skip what comes out.
    """
    since = clock()
    for item in items:
        if clock() - since >= SLICE_S:
            await asyncio.sleep(0)
            since = clock()
        yield item


async def paged(items: Iterable[T], most: int) -> AsyncIterator[list[T]]:
    """Yield the items in lists of up to `most`, in slices: without a list of all of them."""
    rest = iter(items)
    while page := [one async for one in paced(islice(rest, most))]:
        yield page


async def in_order(items: Iterable[str]) -> list[str]:
    """Return the items sorted: in runs, which are merged in slices."""
    rest, runs = iter(items), list[list[str]]()
    while run := [one async for one in paced(islice(rest, RUN))]:
        runs.append(sorted(run))
        await asyncio.sleep(0)
    return [one async for one in paced(heapq.merge(*runs))] if len(runs) > 1 else runs[0] if runs else []


def leave_alone() -> None:
    """Take all objects that there are now out of garbage collection: for a long-lived process that has just started.

    Modules and routes are half a million objects that never go away. Each full collection would walk all of them, some
    50 ms in which nothing else runs, and what makes many objects, as an audit does, brings on such collections.
    """
    gc.collect()
    gc.freeze()


class Spread(MutableMapping[str, V]):
    """A mapping in many small dicts. One dict of a million entries takes 0.1 s to grow, and as long to be freed.

    Also in place of a large list or set of texts, with values of True: garbage collection goes through all that a list
    or a set holds, 0.2 s for a million texts, and leaves out dicts of texts and numbers.
    """

    __slots__ = ("_shards",)

    def __init__(self) -> None:
        self._shards: list[dict[str, V]] = [{} for _ in range(SHARDS)]

    def __getitem__(self, key: str) -> V:
        return self._shards[hash(key) % SHARDS][key]

    def __setitem__(self, key: str, value: V) -> None:
        self._shards[hash(key) % SHARDS][key] = value

    def __delitem__(self, key: str) -> None:
        del self._shards[hash(key) % SHARDS][key]

    def __contains__(self, key: object) -> bool:
        return key in self._shards[hash(key) % SHARDS]

    def __iter__(self) -> Iterator[str]:
        # A copy of each: others may add or take out between two slices.
        for shard in self._shards:
            yield from list(shard)

    def __len__(self) -> int:
        return sum(map(len, self._shards))

    def __repr__(self) -> str:
        return f"Spread({dict(self)!r})"

    async def let_go(self) -> None:
        """Free all of it in slices; it is empty then."""
        async for shard in paced(self._shards):
            shard.clear()
        await asyncio.sleep(0)  # several are let go one after the other
