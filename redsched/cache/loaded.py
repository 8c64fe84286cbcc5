"""The replicas that are loaded on demand: a bounded number is kept, and the least recently used dropped first.

A replica takes time and memory to load, so loading is done for one cell at a time. A replica in use is never dropped:
while all are in use, there may be more than the bound.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager

from redsched import aio
from redsched.cache.updater import ReplicaUpdater

KEPT_S = 60.0
"""How long a replica is kept for work that does not hold it, such as a verb that decides and then calls the store."""


class LoadedReplicas:
    """The replicas of a scheduler that are not always there."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._used_until_s: dict[ReplicaUpdater, float] = {}
        """The replicas, the least recently used first."""
        self._users: Counter[ReplicaUpdater] = Counter()
        self._lock = asyncio.Lock()
        self.loads = 0
        """The number of times that a replica was loaded."""

    @asynccontextmanager
    async def using(self, replica: ReplicaUpdater) -> AsyncIterator[None]:
        """Keep a replica inside the context, which begins when it has caught up. Raises StoreUnavailable."""
        self.hold(replica)
        try:
            await self._load(replica)
            self._is_latest(replica)
            yield
        finally:
            self.let_go(replica)

    @contextmanager
    def holding(self, replicas: Collection[ReplicaUpdater]) -> Iterator[None]:
        """Drop none of these replicas inside the context. It does not count as a use of them."""
        self._users.update(replicas)
        try:
            yield
        finally:
            self._users.subtract(replicas)

    def hold(self, replica: ReplicaUpdater) -> None:
        """Keep a replica until `let_go` has been called as often as this."""
        self._users[replica] += 1
        self._is_latest(replica)

    def let_go(self, replica: ReplicaUpdater) -> None:
        """End what `hold` began."""
        self._users[replica] -= 1

    async def touch(self, replica: ReplicaUpdater) -> None:
        """Load a replica unless it is there, and keep it for KEPT_S unless it is held. Raises StoreUnavailable."""
        await self._load(replica)
        if not self._users[replica]:
            self._is_latest(replica, aio.now_s() + KEPT_S)

    def never_drop(self, replica: ReplicaUpdater) -> None:
        """Never drop this replica: it is kept for another reason."""
        self._used_until_s.pop(replica, None)

    def may_drop(self, replica: ReplicaUpdater) -> None:
        """Treat a replica that is there as one that was loaded on demand."""
        self._used_until_s.setdefault(replica, 0.0)

    async def drop_idle(self) -> None:
        """Drop replicas beyond the bound that are not in use, unless one is being loaded, which drops them too."""
        if self._lock.locked():
            return
        async with self._lock:
            await self._drop_beyond(self._most)

    async def _load(self, replica: ReplicaUpdater) -> None:
        if not replica.is_started:
            async with self._lock:
                if not replica.is_started:
                    await self._drop_beyond(self._most - 1)
                    self.loads += 1
                    # Also if the caller gives up meanwhile: the replica goes on loading, for whoever comes next.
                    self._used_until_s[replica] = 0.0
                    await replica.start()
        elif not replica.is_loaded:
            await replica.start()  # it is being loaded

    def _is_latest(self, replica: ReplicaUpdater, until_s: float = 0.0) -> None:
        if replica in self._used_until_s:
            self._used_until_s[replica] = max(until_s, self._used_until_s.pop(replica))

    async def _drop_beyond(self, most: int) -> None:
        now_s = aio.now_s()
        for replica, until_s in list(self._used_until_s.items()):
            if len(self._used_until_s) <= most:
                break
            if not self._users[replica] and until_s <= now_s:
                del self._used_until_s[replica]
                await replica.drop()
