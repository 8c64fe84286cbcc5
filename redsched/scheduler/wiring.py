"""Build a scheduler from its components, from the cells up. No component creates another one.

    cells         a replica of each cell, a decider over it, and caches
    quotas        enforcement of quotas, which every claim passes
    services      verbs on claims and hosts; declared objects
    cell tasks    the periodic work on each cell, which uses the services
    mirrors       the cells that it mirrors, whose tasks it runs, and what it knows about the others
    selection     deciding and claiming; waiting for room, and for confirmations by hosts

Each component gets the components that it uses in its constructor. The only exception is that a replica gets its
listener afterwards, because the listener reads the replica.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial

from redsched.cache.loaded import LoadedReplicas
from redsched.cache.updater import ReplicaUpdater
from redsched.decide.plugins.registry import PluginRegistry
from redsched.scheduler.background.expiry import Expiry
from redsched.scheduler.background.maintenance import Maintenance
from redsched.scheduler.background.reconciler import PlaceAgain, Reconciler
from redsched.scheduler.background.release_log import ReleaseLog
from redsched.scheduler.background.sweeper import Sweeper
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.claims.bulk import BulkService
from redsched.scheduler.claims.migration import MigrationService
from redsched.scheduler.claims.replacements import ReplacementPlacer
from redsched.scheduler.claims.request_cache import RequestCache
from redsched.scheduler.claims.service import ClaimService
from redsched.scheduler.declared.service import AggregateService, ServerGroupService, SharedPoolService
from redsched.scheduler.hosts.drain import DrainWorker
from redsched.scheduler.hosts.drain_group import GroupDrain
from redsched.scheduler.hosts.service import HostService
from redsched.scheduler.mirroring.cell_tasks import CellTasks
from redsched.scheduler.mirroring.mirrors import Mirrors
from redsched.scheduler.mirroring.writer import SummaryWriter
from redsched.scheduler.observe.events import EventService
from redsched.scheduler.quotas.enforcement import Quotas
from redsched.scheduler.quotas.service import QuotaService
from redsched.scheduler.quotas.shares import QuotaShares
from redsched.scheduler.selection.claim_ids import ClaimIds
from redsched.scheduler.selection.confirmations import ConfirmationWaiter
from redsched.scheduler.selection.pipeline import SelectionPipeline
from redsched.scheduler.selection.selector import Observe, Selector
from redsched.scheduler.selection.wait_active import ActiveWaiter
from redsched.scheduler.selection.wait_queue import WaitQueue
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.store import Store


@dataclass(frozen=True, slots=True)
class Components:
    """All parts of a scheduler. `tasks`: by the name of the cell."""

    store: Store
    cells: Cells
    enforcement: Quotas
    claims: ClaimService
    migrations: MigrationService
    bulk: BulkService
    hosts: HostService
    aggregates: AggregateService
    server_groups: ServerGroupService
    pools: SharedPoolService
    quotas: QuotaService
    events: EventService
    tasks: Mapping[str, CellTasks]
    replicas: LoadedReplicas
    mirrors: Mirrors
    wait_queue: WaitQueue
    until_active: ActiveWaiter
    selector: Selector

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run all background tasks inside the context, which begins when all mirrored cells have caught up.

        Raises StoreUnavailable.
        """
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.mirrors.stop)
            await self.mirrors.start()
            stack.push_async_callback(self.enforcement.shares.stop)
            self.enforcement.shares.start()
            stack.push_async_callback(self.until_active.stop)
            stack.push_async_callback(self.wait_queue.stop)
            yield

    @asynccontextmanager
    async def on_demand(self) -> AsyncIterator[None]:
        """Run nothing inside the context but what calls need: the first that needs a replica reads it.

        Raises StoreUnavailable.
        """
        async with AsyncExitStack() as stack:
            for tasks in self.tasks.values():
                await tasks.updater.read_clock()
                stack.push_async_callback(tasks.close)
            stack.push_async_callback(self.until_active.stop)
            stack.push_async_callback(self.wait_queue.stop)
            yield


def build(store: Store, settings: Settings, plugins: PluginRegistry, observe: Observe | None = None) -> Components:
    """Build a scheduler over the cells of the settings. Nothing runs yet."""
    replicas = LoadedReplicas(settings.loaded_cells)
    cells = Cells(build_cell(store.cell(name), settings, plugins, replicas) for name in settings.cells)

    shares = QuotaShares(cells)
    enforcement = Quotas(cells, shares)

    wait_queue = WaitQueue(cells)
    replacements = ReplacementPlacer(cells, enforcement)
    group_drain = GroupDrain(replacements, enforcement)
    claims = ClaimService(cells, enforcement)
    migrations = MigrationService(cells, wait_queue, replacements)

    tasks = {
        cell.name: build_tasks(
            cell, cells, settings, partial(migrations.place_again, cell), DrainWorker(cell, replacements, group_drain)
        )
        for cell in cells
    }

    until_active = ActiveWaiter(cells, {name: one.confirmations for name, one in tasks.items()})
    pipeline = SelectionPipeline(cells, ClaimIds(cells), enforcement, replicas)
    return Components(
        store=store,
        cells=cells,
        enforcement=enforcement,
        claims=claims,
        migrations=migrations,
        bulk=BulkService(cells, claims, migrations),
        hosts=HostService(cells, replacements, group_drain),
        aggregates=AggregateService(cells),
        server_groups=ServerGroupService(cells),
        pools=SharedPoolService(cells),
        quotas=QuotaService(cells, shares),
        events=EventService(cells),
        tasks=tasks,
        replicas=replicas,
        mirrors=Mirrors(cells, tasks, replicas, settings.mirrored),
        wait_queue=wait_queue,
        until_active=until_active,
        selector=Selector(pipeline, wait_queue, until_active, settings.select_timeout_s, observe),
    )


def build_cell(store: CellStore, settings: Settings, plugins: PluginRegistry, replicas: LoadedReplicas) -> Cell:
    """Build a cell, which all services share."""
    updater = ReplicaUpdater(store, settings)
    expiry, released, requests = Expiry(store, updater), ReleaseLog(store), RequestCache(store)
    return Cell(store, updater, expiry, released, requests, settings, plugins, replicas)


def build_tasks(cell: Cell, cells: Cells, settings: Settings, place_again: PlaceAgain, drain: DrainWorker) -> CellTasks:
    """Build the background work on a cell."""
    reconciler = Reconciler(cell.store, cell.updater, place_again)
    confirmations = ConfirmationWaiter(cell.store, cell.updater, on_pending=reconciler.begin)
    cell.updater.add_listener(confirmations)
    sweeper = Sweeper(cell, (reconciler.run_once, drain.run_once), settings.tick_s)
    maintenance, summaries = Maintenance(cell, cells, settings), SummaryWriter(cell.store, cell.updater)
    return CellTasks(cell.updater, reconciler, confirmations, sweeper, maintenance, summaries)
