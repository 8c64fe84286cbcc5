"""Reservations: hosts that a request which waits for room keeps for itself until it is placed.

    nothing fits ──▶ choose the host that fewest claims have to leave ──▶ reserve.lua keeps its amounts, also those
         ▲                                                                that become free, from all other claims
         │ a better host, or its host is gone                                       │ every RENEW_S
         └──────────────────────────────────────────────────────────────────────────┘
                     the request is placed, there or elsewhere, or gives up ──▶ its reservations end

A scheduler that dies renews nothing: the reservations end with their lease. Work that states how long it runs
(`max_runtime_s`) may use what is kept if it ends before the request can be placed.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

from redsched import aio, logs
from redsched.decide.reserving import Wait
from redsched.decide.work_limit import TooMuchWork
from redsched.errors import InvalidRequest, RedschedError
from redsched.model import Request
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.planning.limits import background_limit
from redsched.scheduler.quotas.enforcement import Quotas
from redsched.scheduler.selection.attempt import SchedulingAttempt
from redsched.settings import Settings
from redsched.store.codec.outcomes import Outcome

LEASE_S = 15.0
RENEW_S = 5.0
COMPARED = 6
"""How many hosts of each kind are compared for each place, besides those that are reserved already."""

log = logs.get_logger(__name__)


@contextmanager
def usable(cell: Cell, request: Request, reservation: str = "") -> Iterator[None]:
    """Inside the context, what hosts keep counts as free in the cell's columns as far as a request may use it.

    That is what is kept under its own reservation, and for requests that wait until its work has ended. Nothing inside
    may let other tasks run.
    """
    columns = cell.updater.columns
    if not len(columns.kept) or not (reservation or request.max_runtime_s):
        yield
        return
    rows = dict(columns.kept.of(reservation)) if reservation else {}
    if request.max_runtime_s:
        rows |= columns.kept.until(cell.updater.now_ms() + request.max_runtime_s * 1000)
    with columns.without_kept(rows.items()):
        yield


class Reservations:
    """The reservations of one scheduler."""

    def __init__(self, cells: Cells, quotas: Quotas, settings: Settings) -> None:
        self._cells = cells
        self._quotas = quotas
        self._settings = settings
        self._others: set[_Reservation] = set()

    def check(self, request: Request) -> None:
        """Raise InvalidRequest if a request reserves hosts, and none may be reserved."""
        if request.reserve and not self._settings.reserved_hosts_percent:
            raise InvalidRequest("reserve is switched off here (REDSCHED_RESERVED_HOSTS_PERCENT is 0): leave it out")

    @asynccontextmanager
    async def kept_for(self, attempt: SchedulingAttempt) -> AsyncIterator[None]:
        """Reserve hosts for a request inside the context, if it asks for that."""
        if not attempt.request.reserve:
            yield
            return
        one = _Reservation(self._cells, self._quotas, attempt, self._settings)
        attempt.reservation = one.id
        self._others.add(one)
        renewing = asyncio.create_task(one.renew_until_cancelled(), name=f"redsched-reservation-{one.id}")
        try:
            yield
        finally:
            await aio.end(renewing)
            self._others.discard(one)
            await aio.finish(one.end())
            # Most of what it waited for has left its hosts: others that wait here are to have them, and not start anew.
            for other in self._others:
                other.has_news.set()


class _Reservation:
    """The hosts that are reserved for one request."""

    def __init__(self, cells: Cells, quotas: Quotas, attempt: SchedulingAttempt, settings: Settings) -> None:
        self.id = secrets.token_hex(8)
        self._cells = cells
        self._quotas = quotas
        self._attempt = attempt
        self._settings = settings
        self._kept: dict[tuple[str, str], tuple[Cell, Wait]] = {}
        """The reserved hosts, by the names of cell and host."""
        self.has_news = asyncio.Event()
        """Set when a host that was reserved for another request may be chosen."""

    async def renew_until_cancelled(self) -> None:
        """Choose hosts, reserve them, and renew that."""
        while True:
            self.has_news.clear()
            try:
                await self._renew()
            except RedschedError as error:
                log.warning("reservation not renewed", reservation=self.id, problem=error.detail)
            with suppress(TimeoutError):
                async with asyncio.timeout(RENEW_S):
                    await self.has_news.wait()

    async def end(self) -> None:
        """End the reservations. Those of cells that cannot be reached end with their lease."""
        for (_, host), (cell, _) in self._kept.items():
            with suppress(RedschedError):
                await cell.store.reservations.end(host, self.id)
        self._kept.clear()

    async def _renew(self) -> None:
        if await self._quotas.exceeded(self._attempt.request) != ():
            # It could not be placed, or hosts may still restore claims that count.
            await self.end()
            return
        found = [(cell, wait) for cell in self._in() for wait in await self._waits(cell)]
        places = self._attempt.request.places
        best = sorted(found, key=self._rank)
        # Worse ones end first: only so many hosts may be reserved.
        for key in self._kept.keys() - {(cell.name, wait.host) for cell, wait in best[:places]}:
            cell, _ = self._kept[key]
            await cell.store.reservations.end(key[1], self.id)
            del self._kept[key]
        for cell, wait in best:
            if places:
                places -= await self._keep(cell, wait)

    def _in(self) -> list[Cell]:
        """Return the cells in which the request may be placed, and whose hosts are in memory."""
        only = self._attempt.home or self._attempt.pinned
        return [only] if only is not None and only.is_here else list(self._cells.here)

    def _rank(self, found: tuple[Cell, Wait]) -> tuple[int, int, int, str]:
        """Return the sort key of a host. Another one must be clearly better than one that is reserved already."""
        cell, wait = found
        unlimited, from_ms, leaving, host = wait.rank
        return unlimited - ((cell.name, host) in self._kept), from_ms, leaving, host

    async def _waits(self, cell: Cell) -> list[Wait]:
        """Return hosts to wait for, each with what has to happen there."""
        kept = {host: wait for (name, host), (_, wait) in self._kept.items() if name == cell.name}
        request, most = self._attempt.resolved, COMPARED * self._attempt.request.places
        try:
            with background_limit().working():
                names = cell.decider.worth_waiting_for(request, most, self.id)
        except TooMuchWork:
            return [*kept.values()]
        # The claims are read later than the columns were, so a host that is reserved may seem too full for a moment.
        waits = [await self._wait(cell, host) or kept.get(host) for host in names]
        return [wait for wait in waits if wait is not None]

    async def _wait(self, cell: Cell, host: str) -> Wait | None:
        """Return what has to happen on a host; None if it would not help, or takes too long to find."""
        ids = sorted(await cell.store.hosts.claim_ids(host))
        claims = [*(await cell.store.claims.read(ids)).values()]
        with suppress(TooMuchWork), background_limit().working():
            return cell.decider.wait_for(self._attempt.resolved, host, claims, cell.updater.now_ms())
        return None

    async def _keep(self, cell: Cell, wait: Wait) -> bool:
        """Reserve a host, or renew that, and return whether it is reserved."""
        percent, hosts = self._settings.reserved_hosts_percent, len(cell.updater.columns)
        most = max(1, hosts * percent // 100)
        short_ms = int(self._settings.short_work_s * 1000)
        wait_ms = short_ms if wait.unlimited else max(0, wait.from_ms - cell.updater.now_ms())
        key = (cell.name, wait.host)
        is_new = key not in self._kept
        self._kept[key] = (cell, wait)  # before the call: if its reply is lost, it may have been made
        outcome = await cell.store.reservations.put(
            wait.host, self.id, wait.amounts, int(LEASE_S * 1000), wait_ms, most
        )
        if outcome is Outcome.OK:
            if is_new:
                log.info("host reserved", cell=cell.name, host=wait.host, reservation=self.id, waits_for=wait.leaving)
            return True
        del self._kept[key]
        return False
