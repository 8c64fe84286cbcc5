"""Place a gang with plain loops, and check any placement against the request."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.fleet_of_pools import GROUPS, PlainFleet, PlainHost
from benchmarks.plain_constraints import Amounts, Scored, Wanted, assign, has_room, scored, wanted
from redsched.model import RelationType, Request


@dataclass(frozen=True, slots=True)
class Placed:
    """A place: the host, its amounts there, its member of the gang ('' for a request without members)."""

    host: str
    amounts: Mapping[str, int]
    member: str = ""


def place_gang(fleet: PlainFleet, request: Request) -> list[Placed]:
    """Return hosts for all members, each the best that is left for it; [] if that fails.

    Members that must share a zone are tried in one zone after the other: first in that of the best hosts.
    """
    asked = {one.name: (wanted(one.request), one.count) for one in request.members}
    lists = {name: sorted(scored(fleet, one)) for name, (one, _) in asked.items()}
    for zone in _zones(request, lists):
        within = {name: [host for _, _, host in hosts if zone in ("", host.zone)] for name, hosts in lists.items()}
        found = _in_zone(fleet, request, asked, within)
        if found:
            return sorted(found, key=lambda one: list(asked).index(one.member))
    return []


def _zones(request: Request, lists: Mapping[str, list[Scored]]) -> Sequence[str]:
    if not any(one.type is RelationType.SAME_ZONE for one in request.relations):
        return [""]
    best: Counter[str] = Counter()
    for hosts in lists.values():
        seen: dict[str, float] = {}
        for score, _, host in hosts:
            seen.setdefault(host.zone, -score)
        best.update(seen)
    return [zone for zone, _ in best.most_common()]


def _in_zone(
    fleet: PlainFleet, request: Request, asked: Mapping[str, tuple[Wanted, int]], lists: Mapping[str, list[PlainHost]]
) -> list[Placed]:
    """Place greedily, the member with the fewest hosts first; amounts taken in between are returned."""
    found: list[Placed] = []
    try:
        for name in sorted(lists, key=lambda one: len(lists[one])):
            hosts = iter(lists[name])
            for _ in range(asked[name][1]):
                placed = next(filter(None, (_on(host, name, asked[name][0], request, found) for host in hosts)), None)
                if placed is None:
                    return []
                take(fleet, placed)
                found.append(placed)
        return list(found)
    finally:
        for placed in found:
            take(fleet, placed, -1)


def _on(host: PlainHost, member: str, asked: Wanted, request: Request, found: Sequence[Placed]) -> Placed | None:
    if not (apart_holds(request, member, host.name, found) and has_room(host, asked)):
        return None
    amounts = assign(host, asked)
    return None if amounts is None else Placed(host.name, amounts, member)


def apart_holds(request: Request, member: str, host: str, found: Sequence[Placed]) -> bool:
    """Return whether nothing is on a host that a member must be apart from."""
    aparts = [one.members for one in request.relations if one.type is RelationType.APART and member in one.members]
    return not any(one.host == host and one.member in members for members in aparts for one in found)


def take(fleet: PlainFleet, placed: Placed, sign: int = 1) -> None:
    """Take the amounts of a place, or return them with -1."""
    for slot, amount in placed.amounts.items():
        fleet.hosts[placed.host].take(slot, sign * amount)


def claim(fleet: PlainFleet, placed: Placed, group: str = "") -> None:
    """Make a place a claim: count it on its host and in its group too."""
    take(fleet, placed)
    host = fleet.hosts[placed.host]
    host.claims, host.starting = host.claims + 1, host.starting + 1
    for by in GROUPS[group][2] if group else ():
        held, domain = fleet.counts[group][by], host.name if by == "host" else host.zone
        held[domain] = held.get(domain, 0) + 1


def wrong_places(fleet: PlainFleet, request: Request, places: Sequence[Placed]) -> list[str]:
    """Return the errors of a placement as text: too few places, too much of a slot, wrong amounts, broken relations."""
    counts = {one.name: one.count for one in request.members} or {"": request.count}
    requests = {one.name: one.request for one in request.members} or {"": request}
    wrong = [] if Counter(one.member for one in places) == counts else [f"placed {len(places)} of {request.places}"]
    for number, one in enumerate(places):
        wrong += _wrong_amounts(wanted(requests[one.member]), one.amounts)
        if not apart_holds(request, one.member, one.host, places[:number]):
            wrong.append(f"{one.member} is on {one.host} beside what it must be apart from")
    for relation in request.relations:
        zones = {fleet.hosts[one.host].zone for one in places if one.member in relation.members}
        if relation.type is RelationType.SAME_ZONE and len(zones) > 1:
            wrong.append(f"{', '.join(relation.members)} lie in {len(zones)} zones")
    return wrong + _overfull(fleet, places)


def _wrong_amounts(asked: Wanted, amounts: Amounts | Mapping[str, int]) -> list[str]:
    totals: Counter[str] = Counter()
    for slot, amount in amounts.items():
        totals[slot.rpartition("/")[2]] += amount
    return [] if totals == dict(asked.totals) else [f"takes {dict(totals)} and not {dict(asked.totals)}"]


def _overfull(fleet: PlainFleet, places: Sequence[Placed]) -> list[str]:
    for one in places:
        take(fleet, one)
    wrong = [
        f"{one.host} has {left} left of {name}"
        for one in places
        for host in [fleet.hosts[one.host]]
        for place in (host.root, *(pool.left for pool in host.pools.values()))
        for name, left in place.items()
        if left < 0
    ]
    for one in places:
        take(fleet, one, -1)
    return wrong
