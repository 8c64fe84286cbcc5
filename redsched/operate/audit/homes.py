"""Audit names of hosts over all cells: a machine must not be given out in two of them. Invariant 1.

A cell accepts a host only if the host's name is bound to it or to none (`redsched.store.commands.homes`). A host that
joined before there were such keys, or a key that was lost, may still leave a name in two cells. Then one of the two
hosts takes no more claims. Its work goes on: an operator decides what becomes of it.
"""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from functools import partial

from redsched import aio, logs
from redsched.model import HostStatus
from redsched.model.records.audit import Problem, RepairKind
from redsched.operate.audit.recheck import repaired_shared, shared_problems
from redsched.pacing import paced, paged
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.hosts.fields import LEASE_FIELDS, is_live, status_from
from redsched.store.commands.base import CHUNK
from redsched.wording import counted

log = logs.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class HostIn:
    """A host in one of the cells that have its name."""

    cell: str
    status: HostStatus
    is_live: bool
    """Whether its lease runs and it has attested to the epoch."""
    claims: int

    def __str__(self) -> str:
        return f"{'live' if self.is_live else 'not live'} in {self.cell} with {counted(self.claims, 'claim')}"


@dataclass(frozen=True, slots=True)
class SharedName:
    """A name that several cells have, as it was read."""

    name: str
    hosts: Sequence[HostIn]
    """In the order of the cells' names."""
    bound_to: str
    """The cell that the name is bound to; '' for none."""
    unsettled: str
    """One of these cells that has not settled; '' if all have."""

    @property
    def kept(self) -> HostIn:
        """The host that keeps the name: a live one, then the one in the cell that has it, then one with more claims."""
        return max(self.hosts, key=lambda one: (one.is_live, one.cell == self.bound_to, one.claims, one.cell))

    @property
    def others(self) -> list[HostIn]:
        """The hosts that do not keep the name."""
        return [one for one in self.hosts if one is not self.kept]

    def problem(self) -> Problem:
        """Return the repeated name as a problem of the first of its cells."""
        found, kept = ", ".join(map(str, self.hosts)), self.kept.cell
        first = self.hosts[0].cell
        if self.unsettled:
            advice = f"a host in two cells is left alone until cell {self.unsettled} has settled"
            return Problem(1, first, self.name, "host", found, "in one cell", advice=advice)
        is_done = self.bound_to == kept and all(one.status is not HostStatus.ENABLED for one in self.others)
        repair = None if is_done else RepairKind.TWO_HOMES
        return Problem(1, first, self.name, "host", found, f"in {kept} alone", repair, self.name, self._next_step())

    def _next_step(self) -> str:
        cell = self.others[0].cell
        return (
            f"the one in {cell} takes no new claims: if its claims run there, "
            f"`redsched host drain {self.name} --move --cell {cell}` moves them; once it holds none and its agent is "
            f"stopped, `redsched host remove {self.name} --cell {cell}`"
        )


async def audit_homes(cell: Cell, cells: Cells) -> tuple[Problem, ...]:
    """Return a problem for each name of a cell's hosts that a later cell, by name, also has. Raises StoreUnavailable.

    If all cells are audited, each pair of them is compared once.
    """
    names = await _names_elsewhere(cell, [one for one in cells if one.name > cell.name])
    return await shared_problems(cell.name, names, partial(_shared_names, cells))


async def repair_homes(cell: Cell, cells: Cells) -> tuple[Problem, ...]:
    """Audit the names of a cell's hosts as `audit_homes` does, and disable the hosts that do not keep theirs.

    The problem remains until one of the hosts is removed.
    """
    before = await audit_homes(cell, cells)
    return await repaired_shared(before, partial(_repair, cells), partial(_shared_names, cells))


async def _repair(cells: Cells, problem: Problem) -> None:
    """Read a name again, bind it to the cell of the host that keeps it, and disable the others."""
    async for one in _shared_names(cells, [problem.thing]):
        kept = cells.named(one.kept.cell)
        if one.unsettled or (await kept.store.homes.bind(one.name, former=one.bound_to))[0] != kept.name:
            return
        for other in one.others:
            if other.status is HostStatus.ENABLED:
                hosts, reason = cells.named(other.cell).store.hosts, f"also in cell {kept.name}"
                answer = await hosts.set_status(one.name, HostStatus.DISABLED, reason=reason)
                log.warning("repaired", cell=other.cell, thing=one.name, problem=problem.detail, outcome=answer.outcome)


async def _names_elsewhere(cell: Cell, others: Sequence[Cell]) -> list[str]:
    """Return the names of a cell's hosts that another cell also has."""
    if not others:
        return []
    theirs, found = set[str](), list[str]()
    for other in others:
        async for page in paged(await other.store.hosts.names(), CHUNK):
            theirs.update(page)
    async for page in paged(await cell.store.hosts.names(), CHUNK):
        found += (name for name in page if name in theirs)
    return found


async def _shared_names(cells: Cells, names: Sequence[str]) -> AsyncIterator[SharedName]:
    """Read names one by one, and yield those that several cells have."""
    async for name in paced(names):
        clocks = await cells.clocks()
        ordered = sorted(cells, key=lambda one: one.name)
        fields = await aio.gather(one.store.hosts.fields_of([name], LEASE_FIELDS) for one in ordered)
        found = [(one, hosts[name]) for one, hosts in zip(ordered, fields, strict=True) if hosts[name]]
        if len(found) < 2:
            continue
        ids = await aio.gather(one.store.hosts.claim_ids(name) for one, _ in found)
        hosts = [
            HostIn(one.name, status_from(host), is_live(host, clocks[one.name]), len(claims))
            for (one, host), claims in zip(found, ids, strict=True)
        ]
        waiting = next((one.cell for one in hosts if not clocks[one.cell].settled), "")
        yield SharedName(name, hosts, await ordered[0].store.homes.cell_of(name), waiting)
