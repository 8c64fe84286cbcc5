"""Sum up the amounts of all hosts and shared pools by class: in all, or by zone, aggregate, project or consumer.

Hosts are those of the replicas. Claims are read, from the store, only for the sums of projects and consumers.
"""

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from redsched.model import CLAIMS, Claim, OneOf
from redsched.model.records.capacity import CapacityBy, CapacityRow, ClassCapacity
from redsched.model.validation import SHARED_POOL, split_slot
from redsched.operate.observe.usage import claimed_by
from redsched.scheduler.cells import Cells

if TYPE_CHECKING:
    from redsched.cache.columns import Columns
    from redsched.decide.rules import Mask
    from redsched.scheduler.declared.declarations import SharedPoolService

PAGE = 500


async def capacity(cells: Cells, pools: "SharedPoolService", by: CapacityBy | None = None) -> tuple[CapacityRow, ...]:
    """Return the amounts, sorted by name. Raises StoreUnavailable.

    Shared pools belong to no zone or aggregate: only the sums over everything, and those of claims, have them. A host
    that is in several aggregates counts in each of them.
    """
    await cells.catch_up()
    groups = by if by in (CapacityBy.ZONE, CapacityBy.AGGREGATE) else None
    sums: dict[str, dict[str, ClassCapacity]] = {}
    for cell in cells:
        for of, name, found in sums_of(cell.updater.columns, groups):
            classes = sums.setdefault(of, {})
            classes[name] = classes.get(name, ClassCapacity()) + found
    if groups is None:
        everything = sums.setdefault("", {})
        async for name, found in amounts_of_shared_pools(pools):
            everything[name] = everything.get(name, ClassCapacity()) + found
    if by in KEYS:
        return await by_claims(cells, sums[""], KEYS[by])
    return tuple(CapacityRow(of, dict(sorted(classes.items()))) for of, classes in sorted(sums.items()))


async def by_claims(
    cells: Cells, everything: Mapping[str, ClassCapacity], key: Callable[[Claim], str], project: OneOf = None
) -> tuple[CapacityRow, ...]:
    """Return what claims take, by a key of theirs; with `project`, only the claims of that project, or of several."""
    found = await claimed_by(cells, key, project)
    totals = {name: ClassCapacity(total=one.total) for name, one in everything.items()}

    def classes(used: Mapping[str, int]) -> dict[str, ClassCapacity]:
        claimed = sorted((name, amount) for name, amount in used.items() if name != CLAIMS)
        return {name: replace(totals.get(name, ClassCapacity()), claimed=amount) for name, amount in claimed}

    return tuple(CapacityRow(name, classes(used)) for name, used in sorted(found.items()))


KEYS: Mapping[CapacityBy | None, Callable[[Claim], str]] = {
    CapacityBy.PROJECT: lambda claim: claim.project,
    CapacityBy.CONSUMER: lambda claim: claim.consumer,
}
"""What of a claim the sums over claims are made by."""


async def amounts_of_shared_pools(pools: "SharedPoolService") -> AsyncIterator[tuple[str, ClassCapacity]]:
    """Yield the amounts of the shared pools, by class."""
    from redsched.decide.fit import largest_fit

    after: str | None = ""
    while after is not None:
        page = await pools.list(limit=PAGE, after=after)
        for view in page.items:
            for name, slot in view.slots.items():
                free = max(0, slot.free)
                most = int(largest_fit(free, slot.min_unit, slot.max_unit, slot.step_size))
                at = f"{SHARED_POOL}{view.name}" if most else ""
                yield name, ClassCapacity(slot.capacity, slot.claimed, slot.external, free, 0, most, at)
        after = page.next


def sums_of(
    columns: "Columns", by: CapacityBy | None, among: "Mask | None" = None
) -> Iterator[tuple[str, str, ClassCapacity]]:
    """Yield the amounts of each slot on the hosts of each group: the name of the group, the class, the amounts.

    `among`: only these hosts count.
    """
    import numpy as np

    from redsched.decide.fit import largest_fit

    none, kept_of = np.zeros(columns.size, np.int64), dict[str, Any]()
    for row in columns.reserved.of_others(""):
        for slot, amount in columns.reserved.amounts(row).items():
            kept_of.setdefault(slot, none.copy())[row] = amount
    ready = columns.present & columns.alive & columns.attested & (columns.status == 0)
    for of, members in _groups(columns, by):
        rows = np.flatnonzero(columns.present & members if among is None else columns.present & members & among)
        if not len(rows):
            continue
        for slot in columns.capacity:
            total = columns.capacity[slot][rows]
            claimed, external = columns.claimed[slot][rows], columns.external[slot][rows]
            if not (total.any() or claimed.any()):
                continue
            left = np.maximum(total - claimed - external, 0)
            kept = kept_of.get(slot, none)[rows]
            external = external - kept
            kept = np.clip(total - claimed - external, 0, kept)
            free = np.where(ready[rows], left, 0)
            units = (family[slot][rows] for family in (columns.minimum, columns.maximum, columns.step))
            most = largest_fit(free, *units)
            best = int(most.argmax())
            pool, name = split_slot(slot)
            at = " ".join(filter(None, (columns.name(int(rows[best])), pool))) if most[best] else ""
            found = ClassCapacity(
                int(total.sum()),
                int(claimed.sum()),
                int(external.sum()),
                int(free.sum()),
                int((left - free).sum()),
                int(most[best]),
                at,
                int(kept.sum()),
            )
            yield of, name, found


def _groups(columns: "Columns", by: CapacityBy | None) -> Iterator[tuple[str, Any]]:
    """Yield the groups of hosts, each with a mask of its rows; hosts in no group are under ''."""
    import numpy as np

    if by is None:
        yield "", columns.present
    elif by is CapacityBy.ZONE:
        codes = columns.zones.codes
        for code in np.unique(codes[columns.present]).tolist():
            yield (columns.zones.by_code[code] if code >= 0 else ""), codes == code
    else:
        none = np.ones(columns.size, np.bool_)
        for name in columns.aggregates:
            mask = columns.aggregates[name]
            none &= ~mask
            yield name, mask
        yield "", none
