"""The cells of a scheduler: the view of each, reads over all of them, and which have settled.

Each has its store, a replica in memory, and a decider over that replica. claims/by_id.py finds claims over all cells.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from redsched import aio
from redsched.allowance import Allowance
from redsched.cache.updater import ReplicaUpdater
from redsched.errors import NotFound, Settling
from redsched.model import Claim
from redsched.scheduler.background.expiry import Expiry
from redsched.scheduler.background.own_placements import OwnPlacements
from redsched.scheduler.background.release_log import ReleaseLog
from redsched.scheduler.claims.request_cache import RequestCache
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Cause, Outcome
from redsched.store.codec.replies import ClaimCall, ClaimReply, Clock
from redsched.wording import counted, duration

if TYPE_CHECKING:
    from redsched.decide.decider import Decider
    from redsched.decide.plugins.registry import PluginRegistry

T = TypeVar("T")


class _NotRead(Enum):
    """The type of what stands for a result if nothing was read."""

    CLAIMS_ARE_DUE = auto()


KEEPING_SHARE = 0.006
"""The share of the time in which decisions are written down, over all cells. With what claim calls and the store spend
on them, it is less than 2 % of selections without a pause, and enough for some hundred claims a second."""


@dataclass(eq=False)
class Cell:
    """A scheduler's view of one cell. It runs no tasks of its own: `background/cell_tasks.py` has them.

    `plugins` returns the filters and weighers. Raises InvalidRequest (an invalid policy, weight or plugin).
    """

    store: CellStore
    updater: ReplicaUpdater
    expiry: Expiry
    released: ReleaseLog
    requests: RequestCache
    settings: Settings
    plugins: "Callable[[], PluginRegistry]"
    own: OwnPlacements = field(default_factory=OwnPlacements, init=False)
    name: str = field(init=False)
    _decider: "Decider | None" = field(default=None, init=False)
    _decided_on: object = field(default=None, init=False)
    _keeping: Allowance | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.name = self.store.name
        if self.settings.keep_decisions:
            self._keeping = Allowance(KEEPING_SHARE / len(self.settings.cells))

    @property
    def decider(self) -> "Decider":
        """The decider over the current columns, rebuilt with empty caches when a snapshot has replaced the columns."""
        if self._decider is None or self._decided_on is not self.updater.columns:
            from redsched.decide.decider import Decider  # with all rules and NumPy: most commands decide nothing

            self._decided_on = self.updater.columns
            self._decider = Decider(self.updater.columns, self.settings, self.plugins(), keeping=self._keeping)
        return self._decider

    @property
    def decisions_not_kept(self) -> int:
        """The number of decisions that are not written down because that would have taken more than its share."""
        return 0 if self._keeping is None else self._keeping.refused

    async def read_at_head(self, read: Callable[[], T]) -> T:
        """Call `read` on columns that include every store reply before this call, and every claim expiry due by then.

        A connection that only reads leaves expiries to others. Raises Unavailable, and whatever `read` raises.
        """
        found = await self.updater.read_at_head(lambda: _NotRead.CLAIMS_ARE_DUE if self._has_due_claims() else read())
        if isinstance(found, _NotRead):
            await self.expiry.expire_due()
            # In any case: another process may have ended the due claims, which also frees their amounts.
            found = await self.updater.read_at_head(read)
        return found

    async def is_overdue(self, claim: Claim) -> bool:
        """Return whether the time that a claim's work may run is up, whatever clock its deadline is of."""
        if claim.runtime_deadline_ms is None:
            return False
        clock = await self.store.tick()  # with the fence: it notices a clock that has jumped
        return claim.is_overdue(clock.now_ms, await self.store.clock_shift_ms())

    def _has_due_claims(self) -> bool:
        due = self.updater.next_deadline_ms
        return due is not None and due <= self.updater.now_ms()

    def apply(self, call: ClaimCall, answer: ClaimReply) -> None:
        """Apply the answer to a call of claim.lua to the replica and to what is known about the store."""
        self.updater.apply_reply(answer)
        if answer.outcome is Outcome.OK:
            self.requests.has_written(call.digest, answer.epoch)
            self.own.note(call, answer)

    async def mark_down(self, answer: ClaimReply) -> None:
        """Mark the hosts that a claim call found down. Raises Unavailable.

        The feed does not show a lapsed lease before a sweep, so the next attempt would choose the same host again.
        """
        down = [host.host for host in answer.looked_at if host.cause == Cause.DOWN]
        if down:
            await self.expiry.mark_down(down)


def build_cell(store: CellStore, settings: Settings, plugins: "Callable[[], PluginRegistry]") -> Cell:
    """Build a cell, which all parts of a scheduler share."""
    updater = ReplicaUpdater(store, settings)
    expiry, released, requests = Expiry(store, updater), ReleaseLog(store), RequestCache(store)
    return Cell(store, updater, expiry, released, requests, settings, plugins)


def no_such_host(name: str, cell: str = "") -> NotFound:
    """Return the error for a host that no cell, or the named one, knows."""
    where = f" in cell {cell}" if cell else ""
    return NotFound(f"there is no host {name!r}{where}: it has never reported, or was removed")


class Cells:
    """All cells of a scheduler, in the order of the settings."""

    def __init__(self, cells: Iterable[Cell]) -> None:
        self._cells = {cell.name: cell for cell in cells}

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._cells.values())

    def __len__(self) -> int:
        return len(self._cells)

    def named(self, name: str) -> Cell:
        """Return the cell with this name. Raises NotFound."""
        if name not in self._cells:
            raise NotFound(f"there is no cell {name!r} here: this scheduler serves {', '.join(self._cells)}")
        return self._cells[name]

    async def catch_up(self) -> None:
        """Wait until all columns include every store reply before this call. Raises Unavailable."""
        await self.read_at_head(lambda _: None)

    async def refresh(self) -> None:
        """Wait until the replicas that are in use include every store reply before this call. Raises Unavailable."""
        await aio.gather(cell.updater.catch_up() for cell in self if cell.updater.is_started)

    async def read_at_head(self, read: Callable[[Cell], T]) -> list[T]:
        """Run `Cell.read_at_head` on all cells concurrently, and return the results in the order of the cells."""
        return await aio.gather(cell.read_at_head(partial(read, cell)) for cell in self)

    async def unknown_hosts(self, names: Iterable[str]) -> list[str]:
        """Return those of these hosts that no cell knows, sorted. Raises Unavailable."""
        await self.catch_up()
        return [name for name in sorted(names) if all(name not in cell.updater.columns for cell in self)]

    async def refuse_unsettled(self, what: str) -> None:
        """Raise Settling, which names `what` was not found, if a cell still waits for hosts that may restore it."""
        refuse(await self.unsettled(), what)

    async def unsettled(self) -> dict[str, Clock]:
        """Return the clocks of the cells that are not settled, by name: their hosts still have to attest."""
        return {name: clock for name, clock in (await self.clocks()).items() if not clock.settled}

    async def clocks(self) -> dict[str, Clock]:
        """Return the clocks of all cells, by name."""
        clocks = await aio.gather(cell.store.tick() for cell in self._cells.values())
        return dict(zip(self._cells, clocks, strict=True))


def refuse(unsettled: Mapping[str, Clock], what: str) -> None:
    """Raise Settling, which names `what` was not found, if any cell is `unsettled`."""
    for name, clock in unsettled.items():
        raise Settling(
            f"{what} is not known yet: cell {name} is in a new epoch and its hosts are still attesting; "
            f"try again{wait_text(name, clock)}"
        )


def wait_text(cell: str, clock: Clock) -> str:
    """Return for how many hosts a cell waits, and how long at most, to be added to an error; '' if it is settled."""
    if clock.settled:
        return ""
    number = clock.missing
    missing = "the number of missing hosts is not known" if number < 0 else f"{counted(number, 'host')} missing"
    return f" ({missing}; cell {cell} settles in {duration(clock.settle_at_ms - clock.now_ms)} at the latest)"
