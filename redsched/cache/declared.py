"""What operators declared of a cell, in memory: aggregates, server groups with their counts, shared pools, quotas.

Fed like the columns with the flat fields of the store's hashes and feed, and as careful: what cannot be read lets
nothing in. A server group or shared pool may have counts before it is declared (claims that outlived the store's data
bring theirs back): such a one is followed and not shown.
"""

from collections.abc import Callable, KeysView, Mapping
from types import MappingProxyType

from redsched.cache.entries import AggregateState, GroupState, PoolState, QuotaState
from redsched.store.codec.keys import Kind
from redsched.store.codec.results import Thing

State = AggregateState | GroupState | PoolState | QuotaState

_MAKE: Mapping[str, Callable[[str], State]] = {
    Kind.AGGREGATE: AggregateState,
    Kind.SERVER_GROUP: GroupState,
    Kind.POOL: PoolState,
    Kind.QUOTA: QuotaState,
}
_NO_RULE = (Kind.SERVER_GROUP, Kind.QUOTA)
"""Kinds that no mask depends on."""


class Declared:
    """The declared objects of one cell.

    `aggregates`, `groups`, `pools` and `quotas` (by project) show what is declared, by name. `revision` grows with each
    change of an aggregate's metadata or of a pool's definition, and not with what is claimed: masks that depend on
    those compare it.
    """

    def __init__(self) -> None:
        self.revision = 0
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
        """Version of a thing; None where it is not known."""
        state = self._known[kind].get(name)
        return None if state is None else state.version

    def put(self, kind: str, name: str, fields: Mapping[str, str]) -> None:
        """Replace a thing whole by the fields of its hash."""
        self._known[kind][name] = _MAKE[kind](name)
        self.patch(kind, name, fields)

    def patch(self, kind: str, name: str, fields: Mapping[str, str]) -> None:
        """Set changed fields (with `version` among them) to new absolute values; '' means that the field is gone.

        Raises KeyError for a thing that is not known: read it whole and put it.
        """
        state = self._known[kind][name]
        if state.apply(fields) and kind not in _NO_RULE:
            self.revision += 1
        if state.declared:
            self._shown[kind][name] = state
        else:
            self._shown[kind].pop(name, None)

    def remove(self, kind: str, name: str) -> None:
        """Forget a thing; nothing happens where it is not known."""
        if self._known[kind].pop(name, None) is not None:
            self._shown[kind].pop(name, None)
            self.revision += kind not in _NO_RULE

    def from_reply(self, thing: Thing) -> bool:
        """Take what a script's reply, of this epoch, said of a thing that it wrote; False where it must not be applied.

        As with hosts: nothing that is no newer than what is known, and the version moves only by one.
        """
        known = self.version(thing.kind, thing.name)
        if known is None or thing.version <= known:
            return False
        follows = thing.version == known + 1
        fields = {**thing.fields, "version": str(thing.version)} if follows else thing.fields
        self.patch(thing.kind, thing.name, fields)
        return True

    def describe(self) -> dict[str, dict[str, object]]:
        """Every value of what is declared by kind and name, for comparing."""
        return {f"{kind} {name}": self.describe_one(kind, name) for kind in _MAKE for name in self._shown[kind]}

    def describe_one(self, kind: str, name: str) -> dict[str, object]:
        """Return every value of a thing; none where it is not declared."""
        state = self._shown[kind].get(name)
        return state.describe() if state else {}

    def names(self, kind: str) -> KeysView[str]:
        """Return the names of the declared objects of a kind."""
        return self._shown[kind].keys()

    # Trying places out

    def place(self, group: str, host: str, domains: Mapping[str, str], sign: int = 1) -> None:
        """Count a place on a host in a group, and under its zone and label values (by -> value); -1 takes it out.

        A value of '' is not counted under; so `domains` may leave out the host itself. Raises KeyError for a group that
        is not declared.
        """
        self._groups[group].place({"host": host, **domains}, sign)

    def take(self, pool: str, resource_class: str, amount: int) -> None:
        """Claim an amount of a shared pool; a negative one gives it back. Raises KeyError for one not declared."""
        self._pools[pool].take(resource_class, amount)
