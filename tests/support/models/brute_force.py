"""Gangs on tiny fleets by brute force: every assignment of places to hosts, checked against every rule.

Written from the documented constraints and not from redsched.decide, so that each can reveal errors of the other.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations, product

from redsched.model import GroupPolicy, RelationType, Request, ServerGroup

NO_ONE = ""


@dataclass
class TinyFleet:
    """Hosts by name: the free amounts, zone and rack ('' for none), aggregates and groups of each."""

    free: dict[str, dict[str, int]]
    zones: dict[str, str]
    racks: dict[str, str]
    aggregates: dict[str, set[str]] = field(default_factory=dict)
    groups: dict[str, ServerGroup] = field(default_factory=dict)
    members: dict[str, list[str]] = field(default_factory=dict)
    """By group: the hosts of its members, one entry each."""

    def domain(self, by: str, host: str) -> str:
        """The domains that a host is counted under."""
        return {"host": host, "zone": self.zones[host], "label:rack": self.racks[host]}[by]


@dataclass(frozen=True)
class Seat:
    """One requested place, with its member."""

    member: str
    request: Request


Placed = list[tuple[Seat, str]]
"""Places with their hosts, in the order of the places."""


def seats_of(call: Request) -> list[Seat]:
    """Return all places in order."""
    if not call.members:
        return [Seat("", call) for _ in range(call.count)]
    return [Seat(one.name, one.request) for one in call.members for _ in range(one.request.count)]


def broken(fleet: TinyFleet, call: Request, placed: Placed) -> str:
    """Return the first rule that these places violate on their hosts; '' if all hold."""
    return next(_broken(fleet, call, placed), "")


def broken_but_for_spread(fleet: TinyFleet, call: Request, placed: Placed) -> str:
    """Return the same without the rules that depend on the order in which places join."""
    return next((one for one in _broken(fleet, call, placed) if not one.startswith("spread")), "")


def placings(fleet: TinyFleet, call: Request) -> Iterator[tuple[str, ...]]:
    """Yield every assignment of hosts to places that violates no rule."""
    for hosts in product(sorted(fleet.free), repeat=len(seats_of(call))):
        if not broken(fleet, call, list(zip(seats_of(call), hosts, strict=True))):
            yield hosts


def _broken(fleet: TinyFleet, call: Request, placed: Placed) -> Iterator[str]:
    yield from _room(fleet, placed)
    for relation in call.relations:
        hosts = [host for seat, host in placed if seat.member in relation.members]
        for one, other in combinations(hosts, 2):
            if not _related(fleet, relation.type, one, other):
                yield f"{relation.type} {one} {other}"
        inside_one = any(set(hosts) <= inside for inside in fleet.aggregates.values())
        if relation.type is RelationType.SAME_AGGREGATE and len(hosts) > 1 and not inside_one:
            yield "no one aggregate"
    counts = {name: list(inside) for name, inside in fleet.members.items()}
    for at, (seat, host) in enumerate(placed):
        yield from _affinity(fleet, seat.request, host, counts)
        yield from _spread(fleet, call, placed, at, counts)
        if seat.request.server_group:
            counts[seat.request.server_group].append(host)


def _room(fleet: TinyFleet, placed: Placed) -> Iterator[str]:
    taken: Counter[tuple[str, str]] = Counter()
    for seat, host in placed:
        if seat.request.zones and fleet.zones[host] not in seat.request.zones:
            yield f"zone of {host}"
        if seat.request.hosts and host not in seat.request.hosts:
            yield f"not {host}"
        for slot, amount in seat.request.resources.items():
            taken[host, slot] += amount
    for (host, slot), amount in taken.items():
        if amount > fleet.free[host].get(slot, 0):
            yield f"{slot} of {host}"


def _related(fleet: TinyFleet, kind: RelationType, one: str, other: str) -> bool:
    if kind is RelationType.TOGETHER:
        return one == other
    if kind is RelationType.APART:
        return one != other
    if kind is RelationType.SAME_ZONE:
        return bool(fleet.zones[one]) and fleet.zones[one] == fleet.zones[other]
    return any({one, other} <= inside for inside in fleet.aggregates.values())


def _affinity(fleet: TinyFleet, request: Request, host: str, counts: dict[str, list[str]]) -> Iterator[str]:
    """Check the rule of a server group against its members at the time when this place joins."""
    if not request.server_group:
        return
    group = fleet.groups[request.server_group]
    mine = fleet.domain(group.by, host)
    held = [fleet.domain(group.by, other) for other in counts[request.server_group]]
    if group.policy is GroupPolicy.ANTI_AFFINITY and (not mine or held.count(mine) >= group.max_per_host):
        yield f"anti-affinity of {host}"
    if group.policy is GroupPolicy.AFFINITY and (not mine or (any(held) and mine not in held)):
        yield f"affinity of {host}"


def _spread(fleet: TinyFleet, call: Request, placed: Placed, at: int, counts: dict[str, list[str]]) -> Iterator[str]:
    """Check hard spreading against the counts at the time when this place joins."""
    seat, host = placed[at]
    for spread in seat.request.spread:
        if not spread.hard:
            continue
        alike = _spread_with(call, seat, spread.by)
        names = {fleet.domain(spread.by, name) for one in alike for name in _may_go(fleet, one)} - {NO_ONE}
        before = counts[seat.request.server_group] if seat.request.server_group else _before(placed[:at], spread.by)
        held = Counter(fleet.domain(spread.by, name) for name in before)
        most = min(one.max_skew for other in alike for one in other.spread if one.by == spread.by and one.hard)
        mine = fleet.domain(spread.by, host)
        if not mine or held[mine] + 1 - min((held[name] for name in names), default=0) > most:
            yield f"spread by {spread.by} of {host}"


def _spread_with(call: Request, seat: Seat, by: str) -> list[Request]:
    """Return the requests over whose hosts a place is spread."""
    if seat.request.server_group:
        return [seat.request]
    requests = [one.request for one in seats_of(call)]
    return [
        one
        for one in requests
        if not one.server_group and any(spread.by == by and spread.hard for spread in one.spread)
    ]


def _before(placed: Placed, by: str) -> list[str]:
    return [
        host
        for seat, host in placed
        if not seat.request.server_group and any(one.by == by and one.hard for one in seat.request.spread)
    ]


def _may_go(fleet: TinyFleet, request: Request) -> list[str]:
    return [
        host
        for host in fleet.free
        if (not request.zones or fleet.zones[host] in request.zones) and (not request.hosts or host in request.hosts)
    ]
