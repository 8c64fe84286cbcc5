"""The summary of a cell: what is free in it by zone and class, for schedulers that have no replica of the cell.

It is an upper bound: it may claim that a host takes a request that no host takes, but never the contrary.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

ALL_ZONES = "*"
"""The zone of all rooms of a cell with too many zones. No zone has this name."""
WITH_VCPU = "VCPU"
"""The class beside which the largest free amounts of the others are given."""
UNREADY = ("down", "unattested", "disabled", "draining")
"""The reasons for which a host takes no claims of any kind, in the order of the filters."""

CLASSES, TRAITS, AGGREGATES = "classes", "traits", "aggregates"


def power_below(amount: int) -> int:
    """Return the largest power of two that is not above a positive amount."""
    return 1 << (amount.bit_length() - 1)


@dataclass(frozen=True, slots=True)
class Room:
    """What is free of a class on the hosts of a zone that take claims.

    `largest` is the largest amount that one host has free in one place: its root, or a pool. `hosts` maps a power of
    two to the number of hosts with at least that much free in one place, and `beside` to the largest amount free on a
    host with at least so many VCPU. Both have only the highest power of each value.
    """

    total: int
    largest: int
    hosts: Mapping[int, int] = field(default_factory=dict)
    beside: Mapping[int, int] = field(default_factory=dict)

    def hosts_with(self, amount: int) -> int:
        """Return a number of hosts that is at least that of those with so much free."""
        return _at(self.hosts, amount) if amount <= self.largest else 0

    def largest_beside(self, vcpu: int) -> int:
        """Return an amount that is at least the largest one free on a host with so many VCPU free."""
        return _at(self.beside, vcpu) if vcpu and self.beside else self.largest


def _at(steps: Mapping[int, int], amount: int) -> int:
    """Return the value for an amount of values that fall from step to step."""
    wanted = power_below(amount)
    return max((value for power, value in steps.items() if power >= wanted), default=0)


@dataclass(frozen=True, slots=True)
class CellSummary:
    """A cell at `seq` of an epoch, the seq of feed entry `entry`, written at `at_ms` by the store's clock.

    `unready` counts, of its `hosts`, those that take no claims, by UNREADY. `rooms` are by zone and class. `shared` has
    the largest amount free in a shared pool, by class. `traits` and `aggregates` count the other hosts that have them,
    the traits of pools included. `cut` names the parts that are incomplete, because they would be too large.
    """

    epoch: str = ""
    seq: int = 0
    entry: str = "0-0"
    at_ms: int = 0
    hosts: int = 0
    unready: Mapping[str, int] = field(default_factory=dict)
    rooms: Mapping[tuple[str, str], Room] = field(default_factory=dict)
    shared: Mapping[str, int] = field(default_factory=dict)
    traits: Mapping[str, int] = field(default_factory=dict)
    aggregates: Mapping[str, int] = field(default_factory=dict)
    cut: frozenset[str] = frozenset()

    @property
    def ready(self) -> int:
        """The number of hosts that take claims."""
        return self.hosts - sum(self.unready.values())

    def fields(self) -> dict[str, str]:
        """Return the summary as the fields of its hash."""
        head = {"epoch": self.epoch, "seq": self.seq, "entry": self.entry, "at_ms": self.at_ms, "hosts": self.hosts}
        head |= {name: self.unready.get(name, 0) for name in UNREADY}
        return {name: str(value) for name, value in (*head.items(), *self._parts())} | {
            "cut": " ".join(sorted(self.cut))
        }

    def _parts(self) -> Iterator[tuple[str, int]]:
        for (zone, name), room in self.rooms.items():
            slot = f"{zone}/{name}"
            yield f"total.{slot}", room.total
            yield f"largest.{slot}", room.largest
            yield from ((f"hosts.{slot}.{power}", count) for power, count in room.hosts.items())
            yield from ((f"beside.{slot}.{power}", amount) for power, amount in room.beside.items())
        for kind, values in (("shared", self.shared), ("trait", self.traits), ("aggregate", self.aggregates)):
            yield from ((f"{kind}.{name}", value) for name, value in values.items())

    @classmethod
    def parse(cls, fields: Mapping[str, str]) -> "CellSummary | None":
        """Return the summary in these fields of a hash; None if there is none, or it cannot be read."""
        try:
            return _parsed(fields) if fields else None
        except (KeyError, ValueError):
            return None


def _parsed(fields: Mapping[str, str]) -> CellSummary:
    keyed: dict[str, dict[str, int]] = {}
    for name, text in fields.items():
        kind, dot, rest = name.partition(".")
        if dot:
            keyed.setdefault(kind, {})[rest] = int(text)
    return CellSummary(
        fields["epoch"],
        int(fields["seq"]),
        fields["entry"],
        int(fields["at_ms"]),
        int(fields["hosts"]),
        {name: int(fields[name]) for name in UNREADY},
        _rooms(keyed),
        keyed.get("shared", {}),
        keyed.get("trait", {}),
        keyed.get("aggregate", {}),
        frozenset(fields["cut"].split()),
    )


def _rooms(keyed: Mapping[str, Mapping[str, int]]) -> dict[tuple[str, str], Room]:
    rooms: dict[tuple[str, str], Room] = {}
    for slot, largest in keyed.get("largest", {}).items():
        zone, _, name = slot.partition("/")
        rooms[zone, name] = Room(keyed["total"][slot], largest, {}, {})
    for kind in ("hosts", "beside"):
        for rest, value in keyed.get(kind, {}).items():
            slot, _, power = rest.rpartition(".")
            zone, _, name = slot.partition("/")
            steps = rooms[zone, name].hosts if kind == "hosts" else rooms[zone, name].beside
            steps[int(power)] = value  # type: ignore[index]  # made above, and not shown to anyone yet
    return rooms
