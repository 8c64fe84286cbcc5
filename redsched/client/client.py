"""The client that blocks."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

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
from redsched.operations.operation import Arguments, BaseOperation, Blocking

T = TypeVar("T")


class BlockingClaims(Claims[Blocking]):
    """Claims: read them, follow one, and the verbs on one."""

    def __init__(self, client: "Client") -> None:
        super().__init__(client)
        self._client = client

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
        return self._client.perform(once_in_state(claim_id, state, timeout_s, every_s, self._client.api))

    @readable
    def watch(self, claim_id: str, *, every_s: float = EVERY_S) -> Iterator[Claim]:
        """Return the claim as it is now, and again after each change of its state, host or amounts.

        The last one has ended, or is shelved. The claim is read every `every_s` seconds: of changes in between, only
        the last is seen. `events.of_claim` has all of them.
        """
        last: Claim | None = None
        while last is None or not has_ended(last):
            last = self._client.perform(next_change(claim_id, last, every_s, self._client.api))
            yield last


class BlockingEvents(Events[Blocking]):
    """The log of events."""

    @readable
    def follow(self, every_s: float = EVERY_S, after: str = "", wanted: EventFilter = ALL) -> Iterator[Event]:
        """Yield events as they are recorded, from now on; with `after`, all after the event with that id.

        An event of kind `reset` says that events may be missing. The log is read every `every_s` seconds.
        """
        following = EventsAfter(after, wanted)
        if not after:
            following.begin(self.newest(1000))
        while True:
            page = self.list(1000, following.after).page()
            yield from following.matching(page)
            if page.next is None:
                time.sleep(every_s)


class Client(BaseClient[httpx.BaseTransport], RestFleet[Blocking]):
    """A client that blocks, for one or several threads: `Client("http://localhost:8080", token_file="token")`.

    Calls about claims are in `claims`, about hosts in `hosts`; the other groups are `quotas`, `bulk`, `aggregates`,
    `server_groups`, `shared_pools`, `plans` and `events`. `BaseClient` describes the arguments.
    """

    blocks = True
    claims: BlockingClaims
    events: BlockingEvents

    def _open(self) -> None:
        RestFleet.__init__(self, self)
        self._http = httpx.Client(**self._options())
        self.claims, self.events = BlockingClaims(self), BlockingEvents(self)

    @readable
    def carry_out(self, operation: BaseOperation[Any, T], arguments: Arguments) -> T:
        """Send an operation, and return its result."""
        return self.run(call_of(operation, arguments))

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
