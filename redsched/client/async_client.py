"""The client for asyncio."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from redsched import aio
from redsched.client.base import BaseClient, call_of
from redsched.client.changes import ChangeEvent, EventParser, stream_error, stream_request
from redsched.client.exchange import Call, Exchange, Outcome, Pause, Send, exchange
from redsched.client.following import EVERY_S, EventsAfter, States, has_ended, next_change, once_in_state
from redsched.model import Claim, ClaimStatus
from redsched.model.filters import ALL, EventFilter
from redsched.model.readable import readable
from redsched.model.records.events import Event
from redsched.operations.claims import Claims
from redsched.operations.events import Events
from redsched.operations.fleet import RestFleet
from redsched.operations.operation import Arguments, Async, BaseOperation
from redsched.rest import send

T = TypeVar("T")


class AsyncClaims(Claims[Async]):
    """Claims: read them, follow one, and the verbs on one."""

    def __init__(self, client: "AsyncClient") -> None:
        super().__init__(client)
        self._client = client

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
        return await self._client.perform(once_in_state(claim_id, state, timeout_s, every_s, self._client.api))

    @readable
    async def watch(self, claim_id: str, *, every_s: float = EVERY_S) -> AsyncIterator[Claim]:
        """Return the claim as it is now, and again after each change of its state, host or amounts.

        The last one has ended, or is shelved. The claim is read every `every_s` seconds: of changes in between, only
        the last is seen. `events.of_claim` has all of them.
        """
        last: Claim | None = None
        while last is None or not has_ended(last):
            last = await self._client.perform(next_change(claim_id, last, every_s, self._client.api))
            yield last


class AsyncEvents(Events[Async]):
    """The log of events."""

    @readable
    async def follow(
        self, every_s: float = EVERY_S, after: str = "", wanted: EventFilter = ALL
    ) -> AsyncIterator[Event]:
        """Yield events as they are recorded, from now on; with `after`, all after the event with that id.

        An event of kind `reset` says that events may be missing. The log is read every `every_s` seconds.
        """
        following = EventsAfter(after, wanted)
        if not after:
            following.begin(await self.newest(1000))
        while True:
            page = await self.list(1000, following.after)
            for one in following.matching(page):
                yield one
            if page.next is None:
                await asyncio.sleep(every_s)


class AsyncClient(BaseClient[httpx.AsyncBaseTransport], RestFleet[Async]):
    """A client for asyncio, for one event loop: `AsyncClient("http://localhost:8080", token_file="token")`.

    Calls about claims are in `claims`, about hosts in `hosts`; the other groups are `quotas`, `bulk`, `aggregates`,
    `server_groups`, `shared_pools`, `plans` and `events`. `BaseClient` describes the arguments.
    """

    blocks = False
    claims: AsyncClaims
    events: AsyncEvents

    def _open(self) -> None:
        RestFleet.__init__(self, self)
        self._http = httpx.AsyncClient(**self._options())
        self.claims, self.events = AsyncClaims(self), AsyncEvents(self)

    @readable
    async def carry_out(self, operation: BaseOperation[Any, T], arguments: Arguments) -> T:
        """Send an operation, and return its result."""
        return await self.run(call_of(operation, arguments))

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
