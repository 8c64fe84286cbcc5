"""The cells of a scheduler, each with its store, in-memory replica and decider, and operations over all of them."""

import os
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING, NoReturn, TypeVar

from redsched import aio
from redsched.allowance import Allowance
from redsched.cache.updater import ReplicaUpdater
from redsched.errors import NotFound, Settling
from redsched.model import Claim, ClaimStatus, EndReason
from redsched.scheduler.background.expiry import Expiry
from redsched.scheduler.background.own_placements import OwnPlacements
from redsched.scheduler.background.release_log import ReleaseLog
from redsched.scheduler.claims.request_cache import RequestCache
from redsched.scheduler.hosts.fields import LEASE_FIELDS, is_live
from redsched.scheduler.status.wording import counted, duration
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.codec.claim_codec import counted_by
from redsched.store.codec.outcomes import Cause, Outcome
from redsched.store.codec.results import ClaimAnswer, ClaimCall, Clock

if TYPE_CHECKING:
    from redsched.decide import Decider
    from redsched.decide.plugins.registry import PluginRegistry

T = TypeVar("T")


class _NotRead(Enum):
    """The type of what stands for a result if nothing was read."""

    CLAIMS_ARE_DUE = auto()


KEEPING_SHARE = 0.006
"""The share of the time in which decisions are written down, over all cells. With what claim calls and the store spend
on them, it is less than 2 % of selections without a pause, and enough for some hundred claims a second."""
_UNIQUE = re.compile("[0-9a-f]{24}")

_LIVE, _SHELVED, _ENDING, _ENDED = range(4)
"""What is left of a claim, in the order in which cells with the same id take precedence."""


@dataclass(eq=False)
class Cell:
    """A scheduler's view of one cell. It runs no tasks of its own: `redsched.scheduler.wiring` starts them.

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
            from redsched.decide import Decider  # with all rules and NumPy: most commands decide nothing

            self._decided_on = self.updater.columns
            self._decider = Decider(self.updater.columns, self.settings, self.plugins(), keeping=self._keeping)
        return self._decider

    @property
    def decisions_not_kept(self) -> int:
        """The number of decisions that are not written down because that would have taken more than its share."""
        return 0 if self._keeping is None else self._keeping.refused

    def new_claim_id(self) -> str:
        """Return an id for a new claim, in the form that `has_made` recognizes."""
        return f"{self.name}.{os.urandom(12).hex()}"

    def has_made(self, claim_id: str) -> bool:
        """Return whether an id has the form that schedulers generate for this cell."""
        return made_for(self.name, claim_id)

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

    def apply(self, call: ClaimCall, answer: ClaimAnswer) -> None:
        """Apply the answer to a call of claim.lua to the replica and to what is known about the store."""
        self.updater.apply_reply(answer)
        if answer.outcome is Outcome.OK:
            self.requests.has_written(call.digest, answer.epoch)
            self.own.note(call, answer)

    async def mark_down(self, answer: ClaimAnswer) -> None:
        """Mark the hosts that a claim call found down. Raises Unavailable.

        The feed does not show a lapsed lease before a sweep, so the next attempt would choose the same host again.
        """
        down = [host.host for host in answer.looked_at if host.cause == Cause.DOWN]
        if down:
            await self.expiry.mark_down(down)


def made_for(cell: str, claim_id: str) -> bool:
    """Return whether an id has the form that schedulers generate for a cell: its name, a dot, a unique part."""
    name, dot, rest = claim_id.rpartition(".")
    return bool(dot) and name == cell and _UNIQUE.fullmatch(rest) is not None


def no_such_host(name: str, cell: str = "") -> NotFound:
    """Return the error for a host that no cell, or the named one, knows."""
    where = f" in cell {cell}" if cell else ""
    return NotFound(f"there is no host {name!r}{where}: it has never reported, or was removed")


def no_such_claim(claim_id: str) -> NotFound:
    """Return the error for a claim that no cell knows."""
    why = "it never existed, or ended too long ago to be remembered"
    return NotFound(f"there is no claim {claim_id!r}: {why}", {"claim_id": claim_id})


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

    async def find_claim(self, claim_id: str) -> tuple[Cell, Claim]:
        """Return the authoritative claim with this id, and its cell. Raises as `find_claims` does."""
        return (await self.find_claims(claim_id))[0]

    async def find_claims(self, claim_id: str) -> list[tuple[Cell, Claim]]:
        """Return the claims with this id and their cells, read from the store; the authoritative claim comes first.

        Raises NotFound, or Settling while a host may still restore such a claim.
        """
        known = await self._known_in_all([claim_id])
        if not known:
            await self.refuse_unsettled(f"claim {claim_id}")
            # The host may have restored the claim after the first read, and its cell may have settled only then.
            known = await self._known_in_all([claim_id])
        if not known:
            raise no_such_claim(claim_id)
        return [(cell, claims[claim_id]) for cell, claims in known]

    async def refuse_unknown(self, claim_id: str) -> NoReturn:
        """Raise what `find_claims` raises for an id that no cell knows, for callers who may not know the claim."""
        await self.refuse_unsettled(f"claim {claim_id}")
        raise no_such_claim(claim_id)

    async def known(self, claim_ids: Sequence[str]) -> tuple[Cell, dict[str, Claim]] | None:
        """Return the cell with the authoritative claims of these ids, and the claims by id; None if no cell has any."""
        return next(iter(await self._known_in_all(claim_ids)), None)

    async def _known_in_all(self, claim_ids: Sequence[str]) -> list[tuple[Cell, dict[str, Claim]]]:
        """Return the cells that have any of these ids, each with its claims by id; the authoritative cell comes first.

        That is the cell with a live claim, else one with a shelved claim, else one whose claim is ending. If several
        qualify, it is one whose claim is on a live host, then the cell that the first id is bound to or was generated
        for, else the cell with the latest claim. Local work comes last: its host chose the id. A release or an audit
        (audit/ids.py) ends the claims of the other cells.
        """
        cells = list(self._cells.values())
        found = await aio.gather(cell.store.claims.read(claim_ids) for cell in cells)
        # A claim without a host is only a tombstone: the id has moved to another cell.
        held = [{one: claim for one, claim in claims.items() if claim.host} for claims in found]
        known = [(cell, claims) for cell, claims in zip(cells, held, strict=True) if claims]
        if len(known) > 1:
            bound = await cells[0].store.bindings.cell_of(claim_ids[0])
            live = await self.on_live_hosts(claim for _, claims in known for claim in claims.values())
            known.sort(key=lambda one: _precedence(one[0], one[1], claim_ids[0], bound, live))
        return known

    async def on_live_hosts(self, claims: Iterable[Claim]) -> set[tuple[str, str]]:
        """Return the cells and hosts of these claims whose lease runs and which have attested to the epoch."""
        hosts = {(claim.cell, claim.host) for claim in claims if claim.host}
        clocks = await self.clocks()
        found = await aio.gather(self._cells[cell].store.hosts.fields_of([host], LEASE_FIELDS) for cell, host in hosts)
        return {
            (cell, host)
            for (cell, host), fields in zip(hosts, found, strict=True)
            if is_live(fields[host], clocks[cell])
        }

    async def release_elsewhere(
        self,
        released: Claim,
        cell: Cell,
        known: Iterable[tuple[Cell, Claim]] | None = None,
        *,
        shelved: bool = False,
    ) -> None:
        """Release the claims with a released one's id in all cells but `cell`, and keep hosts from restoring such ones.

        `known` are the claims with this id, if the caller has just read them. `shelved`: shelved claims are released
        too. Hosts always stop the work first, even if the caller forced the release in `cell`. After a wipe, an id may
        have claims in several cells until an audit finds them (audit/ids.py). Claims for local work are skipped: their
        hosts run that work regardless of the store. Claims of other projects are too: who released this one owns none.
        """
        if len(self) == 1:
            return
        claim_id = released.claim_id
        if known is None:
            known = [(one, claims[claim_id]) for one, claims in await self._known_in_all([claim_id])]
        found = {one: claim for one, claim in known if one is not cell}
        # An id generated for this cell can be in another cell only if its caller got no reply and sent the id again.
        unknown = [] if cell.has_made(claim_id) else [one for one in self if one is not cell and one not in found]
        for other in await self.void_unknown(claim_id, unknown):
            if claim := (await other.store.claims.read([claim_id])).get(claim_id):
                found[other] = claim
        for other, claim in found.items():
            is_same_owner = claim.project == released.project and not claim.is_local
            if is_same_owner and _how_ended(claim) <= (_SHELVED if shelved else _LIVE):
                answer = await other.store.claims.release(claim.host, claim_id, objects=counted_by(claim))
                if answer.outcome is Outcome.UNKNOWN:  # the cell was wiped after the claim was read
                    await self.void_unknown(claim_id, [other])
                elif answer.facts[0]:
                    other.released.note(claim_id, answer)

    async def void_unknown(self, claim_id: str, cells: Iterable[Cell]) -> list[Cell]:
        """Void an id in these cells, so that no host can restore its claim. Returns the cells that have such a claim.

        Existing claims do not change. In a cell whose hosts have all attested, nothing is written. See void.lua.
        """
        asked = list(cells)
        answers = await aio.gather(cell.store.claims.void(claim_id, "", if_unattested=True) for cell in asked)
        known = list[Cell]()
        for cell, answer in zip(asked, answers, strict=True):
            if answer.outcome is Outcome.CONFLICT:
                known.append(cell)
            elif answer.outcome is Outcome.OK:
                cell.released.note(claim_id, answer)
        return known

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


def _precedence(
    cell: Cell, claims: Mapping[str, Claim], first_id: str, bound: str, live: Container[tuple[str, str]]
) -> tuple[bool, int, bool, bool, int]:
    """Return the sort key of a cell among cells that have claims with the same ids; the authoritative one is lowest.

    `live`: the cells and hosts whose hosts are live.
    """
    last_ms = max(one.claimed_at_ms or 0 for one in claims.values())
    is_elsewhere = cell.name != bound and not cell.has_made(first_id)
    is_local = all(one.is_local for one in claims.values())
    is_away = all((cell.name, one.host) not in live for one in claims.values() if one.is_live)
    return is_local, min(map(_how_ended, claims.values())), is_away, is_elsewhere, -last_ms


def _how_ended(claim: Claim) -> int:
    is_ended = claim.state is ClaimStatus.ENDED
    is_shelved = (claim.end_reason if is_ended else claim.closed_reason) is EndReason.SHELVED
    return _LIVE if claim.is_live else _SHELVED if is_shelved else _ENDED if is_ended else _ENDING


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
