"""Reservations: the host that a request which waits for room keeps for itself until it is placed.

    nothing fits ──▶ choose the host that fewest claims have to leave ──▶ reserve.lua keeps its amounts, also those
         ▲                                                                that become free, from all other claims
         │ a better host, or its host is gone                                       │ every RENEW_S
         └──────────────────────────────────────────────────────────────────────────┘
                     the request is placed, there or elsewhere, or gives up ──▶ its reservation ends

A scheduler that dies renews nothing: its reservations end with their lease. Work that states how long it runs
(`max_runtime_s`) may use what is kept if it ends before the request can be placed.
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from redsched import aio, logs, origin
from redsched.decide.reserving import Wait
from redsched.decide.work_limit import TooMuchWork
from redsched.errors import InvalidRequest, RedschedError
from redsched.model import Claim
from redsched.model.validation import SHARED_POOL
from redsched.pacing import paced
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.decide_apart.limits import background_limit
from redsched.scheduler.quotas.enforcement import Quotas
from redsched.scheduler.quotas.usage import quota_usage
from redsched.scheduler.selection.attempt import SchedulingAttempt
from redsched.settings import Settings
from redsched.store.codec.outcomes import Outcome

LEASE_S = 15.0
RENEW_S = 5.0
COMPARED = 6
"""How many hosts of each kind are compared, besides the one that is reserved already."""
DOUBTED = 3
"""How often in a row a reserved host may seem too full before the reservation is given up."""

log = logs.get_logger(__name__)


class Reservations:
    """The reservations of one scheduler."""

    def __init__(self, cells: Cells, quotas: Quotas, settings: Settings) -> None:
        self._cells = cells
        self._quotas = quotas
        self._settings = settings
        self._waiting: dict[_Reservation, asyncio.Task[None]] = {}
        """The requests that reserve, in order of arrival, each with the task that renews its reservation."""
        self.turns = asyncio.Lock()
        """One of them is renewed at a time: what others of its project reserve counts towards its quota."""

    def check_reserving(self) -> None:
        """Raise InvalidRequest if no host may be reserved."""
        if not self._settings.reserved_hosts_percent:
            raise InvalidRequest("reserve is switched off here (REDSCHED_RESERVED_HOSTS_PERCENT is 0): leave it out")

    async def stop(self) -> None:
        """End all reservations. Their requests go on waiting until they time out."""
        for one in [*self._waiting]:
            await self._end(one)

    @asynccontextmanager
    async def kept_for(self, attempt: SchedulingAttempt) -> AsyncIterator[None]:
        """Reserve a host for a request inside the context, if it asks for that."""
        if not attempt.request.reserve:
            yield
            return
        one = _Reservation(self, attempt)
        attempt.reservation = one.id
        self._waiting[one] = asyncio.create_task(one.renew_until_cancelled(), name=f"redsched-reservation-{one.id}")
        try:
            yield
        finally:
            await aio.finish(self._end(one))

    async def _end(self, one: "_Reservation") -> None:
        if (renewing := self._waiting.pop(one, None)) is None:
            return
        await aio.end(renewing)
        await one.end()
        # Claims may have left its host already: another request that waits here is to have it, and not start anew.
        heir = next((other for other in self._waiting if other.kept is None), next(iter(self._waiting), None))
        if heir is not None:
            heir.has_news.set()

    def cells_of(self, only: Cell | None) -> list[Cell]:
        """Return the cells in which a request may be placed, `only` or any."""
        return list(self._cells) if only is None else [only]

    async def may_reserve(self, one: "_Reservation") -> bool:
        """Return whether a request's quota allows it beside what is reserved for others of its project.

        False while hosts may still restore claims that count.
        """
        total: Counter[str] = Counter()
        for other in self._waiting:
            if other is not one and other.kept is not None and other.project == one.project:
                total.update(quota_usage(other.kept.amounts))
        return await self._quotas.exceeded(one.attempt.request, total) == ()

    def most(self, cell: Cell) -> int:
        """Return how many hosts of a cell may be reserved at a time."""
        return max(1, len(cell.updater.columns) * self._settings.reserved_hosts_percent // 100)

    def wait_ms(self, cell: Cell, wait: Wait) -> int:
        """Return how long a request certainly waits on a host."""
        short_ms = int(self._settings.short_work_s * 1000)
        return short_ms if wait.unlimited else max(0, wait.from_ms - cell.updater.now_ms())


class _Reservation:
    """The reservation of one request, and what it waits for on its host."""

    def __init__(self, all_: Reservations, attempt: SchedulingAttempt) -> None:
        self.id = secrets.token_hex(8)
        self.attempt = attempt
        self.project = attempt.request.project
        self.kept: Wait | None = None
        self.has_news = asyncio.Event()
        """Set when a host that was reserved for another request may be chosen."""
        self._all = all_
        self._cell: Cell | None = None
        """The cell of the host that is, or may be, reserved."""
        self._host = ""
        self._doubts = 0
        self._outcome = Outcome.ALREADY_DONE
        """Of the last call of the script."""
        self._request, self._only = attempt.resolved, attempt.home or attempt.pinned
        self._name = next(iter(attempt.request.claim_ids), "") or origin.current().request_id or self.id
        """How the request is named to those who look at the host."""

    async def renew_until_cancelled(self) -> None:
        """Choose a host, reserve it, and renew that."""
        while True:
            self.has_news.clear()
            try:
                async with self._all.turns:
                    await self._renew()
            except RedschedError as error:
                log.warning("reservation not renewed", reservation=self.id, problem=error.detail)
            except Exception:
                log.exception("reservation not renewed", reservation=self.id)
            with suppress(TimeoutError):
                async with asyncio.timeout(RENEW_S):
                    await self.has_news.wait()

    async def end(self) -> None:
        """End the reservation. In a cell that cannot be reached it ends with its lease."""
        if self._cell is not None:
            with suppress(RedschedError):
                await self._cell.store.reservations.end(self._host, self.id)
        self.kept, self._cell, self._host = None, None, ""

    async def _renew(self) -> None:
        if self.attempt.is_resolved:  # another attempt may be under way, which begins anew
            self._request, self._only = self.attempt.resolved, self.attempt.home or self.attempt.pinned
        if not await self._all.may_reserve(self):
            await self.end()
            return
        found = [(cell, wait) for cell in self._all.cells_of(self._only) for wait in await self._waits(cell)]
        for cell, wait in sorted(found, key=lambda one: one[1].rank(self._is_reserved(one[0], one[1].host))):
            if await self._keep(cell, wait):
                return
            if self._outcome is Outcome.FULL:
                break
        await self.end()

    def _is_reserved(self, cell: Cell, host: str) -> bool:
        return self.kept is not None and (cell, host) == (self._cell, self._host)

    async def _waits(self, cell: Cell) -> list[Wait]:
        """Return hosts to wait for, each with what has to happen there."""
        kept = self.kept if cell is self._cell else None

        def worth_waiting_for() -> list[str]:
            if kept is None and len(cell.updater.columns.reserved) >= self._all.most(cell):
                return []
            with background_limit().working():
                return cell.decider.worth_waiting_for(self._request, COMPARED, self.id)

        try:
            # At the head of the feed, because another request may just have given up a host.
            names = await cell.read_at_head(worth_waiting_for)
        except TooMuchWork:
            return [] if kept is None else [kept]
        waits = await self._what_to_wait_for(cell, names)
        if kept is not None and kept.host in names and waits[names.index(kept.host)] is None:
            # The claims are read later than the columns were, so a host may seem too full for a moment.
            self._doubts += 1
            if self._doubts <= DOUBTED:
                waits.append(kept)
        else:
            self._doubts = 0
        return [wait for wait in waits if wait is not None]

    async def _what_to_wait_for(self, cell: Cell, hosts: Sequence[str]) -> list[Wait | None]:
        """Return what has to happen on each host; None where it would not help, or takes too long to find."""
        ids = await cell.store.hosts.claim_ids_of(hosts)
        claims = await cell.store.claims.read(sorted(set().union(*ids)))
        return [
            self._wait(cell, host, [claims[one] for one in sorted(on_it) if one in claims])
            async for host, on_it in paced(list(zip(hosts, ids, strict=True)))
        ]

    def _wait(self, cell: Cell, host: str, claims: Sequence[Claim]) -> Wait | None:
        with suppress(TooMuchWork), background_limit().working():
            return cell.decider.wait_for(self._request, host, claims, cell.updater.now_ms())
        return None

    async def _keep(self, cell: Cell, wait: Wait) -> bool:
        """Reserve a host, or renew that, and return whether it is reserved. Another host is given up before."""
        is_new = not self._is_reserved(cell, wait.host)
        if is_new:
            await self.end()
        self._cell, self._host = cell, wait.host  # before the call: if its reply is lost, it may have been made
        # To its end, or the call that ends it could overtake it.
        await aio.finish(self._put(cell, wait))
        if is_new and self.kept is not None:
            log.info("host reserved", cell=cell.name, host=wait.host, reservation=self.id, waits_for=wait.leaving)
        return self.kept is not None

    async def _put(self, cell: Cell, wait: Wait) -> None:
        # Shared pools are no part of a host, so nothing of them is kept.
        amounts = {slot: amount for slot, amount in wait.amounts.items() if not slot.startswith(SHARED_POOL)}
        wait_ms, most = self._all.wait_ms(cell, wait), self._all.most(cell)
        self._outcome = await cell.store.reservations.put(
            wait.host, self.id, amounts, int(LEASE_S * 1000), wait_ms, most, self._name, self.project
        )
        self.kept = wait if self._outcome is Outcome.OK else None
