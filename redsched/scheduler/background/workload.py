"""Count what requests for scarce classes ask for, for the weighers that keep hosts usable for them."""

import asyncio
from collections import Counter
from collections.abc import Collection, Mapping

from redsched import aio, logs
from redsched.cache.updater import ReplicaUpdater
from redsched.decide.scoring.demand import demand
from redsched.model import Request
from redsched.model.workload import GPU_SHARES, ScarceDemand, Workload, gpu_parts
from redsched.scheduler.background.periodic import repeat
from redsched.store.cell import CellStore

EVERY_S = 10.0
"""How often the counts are sent and the sums are read."""

log = logs.get_logger(__name__)


class WorkloadCounter:
    """Counts the requests of one cell, and gives its columns the sums over all schedulers.

    `beside` has the scarce classes, and those that are counted beside each.
    """

    def __init__(self, store: CellStore, replica: ReplicaUpdater, beside: Mapping[str, Collection[str]]) -> None:
        self._store, self._replica = store, replica
        self._beside = {scarce: frozenset((scarce, *others)) for scarce, others in beside.items()}
        self._forget()
        self._task: asyncio.Task[None] | None = None

    def _forget(self) -> None:
        self._requests, self._shares = 0, Counter[int]()
        self._places, self._amounts = Counter[str](), {scarce: Counter[str]() for scarce in self._beside}

    def count(self, request: Request) -> None:
        """Count a request, if it asks for a scarce class."""
        places = [(member.request, member.count) for member in request.members] or [(request, request.count)]
        self._requests += sum(self._count(place, count) for place, count in places) > 0

    def _count(self, place: Request, count: int) -> bool:
        amounts = demand(place)
        asked = [scarce for scarce in self._beside if amounts.get(scarce)]
        for scarce in asked:
            self._places[scarce] += count
            counted = self._beside[scarce] & amounts.keys()
            self._amounts[scarce].update({name: amounts[name] * count for name in counted})
        if GPU_SHARES in asked:
            self._shares.update({share: n * count for share, n in Counter(gpu_parts(place)).items()})
        return bool(asked)

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
        scarce = {name: ScarceDemand(places, self._amounts[name]) for name, places in self._places.items()}
        requests, counted = self._requests, Workload(self._shares, scarce)
        self._forget()
        sums = await (self._store.workload.add(requests, counted) if requests else self._store.workload.read())
        # The same sums stay the same object, so that no score is computed again.
        if not sums.same_as(self._replica.columns.workload):
            self._replica.columns.workload = sums
