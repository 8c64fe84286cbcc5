"""Judge from a cell's summary whether the cell may have a place for a request.

The judgement is conservative: a request is ruled out only if no host of the cell fits. What a summary does not cover
(labels, metrics, queries, affinity, limits, combinations) never rules a request out.
"""

from collections.abc import Iterator, Mapping, Sequence

from redsched.decide.filters.aggregates import MEMBER_OF
from redsched.decide.filters.hosts import ZONE
from redsched.decide.filters.traits import REQUIRED, ROOT_REQUIRED
from redsched.decide.pools import needs_of
from redsched.model import Request
from redsched.store.codec.summary import AGGREGATES, ALL_ZONES, CLASSES, TRAITS, WITH_VCPU, CellSummary, Room

IMPLICIT_TRAITS = frozenset(("HW_NUMA_ROOT",))
"""Traits that pools may have without being listed."""

_Rooms = Mapping[str, Room]
"""The rooms of one zone by class."""


def ruled_out_by(summaries: Sequence[CellSummary], request: Request) -> str:
    """Return a reason why none of the summarized hosts takes the request, as refusals name it; '' if one may.

    With several summaries, the members of a gang may each go to the hosts of another one.
    """
    for one in _requests(request):
        reasons = [_reason(summary, one) for summary in summaries]
        if all(reasons):
            return reasons[0]
    return ""


def hosts_that_may_fit(summary: CellSummary, request: Request) -> int:
    """Return a number of hosts that is at least the number of those that fit one place of each member."""
    return min(_hosts(summary, one) for one in _requests(request))


def _requests(request: Request) -> list[Request]:
    return [member.request for member in request.members] or [request]


def _reason(summary: CellSummary, request: Request) -> str:
    return _missing_trait(summary, request) or _missing_aggregate(summary, request) or _lacking(summary, request)


def _missing_trait(summary: CellSummary, request: Request) -> str:
    if TRAITS in summary.cut:
        return ""
    parts = (*(group.required for group in request.groups), *(devices.required for devices in request.pci))
    for reason, names in ((REQUIRED, request.required.union(*parts)), (ROOT_REQUIRED, request.root_required)):
        for name in sorted(names - IMPLICIT_TRAITS):
            if name not in summary.traits:
                return f"{reason}:{name}"
    return ""


def _missing_aggregate(summary: CellSummary, request: Request) -> str:
    if AGGREGATES in summary.cut:
        return ""
    for names in sorted(map(sorted, request.member_of)):
        if not any(name in summary.aggregates for name in names):
            return f"{MEMBER_OF}:{','.join(names)}"
    return ""


def _lacking(summary: CellSummary, request: Request) -> str:
    """Return the class of which no zone has enough, or the reason for a lack of zones."""
    amounts, reason = _amounts(summary, request), ZONE
    for rooms in _zones(summary, request):
        reason = _lacking_in(rooms, amounts)
        if not reason:
            break
    return reason


def _lacking_in(rooms: _Rooms, amounts: Mapping[str, int]) -> str:
    vcpu = amounts.get(WITH_VCPU, 0)
    for name, amount in amounts.items():
        room = rooms.get(name)
        if room is None or room.largest < amount or room.largest_beside(vcpu) < amount:
            return name
    return ""


def _hosts(summary: CellSummary, request: Request) -> int:
    amounts = _amounts(summary, request)
    return sum(
        min((rooms[name].hosts_with(amount) if name in rooms else 0 for name, amount in amounts.items()), default=1)
        for rooms in _zones(summary, request)
    )


def _zones(summary: CellSummary, request: Request) -> Iterator[_Rooms]:
    """Yield the rooms of each zone that the request allows."""
    zones: dict[str, dict[str, Room]] = {}
    for (zone, name), room in summary.rooms.items():
        zones.setdefault(zone, {})[name] = room
    for zone, rooms in zones.items():
        if not request.zones or zone in request.zones or zone == ALL_ZONES:
            yield rooms


def _amounts(summary: CellSummary, request: Request) -> dict[str, int]:
    """Return, by class, the largest amount that the request needs in one place of a host.

    Leaves out classes that a shared pool can give, and those that the summary does not cover.
    """
    amounts: dict[str, int] = {}
    for part in needs_of(request).parts:
        for name, amount in part.demands:
            amounts[name] = max(amount, amounts.get(name, 0))
    covered = {name for _, name in summary.rooms} if CLASSES in summary.cut else amounts.keys()
    return {
        name: amount
        for name, amount in sorted(amounts.items())
        if name in covered and summary.shared.get(name, 0) < amount
    }
