"""Whether a scheduler can decide on current data, and its counts."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from redsched.errors import RedschedError
from redsched.scheduler.cells import Cells
from redsched.scheduler.results import AUDIT_SCOPES, Fenced, Finding, Readiness, Stats
from redsched.store.store import KEEPS, Store, StoreMemory
from redsched.store.topology.connection import full_text

if TYPE_CHECKING:
    from redsched.scheduler.cell_tasks import CellTasks

MAX_LAG_S = 5.0
READY_S = 2.0
"""A store that takes longer to reply is not ready; probes and scrapes of metrics have little time."""


class Health:
    """The state of one scheduler, and the last look at its store."""

    def __init__(
        self, store: Store, cells: Cells, tasks: "Callable[[], Mapping[str, CellTasks]]", waiting: Callable[[], int]
    ) -> None:
        """`tasks` returns the background tasks by cell, `waiting` how many requests wait for room."""
        self._store = store
        self._cells = cells
        self._tasks = tasks
        self._waiting = waiting
        self._memory = StoreMemory(KEEPS, 0, 0)
        self._store_s: float | None = None

    async def readiness(self) -> Readiness:
        """Return whether this scheduler can decide on current data. Raises nothing: errors are in `detail`."""
        stats = self.stats()
        hosts = stats.hosts_attested
        asked_s, self._store_s = time.perf_counter(), None  # the loop has no finer clock than milliseconds
        try:
            async with asyncio.timeout(READY_S):
                self._memory = await self._store.memory()
        except TimeoutError:
            return Readiness(False, f"the store has not replied within {READY_S:g} s", hosts)
        except RedschedError as error:
            return Readiness(False, error.detail, hosts)
        self._store_s = time.perf_counter() - asked_s
        policy = self._memory.policy
        if policy != "noeviction":
            problem = f"the store's maxmemory-policy is {policy}, which drops keys: set it to noeviction"
            return Readiness(False, problem, hosts)
        if self._memory.is_full:
            uses = full_text(self._memory.used_bytes, self._memory.limit_bytes)
            return Readiness(False, f"the store is out of memory{uses} and refuses claims", hosts)
        if not all(cell.updater.is_started for cell in self._cells):
            return Readiness(False, "this scheduler was opened on demand and has no replica", hosts)
        if stats.lag_s > MAX_LAG_S:
            return Readiness(False, f"the replica is {stats.lag_s:.0f} s behind the store's feed", hosts)
        return Readiness(True, "caught up", hosts)

    def stats(self) -> Stats:
        """Return counts over all cells, from memory alone."""
        updaters = [cell.updater for cell in self._cells]
        columns = [updater.columns for updater in updaters]
        running = self._tasks()
        tasks = running.values()
        findings = Counter[Finding]()
        for one in tasks:
            findings.update(one.maintenance.findings)
        audits = {
            (cell, scope): one.maintenance.audits[scope] for cell, one in running.items() for scope in AUDIT_SCOPES
        }
        return Stats(
            hosts=sum(len(one) for one in columns),
            hosts_alive=sum(int((one.present & one.alive).sum()) for one in columns),
            hosts_attested=sum(int((one.present & one.alive & one.attested).sum()) for one in columns),
            lag_s=max(cell.updater.lag_s() or 0.0 for cell in self._cells),
            entries=sum(updater.stats.entries for updater in updaters),
            snapshots=sum(updater.stats.snapshots for updater in updaters),
            gaps=sum(updater.stats.gaps for updater in updaters),
            claims_expired=sum(cell.expiry.claims_expired for cell in self._cells),
            hosts_down=sum(cell.expiry.hosts_down for cell in self._cells),
            decisions_not_kept=sum(cell.decisions_not_kept for cell in self._cells),
            audits=audits,
            findings=findings,
            waiting=self._waiting(),
            unmovable=sum(one.drain.unmovable for one in tasks),
            fenced=sum((one.fencer.outcomes for one in tasks), Counter[Fenced]()),
            fencing_held=sum(one.fencer.waiting for one in tasks),
            agent_delay_s=max((one.delays.agent_s for one in tasks), default=0.0),
            agent_delay_part=max((one.delays.agent_part for one in tasks), default=0.0),
            expiry_delay_s=max((one.delays.expiry_s for one in tasks), default=0.0),
            reconcile_delay_s=max((one.delays.reconcile_s for one in tasks), default=0.0),
            store_s=self._store_s,
            store_memory_bytes=self._memory.used_bytes,
            store_memory_limit_bytes=self._memory.limit_bytes,
        )
