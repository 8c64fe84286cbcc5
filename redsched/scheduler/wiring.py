"""Build a scheduler from its components, from the cells up. No component creates another one.

    cells         a replica of each cell, a decider over it, and caches
    quotas        enforcement of quotas, which every claim passes
    services      verbs on claims and hosts; declared objects
    cell tasks    the periodic work on each cell, which uses the services
    selection     deciding and claiming; waiting for room, and for confirmations by hosts

Each component gets the components that it uses in its constructor. The only exception is that a replica gets its
listener afterwards, because the listener reads the replica.

A component is imported and built when it is first used, so that a command about one thing does not load what places
claims, with NumPy and all rules of decisions: that takes longer than the rest of the command. Before a scheduler runs
in the background, all of them are built.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING

from redsched.cache.updater import ReplicaUpdater
from redsched.model import Claim, Request
from redsched.model.workload import GPU_SHARES
from redsched.scheduler.background.expiry import Expiry
from redsched.scheduler.background.release_log import ReleaseLog
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.claims.request_cache import RequestCache
from redsched.scheduler.decide_apart.limits import DecisionLimits
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.store import Store

if TYPE_CHECKING:
    from redsched.decide.plugins.registry import PluginRegistry
    from redsched.scheduler.agents.service import AgentService
    from redsched.scheduler.background.cell_tasks import CellTasks
    from redsched.scheduler.background.reconciler import PlaceAgain
    from redsched.scheduler.claims.bulk import BulkService
    from redsched.scheduler.claims.migration import MigrationService
    from redsched.scheduler.claims.replacements import ReplacementPlacer
    from redsched.scheduler.claims.service import ClaimService
    from redsched.scheduler.decide_apart.planner import Planner
    from redsched.scheduler.declared.service import AggregateService, ServerGroupService, SharedPoolService
    from redsched.scheduler.hosts.drain import DrainWorker
    from redsched.scheduler.hosts.drain_group import GroupDrain
    from redsched.scheduler.hosts.service import HostService
    from redsched.scheduler.observe.events import EventService
    from redsched.scheduler.plans.service import PlanService
    from redsched.scheduler.quotas.enforcement import Quotas
    from redsched.scheduler.quotas.service import QuotaService
    from redsched.scheduler.quotas.shares import QuotaShares
    from redsched.scheduler.selection.reservations import Reservations
    from redsched.scheduler.selection.selector import Observe, Selector
    from redsched.scheduler.selection.wait_active import ActiveWaiter
    from redsched.scheduler.selection.wait_queue import WaitQueue


class Components:
    """All parts of a scheduler, each built when it is first used. `tasks`: by the name of the cell."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        plugins: "Callable[[], PluginRegistry]",
        observe: "Observe | None" = None,
        planner: "Planner | None" = None,
    ) -> None:
        self.limits = DecisionLimits(settings.plan_limit_s, planner)
        self.store = store
        self.settings = settings
        self.cells = Cells(build_cell(store.cell(name), settings, plugins) for name in settings.cells)
        self._observe = observe

    @cached_property
    def shares(self) -> "QuotaShares":
        """The division of quotas between cells."""
        from redsched.scheduler.quotas.shares import QuotaShares

        return QuotaShares(self.cells)

    @cached_property
    def enforcement(self) -> "Quotas":
        """The enforcement of quotas."""
        from redsched.scheduler.quotas.enforcement import Quotas

        return Quotas(self.cells, self.shares)

    @cached_property
    def wait_queue(self) -> "WaitQueue":
        """The requests that wait for room."""
        from redsched.scheduler.selection.wait_queue import WaitQueue

        return WaitQueue(self.cells)

    @cached_property
    def reservations(self) -> "Reservations":
        """The hosts that are reserved for requests that wait."""
        from redsched.scheduler.selection.reservations import Reservations

        return Reservations(self.cells, self.enforcement, self.settings)

    @cached_property
    def replacements(self) -> "ReplacementPlacer":
        """Places claims again."""
        from redsched.scheduler.claims.replacements import ReplacementPlacer

        return ReplacementPlacer(self.cells, self.enforcement)

    @cached_property
    def group_drain(self) -> "GroupDrain":
        """Places all members of a server group again."""
        from redsched.scheduler.hosts.drain_group import GroupDrain

        return GroupDrain(self.replacements, self.enforcement)

    @cached_property
    def claims(self) -> "ClaimService":
        """Reads and verbs of single claims."""
        from redsched.scheduler.claims.service import ClaimService

        return ClaimService(self.cells, self.enforcement, self.unmovable, lambda: self.migrations)

    @cached_property
    def migrations(self) -> "MigrationService":
        """Verbs that place a claim again."""
        from redsched.scheduler.claims.gang_restart import GangRestarter
        from redsched.scheduler.claims.migration import MigrationService

        gangs = GangRestarter(self.replacements, self.group_drain)
        return MigrationService(self.cells, self.wait_queue, self.replacements, gangs)

    @cached_property
    def bulk(self) -> "BulkService":
        """Verbs on many claims."""
        from redsched.scheduler.claims.bulk import BulkService

        return BulkService(self.cells, self.claims)

    @cached_property
    def hosts(self) -> "HostService":
        """Reads and verbs of hosts."""
        from redsched.scheduler.hosts.service import HostService

        return HostService(self.cells, self.unmovable)

    @cached_property
    def agents(self) -> "AgentService":
        """The calls of agents without access to the store."""
        from redsched.scheduler.agents.service import AgentService

        return AgentService(self.cells, self.settings.poll_s)

    async def unmovable(self, cell: Cell, claims: Sequence[Claim]) -> dict[str, str]:
        """Return the claims that have to leave their hosts and have no other place now, and why."""
        from redsched.scheduler.hosts.drain import unmovable_reasons

        return await unmovable_reasons(cell, self.replacements, self.group_drain, claims)

    @cached_property
    def aggregates(self) -> "AggregateService":
        """Declared aggregates."""
        from redsched.scheduler.declared.service import AggregateService

        return AggregateService(self.cells)

    @cached_property
    def server_groups(self) -> "ServerGroupService":
        """Declared server groups."""
        from redsched.scheduler.declared.service import ServerGroupService

        return ServerGroupService(self.cells)

    @cached_property
    def shared_pools(self) -> "SharedPoolService":
        """Declared shared pools."""
        from redsched.scheduler.declared.service import SharedPoolService

        return SharedPoolService(self.cells)

    @cached_property
    def quotas(self) -> "QuotaService":
        """Declared quotas."""
        from redsched.scheduler.quotas.service import QuotaService

        return QuotaService(self.cells, self.shares)

    @cached_property
    def events(self) -> "EventService":
        """The event log."""
        from redsched.scheduler.observe.events import EventService

        return EventService(self.cells)

    @cached_property
    def plans(self) -> "PlanService":
        """Answers what would happen."""
        from redsched.scheduler.plans.service import PlanService

        return PlanService(self.cells, self.claims, self.shares, self.limits, self.settings, self._waiting)

    def _waiting(self) -> list[Request]:
        """Return the requests that wait for room in this process. It does not build the selector for that."""
        return self.selector.waiting() if "selector" in vars(self) else []

    @cached_property
    def tasks(self) -> "Mapping[str, CellTasks]":
        """The background tasks of each cell."""
        from redsched.scheduler.hosts.drain import DrainWorker

        return {
            cell.name: build_tasks(
                cell,
                self.cells,
                self.settings,
                partial(self.migrations.place_again, cell),
                DrainWorker(cell, self.replacements, self.group_drain),
            )
            for cell in self.cells
        }

    @property
    def running_tasks(self) -> "Mapping[str, CellTasks]":
        """The background tasks by cell; none if nothing has needed them yet."""
        return self.tasks if "tasks" in vars(self) else {}

    @property
    def waiting(self) -> int:
        """The number of requests that wait for room."""
        return len(self.wait_queue) if "wait_queue" in vars(self) else 0

    @cached_property
    def until_active(self) -> "ActiveWaiter":
        """The selections that wait until their work runs."""
        from redsched.scheduler.selection.wait_active import ActiveWaiter

        return ActiveWaiter(self.cells, {name: one.confirmations for name, one in self.tasks.items()})

    @cached_property
    def selector(self) -> "Selector":
        """Selects hosts and claims them."""
        from redsched.scheduler.selection.pipeline import SelectionPipeline
        from redsched.scheduler.selection.selector import Selector

        pipeline = SelectionPipeline(self.cells, self.enforcement, self.limits)
        return Selector(
            pipeline,
            self.wait_queue,
            self.until_active,
            self._count,
            self.settings.select_timeout_s,
            self.limits,
            self.reservations,
            self._observe,
        )

    def _count(self, request: Request) -> None:
        """Count a request among what is asked of each cell."""
        for tasks in self.tasks.values():
            tasks.workload.count(request)

    def build(self) -> None:
        """Build every component."""
        for name, part in vars(type(self)).items():
            if isinstance(part, cached_property):
                getattr(self, name)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run all background tasks inside the context, which begins when all cells have caught up.

        Raises StoreUnavailable.
        """
        async with AsyncExitStack() as stack:
            if self.limits.planner is not None:
                stack.push_async_callback(self.limits.planner.stop)
            stack.push_async_callback(self._stop_tasks)
            for tasks in self.tasks.values():
                await tasks.start()
            stack.push_async_callback(self.shares.stop)
            self.shares.start()
            stack.push_async_callback(self.until_active.stop)
            stack.push_async_callback(self.wait_queue.stop)
            stack.push_async_callback(self.reservations.stop)
            yield

    async def _stop_tasks(self) -> None:
        for tasks in self.tasks.values():
            await tasks.end()
        for tasks in self.tasks.values():
            await tasks.close()

    @asynccontextmanager
    async def on_demand(self) -> AsyncIterator[None]:
        """Run nothing inside the context but what calls need: the first that needs a replica reads it.

        Raises StoreUnavailable.
        """
        async with AsyncExitStack() as stack:
            for cell in self.cells:
                await cell.updater.read_clock()
                stack.push_async_callback(cell.updater.stop)
            stack.push_async_callback(self._stop_used)
            yield

    async def _stop_used(self) -> None:
        used = vars(self)
        if "reservations" in used:
            await self.reservations.stop()
        if "wait_queue" in used:
            await self.wait_queue.stop()
        if "until_active" in used:
            await self.until_active.stop()
        for tasks in self.tasks.values() if "tasks" in used else ():
            await tasks.close()


def plugins_of(settings: Settings) -> "Callable[[], PluginRegistry]":
    """Return a function that loads the filters and weighers, once.

    It raises InvalidRequest (an invalid policy, weight or plugin).
    """

    @cache
    def load() -> "PluginRegistry":
        from redsched.decide.plugins.registry import plugin_registry

        return plugin_registry(settings)

    return load


def build_cell(store: CellStore, settings: Settings, plugins: "Callable[[], PluginRegistry]") -> Cell:
    """Build a cell, which all services share."""
    updater = ReplicaUpdater(store, settings)
    expiry, released, requests = Expiry(store, updater), ReleaseLog(store), RequestCache(store)
    return Cell(store, updater, expiry, released, requests, settings, plugins)


def build_tasks(
    cell: Cell, cells: Cells, settings: Settings, place_again: "PlaceAgain", drain: "DrainWorker"
) -> "CellTasks":
    """Build the background work on a cell."""
    from redsched.scheduler.background.cell_tasks import CellTasks
    from redsched.scheduler.background.maintenance import Maintenance
    from redsched.scheduler.background.reconciler import Reconciler
    from redsched.scheduler.background.sweeper import Sweeper
    from redsched.scheduler.background.workload import WorkloadCounter
    from redsched.scheduler.hosts.fencing import Fencer
    from redsched.scheduler.observe.delays import Delays
    from redsched.scheduler.selection.confirmations import ConfirmationWaiter

    reconciler = Reconciler(cell.store, cell.updater, place_again)
    confirmations = ConfirmationWaiter(cell.store, cell.updater, on_pending=reconciler.begin)
    cell.updater.add_listener(confirmations)
    delays = Delays(cell.store, cell.updater)
    sweeper = Sweeper(
        cell, (reconciler.run_once, drain.run_once, delays.read, cell.updater.report_missing), settings.tick_s
    )
    maintenance = Maintenance(cell, cells, settings)
    workload = WorkloadCounter(cell.store, cell.updater, {GPU_SHARES: settings.gpu_beside, **settings.scarce})
    return CellTasks(
        cell.updater,
        reconciler,
        confirmations,
        sweeper,
        maintenance,
        workload,
        drain,
        delays,
        Fencer(cell, settings),
    )
