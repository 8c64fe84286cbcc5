"""Scheduler: the entry point of the library, and the only interface that the API and the CLI use."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from redsched import logs, tracing
from redsched.errors import InvalidRequest, RedschedError
from redsched.model import OneOf, Request, values_of
from redsched.model.filters import UsageBy, usage_by
from redsched.model.records.audit import AuditReport
from redsched.model.records.capacity import CapacityBy, CapacityRow
from redsched.model.records.changes import Change, Reset
from redsched.model.records.declared import UsageRow
from redsched.model.records.selections import Selections
from redsched.pacing import in_slices
from redsched.scheduler.cells import Cell
from redsched.scheduler.observe.delays import FeedLag
from redsched.scheduler.results import AUDIT_SCOPES, Fenced, Finding, Readiness, Stats
from redsched.scheduler.wiring import Components, plugins_of
from redsched.settings import Settings, removed_in_environment
from redsched.store.store import KEEPS, Store, StoreMemory
from redsched.store.topology.connection import full_text

if TYPE_CHECKING:
    from redsched.cache.fleet import FleetUsage
    from redsched.decide.work_limit import WorkLimit
    from redsched.model.records.explanations import Explanation
    from redsched.model.records.status import StatusReport
    from redsched.scheduler.agents.service import AgentService
    from redsched.scheduler.background.cell_tasks import CellTasks
    from redsched.scheduler.backup.archive import Archive
    from redsched.scheduler.backup.import_ import Imported
    from redsched.scheduler.claims.bulk import BulkService
    from redsched.scheduler.claims.service import ClaimService
    from redsched.scheduler.decide_apart.planner import Planner
    from redsched.scheduler.declared.service import AggregateService, ServerGroupService, SharedPoolService
    from redsched.scheduler.hosts.service import HostService
    from redsched.scheduler.observe.change_log import ChangeLog, Render
    from redsched.scheduler.observe.events import EventService
    from redsched.scheduler.plans.service import PlanService
    from redsched.scheduler.quotas.enforcement import Quotas
    from redsched.scheduler.quotas.service import QuotaService
    from redsched.scheduler.selection.selector import Observe, Selector

log = logs.get_logger(__name__)

MAX_LAG_S = 5.0
READY_S = 2.0
"""A store that takes longer to reply is not ready; probes and scrapes of metrics have little time."""


class Scheduler:
    """Selects hosts and claims them, over all cells of its settings. Opened by `Scheduler.connect`.

        async with Scheduler.connect("redis://localhost") as scheduler:
            found = await scheduler.select(Request({"VCPU": 2, "MEMORY_MB": 4096}))

    `claims` and `hosts` have the reads and the verbs of single claims and hosts, `bulk` the verbs on many claims.
    `aggregates`, `server_groups`, `shared_pools` and `quotas` declare objects; `plans` says what would happen.
    """

    def __init__(self, components: Components) -> None:
        self._components = components
        self._store = components.store
        self._cells = components.cells
        self._memory = StoreMemory(KEEPS, 0, 0)
        self._store_s: float | None = None

    @property
    def claims(self) -> "ClaimService":
        """Reads and verbs of single claims."""
        return self._components.claims

    @property
    def bulk(self) -> "BulkService":
        """Verbs on many claims."""
        return self._components.bulk

    @property
    def hosts(self) -> "HostService":
        """Reads and verbs of hosts."""
        return self._components.hosts

    @property
    def agents(self) -> "AgentService":
        """The calls of agents without access to the store."""
        return self._components.agents

    @property
    def aggregates(self) -> "AggregateService":
        """Aggregates: read, create, change and delete them."""
        return self._components.aggregates

    @property
    def server_groups(self) -> "ServerGroupService":
        """Server groups: read, create, change and delete them."""
        return self._components.server_groups

    @property
    def shared_pools(self) -> "SharedPoolService":
        """Shared pools: read, create, change and delete them."""
        return self._components.shared_pools

    @property
    def quotas(self) -> "QuotaService":
        """Quotas: read, create, change and delete them."""
        return self._components.quotas

    @property
    def plans(self) -> "PlanService":
        """What would happen: how much more fits, and where claims would go."""
        return self._components.plans

    @property
    def events(self) -> "EventService":
        """Reads of the event log."""
        return self._components.events

    @property
    def _quotas(self) -> "Quotas":
        return self._components.enforcement

    @property
    def _tasks(self) -> "Mapping[str, CellTasks]":
        return self._components.tasks

    @property
    def _selector(self) -> "Selector":
        return self._components.selector

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
            components = Components(store, settings, plugins, observe, _planner(settings) if plan_apart else None)
            if not on_demand:
                components.build()
            async with components.on_demand() if on_demand else components.running():
                yield cls(components)

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
        from redsched.decide.work_limit import TooMuchWork
        from redsched.scheduler.decide_apart.limits import too_hard

        limits, further = self._components.limits, await self.host_names(limit, after) if limit else ()
        hosts = tuple(dict.fromkeys((*values_of(hosts), *further)))
        try:
            return await self._explain_here(request, hosts, limits.of_request())
        except TooMuchWork as cut:
            if limits.planner is None:
                raise too_hard(request, self.stats().hosts, cut) from None
        return await self._explain_here(request, hosts, limits.of_request(), limits.planner)

    async def _explain_here(
        self, request: Request, hosts: Sequence[str], limit: "WorkLimit", planner: "Planner | None" = None
    ) -> "Explanation":
        """Explain a request, by a planner if there is one. Raises TooMuchWork beyond the limit."""
        from redsched.decide.explain.closed import merge_closed
        from redsched.decide.explain.places import merge_places
        from redsched.decide.explain.ranking import merge_ranked, merge_spared
        from redsched.decide.explain.unknown import merge_unknown
        from redsched.model.records.explanations import Explanation, of_unknown
        from redsched.scheduler.references import refuse_undeclared, undeclared, with_hints
        from redsched.scheduler.selection.refusal import merge_nearest, merge_reasons

        request = await with_hints(request, self._cells)
        await self._cells.catch_up()
        if what := undeclared(request, self._cells):
            await refuse_undeclared(what, self._cells)
        for host in hosts:
            if all(host not in cell.updater.columns for cell in self._cells):
                await self.hosts.get(host)
        found = [await self._explain(cell, request, hosts, limit, planner) for cell in self._cells]
        return Explanation(
            hosts=sum(one.hosts for one in found),
            fits=sum(one.fits for one in found),
            reasons=merge_reasons([one.reasons for one in found]),
            nearest=merge_nearest([one.nearest for one in found]),
            checks=tuple(sorted((check for one in found for check in one.checks), key=lambda check: check.host)),
            unsearched=sum(one.unsearched for one in found),
            exceeded=await self._quotas.exceeded(request),
            cut_short=any(one.cut_short for one in found),
            ranked=merge_ranked(one.ranked for one in found),
            **of_unknown(merge_unknown(found)),
            closed=merge_closed(one.closed for one in found),
            places=merge_places(one.places for one in found),
            spared=merge_spared(one.spared for one in found),
        )

    async def _explain(
        self, cell: Cell, request: Request, hosts: Sequence[str], limit: "WorkLimit", planner: "Planner | None"
    ) -> "Explanation":
        """Explain a request in one cell."""
        from redsched.decide.work_limit import within
        from redsched.scheduler.selection.blockers import with_claims

        if planner is None:
            found = await in_slices(within(limit, cell.decider.explain_steps(request, *hosts)))
        else:
            from redsched.scheduler.decide_apart.jobs import explained_apart

            found = await explained_apart(planner, cell, request, hosts)
        return await with_claims(cell, request, found, limit)

    async def host_names(self, limit: int, after: str = "") -> tuple[str, ...]:
        """Return up to `limit` names of hosts in the replicas, in order, starting after `after`."""
        await self._cells.catch_up()
        names = sorted(name for cell in self._cells for name in cell.updater.columns.names() if name > after)
        return tuple(names[:limit])

    def knows_host(self, name: str) -> bool:
        """Return whether a replica of this scheduler has a host of this name. From memory alone."""
        return any(name in cell.updater.columns for cell in self._cells)

    def changes(self, last_id: str = "") -> AsyncIterator[Change | Reset]:
        """Yield every change from now on; with `last_id`, all after the change or reset that has this `id`.

        A Reset says that changes of its cell are missing: also if the id is of another epoch, or of other cells only.
        Raises InvalidRequest or NotFound for an invalid `last_id`, at the call and not at the first iteration;
        InvalidRequest too if this scheduler was opened on demand.
        """
        from redsched.scheduler.observe.changes import follow

        self._require_followable()
        return follow(self._cells, last_id)

    def change_log(self, render: "Render") -> "ChangeLog":
        """Return a log of the changes for many readers, which renders each change once.

        Raises InvalidRequest if this scheduler was opened on demand.
        """
        from redsched.scheduler.observe.change_log import ChangeLog

        self._require_followable()
        return ChangeLog(self._cells, render)

    def _require_followable(self) -> None:
        if not all(cell.updater.is_started for cell in self._cells):
            raise InvalidRequest(
                "this scheduler was opened on demand and follows no changes: open it without on_demand"
            )

    async def audit(self) -> AuditReport:
        """Audit invariants 1, 2, 3, 5 and 10 of docs/architecture.md in the live store. Raises StoreUnavailable."""
        from redsched.scheduler.audit.audit import audit

        return await audit(self._cells)

    async def repair(self) -> AuditReport:
        """Audit, and repair what can be repaired at an operator's request. Raises StoreUnavailable."""
        from redsched.scheduler.audit.audit import repair

        return await repair(self._cells, operator=True)

    async def status(self) -> "StatusReport":
        """Return the state of the store and of all cells, and what is wrong. Raises StoreUnavailable."""
        from redsched.scheduler.status.service import status

        return await status(self._store, self._components.settings, self._cells, self._components.unmovable)

    async def usage(self, by: OneOf = UsageBy.CLASS, project: OneOf = None) -> tuple[UsageRow, ...]:
        """Return the total amounts of all claims, or those of a project, by class or by these dimensions.

        Raises StoreUnavailable.
        """
        from redsched.scheduler.observe.usage import usage

        return await usage(self._cells, usage_by(",".join(values_of(by) or (UsageBy.CLASS,))), project)

    async def capacity(
        self, by: "CapacityBy | None" = None, within: "Sequence[str] | None" = None
    ) -> "tuple[CapacityRow, ...]":
        """Return the amounts of all hosts and shared pools by class, or also by zone, aggregate, project or consumer.

        `within`: return what is free to each of these projects instead, within its quota and without names of hosts,
        or what their claims take by consumer. Raises StoreUnavailable.
        """
        from redsched.scheduler.observe.capacity import capacity

        if within is None:
            return await capacity(self._cells, self.shared_pools, by)
        from redsched.scheduler.observe.own_capacity import own_capacity

        return await own_capacity(self._cells, self.shared_pools, self.quotas, within, by)

    async def export(self, cell: str = "") -> "Archive":
        """Export a cell, named if there are several. Raises NotFound, InvalidRequest, StoreUnavailable."""
        from redsched.scheduler.backup.export import export_cell

        if not cell and len(self._cells) > 1:
            raise InvalidRequest("this scheduler has several cells: name the one to export")
        name = cell or next(iter(self._cells)).name
        return await export_cell(self._cells.named(name).store)

    async def import_(self, archive: "Archive", declared_only: bool = False) -> "Imported":
        """Import an exported cell into an empty cell; with `declared_only`, only its declarations, into any cell.

        Raises NotFound (this scheduler has no such cell), ClaimState (the cell is not empty), StoreUnavailable.
        """
        from redsched.scheduler.backup.import_ import import_cell, import_declared

        store = self._cells.named(archive.head.cell).store
        return await (import_declared if declared_only else import_cell)(store, archive)

    async def init(self) -> bool:
        """Declare the cells new, so that they start settled. Returns False if all of them existed already."""
        outcomes = [(await cell.store.init()).outcome for cell in self._cells]
        return any(outcome == "OK" for outcome in outcomes)

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
        running = self._components.running_tasks
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
            waiting=self._components.waiting,
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

    async def fleet(self) -> "Mapping[str, FleetUsage]":
        """Return what the hosts of each cell have, and what is left of it. From memory alone."""
        from redsched.cache.fleet import fleet_steps

        return {cell.name: await in_slices(fleet_steps(cell.updater.columns)) for cell in self._cells}

    def on_feed_lag(self, observe: Callable[[float], None]) -> None:
        """Call `observe` with the age in seconds of the oldest change of each batch that a replica applies."""
        for cell in self._cells:
            cell.updater.add_listener(FeedLag(cell.updater, observe))


def _planner(settings: Settings) -> "Planner | None":
    from redsched.scheduler.decide_apart.planner import planner

    return planner(settings.plan_limit_s)
