"""Long work on the event loop, done in time slices so that other tasks run in between.

It is meant for work that grows with the number of claims or hosts: an audit of a million claims is a minute of Python.
Slicing makes none of it faster, but a request, or the tick of the store's clock, waits for one slice instead of the
whole minute. Depends on nothing else in redsched.
"""

import asyncio
import gc
import heapq
import time
from collections import deque
from collections.abc import AsyncIterator, Generator, Iterable, Iterator, MutableMapping
from itertools import islice
from typing import TypeVar

T = TypeVar("T")
V = TypeVar("V")

SLICE_S = 0.005
"""The longest time for which one task holds the loop. Several tasks of a process may each take a slice per turn."""

STEPS_S = 0.002
"""The same for steps of which one may take as long again."""

TURN_S = 0.02
"""How much work of many tasks one turn of the loop takes: requests that arrive together share some of it."""

SHARDS = 128
RUN = 5000
"""Items sorted at once, which takes some milliseconds."""

clock = time.perf_counter


async def paced(items: Iterable[T]) -> AsyncIterator[T]:
    """Yield the items, and let the event loop run once after each SLICE_S seconds.

    Do not pace an iterator that skips most of its input; filter the paced items instead.
    """
    since = clock()
    for item in items:
        if clock() - since >= SLICE_S:
            await asyncio.sleep(0)
            since = clock()
        yield item


async def in_slices(steps: Generator[None, None, T]) -> T:
    """Run a generator that yields between short steps, and return its result; the loop runs after each STEPS_S."""
    since = clock()
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found: T = end.value
            return found
        if clock() - since >= STEPS_S:
            await asyncio.sleep(0)
            since = clock()


async def paged(items: Iterable[T], most: int) -> AsyncIterator[list[T]]:
    """Yield the items in lists of up to `most`, in time slices, without building a list of all of them."""
    rest = iter(items)
    while page := [one async for one in paced(islice(rest, most))]:
        yield page


async def in_order(items: Iterable[str]) -> list[str]:
    """Return the items sorted. Sorts runs of them, then merges the runs in time slices."""
    rest, runs = iter(items), list[list[str]]()
    while run := [one async for one in paced(islice(rest, RUN))]:
        runs.append(sorted(run))
        await asyncio.sleep(0)
    return [one async for one in paced(heapq.merge(*runs))] if len(runs) > 1 else runs[0] if runs else []


class TurnQueue:
    """Spreads the work of many tasks over turns of the event loop: a turn ends with what is ready, however much it is.

    A task waits for its turn before work of some milliseconds, and then says how long that took. In order of arrival.
    """

    def __init__(self) -> None:
        self._spent_s = 0.0
        self._waiting = deque[asyncio.Future[None]]()
        self._next: asyncio.Handle | None = None

    async def wait(self) -> None:
        """Return at once unless this turn of the loop is used up: then in a later turn."""
        if self._spent_s < TURN_S and not self._waiting:
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn

    def spent(self, seconds: float) -> None:
        """Record work of this turn."""
        self._spent_s += seconds
        if self._next is None:
            self._next = asyncio.get_running_loop().call_soon(self._begin_turn)

    def _begin_turn(self) -> None:
        self._next, self._spent_s = None, 0.0
        while self._waiting and (turn := self._waiting.popleft()):
            if not turn.done():
                turn.set_result(None)
                break
        if self._waiting:
            self._next = asyncio.get_running_loop().call_soon(self._begin_turn)


def freeze_existing_objects() -> None:
    """Exempt all current objects from garbage collection. Call it once a long-lived process has started.

    Modules and routes are half a million objects that are never freed. Each full collection would traverse all of them,
    which blocks the process for some 50 ms, and work that creates many objects, such as an audit, triggers collections.
    """
    gc.collect()
    gc.freeze()


class Spread(MutableMapping[str, V]):
    """A mapping split into many small dicts, because growing or freeing a dict of a million entries takes 0.1 s.

    With True as the values, it also replaces a large list or set of strings: garbage collection traverses every item of
    a list or set, which takes 0.2 s for a million strings, but skips dicts of strings and numbers.
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
        # Copy each shard: other tasks may insert or delete between two slices.
        for shard in self._shards:
            yield from list(shard)

    def __len__(self) -> int:
        return sum(map(len, self._shards))

    def __repr__(self) -> str:
        return f"Spread({dict(self)!r})"

    async def free_in_slices(self) -> None:
        """Empty the mapping, freeing its memory in slices."""
        async for shard in paced(self._shards):
            shard.clear()
        await asyncio.sleep(0)  # yield once more, because several mappings may be freed in a row
