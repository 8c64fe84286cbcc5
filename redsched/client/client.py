"""The client that blocks. Its methods are those of the table in `calls.py`."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Generic, ParamSpec, Self, TypeVar

import httpx

from redsched.client import calls, operator_calls
from redsched.client.base import BaseClient
from redsched.client.call_parts import Pages
from redsched.client.changes import ChangeEvent, EventParser, stream_error, stream_request
from redsched.client.exchange import Call, Exchange, Outcome, Pause, Send, exchange
from redsched.client.following import EVERY_S, States, has_ended, next_change, once_in_state
from redsched.client.methods import MethodHelp, readable
from redsched.model import Claim, ClaimStatus

P = ParamSpec("P")
T = TypeVar("T")


class _Method(Generic[P, T]):
    """A call of the table as a method of a `Client`, or of one of its groups."""

    def __init__(self, make: Callable[P, Call[T]]) -> None:
        self._make, self._help = make, MethodHelp(make)

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._help.named(owner, name)

    def __get__(self, of: "Client | _Group | None", _: object) -> Callable[P, T]:
        def method(*args: P.args, **named: P.kwargs) -> T:
            if of is None:
                raise TypeError("this is a method of a client: open one")
            return of.client.run(self._make(*args, **named))

        return self._help.on(method, of is not None)


class _Listing(Generic[P, T]):
    """A list of the table as a method that returns an iterator. Pages are read as they are needed."""

    def __init__(self, make: Callable[P, Pages[T]]) -> None:
        self._make, self._help = make, MethodHelp(make, "Iterator[{}]")

    def __set_name__(self, owner: type[Any], name: str) -> None:
        self._help.named(owner, name)

    def __get__(self, of: "Client | _Group | None", _: object) -> Callable[P, Iterator[T]]:
        def method(*args: P.args, **named: P.kwargs) -> Iterator[T]:
            if of is None:
                raise TypeError("this is a method of a client: open one")
            return of.client.items(self._make(*args, **named))

        return self._help.on(method, of is not None)


class _Group:
    def __init__(self, client: "Client") -> None:
        self.client = client


class Claims(_Group):
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
    def wait(
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
        return self.client.perform(once_in_state(claim_id, state, timeout_s, every_s, self.client.api))

    @readable
    def watch(self, claim_id: str, *, every_s: float = EVERY_S) -> Iterator[Claim]:
        """Return the claim as it is now, and again after each change of its state, host or amounts.

        The last one has ended, or is shelved. The claim is read every `every_s` seconds: of changes in between, only
        the last is seen. `events` has all of them.
        """
        last: Claim | None = None
        while last is None or not has_ended(last):
            last = self.client.perform(next_change(claim_id, last, every_s, self.client.api))
            yield last


class Hosts(_Group):
    """The calls about hosts."""

    get = _Method(calls.get_host)
    list = _Listing(calls.list_hosts)
    enable = _Method(operator_calls.enable_host)
    disable = _Method(operator_calls.disable_host)
    drain = _Method(operator_calls.drain_host)
    write_off = _Method(operator_calls.write_off_host)
    remove = _Method(operator_calls.remove_host)


class Quotas(_Group):
    """The calls about quotas."""

    get = _Method(calls.get_quota)
    list = _Listing(calls.list_quotas)
    put = _Method(operator_calls.put_quota)
    delete = _Method(operator_calls.delete_quota)


class Bulk(_Group):
    """The calls on all claims that match filters."""

    release = _Listing(operator_calls.bulk_release)
    renew = _Listing(operator_calls.bulk_renew)
    shelve = _Listing(operator_calls.bulk_shelve)
    unshelve = _Listing(operator_calls.bulk_unshelve)


class Aggregates(_Group):
    """The calls about aggregates."""

    get = _Method(operator_calls.get_aggregate)
    list = _Listing(operator_calls.list_aggregates)
    put = _Method(operator_calls.put_aggregate)
    delete = _Method(operator_calls.delete_aggregate)


class ServerGroups(_Group):
    """The calls about server groups."""

    get = _Method(operator_calls.get_server_group)
    list = _Listing(operator_calls.list_server_groups)
    put = _Method(operator_calls.put_server_group)
    delete = _Method(operator_calls.delete_server_group)


class SharedPools(_Group):
    """The calls about shared pools."""

    get = _Method(operator_calls.get_shared_pool)
    list = _Listing(operator_calls.list_shared_pools)
    put = _Method(operator_calls.put_shared_pool)
    delete = _Method(operator_calls.delete_shared_pool)


class Plans(_Group):
    """What would happen, which writes nothing, and the moves of a plan."""

    capacity = _Method(operator_calls.plan_capacity)
    drain = _Method(operator_calls.plan_drain)
    without = _Method(operator_calls.plan_without)
    with_hosts = _Method(operator_calls.plan_with)
    rebalance = _Method(operator_calls.plan_rebalance)
    apply = _Method(operator_calls.apply_moves)


class Client(BaseClient[httpx.BaseTransport]):
    """A client that blocks, for one or several threads: `Client("http://localhost:8080", token_file="token")`.

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
        self._http = httpx.Client(**self._options())
        self.claims, self.hosts, self.quotas = Claims(self), Hosts(self), Quotas(self)
        self.aggregates, self.server_groups = Aggregates(self), ServerGroups(self)
        self.shared_pools, self.bulk, self.plans = SharedPools(self), Bulk(self), Plans(self)

    @property
    def client(self) -> "Client":
        """The client itself, as its groups have it."""
        return self

    @readable
    def run(self, call: Call[T]) -> T:
        """Send a call and return its reply. Raises the errors of `redsched.errors`."""
        return self.perform(exchange(call, self._api))

    @readable
    def perform(self, steps: Exchange[T]) -> T:
        """Carry out the steps of one or several calls, and return their result."""
        outcome: Outcome = None
        try:
            while True:
                step = steps.send(outcome)
                if isinstance(step, Pause):
                    time.sleep(step.seconds)
                outcome = None if isinstance(step, Pause) else self._send(step)
        except StopIteration as done:
            found: T = done.value
            return found

    @readable
    def items(self, pages: Pages[T]) -> Iterator[T]:
        """Return the items of all pages of a list."""
        after: str | None = ""
        while after is not None:
            page = self.run(pages.after(after))
            yield from page.items
            after = page.next

    @readable
    @contextmanager
    def changes(self, after: str = "") -> Iterator[Iterator[ChangeEvent]]:
        """Follow the changes after an event; '' for only new ones. It ends with the connection, and is not retried.

        `after`: the `id` of the last event. If changes since may be missing, an event without a change says so. Raises
        NotFound if this API does not serve one of the cells that the id names.
        """
        try:
            reply = self._http.send(stream_request(self._http, self._api, after), stream=True)
        except httpx.HTTPError as error:
            raise stream_error(self._api, error) from error
        try:
            if not reply.is_success:
                reply.read()
                raise stream_error(self._api, reply)
            yield self._events(reply)
        finally:
            reply.close()

    def _events(self, reply: httpx.Response) -> Iterator[ChangeEvent]:
        parser = EventParser()
        try:
            yield from filter(None, map(parser.feed, reply.iter_lines()))
        except httpx.HTTPError as error:
            raise stream_error(self._api, error) from error

    def _send(self, one: Send) -> httpx.Response | httpx.HTTPError:
        try:
            return self._http.send(self._request(self._http, one))
        except httpx.HTTPError as error:
            return error

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
