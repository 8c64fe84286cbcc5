"""The declared objects of a cell, in memory: aggregates, server groups with their counts, shared pools, quotas.

They are updated, like the columns, with the flat fields of the store's hashes and feed, and by the same rule: an
invalid value blocks placements. A server group or shared pool may have counts before it is declared, from restored
claims after a loss of the store's data: it is kept up to date, but not exposed.
"""

from collections.abc import Callable, KeysView, Mapping
from types import MappingProxyType

from redsched.cache.entries import AggregateState, GroupState, PoolState, QuotaState
from redsched.store.codec.keys import Kind
from redsched.store.codec.replies import SharedObject

State = AggregateState | GroupState | PoolState | QuotaState

_MAKE: Mapping[str, Callable[[str], State]] = {
    Kind.AGGREGATE: AggregateState,
    Kind.SERVER_GROUP: GroupState,
    Kind.POOL: PoolState,
    Kind.QUOTA: QuotaState,
}
_NO_RULE = (Kind.SERVER_GROUP, Kind.QUOTA)
"""Kinds that no cached mask depends on."""


class Declared:
    """The declared objects of one cell.

    `aggregates`, `groups`, `pools` and `quotas` (by project) hold the declared ones by name. `revision` increases with
    each change of an aggregate's metadata or of a pool's definition, but not with claims; cached masks that depend on
    those compare it. `changes` increases with every change.
    """

    def __init__(self) -> None:
        self.revision = 0
        self.changes = 0
        self._known: dict[str, dict[str, State]] = {kind: {} for kind in _MAKE}
        self._aggregates: dict[str, AggregateState] = {}
        self._groups: dict[str, GroupState] = {}
        self._pools: dict[str, PoolState] = {}
        self._quotas: dict[str, QuotaState] = {}
        self._shown: dict[str, dict[str, State]] = {
            Kind.AGGREGATE: self._aggregates,  # type: ignore[dict-item]  # only states of the kind are put in
            Kind.SERVER_GROUP: self._groups,  # type: ignore[dict-item]
            Kind.POOL: self._pools,  # type: ignore[dict-item]
            Kind.QUOTA: self._quotas,  # type: ignore[dict-item]
        }
        self.aggregates: Mapping[str, AggregateState] = MappingProxyType(self._aggregates)
        self.groups: Mapping[str, GroupState] = MappingProxyType(self._groups)
        self.pools: Mapping[str, PoolState] = MappingProxyType(self._pools)
        self.quotas: Mapping[str, QuotaState] = MappingProxyType(self._quotas)

    def __contains__(self, kind: object) -> bool:
        return kind in _MAKE

    def version(self, kind: str, name: str) -> int | None:
        """Return the version of an object; None if it is unknown."""
        state = self._known[kind].get(name)
        return None if state is None else state.version

    def put(self, kind: str, name: str, fields: Mapping[str, str]) -> None:
        """Replace all values of an object with the fields of its hash."""
        self._known[kind][name] = _MAKE[kind](name)
        self.patch(kind, name, fields)

    def patch(self, kind: str, name: str, fields: Mapping[str, str]) -> None:
        """Set changed fields (including `version`) to their new absolute values; '' deletes a field.

        Raises KeyError if the object is unknown: then read the whole object and `put` it.
        """
        state = self._known[kind][name]
        self.changes += 1
        if state.apply(fields) and kind not in _NO_RULE:
            self.revision += 1
        if state.declared:
            self._shown[kind][name] = state
        else:
            self._shown[kind].pop(name, None)

    def remove(self, kind: str, name: str) -> None:
        """Remove an object; do nothing if it is unknown."""
        if self._known[kind].pop(name, None) is not None:
            self.changes += 1
            self._shown[kind].pop(name, None)
            self.revision += kind not in _NO_RULE

    def from_reply(self, shared: SharedObject) -> bool:
        """Apply a reply about an object that its script wrote in this epoch. Return False if it must not be applied.

        The rules are those for hosts: the reply must be newer than the known version, and the version advances only by
        one.
        """
        known = self.version(shared.kind, shared.name)
        if known is None or shared.version <= known:
            return False
        follows = shared.version == known + 1
        fields = {**shared.fields, "version": str(shared.version)} if follows else shared.fields
        self.patch(shared.kind, shared.name, fields)
        return True

    def describe(self) -> dict[str, dict[str, object]]:
        """Return all values of the declared objects by kind and name, for comparison."""
        return {f"{kind} {name}": self.describe_one(kind, name) for kind in _MAKE for name in self._shown[kind]}

    def describe_one(self, kind: str, name: str) -> dict[str, object]:
        """Return all values of an object, for comparison; empty if it is not declared."""
        state = self._shown[kind].get(name)
        return state.describe() if state else {}

    def names(self, kind: str) -> KeysView[str]:
        """Return the names of the declared objects of a kind."""
        return self._shown[kind].keys()

    # Temporary changes while placements are tried

    def place(self, group: str, host: str, domains: Mapping[str, str], sign: int = 1) -> None:
        """Count a place on a host in a group, and under its zone and label values (by -> value); `sign` -1 removes it.

        Domains with value '' are not counted; `{"host": ""}` in `domains` skips even the host. Raises KeyError if the
        group is not declared.
        """
        self.changes += 1
        self._groups[group].place({"host": host, **domains}, sign)

    def take(self, pool: str, resource_class: str, amount: int) -> None:
        """Claim an amount of a shared pool; a negative one releases it. Raises KeyError if the pool is not declared."""
        self.changes += 1
        self._pools[pool].take(resource_class, amount)
