"""The client for asyncio. Its methods are those of the table in `calls.py`."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import aclosing, asynccontextmanager
from types import TracebackType
from typing import Any, Generic, ParamSpec, Self, TypeVar

import httpx

from redsched import aio
from redsched.client import calls, operator_calls
from redsched.client.base import BaseClient
from redsched.client.call_parts import Pages
from redsched.client.changes import ChangeEvent, EventParser, stream_error, stream_request
from redsched.client.exchange import Call, Exchange, Outcome, Pause, Send, exchange
from redsched.client.following import EVERY_S, States, has_ended, next_change, once_in_state
from redsched.client.methods import MethodHelp, readable
from redsched.model import Claim, ClaimStatus
from redsched.rest.connection import send

P = ParamSpec("P")
T = TypeVar("T")


class _Method(Generic[P, T]):
    """A call of the table as a method of an `AsyncClient`, or of one of its groups."""

    def __init__(self, make: Callable[P, Call[T]]) -> None:
        self._make, self._help = make, MethodHelp(make)

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._help.named(owner, name)

    def __get__(self, of: "AsyncClient | _Group | None", _: object) -> Callable[P, Coroutine[Any, Any, T]]:
        async def method(*args: P.args, **named: P.kwargs) -> T:
            if of is None:
                raise TypeError("this is a method of a client: open one")
            return await of.client.run(self._make(*args, **named))

        return self._help.on(method, of is not None)


class _Listing(Generic[P, T]):
    """A list of the table as a method that returns an asynchronous iterator. Pages are read as they are needed."""

    def __init__(self, make: Callable[P, Pages[T]]) -> None:
        self._make, self._help = make, MethodHelp(make, "AsyncIterator[{}]")

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._help.named(owner, name)

    def __get__(self, of: "AsyncClient | _Group | None", _: object) -> Callable[P, AsyncIterator[T]]:
        def method(*args: P.args, **named: P.kwargs) -> AsyncIterator[T]:
            if of is None:
                raise TypeError("this is a method of a client: open one")
            return of.client.items(self._make(*args, **named))

        return self._help.on(method, of is not None)


class _Group:
    def __init__(self, client: "AsyncClient") -> None:
        self.client = client


class AsyncClaims(_Group):
    """The calls about claims."""

    get = _Method(calls.get_claim)
    list = _Listing(calls.list_claims)
    events = _Listing(calls.list_claim_events)
    release = _Method(calls.release_claim)
    confirm = _Method(calls.confirm_claim)
    renew = _Method(calls.renew_claim)
    fail = _Method(calls.fail_claim)
    move = _Method(calls.move_claim)
    resize = _Method(calls.resize_claim)
    shelve = _Method(calls.shelve_claim)
    unshelve = _Method(calls.unshelve_claim)

    @readable
    async def wait(
        self,
        claim_id: str,
        state: States = ClaimStatus.ACTIVE,
        *,
        timeout_s: float | None = None,
        every_s: float = EVERY_S,
    ) -> Claim:
        """Wait until a claim is in the state, or in one of several, and return it.

        The claim is read every `every_s` seconds. Raises ClaimState if it ends in another way, and TimeoutError after
        `timeout_s` seconds; None waits for as long as it takes.
        """
        return await self.client.perform(once_in_state(claim_id, state, timeout_s, every_s, self.client.api))

    @readable
    async def watch(self, claim_id: str, *, every_s: float = EVERY_S) -> AsyncIterator[Claim]:
        """Return the claim as it is now, and again after each change of its state, host or amounts.

        The last one has ended, or is shelved. The claim is read every `every_s` seconds: of changes in between, only
        the last is seen. `events` has all of them.
        """
        last: Claim | None = None
        while last is None or not has_ended(last):
            last = await self.client.perform(next_change(claim_id, last, every_s, self.client.api))
            yield last


class AsyncHosts(_Group):
    """The calls about hosts."""

    get = _Method(calls.get_host)
    list = _Listing(calls.list_hosts)
    enable = _Method(operator_calls.enable_host)
    disable = _Method(operator_calls.disable_host)
    drain = _Method(operator_calls.drain_host)
    write_off = _Method(operator_calls.write_off_host)
    remove = _Method(operator_calls.remove_host)


class AsyncQuotas(_Group):
    """The calls about quotas."""

    get = _Method(calls.get_quota)
    list = _Listing(calls.list_quotas)
    put = _Method(operator_calls.put_quota)
    delete = _Method(operator_calls.delete_quota)


class AsyncBulk(_Group):
    """The calls on all claims that match filters."""

    release = _Listing(operator_calls.bulk_release)
    renew = _Listing(operator_calls.bulk_renew)
    shelve = _Listing(operator_calls.bulk_shelve)
    unshelve = _Listing(operator_calls.bulk_unshelve)


class AsyncAggregates(_Group):
    """The calls about aggregates."""

    get = _Method(operator_calls.get_aggregate)
    list = _Listing(operator_calls.list_aggregates)
    put = _Method(operator_calls.put_aggregate)
    delete = _Method(operator_calls.delete_aggregate)


class AsyncServerGroups(_Group):
    """The calls about server groups."""

    get = _Method(operator_calls.get_server_group)
    list = _Listing(operator_calls.list_server_groups)
    put = _Method(operator_calls.put_server_group)
    delete = _Method(operator_calls.delete_server_group)


class AsyncSharedPools(_Group):
    """The calls about shared pools."""

    get = _Method(operator_calls.get_shared_pool)
    list = _Listing(operator_calls.list_shared_pools)
    put = _Method(operator_calls.put_shared_pool)
    delete = _Method(operator_calls.delete_shared_pool)


class AsyncPlans(_Group):
    """What would happen, which writes nothing, and the moves of a plan."""

    capacity = _Method(operator_calls.plan_capacity)
    drain = _Method(operator_calls.plan_drain)
    without = _Method(operator_calls.plan_without)
    with_hosts = _Method(operator_calls.plan_with)
    rebalance = _Method(operator_calls.plan_rebalance)
    apply = _Method(operator_calls.apply_moves)


class AsyncClient(BaseClient[httpx.AsyncBaseTransport]):
    """A client for asyncio, for one event loop: `AsyncClient("http://localhost:8080", token_file="token")`.

    Calls about claims are in `claims`, about hosts in `hosts`; the other groups are `quotas`, `bulk`, `aggregates`,
    `server_groups`, `shared_pools` and `plans`. `BaseClient` describes the arguments.
    """

    about = _Method(calls.about)
    select = _Method(calls.select)
    dry_run = _Method(calls.dry_run)
    explain = _Method(calls.explain)
    usage = _Method(calls.usage)
    status = _Method(operator_calls.status)
    capacity = _Method(operator_calls.capacity)
    events = _Listing(calls.list_events)

    def _open(self) -> None:
        self._http = httpx.AsyncClient(**self._options())
        self.claims, self.hosts, self.quotas = AsyncClaims(self), AsyncHosts(self), AsyncQuotas(self)
        self.aggregates, self.server_groups = AsyncAggregates(self), AsyncServerGroups(self)
        self.shared_pools, self.bulk, self.plans = AsyncSharedPools(self), AsyncBulk(self), AsyncPlans(self)

    @property
    def client(self) -> "AsyncClient":
        """The client itself, as its groups have it."""
        return self

    @readable
    async def run(self, call: Call[T]) -> T:
        """Send a call and return its reply. Raises the errors of `redsched.errors`."""
        return await self.perform(exchange(call, self._api))

    @readable
    async def perform(self, steps: Exchange[T]) -> T:
        """Carry out the steps of one or several calls, and return their result."""
        outcome: Outcome = None
        try:
            while True:
                step = steps.send(outcome)
                if isinstance(step, Pause):
                    await asyncio.sleep(step.seconds)
                outcome = None if isinstance(step, Pause) else await self._send(step)
        except StopIteration as done:
            found: T = done.value
            return found

    @readable
    async def items(self, pages: Pages[T]) -> AsyncIterator[T]:
        """Return the items of all pages of a list."""
        after: str | None = ""
        while after is not None:
            page = await self.run(pages.after(after))
            for one in page.items:
                yield one
            after = page.next

    @readable
    @asynccontextmanager
    async def changes(self, after: str = "") -> AsyncIterator[AsyncIterator[ChangeEvent]]:
        """Follow the changes after an event; '' for only new ones. It ends with the connection, and is not retried.

        `after`: the `id` of the last event. If changes since may be missing, an event without a change says so. Raises
        NotFound if this API does not serve one of the cells that the id names.
        """
        try:
            reply = await self._http.send(stream_request(self._http, self._api, after), stream=True)
        except httpx.HTTPError as error:
            raise stream_error(self._api, error) from error
        try:
            if not reply.is_success:
                await reply.aread()
                raise stream_error(self._api, reply)
            async with aclosing(self._events(reply)) as events:
                yield events
        finally:
            await reply.aclose()

    async def _events(self, reply: httpx.Response) -> AsyncGenerator[ChangeEvent, None]:
        parser = EventParser()
        try:
            async for line in reply.aiter_lines():
                if event := parser.feed(line):
                    yield event
        except httpx.HTTPError as error:
            raise stream_error(self._api, error) from error

    async def _send(self, one: Send) -> httpx.Response | httpx.HTTPError:
        try:
            return await send(self._http, self._request(self._http, one))
        except httpx.HTTPError as error:
            return error

    async def close(self) -> None:
        """Close all connections."""
        await aio.finish(self._http.aclose())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
