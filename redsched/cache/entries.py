"""The state of each object in `Declared`: an aggregate, a server group, a shared pool, or a quota."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from redsched.cache.slot_fields import AMOUNTS, amount_of
from redsched.errors import InvalidRequest
from redsched.model import GroupPolicy, ServerGroup
from redsched.model.validation import MAX_AMOUNT, parse_int

NOT_DEFINED = ("actor", "request_id", "reason", "broken")
"""Fields of groups in the store or the feed that are neither counts nor part of the definition."""


class AggregateState:
    """An aggregate: `metadata` by key. Its hosts are in the columns."""

    __slots__ = ("_metadata", "metadata", "name", "version")

    declared = True

    def __init__(self, name: str) -> None:
        self.name = name
        self.version = 0
        self._metadata: dict[str, str] = {}
        self.metadata: Mapping[str, str] = MappingProxyType(self._metadata)

    def apply(self, fields: Mapping[str, str]) -> bool:
        """Set fields, and return whether the definition has changed."""
        for field, text in fields.items():
            kind, _, key = field.partition(".")
            if kind == "version":
                self.version = parse_int(text, 0)
            elif kind == "meta" and text:
                self._metadata[key] = text
            elif kind == "meta":
                self._metadata.pop(key, None)
        return True

    def describe(self) -> dict[str, object]:
        """Return every value by its field, for comparison."""
        return {"version": self.version} | {f"meta.{key}": text for key, text in self._metadata.items()}


class GroupState:
    """A server group: `group` is its definition, `members` the number of claims in it."""

    __slots__ = ("_counts", "_definition", "_group", "members", "name", "version")

    def __init__(self, name: str) -> None:
        self.name = name
        self.version = 0
        self.members = 0
        self._counts: dict[str, dict[str, int]] = {}
        self._definition: dict[str, str] = {}
        self._group: ServerGroup | None = None

    @property
    def declared(self) -> bool:
        """Whether there is a valid definition."""
        return self._group is not None

    @property
    def group(self) -> ServerGroup:
        """The definition. Raises LookupError if there is none; `Declared` does not expose such a group."""
        if self._group is None:
            raise LookupError(f"server group {self.name!r} is not declared")
        return self._group

    def count(self, by: str, value: str) -> int:
        """Return the number of members in one host, zone or label value."""
        return self._counts.get(by, {}).get(value, 0)

    def counts(self, by: str) -> Mapping[str, int]:
        """Return the members in each host, zone or label value that has any. A live view: do not modify."""
        return self._counts.get(by, {})

    def place(self, domains: Mapping[str, str], sign: int) -> None:
        """Count a member in, or out with `sign` -1; a domain of '' is skipped."""
        self.members += sign
        for by, value in domains.items():
            if value:
                self._set_count(by, value, self.count(by, value) + sign)

    def apply(self, fields: Mapping[str, str]) -> bool:
        """Set fields, and return whether the definition has changed."""
        definition = {}
        for field, text in fields.items():
            kind, _, key = field.partition(".")
            if kind == "version":
                self.version = parse_int(text, 0)
            elif kind == "members":
                self.members = parse_int(text, MAX_AMOUNT) if text else 0
            elif kind == "count":
                by, _, value = key.partition("=")
                self._set_count(by, value, parse_int(text, MAX_AMOUNT) if text else 0)
            elif field not in NOT_DEFINED:
                definition[field] = text
        if definition:
            self._definition = {field: text for field, text in (self._definition | definition).items() if text}
            self._group = _group_from(self.name, self._definition)
        return bool(definition)

    def describe(self) -> dict[str, object]:
        """Return every value by its field, for comparison."""
        values: dict[str, object] = {"version": self.version, "members": self.members, "group": self._group}
        for by, counts in self._counts.items():
            values |= {f"count.{by}={value}": count for value, count in counts.items()}
        return values

    def _set_count(self, by: str, value: str, count: int) -> None:
        counts = self._counts.setdefault(by, {})
        if count:
            counts[value] = count
        else:
            counts.pop(value, None)


@dataclass(frozen=True, slots=True)
class PoolSlot:
    """One class of a shared pool, in the class's unit: the same values as the columns have for a host's slot."""

    capacity: int
    claimed: int
    external: int
    minimum: int
    maximum: int
    step: int


_SLOT_FIELDS = {
    "capacity": "capacity",
    "claimed": "claimed",
    "external": "external",
    "min": "minimum",
    "max": "maximum",
    "step": "step",
}
_EMPTY = PoolSlot(**{_SLOT_FIELDS[kind]: default for kind, (default, _) in AMOUNTS.items()})


class PoolState:
    """A shared pool: `slots` by class, its `traits`, and the `aggregates` that may use it (empty: all hosts)."""

    __slots__ = ("_classes", "_slots", "aggregates", "name", "slots", "traits", "version")

    def __init__(self, name: str) -> None:
        self.name = name
        self.version = 0
        self.traits: frozenset[str] = frozenset()
        self.aggregates: frozenset[str] = frozenset()
        self._classes: set[str] = set()
        self._slots: dict[str, PoolSlot] = {}
        self.slots: Mapping[str, PoolSlot] = MappingProxyType(self._slots)

    @property
    def declared(self) -> bool:
        """Whether it has an inventory."""
        return bool(self._classes)

    def take(self, resource_class: str, amount: int) -> None:
        """Claim an amount; a negative one releases it."""
        slot = self._slots.get(resource_class, _EMPTY)
        self._slots[resource_class] = replace(slot, claimed=slot.claimed + amount)

    def apply(self, fields: Mapping[str, str]) -> bool:
        """Set fields, and return whether the definition has changed."""
        defined = False
        for field, text in fields.items():
            kind, _, key = field.partition(".")
            if kind == "version":
                self.version = parse_int(text, 0)
            elif kind in _SLOT_FIELDS:
                self._set_slot(kind, key, text)
                defined |= kind not in ("claimed", "external")
            elif kind == "trait":
                self.traits = _with(self.traits, key, text == "1")
                defined = True
            elif kind == "aggregate":
                self.aggregates = _with(self.aggregates, key, text == "1")
                defined = True
        return defined

    def describe(self) -> dict[str, object]:
        """Return every value by its field, for comparison."""
        slots = {f"slot.{name}": slot for name, slot in self._slots.items() if slot != _EMPTY}
        return {"version": self.version, "traits": self.traits, "aggregates": self.aggregates, **slots}

    def _set_slot(self, kind: str, resource_class: str, text: str) -> None:
        if kind == "capacity":
            (self._classes.add if text else self._classes.discard)(resource_class)
        slot = replace(
            self._slots.get(resource_class, _EMPTY),
            **{_SLOT_FIELDS[kind]: amount_of(kind, text)},
        )
        if slot == _EMPTY and resource_class not in self._classes:
            self._slots.pop(resource_class, None)
        else:
            self._slots[resource_class] = slot


class QuotaState:
    """A project's quota: `limits` by class, and by `claims`. Only the store knows its usage."""

    __slots__ = ("_limits", "limits", "name", "version")

    def __init__(self, name: str) -> None:
        self.name = name
        self.version = 0
        self._limits: dict[str, int] = {}
        self.limits: Mapping[str, int] = MappingProxyType(self._limits)

    @property
    def declared(self) -> bool:
        """Whether it limits anything."""
        return bool(self._limits)

    def apply(self, fields: Mapping[str, str]) -> bool:
        """Set fields, and return False: no placement decision depends on them."""
        for field, text in fields.items():
            kind, _, name = field.partition(".")
            if kind == "version":
                self.version = parse_int(text, 0)
            elif kind == "limit" and text:
                self._limits[name] = parse_int(text, 0)
            elif kind == "limit":
                self._limits.pop(name, None)
        return False

    def describe(self) -> dict[str, object]:
        """Return every value by its field, for comparison."""
        return {"version": self.version, **{f"limit.{name}": limit for name, limit in self._limits.items()}}


def _with(names: frozenset[str], name: str, there: bool) -> frozenset[str]:
    return names | {name} if there else names - {name}


def _group_from(name: str, definition: Mapping[str, str]) -> ServerGroup | None:
    """Return the group that these fields define; None if there is no definition or it is invalid."""
    count_by = tuple(sorted(text for field, text in definition.items() if field.startswith("count_by.")))
    try:
        return ServerGroup(
            # While the places of one request are tried, they form a group without a name.
            name or "unnamed",
            GroupPolicy(definition["policy"]),
            definition.get("by", "host"),
            int(definition.get("max_per_host", "1")),
            count_by,
        )
    except (KeyError, ValueError, InvalidRequest):
        return None
