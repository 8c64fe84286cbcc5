"""What operators declare, over all cells of a scheduler: a service each for aggregates, server groups and shared pools.

Aggregates and server groups are put into every cell; a shared pool lies in one, whose hosts take from it. Putting is
idempotent: where one cell could not be reached, the same word sent again completes it.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Generic, TypeVar

from redsched.errors import ClaimState, NotFound
from redsched.model import Aggregate, ServerGroup, SharedPool
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.hosts.fields import keyed, slot_views
from redsched.scheduler.results import AggregateView, Page, ServerGroupView, SharedPoolView
from redsched.store.codec.keys import Kind
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.results import ScriptResult

View = TypeVar("View")

SHOWN_HOSTS = 5


class DeclaredService(ABC, Generic[View]):
    """What the three services share: reading one, listing, taking back."""

    word: str

    def __init__(self, cells: Cells) -> None:
        self._cells = cells

    async def get(self, name: str) -> View:
        """One of them. Raises NotFound, Settling."""
        await self._cells.catch_up()
        found = await self._views([name]) if self._is_known(name) else ()
        if not found:
            await self._cells.refuse_unsettled(f"{self.word} {name}")
            raise NotFound(f"there is no {self.word} {name!r}: declare it first")
        return found[0]

    async def list(self, limit: int = 100, after: str = "") -> Page[View]:
        """All of them by name. `after` is the `next` of the page before: the last name on it."""
        await self._cells.catch_up()
        names = sorted({name for cell in self._cells for name in self._names(cell) if name > after})
        page = names[:limit]
        return Page(tuple(await self._views(page)), page[-1] if len(names) > limit else None)

    async def delete(self, name: str, force: bool = False) -> None:
        """Take it back. Raises NotFound, Settling, and ClaimState while it is in use, unless forced."""
        found = await self.get(name)
        use = self._use(found)
        for cell in () if use and not force else self._cells:
            # UNKNOWN, just after it was found: it is in another cell, or an earlier sending of this has removed it.
            if (await self._take_back(cell, name, force)).outcome is Outcome.IN_USE:
                use = "is in use since a moment ago"
        if use and not force:
            raise ClaimState(f"{self.word} {name} {use}: end that first, or force it")
        await self._was_taken_back(found)

    async def _was_taken_back(self, found: View) -> None:
        """What is left to do when it is gone."""

    def _is_known(self, name: str) -> bool:
        return any(name in self._names(cell) for cell in self._cells)

    @abstractmethod
    def _names(self, cell: Cell) -> Iterable[str]:
        """The names of those of a cell, from the picture."""

    @abstractmethod
    async def _views(self, names: Sequence[str]) -> Sequence[View]:
        """Those of these names, from pictures that have caught up."""

    @abstractmethod
    def _use(self, found: View) -> str:
        """Why it must not simply go; '' where nothing stands against it."""

    @abstractmethod
    async def _take_back(self, cell: Cell, name: str, force: bool) -> ScriptResult: ...


class AggregateService(DeclaredService[AggregateView]):
    """Aggregates."""

    word = "aggregate"

    async def put(self, aggregate: Aggregate) -> tuple[AggregateView, bool]:
        """Declare it, with all of its metadata and hosts: as it is now, and whether it is new.

        Raises NotFound for hosts that are not there, Settling.
        """
        await self._cells.catch_up()
        await self._refuse_unknown(aggregate.hosts)
        new = not self._is_known(aggregate.name)
        for cell in self._cells:
            await cell.store.declared.put_aggregate(aggregate)
        return await self.get(aggregate.name), new

    async def _refuse_unknown(self, hosts: Iterable[str]) -> None:
        """A host that has never reported cannot be in one; nobody should believe that it is."""
        missing = [host for host in sorted(hosts) if not self._has_reported(host)]
        if missing:
            shown = ", ".join(missing[:SHOWN_HOSTS]) + (" ..." if len(missing) > SHOWN_HOSTS else "")
            await self._cells.refuse_unsettled(f"host {missing[0]}")
            raise NotFound(f"there are no hosts {shown}: leave them out until they have reported", {"hosts": missing})

    def _has_reported(self, host: str) -> bool:
        return any(cell.mirror.columns.row(host) is not None for cell in self._cells)

    def _names(self, cell: Cell) -> Iterable[str]:
        return cell.mirror.columns.declared.aggregates

    async def _views(self, names: Sequence[str]) -> Sequence[AggregateView]:
        return [self._view(name) for name in names]

    def _view(self, name: str) -> AggregateView:
        metadata: dict[str, str] = {}
        hosts: list[str] = []
        for cell in self._cells:
            columns = cell.mirror.columns
            hosts += columns.names_in(columns.aggregates[name])
            if name in columns.declared.aggregates:
                metadata.update(columns.declared.aggregates[name].metadata)
        return AggregateView(name, metadata, tuple(sorted(hosts)))

    def _use(self, found: AggregateView) -> str:
        return f"has {len(found.hosts)} hosts, whose limits and reservations end with it" if found.hosts else ""

    async def _take_back(self, cell: Cell, name: str, force: bool) -> ScriptResult:
        return await cell.store.declared.delete_aggregate(name, force)


class ServerGroupService(DeclaredService[ServerGroupView]):
    """Server groups."""

    word = "server group"

    async def _was_taken_back(self, found: ServerGroupView) -> None:
        if not found.members:
            # Declared anew it may begin in another cell. Where it has members it must not: they stay in theirs.
            await next(iter(self._cells)).store.bindings.unbind_group(found.group.name)

    async def put(self, group: ServerGroup) -> tuple[ServerGroupView, bool]:
        """Declare it: as it is now, and whether it is new.

        Raises ClaimState while it has members and something else than max_per_host would change, or that it had before
        it was taken back are not counted as they would be now; Settling.
        """
        await self._cells.catch_up()
        new = not self._is_known(group.name)
        if not new:
            (found,) = await self._views([group.name])
            if found.members and _frame(found.group) != _frame(group):
                raise _has_members(found)
        for cell in self._cells:
            answer = await cell.store.declared.put_group(group)
            if answer.outcome is Outcome.IN_USE and answer.facts:
                raise _has_uncounted(group, answer.facts)
            if answer.outcome is Outcome.IN_USE:
                raise _has_members(await self.get(group.name))
        return await self.get(group.name), new

    def _names(self, cell: Cell) -> Iterable[str]:
        return cell.mirror.columns.declared.groups

    async def _views(self, names: Sequence[str]) -> Sequence[ServerGroupView]:
        return [self._view(name) for name in names]

    def _view(self, name: str) -> ServerGroupView:
        declared = (cell.mirror.columns.declared.groups for cell in self._cells)
        states = [groups[name] for groups in declared if name in groups]
        group = states[0].group
        counts: dict[str, Counter[str]] = {by: Counter() for by in group.topologies()}
        for state in states:
            for by, counted in counts.items():
                counted.update(state.counts(by))
        return ServerGroupView(group, sum(state.members for state in states), counts)

    def _use(self, found: ServerGroupView) -> str:
        return f"has {found.members} members" if found.members else ""

    async def _take_back(self, cell: Cell, name: str, force: bool) -> ScriptResult:
        return await cell.store.declared.delete_group(name, force)


class SharedPoolService(DeclaredService[SharedPoolView]):
    """Shared pools."""

    word = "pool"

    async def put(self, pool: SharedPool, cell: str = "c1") -> tuple[SharedPoolView, bool]:
        """Declare it in a cell: as it is now, and whether it is new. What is claimed of it stays.

        Raises NotFound (no such cell), ClaimState (the name is taken in another cell), Settling.
        """
        home = self._cells.named(cell)
        await self._cells.catch_up()
        for other in self._cells:
            if other is not home and pool.name in self._names(other):
                raise ClaimState(
                    f"pool {pool.name} is in cell {other.name}: take it back there first, or name that cell"
                )
        new = not self._is_known(pool.name)
        await home.store.declared.put_pool(pool)
        return await self.get(pool.name), new

    def _names(self, cell: Cell) -> Iterable[str]:
        return cell.mirror.columns.declared.pools

    async def _views(self, names: Sequence[str]) -> Sequence[SharedPoolView]:
        found: dict[str, SharedPoolView] = {}
        for cell in self._cells:
            wanted = [name for name in names if name in self._names(cell)]
            hashes = await cell.store.declared.read(Kind.POOL, wanted)
            found.update((name, _pool_view(name, cell, fields)) for name, fields in hashes.items())
        return [found[name] for name in names if name in found]

    def _use(self, found: SharedPoolView) -> str:
        held = [name for name, slot in found.slots.items() if slot.claimed]
        return f"is claimed from ({', '.join(held)})" if held else ""

    async def _take_back(self, cell: Cell, name: str, force: bool) -> ScriptResult:
        return await cell.store.declared.delete_pool(name, force)


def _pool_view(name: str, cell: Cell, fields: Mapping[str, str]) -> SharedPoolView:
    traits, aggregates = (frozenset(keyed(prefix, fields)) for prefix in ("trait.", "aggregate."))
    return SharedPoolView(name, cell.name, slot_views(fields), traits, aggregates)


def _frame(group: ServerGroup) -> tuple[object, ...]:
    return (group.policy, group.by, frozenset(group.count_by))


def _has_members(found: ServerGroupView) -> ClaimState:
    return ClaimState(
        f"server group {found.group.name} has {found.members} members: only max_per_host can change while it has any",
        {"members": found.members},
    )


def _has_uncounted(group: ServerGroup, topologies: Sequence[str]) -> ClaimState:
    by = ", ".join(topologies)
    return ClaimState(
        f"server group {group.name} has members from before it was taken back, and not all of them are counted by "
        f"{by}: declare it without that, or end them first",
        {"uncounted": list(topologies)},
    )
