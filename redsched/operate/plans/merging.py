"""One answer from those of several cells."""

from collections import Counter
from collections.abc import Iterable, Sequence

from redsched.model.records.plans import (
    AddingPlan,
    CapacityPlan,
    ClassAmounts,
    LeavingPlan,
    RebalancePlan,
    Redundancy,
    Room,
)
from redsched.operate.plans.leaving import worst
from redsched.scheduler.selection.refusal import merge_reasons


def merged_capacity(found: Sequence[CapacityPlan]) -> CapacityPlan:
    """Return the sum of what fits in several cells."""
    zones = Counter[str]()
    for one in found:
        zones.update(one.zones)
    return CapacityPlan(
        sum(one.places for one in found),
        any(one.at_least for one in found),
        dict(sorted(zones.items())),
        merge_reasons([one.reasons for one in found]),
        _classes(one.classes for one in found),
        redundancy=_redundancy([one.redundancy for one in found if one.redundancy is not None]),
    )


def merged_leaving(found: Sequence[LeavingPlan]) -> LeavingPlan:
    """Return what would leave the hosts of several cells."""
    return LeavingPlan(
        tuple(sorted(host for one in found for host in one.hosts)),
        tuple(move for one in found for move in one.moves),
        tuple(claim for one in found for claim in one.unplaced),
        _classes(one.classes for one in found),
    )


def merged_adding(found: Sequence[AddingPlan]) -> AddingPlan:
    """Return what the hosts of several cells would change."""
    rooms = [one.room for one in found if one.room is not None]
    room = Room(sum(one.before for one in rooms), sum(one.after for one in rooms), any(one.at_least for one in rooms))
    return AddingPlan(
        sum(one.hosts for one in found),
        _classes(one.classes for one in found),
        sum(one.waiting for one in found),
        sum(one.served for one in found),
        room if rooms else None,
    )


def merged_rebalancing(found: Sequence[RebalancePlan]) -> RebalancePlan:
    """Return the moves of several cells, one cell after the other."""
    return RebalancePlan(
        found[0].aim,
        tuple(move for one in found for move in one.moves),
        sum(one.before for one in found),
        sum(one.after for one in found),
        sum(one.goal for one in found),
        any(one.is_cut for one in found),
    )


def _redundancy(found: Sequence[Redundancy]) -> Redundancy | None:
    """Return one redundancy. Claims never leave their cell, so a zone of two cells is two things that may fail."""
    if not found:
        return None
    return Redundancy(
        found[0].by,
        sum(one.checked for one in found),
        sum(one.failed for one in found),
        worst(failing for one in found for failing in one.failing),
        sum(one.unchecked for one in found),
        sum(one.unlabelled for one in found),
    )


def _classes(found: Iterable[Sequence[ClassAmounts]]) -> tuple[ClassAmounts, ...]:
    total: dict[str, Counter[str]] = {}
    for one in (one for some in found for one in some):
        amounts = {"capacity": one.capacity, "free": one.free, "after": one.after}
        total.setdefault(one.resource_class, Counter()).update(amounts)
    return tuple(ClassAmounts(name, **amounts) for name, amounts in sorted(total.items()))
