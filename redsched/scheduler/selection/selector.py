"""Select: run the pipeline, and wait for room and for confirmation by the hosts. From the outside in:

until_active.confirmed          undone when a host does not confirm
  reservations.kept_for         hosts are reserved while it waits, if it asks for that
  wait_queue.place              retried whenever there may be room
    until_active.placed         undone when the caller disconnects
      within select_timeout_s
        pipeline.run            resolve > route_to_cell > decide > bind > claim > interpret

Read a request from here to its claim in pipeline.py; claim_call.py builds the call of the script, and attempt.py has
what is known of the request meanwhile. With several cells, routing.py finds its cell.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from redsched import aio
from redsched.errors import NoValidHost, OutcomeUnknown, RedschedError, StoreUnavailable
from redsched.model import Request
from redsched.model.records.selections import Selections
from redsched.scheduler.decide_apart.limits import DecisionLimits
from redsched.scheduler.results import Effort
from redsched.scheduler.selection.attempt import SchedulingAttempt
from redsched.scheduler.selection.pipeline import SelectionPipeline
from redsched.scheduler.selection.reservations import Reservations
from redsched.scheduler.selection.wait_active import ActiveWaiter
from redsched.scheduler.selection.wait_queue import WaitQueue

Observe = Callable[[Effort], None]


class Selector:
    """Selects places for requests, over all cells of a scheduler."""

    def __init__(
        self,
        pipeline: SelectionPipeline,
        wait_queue: WaitQueue,
        until_active: ActiveWaiter,
        count: Callable[[Request], None],
        timeout_s: float,
        limits: DecisionLimits,
        reservations: Reservations,
        observe: Observe | None = None,
    ) -> None:
        self._pipeline = pipeline
        self._wait_queue = wait_queue
        self._until_active = until_active
        self._count = count
        self._timeout_s = timeout_s
        self._limits = limits
        self._reservations = reservations
        self._limit = aio.TimeLimit(timeout_s)
        self._observe = observe or (lambda _: None)
        self._waiting: dict[SchedulingAttempt, None] = {}

    async def select(self, request: Request, owner: str = "", own_only: bool = False) -> Selections:
        """Claim a place for every member of the request, or show the places without claiming them (`claim` False).

        `owner` owns the claims instead of whom the request names. Raises InvalidRequest, NoValidHost, TooHard,
        QuotaExceeded, ClaimIdReused, ClaimState (some ids have ended or were lost), Forbidden (with `own_only`: others
        own claims with the request's ids), NotConfirmed, Settling, StoreUnavailable, OutcomeUnknown.
        """
        if request.reserve:
            self._reservations.check_reserving()
        attempt = SchedulingAttempt(request, self._limits.of_request, owner, own_only)
        try:
            found = await self._place(attempt)
            if attempt.waits_until_active:
                found = await self._until_active.confirmed(request, found, attempt.call_id)
        except RedschedError as error:
            self._observe(attempt.effort(error.problem, self._pipeline.main_reason(error)))
            raise
        done = "claimed" if found.fresh else "same"
        self._observe(attempt.effort(done if request.claim else "dry-run"))
        return found

    async def _place(self, attempt: SchedulingAttempt) -> Selections:
        """Place the request; if nothing fits, wait for room up to the request's `queue_timeout_s`."""
        try:
            found = await self._place_now(attempt)
            if attempt.request.claim and found.fresh:
                self._count(attempt.request)
            return found
        except NoValidHost as refused:
            if attempt.request.claim:
                self._count(attempt.request)
            if not attempt.waits_for_room:
                raise
            async with self._reservations.kept_for(attempt):
                with self._listed(attempt):
                    return await self._wait_queue.place(
                        lambda: self._place_now(attempt),
                        lambda: self._pipeline.may_fit(attempt),
                        attempt.request.queue_timeout_s,
                        refused,
                        key=None if attempt.reservation else _fits_alike(attempt.request),
                        is_hard=lambda: attempt.is_hard,
                    )

    @contextmanager
    def _listed(self, attempt: SchedulingAttempt) -> Iterator[None]:
        """List a request among those that wait for room, inside the context."""
        self._waiting[attempt] = None
        try:
            yield
        finally:
            del self._waiting[attempt]

    def waiting(self) -> list[Request]:
        """Return the requests that wait for room, in order of arrival."""
        return [one.resolved for one in self._waiting]

    async def _place_now(self, attempt: SchedulingAttempt) -> Selections:
        if attempt.waits_until_active:
            return await self._until_active.placed(lambda: self._run(attempt), attempt.call_id)
        return await self._run(attempt)

    async def _run(self, attempt: SchedulingAttempt) -> Selections:
        """Run the pipeline from its start. Raises what it raises; on timeout, StoreUnavailable or OutcomeUnknown."""
        attempt.restart()
        try:
            with self._limit.limited():
                return await self._pipeline.run(attempt)
        except TimeoutError as error:
            raise self._timed_out(attempt) from error
        except OutcomeUnknown as error:
            raise OutcomeUnknown(error.detail, attempt.known_ids(), error.public) from error

    def _timed_out(self, attempt: SchedulingAttempt) -> RedschedError:
        within = f"within {self._timeout_s:g} s"
        if attempt.sent:
            return OutcomeUnknown(
                f"a claim was sent to the store and no reply came {within}; repeat the request with these claim_ids",
                attempt.known_ids(),
            )
        if attempt.is_hard:
            return StoreUnavailable(f"the request takes long to decide, and others came first {within}: retry")
        return StoreUnavailable(f"no host could be claimed {within}, though some seemed free: retry")


def _fits_alike(request: Request) -> str:
    """Return a key that is equal for requests that fit together or not at all, whatever their hooks are given."""
    return (request if request.payload is None else replace(request, payload=None)).digest()
