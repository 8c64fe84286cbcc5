"""Count what requests for GPUs ask for, for the weighers that keep hosts usable for them."""

import asyncio
from collections import Counter
from collections.abc import Collection

from redsched import aio, logs
from redsched.cache.updater import ReplicaUpdater
from redsched.decide.scoring.demand import demand
from redsched.model import Request
from redsched.model.workload import gpu_parts
from redsched.scheduler.background.periodic import repeat
from redsched.store.cell import CellStore

EVERY_S = 10.0
"""How often the counts are sent and the sums are read."""

log = logs.get_logger(__name__)


class WorkloadCounter:
    """Counts the requests of one cell, and gives its columns the sums over all schedulers.

    `classes` are those to count besides GPUs.
    """

    def __init__(self, store: CellStore, replica: ReplicaUpdater, classes: Collection[str]) -> None:
        self._store, self._replica, self._classes = store, replica, frozenset(classes)
        self._requests, self._shares, self._beside = 0, Counter[int](), Counter[str]()
        self._task: asyncio.Task[None] | None = None

    def count(self, request: Request) -> None:
        """Count a request, if it asks for GPUs."""
        places = [(member.request, member.count) for member in request.members] or [(request, request.count)]
        with_gpus = [(place, count, parts) for place, count in places if (parts := gpu_parts(place))]
        self._requests += bool(with_gpus)
        for place, count, parts in with_gpus:
            self._shares.update({share: n * count for share, n in Counter(parts).items()})
            amounts = demand(place)
            self._beside.update({name: amounts[name] * count for name in self._classes & amounts.keys()})

    def start(self) -> None:
        """Exchange counts and sums with the store from now on."""
        if self._task is None:
            work = repeat(self.exchange, EVERY_S, log.bind(cell=self._store.name), "workload", first_s=EVERY_S)
            self._task = aio.detached(work, name=f"redsched-workload-{self._store.name}")

    async def stop(self) -> None:
        """Stop, and forget what was not sent."""
        task, self._task = self._task, None
        if task is not None:
            await aio.end(task)

    async def exchange(self) -> None:
        """Send what was counted, and set the columns' workload to the sums. Raises StoreUnavailable, OutcomeUnknown."""
        counted = self._requests, self._shares, self._beside
        self._requests, self._shares, self._beside = 0, Counter(), Counter()
        sums = await (self._store.workload.add(*counted) if counted[0] else self._store.workload.read())
        columns = self._replica.columns
        # The same sums stay the same object, so that no score is computed again.
        if (sums.shares, sums.beside) != (columns.workload.shares, columns.workload.beside):
            columns.workload = sums
