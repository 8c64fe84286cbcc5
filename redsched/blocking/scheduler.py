"""The Scheduler whose methods block, and its groups. Each method is that of the asynchronous one, of the same name.

The table of methods is here; a test compares it with the asynchronous classes.
"""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import update_wrapper
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from redsched import scheduler as asynchronous
from redsched.blocking.loop import LoopThread
from redsched.scheduler.claims.bulk import BulkService
from redsched.scheduler.claims.migration import MigrationService
from redsched.scheduler.claims.service import ClaimService
from redsched.scheduler.declared.service import AggregateService, ServerGroupService, SharedPoolService
from redsched.scheduler.hosts.service import HostService
from redsched.scheduler.observe.events import EventService
from redsched.scheduler.plans.running import MoveRunner
from redsched.scheduler.plans.service import PlanService
from redsched.scheduler.quotas.service import QuotaService
from redsched.settings import Settings

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")


class _Part(Generic[S]):
    """A group of methods: the asynchronous `service`, and the loop on which it runs."""

    def __init__(self, loop: LoopThread[Any], service: S) -> None:
        self._loop, self._service = loop, service


class _Method(Generic[S, P, T]):
    """A coroutine function of a service as a method that blocks."""

    def __init__(self, function: Callable[Concatenate[S, P], Coroutine[Any, Any, T]]) -> None:
        self._function = function

    def __get__(self, part: _Part[S], _: object) -> Callable[P, T]:
        def method(*args: P.args, **named: P.kwargs) -> T:
            return part._loop.call(self._function(part._service, *args, **named))

        return update_wrapper(method, self._function)


class _Stream(Generic[S, P, T]):
    """An asynchronous iterator of a service as one that blocks."""

    def __init__(self, function: Callable[Concatenate[S, P], AsyncIterator[T]]) -> None:
        self._function = function

    def __get__(self, part: _Part[S], _: object) -> Callable[P, Iterator[T]]:
        def method(*args: P.args, **named: P.kwargs) -> Iterator[T]:
            return part._loop.iterate(self._function(part._service, *args, **named))

        return update_wrapper(method, self._function)


class Claims(_Part[ClaimService]):
    """The reads and verbs of single claims."""

    get = _Method(ClaimService.get)
    list = _Method(ClaimService.list)
    confirm = _Method(ClaimService.confirm)
    renew = _Method(ClaimService.renew)
    resize = _Method(ClaimService.resize)
    shelve = _Method(ClaimService.shelve)
    release = _Method(ClaimService.release)


class Migrations(_Part[MigrationService]):
    """The verbs that find a new place for a claim."""

    fail = _Method(MigrationService.fail)
    move = _Method(MigrationService.move)
    unshelve = _Method(MigrationService.unshelve)


class Bulk(_Part[BulkService]):
    """The verbs on all claims that match a filter."""

    release = _Method(BulkService.release)
    renew = _Method(BulkService.renew)
    shelve = _Method(BulkService.shelve)
    unshelve = _Method(BulkService.unshelve)


class Hosts(_Part[HostService]):
    """The reads and verbs of hosts."""

    get = _Method(HostService.get)
    list = _Method(HostService.list)
    report = _Method(HostService.report)
    heartbeat = _Method(HostService.heartbeat)
    set_status = _Method(HostService.set_status)
    lost = _Method(HostService.lost)
    forget = _Method(HostService.forget)


class Aggregates(_Part[AggregateService]):
    """Aggregates."""

    get = _Method(AggregateService.get)
    list = _Method(AggregateService.list)
    put = _Method(AggregateService.put)
    delete = _Method(AggregateService.delete)


class ServerGroups(_Part[ServerGroupService]):
    """Server groups."""

    get = _Method(ServerGroupService.get)
    list = _Method(ServerGroupService.list)
    put = _Method(ServerGroupService.put)
    delete = _Method(ServerGroupService.delete)


class SharedPools(_Part[SharedPoolService]):
    """Shared pools."""

    get = _Method(SharedPoolService.get)
    list = _Method(SharedPoolService.list)
    put = _Method(SharedPoolService.put)
    delete = _Method(SharedPoolService.delete)


class Quotas(_Part[QuotaService]):
    """Quotas."""

    get = _Method(QuotaService.get)
    list = _Method(QuotaService.list)
    put = _Method(QuotaService.put)
    delete = _Method(QuotaService.delete)


class Plans(_Part[PlanService]):
    """What would happen."""

    capacity = _Method(PlanService.capacity)
    drain = _Method(PlanService.drain)
    without = _Method(PlanService.without)
    with_hosts = _Method(PlanService.with_hosts)
    rebalance = _Method(PlanService.rebalance)


class Moves(_Part[MoveRunner]):
    """The moves of a plan."""

    run = _Stream(MoveRunner.run)


class Events(_Part[EventService]):
    """The log of events."""

    list = _Method(EventService.list)
    newest = _Method(EventService.newest)
    follow = _Stream(EventService.follow)


class Scheduler(_Part[asynchronous.Scheduler]):
    """A Scheduler whose methods block. Any number of threads may use it. Close it, or use it in a `with` statement.

    It runs the asynchronous Scheduler on an event loop in a thread of its own.
    """

    select = _Method(asynchronous.Scheduler.select)
    explain = _Method(asynchronous.Scheduler.explain)
    host_names = _Method(asynchronous.Scheduler.host_names)
    status = _Method(asynchronous.Scheduler.status)
    usage = _Method(asynchronous.Scheduler.usage)
    capacity = _Method(asynchronous.Scheduler.capacity)
    audit = _Method(asynchronous.Scheduler.audit)
    repair = _Method(asynchronous.Scheduler.repair)
    init = _Method(asynchronous.Scheduler.init)
    export = _Method(asynchronous.Scheduler.export)
    import_ = _Method(asynchronous.Scheduler.import_)
    readiness = _Method(asynchronous.Scheduler.readiness)
    changes = _Stream(asynchronous.Scheduler.changes)

    @classmethod
    def connect(
        cls, url: str, settings: Settings | None = None, *, on_demand: bool = False, read_only: bool = False
    ) -> Self:
        """Open a scheduler whose replica has caught up. The arguments and errors are those of the asynchronous one."""
        loop = LoopThread(
            lambda: asynchronous.Scheduler.connect(url, settings, on_demand=on_demand, read_only=read_only)
        )
        try:
            return cls(loop, loop.resource())
        except BaseException:
            loop.close()
            raise

    def __init__(self, loop: LoopThread[asynchronous.Scheduler], service: asynchronous.Scheduler) -> None:
        super().__init__(loop, service)
        self.claims, self.migrations = Claims(loop, service.claims), Migrations(loop, service.migrations)
        self.bulk, self.hosts = Bulk(loop, service.bulk), Hosts(loop, service.hosts)
        self.aggregates, self.quotas = Aggregates(loop, service.aggregates), Quotas(loop, service.quotas)
        self.server_groups, self.pools = ServerGroups(loop, service.server_groups), SharedPools(loop, service.pools)
        self.plans, self.move_runner = Plans(loop, service.plans), Moves(loop, service.move_runner)
        self.events = Events(loop, service.events)

    def close(self) -> None:
        """Close the scheduler. Calls of other threads that have not ended raise OutcomeUnknown."""
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
