"""The Scheduler whose methods block: the operations of a fleet, and what only a process with the store can do."""

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import update_wrapper
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from redsched import scheduler as asynchronous
from redsched.blocking.loop import LoopThread
from redsched.errors import InvalidRequest
from redsched.model.filters import ALL, EventFilter
from redsched.model.records.changes import Change, Reset
from redsched.model.records.events import Event
from redsched.operations.events import Events
from redsched.operations.fleet import Fleet, request_of
from redsched.operations.hosts import Hosts
from redsched.operations.operation import Arguments, BaseOperation, Blocking
from redsched.scheduler.hosts.hosts import HostService
from redsched.settings import Settings

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")


class _Link:
    """Carries operations out: calls the method of the same name on the loop of a scheduler."""

    blocks = True

    def __init__(self, loop: LoopThread[asynchronous.Scheduler]) -> None:
        self.loop, self.scheduler = loop, loop.resource()

    def carry_out(self, operation: BaseOperation[Any, T], arguments: Arguments) -> T:
        """Call the method and return its result."""
        given = dict(arguments)
        if "fields" in given:
            given["request"] = request_of(given["request"], given.pop("fields"))
        if given.pop("idempotency_key", ""):
            raise InvalidRequest("idempotency_key is for the REST API: give the request claim_ids")
        result: T = self.loop.call(operation.on(self.scheduler)(**given))
        return result


class _Method(Generic[S, P, T]):
    """A coroutine function of a service as a method that blocks."""

    def __init__(self, function: Callable[Concatenate[S, P], Coroutine[Any, Any, T]]) -> None:
        self._function = function

    def __get__(self, of: "_Services[S]", _: object) -> Callable[P, T]:
        def method(*args: P.args, **named: P.kwargs) -> T:
            return of.loop.call(self._function(of.service, *args, **named))

        return update_wrapper(method, self._function)


class _Services(Generic[S]):
    """What has methods of a service: the service, and the loop on which it runs."""

    loop: LoopThread[Any]
    service: S


class BlockingHosts(Hosts[Blocking], _Services[HostService]):
    """Hosts: read them, what operators do with them, and what their agents report."""

    report = _Method(HostService.report)
    heartbeat = _Method(HostService.heartbeat)

    def __init__(self, link: _Link) -> None:
        super().__init__(link)
        self.loop, self.service = link.loop, link.scheduler.hosts


class BlockingEvents(Events[Blocking]):
    """The log of events."""

    def __init__(self, link: _Link) -> None:
        super().__init__(link)
        self._of = link

    def follow(self, every_s: float = 1.0, after: str = "", wanted: EventFilter = ALL) -> Iterator[Event]:
        """Yield events as `EventService.follow` does."""
        return self._of.loop.iterate(self._of.scheduler.events.follow(every_s, after, wanted))


class Scheduler(Fleet[Blocking], _Services[asynchronous.Scheduler]):
    """A Scheduler whose methods block. Any number of threads may use it. Close it, or use it in a `with` statement.

    It runs the asynchronous Scheduler on an event loop in a thread of its own.
    """

    hosts: BlockingHosts
    events: BlockingEvents
    audit = _Method(asynchronous.Scheduler.audit)
    repair = _Method(asynchronous.Scheduler.repair)
    init = _Method(asynchronous.Scheduler.init)
    export = _Method(asynchronous.Scheduler.export)
    import_ = _Method(asynchronous.Scheduler.import_)
    readiness = _Method(asynchronous.Scheduler.readiness)

    @classmethod
    def connect(
        cls, url: str, settings: Settings | None = None, *, on_demand: bool = False, read_only: bool = False
    ) -> Self:
        """Open a scheduler whose replica has caught up. The arguments and errors are those of the asynchronous one."""
        loop = LoopThread(
            lambda: asynchronous.Scheduler.connect(url, settings, on_demand=on_demand, read_only=read_only)
        )
        try:
            return cls(_Link(loop))
        except BaseException:
            loop.close()
            raise

    def __init__(self, link: _Link) -> None:
        super().__init__(link)
        self.loop, self.service = link.loop, link.scheduler
        self.hosts, self.events = BlockingHosts(link), BlockingEvents(link)

    def changes(self, last_id: str = "") -> Iterator[Change | Reset]:
        """Yield changes as `Scheduler.changes` of the asynchronous one does."""

        async def changes() -> AsyncIterator[Change | Reset]:
            return self.service.changes(last_id)

        return self.loop.iterate(self.loop.call(changes()))

    def close(self) -> None:
        """Close the scheduler. Calls of other threads that have not ended raise OutcomeUnknown."""
        self.loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
