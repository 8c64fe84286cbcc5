"""Aggregates, server groups and shared pools, as operators declare them, over all cells of a scheduler.

Aggregates and server groups are stored in every cell; a shared pool in one cell, whose hosts use it. Reads go to the
store; only the members of aggregates, which are stored with the hosts, come from the replicas. `put` is idempotent: if
a cell could not be reached, repeating the call completes it.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Generic, NoReturn, TypeVar

from redsched import aio
from redsched.cache.declared import Declared
from redsched.errors import ClaimState, NotFound
from redsched.model import Aggregate, ServerGroup, SharedPool
from redsched.model.conditions import IfMatch
from redsched.model.hosts import warnings_of
from redsched.model.limits import check_limit
from redsched.model.records.declared import AggregateView, ServerGroupView, SharedPoolView
from redsched.model.records.pages import Page
from redsched.model.records.problems import ClaimStateFacts, NotFoundFacts
from redsched.model.validation import check_name
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.hosts.fields import keyed, slot_views
from redsched.scheduler.hosts.over import inventories_in
from redsched.scheduler.preconditions import refuse_changed
from redsched.store.codec.keys import Kind
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ScriptResult
from redsched.store.codec.tags import definition_tag

View = TypeVar("View")
Declare = Callable[[Cell, IfMatch], Awaitable[ScriptResult]]
"""Declares an object in a cell, conditional on its tag."""
Stored = Mapping[Cell, Declared]
"""Declared objects as the store has them, by cell."""

SHOWN_HOSTS = 5


class DeclaredService(ABC, Generic[View]):
    """The common part of services for declared objects: get, list and delete."""

    word: str
    called: str = ""
    """What a name is of, where that is not `word`."""
    kind: Kind

    def __init__(self, cells: Cells) -> None:
        self._cells = cells

    async def tag(self, name: str) -> str:
        """Return the tag of an object's declaration, for `if_match`. Raises NotFound, Settling."""
        home = self._home(await self._stored([self._checked(name)]), name)
        fields = (await home.store.declared.read(self.kind, [name])).get(name, {})
        tag = definition_tag(fields)
        if tag is None:
            raise await self._not_found(name)
        return tag

    async def get(self, name: str) -> View:
        """Return an object. Raises NotFound, Settling."""
        return await self._get(await self._stored([self._checked(name)]), name)

    def _checked(self, name: str) -> str:
        return check_name(self.called or self.word, name)

    async def _get(self, stored: Stored, name: str) -> View:
        found = await self._views(stored, [name]) if self._is_in(stored, name) else ()
        if not found:
            raise await self._not_found(name)
        return found[0]

    async def refuse_unknown(self, name: str) -> NoReturn:
        """Raise what `get` raises for an unknown name, for callers who may not know that there is such an object."""
        raise await self._not_found(name)

    async def list(self, limit: int = 100, after: str = "", only: Collection[str] | None = None) -> Page[View]:
        """Return all objects, or those with `only` these names, ordered by name.

        `after` is the `next` of the previous page: its last name.
        """
        check_limit(limit)
        found = await aio.gather(cell.store.declared.names(self.kind) for cell in self._homes())
        names = sorted({name for some in found for name in some if name > after and (only is None or name in only)})
        page = names[:limit]
        stored = await self._stored(page)
        views = await self._views(stored, [name for name in page if self._is_in(stored, name)])
        return Page(tuple(views), page[-1] if len(names) > limit else None)

    async def delete(self, name: str, force: bool = False, if_match: IfMatch = None) -> None:
        """Delete an object; with `if_match`, only if it has one of these tags.

        Raises NotFound, Settling, PreconditionFailed, and, unless `force`, ClaimState while it is in use.
        """
        stored = await self._stored([self._checked(name)])
        view = await self._get(stored, name)
        use = self._use(view)
        home = self._home(stored, name)
        for cell in () if use and not force else self._beginning_with(home):
            # UNKNOWN: the object is in another cell, or an earlier attempt of this call has deleted it.
            answer = await self._delete(cell, name, force, if_match if cell is home else None)
            if refuse_changed(answer, f"{self.word} {name}").outcome is Outcome.IN_USE:
                use = "has just come into use"
        if use and not force:
            raise ClaimState(f"{self.word} {name} {use}: stop using it first, or force it")
        await self._after_delete(view)

    async def _after_delete(self, found: View) -> None:
        """Clean up after a deletion. Does nothing by default."""

    def _homes(self) -> Sequence[Cell]:
        """Return the cells in which objects are looked up."""
        return tuple(self._cells)

    async def _stored(self, names: Sequence[str]) -> Stored:
        """Read these objects in all cells in which objects of the kind are looked up, without claims that are over."""
        homes = self._homes()
        await aio.gather(cell.expiry.expire_due() for cell in self._cells)
        found = await aio.gather(cell.store.declared.read(self.kind, names) for cell in homes)
        return {cell: self._declared(hashes) for cell, hashes in zip(homes, found, strict=True)}

    def _declared(self, hashes: Mapping[str, Mapping[str, str]]) -> Declared:
        declared = Declared()
        for name, fields in hashes.items():
            declared.put(self.kind, name, fields)
        return declared

    def _is_in(self, stored: Stored, name: str) -> bool:
        return any(name in declared.names(self.kind) for declared in stored.values())

    async def _put(self, stored: Stored, name: str, declare: Declare, if_match: IfMatch) -> None:
        """Declare an object in its authoritative cell (`_home`), then in the others."""
        home = self._home(stored, name)
        for cell in self._beginning_with(home):
            answer = await declare(cell, if_match if cell is home else None)
            refuse_changed(answer, f"{self.word} {name}", if_match)
        await self._cells.refresh()

    def _home(self, stored: Stored, name: str) -> Cell:
        """Return the cell in which tags are compared: the first one that has the object, else the first of all."""
        having = (cell for cell, declared in stored.items() if name in declared.names(self.kind))
        return next(having, next(iter(self._cells)))

    def _beginning_with(self, home: Cell) -> Sequence[Cell]:
        return (home, *(cell for cell in self._cells if cell is not home))

    async def _not_found(self, name: str) -> NotFound:
        await self._cells.refuse_unsettled(f"{self.word} {name}")
        return NotFound(f"there is no {self.word} {name!r}: declare it first")

    @abstractmethod
    async def _views(self, stored: Stored, names: Sequence[str]) -> Sequence[View]:
        """Return the views of the named objects, each of which some cell has."""

    @abstractmethod
    def _use(self, found: View) -> str:
        """Describe the use of an object, which prevents its deletion; '' if it is not in use."""

    @abstractmethod
    async def _delete(self, cell: Cell, name: str, force: bool, if_match: IfMatch) -> ScriptResult: ...


class AggregateService(DeclaredService[AggregateView]):
    """Aggregates, over all cells of a scheduler."""

    word = "aggregate"
    kind = Kind.AGGREGATE

    async def put(self, aggregate: Aggregate, if_match: IfMatch = None) -> tuple[AggregateView, bool]:
        """Declare an aggregate with all of its metadata and hosts. Returns its view, and whether it is new.

        Raises NotFound (unknown hosts), PreconditionFailed, Settling.
        """
        await self._refuse_unknown(aggregate.hosts)
        name, stored = aggregate.name, await self._stored([aggregate.name])
        await self._put(stored, name, lambda cell, tags: cell.store.declared.put_aggregate(aggregate, tags), if_match)
        return await self.get(name), not self._is_in(stored, name)

    async def _refuse_unknown(self, hosts: Iterable[str]) -> None:
        """Raise NotFound for hosts that have never reported: they cannot be members."""
        missing = await self._cells.unknown_hosts(hosts)
        if missing:
            shown = ", ".join(missing[:SHOWN_HOSTS]) + (" ..." if len(missing) > SHOWN_HOSTS else "")
            await self._cells.refuse_unsettled(f"host {missing[0]}")
            raise NotFound(
                f"there are no hosts {shown}: leave them out until they have reported",
                NotFoundFacts(hosts=tuple(missing)),
            )

    async def _views(self, stored: Stored, names: Sequence[str]) -> Sequence[AggregateView]:
        await self._cells.catch_up()
        hosts: dict[str, list[str]] = {name: [] for name in names}
        for cell in self._cells:
            columns = cell.updater.columns
            for name in names:
                hosts[name] += columns.names_in(columns.aggregates[name])
        return [_aggregate_view(stored, name, hosts[name]) for name in names]

    def _use(self, found: AggregateView) -> str:
        return f"has {len(found.hosts)} hosts, whose limits and reservations end with it" if found.hosts else ""

    async def _delete(self, cell: Cell, name: str, force: bool, if_match: IfMatch) -> ScriptResult:
        return await cell.store.declared.delete_aggregate(name, force, if_match)


class ServerGroupService(DeclaredService[ServerGroupView]):
    """Server groups, over all cells of a scheduler."""

    word = "server group"
    kind = Kind.SERVER_GROUP

    async def _after_delete(self, found: ServerGroupView) -> None:
        if not found.members:
            # A group that is declared again may be pinned to another cell, but not while it has members in this one.
            await next(iter(self._cells)).store.bindings.unbind_group(found.group.name)

    async def put(self, group: ServerGroup, if_match: IfMatch = None) -> tuple[ServerGroupView, bool]:
        """Declare a server group. Returns its view, and whether it is new.

        Raises PreconditionFailed, Settling, and ClaimState if the group has members and anything but max_per_host would
        change, or if members from before its deletion are not counted by the topologies of the new declaration.
        """
        stored = await self._stored([group.name])
        new = not self._is_in(stored, group.name)
        if not new:
            found = _group_view(stored, group.name)
            if found.members and _frame(found.group) != _frame(group):
                raise _has_members(found)
        await self._put(stored, group.name, lambda cell, tags: self._declare(cell, group, tags), if_match)
        return await self.get(group.name), new

    async def _declare(self, cell: Cell, group: ServerGroup, if_match: IfMatch) -> ScriptResult:
        answer = await cell.store.declared.put_group(group, if_match)
        if answer.outcome is Outcome.IN_USE and answer.facts:
            raise _has_uncounted(group, answer.facts)
        if answer.outcome is Outcome.IN_USE:
            raise _has_members(await self.get(group.name))
        return answer

    async def _views(self, stored: Stored, names: Sequence[str]) -> Sequence[ServerGroupView]:
        return [_group_view(stored, name) for name in names]

    def _use(self, found: ServerGroupView) -> str:
        return f"has {found.members} members" if found.members else ""

    async def _delete(self, cell: Cell, name: str, force: bool, if_match: IfMatch) -> ScriptResult:
        return await cell.store.declared.delete_group(name, force, if_match)


class SharedPoolService(DeclaredService[SharedPoolView]):
    """Shared pools, over all cells of a scheduler."""

    word = "pool"
    kind = Kind.POOL

    async def put(self, pool: SharedPool, cell: str = "c1", if_match: IfMatch = None) -> tuple[SharedPoolView, bool]:
        """Declare a shared pool in a cell. Returns its view, and whether it is new. Its claimed amounts stay.

        Raises NotFound (no such cell), ClaimState (the name is taken in another cell), PreconditionFailed, Settling.
        """
        home = self._cells.named(cell)
        stored = await self._stored([pool.name])
        _refuse_pool_elsewhere(stored, pool.name, home)
        answer = await home.store.declared.put_pool(pool, if_match)
        refuse_changed(answer, f"{self.word} {pool.name}", if_match)
        is_new = not self._is_in(stored, pool.name)
        if is_new and len(self._cells) > 1:
            await self._undo_twin(pool.name, home)
        await self._cells.refresh()
        return await self.get(pool.name), is_new

    async def _undo_twin(self, name: str, home: Cell) -> None:
        """Delete a pool that was declared in another cell at the same time, and raise ClaimState.

        Of two calls that have both declared it, at least one sees the other's pool; both may, and then delete both.
        """
        try:
            _refuse_pool_elsewhere(await self._stored([name]), name, home)
        except ClaimState:
            await home.store.declared.delete_pool(name, False, None)
            raise

    async def _views(self, stored: Stored, names: Sequence[str]) -> Sequence[SharedPoolView]:
        found: dict[str, SharedPoolView] = {}
        for cell, declared in stored.items():
            hashes = await cell.store.declared.read(Kind.POOL, [name for name in names if name in declared.pools])
            found.update((name, _pool_view(name, cell, fields)) for name, fields in hashes.items())
        return [found[name] for name in names if name in found]

    def _use(self, found: SharedPoolView) -> str:
        held = [name for name, slot in found.slots.items() if slot.claimed]
        return f"is claimed from ({', '.join(held)})" if held else ""

    async def _delete(self, cell: Cell, name: str, force: bool, if_match: IfMatch) -> ScriptResult:
        return await cell.store.declared.delete_pool(name, force, if_match)


def _refuse_pool_elsewhere(stored: Stored, name: str, home: Cell) -> None:
    """Raise ClaimState if another cell than `home` has a pool with this name."""
    for other, declared in stored.items():
        if other is not home and name in declared.pools:
            raise ClaimState(f"pool {name} is in cell {other.name}: delete it there first, or name that cell")


def _aggregate_view(stored: Stored, name: str, hosts: Sequence[str]) -> AggregateView:
    metadata: dict[str, str] = {}
    for declared in stored.values():
        if name in declared.aggregates:
            metadata.update(declared.aggregates[name].metadata)
    return AggregateView(name, metadata, tuple(sorted(hosts)))


def _group_view(stored: Stored, name: str) -> ServerGroupView:
    states = [declared.groups[name] for declared in stored.values() if name in declared.groups]
    group = states[0].group
    counts: dict[str, Counter[str]] = {by: Counter() for by in group.topologies()}
    for state in states:
        for by, counted in counts.items():
            counted.update(state.counts(by))
    members = sum(state.members for state in states)
    return ServerGroupView(name, group.policy, group.by, group.max_per_host, group.count_by, members, counts)


def _pool_view(name: str, cell: Cell, fields: Mapping[str, str]) -> SharedPoolView:
    traits, aggregates = (frozenset(keyed(prefix, fields)) for prefix in ("trait.", "aggregate."))
    warnings = warnings_of(inventories_in(fields))
    return SharedPoolView(name, cell.name, slot_views(fields), traits, aggregates, warnings)


def _frame(group: ServerGroup) -> tuple[object, ...]:
    return (group.policy, group.by, frozenset(group.count_by))


def _has_members(found: ServerGroupView) -> ClaimState:
    return ClaimState(
        f"server group {found.group.name} has {found.members} members: only max_per_host can change while it has any",
        ClaimStateFacts(members=found.members),
    )


def _has_uncounted(group: ServerGroup, topologies: Sequence[str]) -> ClaimState:
    by = ", ".join(topologies)
    return ClaimState(
        f"server group {group.name} has members from before it was deleted, and not all of them are counted by "
        f"{by}: declare it without that, or release them first",
        ClaimStateFacts(uncounted=tuple(topologies)),
    )
