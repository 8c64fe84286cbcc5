"""Scheduler: the entry point of the library, and the only interface that the API and the CLI use."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING

from redsched import logs, tracing
from redsched.errors import InvalidRequest
from redsched.model import Claim, OneOf, Request, values_of
from redsched.model.filters import UsageBy, usage_by
from redsched.model.limits import check_range
from redsched.model.records.audit import AuditReport
from redsched.model.records.capacity import CapacityBy, CapacityRow, capacity_by
from redsched.model.records.changes import Change, Reset
from redsched.model.records.declared import UsageRow
from redsched.model.records.selections import Selections
from redsched.model.validation import MAX_AMOUNT
from redsched.pacing import in_slices
from redsched.scheduler.cells import Cell, Cells, build_cell
from redsched.scheduler.decide_apart.limits import DecisionLimits
from redsched.scheduler.results import Readiness, Stats
from redsched.settings import Settings, removed_in_environment
from redsched.store.store import Store

if TYPE_CHECKING:
    from redsched.cache.fleet import FleetUsage
    from redsched.decide.plugins.registry import PluginRegistry
    from redsched.model.records.explanations import Explanation
    from redsched.model.records.status import StatusReport
    from redsched.operate.backup.archive import Archive
    from redsched.operate.backup.import_ import Imported
    from redsched.operate.observe.change_log import ChangeLog, Render
    from redsched.operate.observe.events import EventService
    from redsched.operate.plans.plans import PlanService
    from redsched.scheduler.agents.calls import AgentService
    from redsched.scheduler.cell_tasks import CellTasks
    from redsched.scheduler.claims.bulk import BulkService
    from redsched.scheduler.claims.claims import ClaimService
    from redsched.scheduler.claims.migration import MigrationService
    from redsched.scheduler.claims.replacements import ReplacementPlacer
    from redsched.scheduler.decide_apart.planner import Planner
    from redsched.scheduler.declared.declarations import AggregateService, ServerGroupService, SharedPoolService
    from redsched.scheduler.explain import Explainer
    from redsched.scheduler.health import Health
    from redsched.scheduler.hosts.drain_group import GroupDrain
    from redsched.scheduler.hosts.hosts import HostService
    from redsched.scheduler.quotas.enforcement import Quotas
    from redsched.scheduler.quotas.quotas import QuotaService
    from redsched.scheduler.quotas.shares import QuotaShares
    from redsched.scheduler.selection.reservations import Reservations
    from redsched.scheduler.selection.selector import Observe, Selector
    from redsched.scheduler.selection.wait_active import ActiveWaiter
    from redsched.scheduler.selection.wait_queue import WaitQueue

log = logs.get_logger(__name__)


class Scheduler:
    """Selects hosts and claims them, over all cells of its settings. Opened by `Scheduler.connect`.

        async with Scheduler.connect("redis://localhost") as scheduler:
            found = await scheduler.select(Request({"VCPU": 2, "MEMORY_MB": 4096}))

    `claims` and `hosts` have the reads and the verbs of single claims and hosts, `bulk` the verbs on many claims.
    `aggregates`, `server_groups`, `shared_pools` and `quotas` declare objects; `plans` says what would happen.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        plugins: "Callable[[], PluginRegistry]",
        observe: "Observe | None" = None,
        planner: "Planner | None" = None,
    ) -> None:
        """`plugins` returns the filters and weighers: see `plugins_of`. `planner` makes decisions that take long."""
        self.cells = Cells(build_cell(store.cell(name), settings, plugins) for name in settings.cells)
        self._limits = DecisionLimits(settings.plan_limit_s, planner)
        self._store = store
        self._settings = settings
        self._observe = observe

    @classmethod
    @asynccontextmanager
    async def connect(
        cls,
        url: str,
        settings: Settings | None = None,
        observe: "Observe | None" = None,
        *,
        on_demand: bool = False,
        read_only: bool = False,
        plan_apart: bool = False,
        first_reply_s: float | None = None,
    ) -> AsyncIterator["Scheduler"]:
        """Open a scheduler whose replica has caught up. `observe` is called with the duration of each selection.

        With `on_demand`, it has no replica until a call needs one, and no background tasks. That suits a few reads and
        verbs of single claims, hosts and declared objects; the verbs that place a claim need background tasks.

        With `read_only`, it writes nothing to the store, so that its user may be one who only reads. It has no
        background tasks either. Calls that write raise InvalidRequest.

        With `plan_apart`, a decision that takes long does not hold the event loop but is made in a fork of this
        process, for up to `plan_limit_s`; otherwise it is made on the event loop, for as long.

        `first_reply_s` is as in `Store.connect`.

        Raises StoreUnavailable, InvalidRequest (an invalid URL; without `on_demand`, an invalid policy, weight or
        plugin), SchemaMismatch.
        """
        settings = settings or Settings()
        if settings.tracing:
            tracing.use()
        plugins, on_demand = plugins_of(settings), on_demand or read_only
        if not on_demand:
            plugins()
            for name, instead in removed_in_environment().items():
                log.warning("setting_has_no_effect", setting=name, instead=instead)
        async with Store.connect(url, settings, read_only=read_only, first_reply_s=first_reply_s) as store:
            scheduler = cls(store, settings, plugins, observe, _planner(settings) if plan_apart else None)
            async with scheduler.on_demand() if on_demand else scheduler.running():
                yield scheduler

    @cached_property
    def claims(self) -> "ClaimService":
        """Reads and verbs of single claims."""
        from redsched.scheduler.claims.claims import ClaimService

        return ClaimService(self.cells, self._enforcement, self._unmovable, lambda: self.migrations)

    @cached_property
    def migrations(self) -> "MigrationService":
        """Verbs that place a claim again."""
        from redsched.scheduler.claims.gang_restart import GangRestarter
        from redsched.scheduler.claims.migration import MigrationService

        gangs = GangRestarter(self._replacements, self._group_drain)
        return MigrationService(self.cells, self._wait_queue, self._replacements, gangs)

    @cached_property
    def bulk(self) -> "BulkService":
        """Verbs on many claims."""
        from redsched.scheduler.claims.bulk import BulkService

        return BulkService(self.cells, self.claims)

    @cached_property
    def hosts(self) -> "HostService":
        """Reads and verbs of hosts."""
        from redsched.scheduler.hosts.hosts import HostService

        return HostService(self.cells, self._unmovable)

    @cached_property
    def agents(self) -> "AgentService":
        """The calls of agents without access to the store."""
        from redsched.scheduler.agents.calls import AgentService

        return AgentService(self.cells, self._settings.poll_s)

    @cached_property
    def aggregates(self) -> "AggregateService":
        """Aggregates: read, create, change and delete them."""
        from redsched.scheduler.declared.declarations import AggregateService

        return AggregateService(self.cells)

    @cached_property
    def server_groups(self) -> "ServerGroupService":
        """Server groups: read, create, change and delete them."""
        from redsched.scheduler.declared.declarations import ServerGroupService

        return ServerGroupService(self.cells)

    @cached_property
    def shared_pools(self) -> "SharedPoolService":
        """Shared pools: read, create, change and delete them."""
        from redsched.scheduler.declared.declarations import SharedPoolService

        return SharedPoolService(self.cells)

    @cached_property
    def quotas(self) -> "QuotaService":
        """Quotas: read, create, change and delete them."""
        from redsched.scheduler.quotas.quotas import QuotaService

        return QuotaService(self.cells, self._shares)

    @cached_property
    def plans(self) -> "PlanService":
        """What would happen: how much more fits, and where claims would go."""
        from redsched.operate.plans.plans import PlanService

        return PlanService(self.cells, self.claims, self._shares, self._limits, self._settings, self._waiting)

    @cached_property
    def events(self) -> "EventService":
        """Reads of the event log."""
        from redsched.operate.observe.events import EventService

        return EventService(self.cells)

    @cached_property
    def tasks(self) -> "Mapping[str, CellTasks]":
        """The background tasks of each cell, by its name."""
        from redsched.scheduler.cell_tasks import build_tasks
        from redsched.scheduler.hosts.drain import DrainWorker

        return {
            cell.name: build_tasks(
                cell,
                self.cells,
                self._settings,
                partial(self.migrations.place_again, cell),
                DrainWorker(cell, self._replacements, self._group_drain),
            )
            for cell in self.cells
        }

    @cached_property
    def _shares(self) -> "QuotaShares":
        """The division of quotas between cells."""
        from redsched.scheduler.quotas.shares import QuotaShares

        return QuotaShares(self.cells)

    @cached_property
    def _enforcement(self) -> "Quotas":
        """The enforcement of quotas, which every claim passes."""
        from redsched.scheduler.quotas.enforcement import Quotas

        return Quotas(self.cells, self._shares)

    @cached_property
    def _replacements(self) -> "ReplacementPlacer":
        """Places claims again."""
        from redsched.scheduler.claims.replacements import ReplacementPlacer

        return ReplacementPlacer(self.cells, self._enforcement)

    @cached_property
    def _group_drain(self) -> "GroupDrain":
        """Places all members of a server group again."""
        from redsched.scheduler.hosts.drain_group import GroupDrain

        return GroupDrain(self._replacements, self._enforcement)

    @cached_property
    def _wait_queue(self) -> "WaitQueue":
        """The requests that wait for room."""
        from redsched.scheduler.selection.wait_queue import WaitQueue

        return WaitQueue(self.cells)

    @cached_property
    def _reservations(self) -> "Reservations":
        """The hosts that are reserved for requests that wait."""
        from redsched.scheduler.selection.reservations import Reservations

        return Reservations(self.cells, self._enforcement, self._settings)

    @cached_property
    def _until_active(self) -> "ActiveWaiter":
        """The selections that wait until their work runs."""
        from redsched.scheduler.selection.wait_active import ActiveWaiter

        return ActiveWaiter(self.cells, {name: one.confirmations for name, one in self.tasks.items()})

    @cached_property
    def _selector(self) -> "Selector":
        """Selects hosts and claims them."""
        from redsched.scheduler.selection.pipeline import SelectionPipeline
        from redsched.scheduler.selection.selector import Selector

        return Selector(
            SelectionPipeline(self.cells, self._enforcement, self._limits),
            self._wait_queue,
            self._until_active,
            self._count,
            self._settings.select_timeout_s,
            self._limits,
            self._reservations,
            self._observe,
        )

    @cached_property
    def _explainer(self) -> "Explainer":
        """Explains why hosts fit a request or not."""
        from redsched.scheduler.explain import Explainer

        return Explainer(self.cells, self.hosts, self._enforcement, self._limits)

    @cached_property
    def _health(self) -> "Health":
        """Whether it can decide, and its counts."""
        from redsched.scheduler.health import Health

        return Health(
            self._store,
            self.cells,
            lambda: self.tasks if "tasks" in vars(self) else {},
            lambda: len(self._wait_queue) if "_wait_queue" in vars(self) else 0,
        )

    def _count(self, request: Request) -> None:
        """Count a request among what is asked of each cell."""
        for tasks in self.tasks.values():
            tasks.workload.count(request)

    async def _unmovable(self, cell: Cell, claims: Sequence[Claim]) -> dict[str, str]:
        """Return the claims that have to leave their hosts and have no other place now, and why."""
        from redsched.scheduler.hosts.drain import unmovable_reasons

        return await unmovable_reasons(cell, self._replacements, self._group_drain, claims)

    def _waiting(self) -> list[Request]:
        """Return the requests that wait for room in this process. It does not build the selector for that."""
        return self._selector.waiting() if "_selector" in vars(self) else []

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Build all parts, and run the background tasks inside the context, which begins when all cells have caught up.

        Raises StoreUnavailable.
        """
        for name, part in vars(type(self)).items():
            if isinstance(part, cached_property):
                getattr(self, name)
        async with AsyncExitStack() as stack:
            if self._limits.planner is not None:
                stack.push_async_callback(self._limits.planner.stop)
            stack.push_async_callback(self._stop_tasks)
            for tasks in self.tasks.values():
                await tasks.start()
            stack.push_async_callback(self._shares.stop)
            self._shares.start()
            stack.push_async_callback(self._until_active.stop)
            stack.push_async_callback(self._wait_queue.stop)
            stack.push_async_callback(self._reservations.stop)
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
        if "_reservations" in used:
            await self._reservations.stop()
        if "_wait_queue" in used:
            await self._wait_queue.stop()
        if "_until_active" in used:
            await self._until_active.stop()
        for tasks in self.tasks.values() if "tasks" in used else ():
            await tasks.close()

    async def select(self, request: Request, owner: str = "", own_only: bool = False) -> Selections:
        """Claim a place for every member of the request, or show the places without claiming them (`claim` False).

        `owner` owns the claims instead of whom the request names. Raises NoValidHost, TooHard, QuotaExceeded,
        ClaimIdReused, ClaimState (some ids have ended or were lost), Forbidden (with `own_only`: others own claims with
        the request's ids), NotConfirmed, Settling, StoreUnavailable, OutcomeUnknown.
        """
        return await self._selector.select(request, owner, own_only)

    async def dry_run(self, request: Request) -> Selections:
        """Show the places that `select` would claim now, without claiming them. Raises as `select` does."""
        return await self.select(replace(request, claim=False))

    async def explain(self, request: Request, hosts: OneOf = None, *, limit: int = 0, after: str = "") -> "Explanation":
        """Explain why hosts fit a request or not, over all cells, with every check of the named hosts. Writes nothing.

        With `limit`, also with every check of so many hosts, sorted by name, after the host `after`.

        Raises NotFound for a host, claim, group or aggregate that does not exist, NoValidHost if the hint same_host
        leaves no host, TooHard.
        """
        check_range("limit", limit, 0, MAX_AMOUNT)
        further = await self.host_names(limit, after) if limit else ()
        return await self._explainer.explain(request, tuple(dict.fromkeys((*values_of(hosts), *further))))

    async def host_names(self, limit: int, after: str = "") -> tuple[str, ...]:
        """Return up to `limit` names of hosts in the replicas, in order, starting after `after`."""
        await self.cells.catch_up()
        names = sorted(name for cell in self.cells for name in cell.updater.columns.names() if name > after)
        return tuple(names[:limit])

    def knows_host(self, name: str) -> bool:
        """Return whether a replica of this scheduler has a host of this name. From memory alone."""
        return any(name in cell.updater.columns for cell in self.cells)

    def changes(self, last_id: str = "") -> AsyncIterator[Change | Reset]:
        """Yield every change from now on; with `last_id`, all after the change or reset that has this `id`.

        A Reset says that changes of its cell are missing: also if the id is of another epoch, or of other cells only.
        Raises InvalidRequest or NotFound for an invalid `last_id`, at the call and not at the first iteration;
        InvalidRequest too if this scheduler was opened on demand.
        """
        from redsched.operate.observe.changes import follow

        self._require_followable()
        return follow(self.cells, last_id)

    def change_log(self, render: "Render") -> "ChangeLog":
        """Return a log of the changes for many readers, which renders each change once.

        Raises InvalidRequest if this scheduler was opened on demand.
        """
        from redsched.operate.observe.change_log import ChangeLog

        self._require_followable()
        return ChangeLog(self.cells, render)

    def _require_followable(self) -> None:
        if not all(cell.updater.is_started for cell in self.cells):
            raise InvalidRequest(
                "this scheduler was opened on demand and follows no changes: open it without on_demand"
            )

    async def audit(self) -> AuditReport:
        """Audit invariants 1, 2, 3, 5 and 10 of docs/architecture.md in the live store. Raises StoreUnavailable."""
        from redsched.operate.audit.audit import audit

        return await audit(self.cells)

    async def repair(self) -> AuditReport:
        """Audit, and repair what can be repaired at an operator's request. Raises StoreUnavailable."""
        from redsched.operate.audit.audit import repair

        return await repair(self.cells, operator=True)

    async def status(self) -> "StatusReport":
        """Return the state of the store and of all cells, and what is wrong. Raises StoreUnavailable."""
        from redsched.operate.status.status import status

        return await status(self._store, self._settings, self.cells, self._unmovable)

    async def usage(self, by: OneOf = UsageBy.CLASS, project: OneOf = None) -> tuple[UsageRow, ...]:
        """Return the total amounts of all claims, or those of a project, by class or by these dimensions.

        Raises StoreUnavailable.
        """
        from redsched.operate.observe.usage import usage

        return await usage(self.cells, usage_by(",".join(values_of(by) or (UsageBy.CLASS,))), project)

    async def capacity(
        self, by: "CapacityBy | str | None" = None, within: "Sequence[str] | None" = None
    ) -> "tuple[CapacityRow, ...]":
        """Return the amounts of all hosts and shared pools by class, or also by zone, aggregate, project or consumer.

        `within`: return what is free to each of these projects instead, within its quota and without names of hosts,
        or what their claims take by consumer. Raises StoreUnavailable.
        """
        from redsched.operate.observe.capacity import capacity

        by = capacity_by(by)
        if within is None:
            return await capacity(self.cells, self.shared_pools, by)
        from redsched.operate.observe.own_capacity import own_capacity

        return await own_capacity(self.cells, self.shared_pools, self.quotas, within, by)

    async def export(self, cell: str = "") -> "Archive":
        """Export a cell, named if there are several. Raises NotFound, InvalidRequest, StoreUnavailable."""
        from redsched.operate.backup.export import export_cell

        if not cell and len(self.cells) > 1:
            raise InvalidRequest("this scheduler has several cells: name the one to export")
        name = cell or next(iter(self.cells)).name
        return await export_cell(self.cells.named(name).store)

    async def import_(self, archive: "Archive", declared_only: bool = False) -> "Imported":
        """Import an exported cell into an empty cell; with `declared_only`, only its declarations, into any cell.

        Raises NotFound (this scheduler has no such cell), ClaimState (the cell is not empty), StoreUnavailable.
        """
        from redsched.operate.backup.import_ import import_cell, import_declared

        store = self.cells.named(archive.head.cell).store
        return await (import_declared if declared_only else import_cell)(store, archive)

    async def init(self) -> bool:
        """Declare the cells new, so that they start settled. Returns False if all of them existed already."""
        outcomes = [(await cell.store.init()).outcome for cell in self.cells]
        return any(outcome == "OK" for outcome in outcomes)

    async def readiness(self) -> Readiness:
        """Return whether this scheduler can decide on current data. Raises nothing: errors are in `detail`."""
        return await self._health.readiness()

    def stats(self) -> Stats:
        """Return counts over all cells, from memory alone."""
        return self._health.stats()

    async def fleet(self) -> "Mapping[str, FleetUsage]":
        """Return what the hosts of each cell have, and what is left of it. From memory alone."""
        from redsched.cache.fleet import fleet_steps

        return {cell.name: await in_slices(fleet_steps(cell.updater.columns)) for cell in self.cells}

    def on_feed_lag(self, observe: Callable[[float], None]) -> None:
        """Call `observe` with the age in seconds of the oldest change of each batch that a replica applies."""
        from redsched.scheduler.background.delays import FeedLag

        for cell in self.cells:
            cell.updater.add_listener(FeedLag(cell.updater, observe))


def _planner(settings: Settings) -> "Planner | None":
    from redsched.scheduler.decide_apart.planner import planner

    return planner(settings.plan_limit_s)


def plugins_of(settings: Settings) -> "Callable[[], PluginRegistry]":
    """Return a function that loads the filters and weighers, once.

    It raises InvalidRequest (an invalid policy, weight or plugin).
    """

    @cache
    def load() -> "PluginRegistry":
        from redsched.decide.plugins.registry import plugin_registry

        return plugin_registry(settings)

    return load
