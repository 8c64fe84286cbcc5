"""Sum up the amounts of all hosts and shared pools by class: in all, or by zone, aggregate or project.

Hosts are read in pages, so that no read blocks the store for long. Claims are read for the sums of projects only.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from redsched.model import CLAIMS
from redsched.model.validation import SHARED_POOL, split_slot
from redsched.scheduler.cells import Cells
from redsched.scheduler.mirroring.parts import columns_in_parts
from redsched.scheduler.observe.usage import UsageBy, usage

if TYPE_CHECKING:
    from redsched.cache.columns import Columns
    from redsched.scheduler.declared.service import SharedPoolService

PAGE = 500


class CapacityBy(StrEnum):
    """What amounts are summed by, besides their class."""

    ZONE = "zone"
    AGGREGATE = "aggregate"
    PROJECT = "project"


@dataclass(frozen=True, slots=True)
class ClassCapacity:
    """The amounts of one class, in its unit.

    `total`: what claims and external usage may use together. `claimed` and `external`: what they use; `external` has
    what is reserved for requests that wait, too. `free`: what is free on hosts that take claims; `away`: on hosts that
    take none, because they are down, not attested, disabled or draining. `largest`: the largest free amount in one
    place, `largest_at`: the host (with the pool, `h1 gpu0`) or shared pool that has it.
    """

    total: int = 0
    claimed: int = 0
    external: int = 0
    free: int = 0
    away: int = 0
    largest: int = 0
    largest_at: str = ""

    def __add__(self, other: "ClassCapacity") -> "ClassCapacity":
        top = other if other.largest > self.largest else self
        return ClassCapacity(
            self.total + other.total,
            self.claimed + other.claimed,
            self.external + other.external,
            self.free + other.free,
            self.away + other.away,
            top.largest,
            top.largest_at,
        )


@dataclass(frozen=True, slots=True)
class CapacityRow:
    """The amounts by class of a zone, aggregate or project: `name` is its name; '' for all, and for hosts in none.

    A project has no capacity of its own: `total` is that of all hosts, and only `claimed` is the project's.
    """

    name: str
    classes: Mapping[str, ClassCapacity] = field(default_factory=dict)


async def capacity(cells: Cells, pools: "SharedPoolService", by: CapacityBy | None = None) -> tuple[CapacityRow, ...]:
    """Return the amounts, sorted by name. Raises StoreUnavailable.

    Shared pools belong to no zone or aggregate: only the sums over everything, and those of projects, have them. A host
    that is in several aggregates counts in each of them.
    """
    await cells.catch_up()
    groups = by if by in (CapacityBy.ZONE, CapacityBy.AGGREGATE) else None
    sums: dict[str, dict[str, ClassCapacity]] = {}
    for cell in cells:
        async for columns in columns_in_parts(cell):
            for of, name, found in _sums(columns, groups):
                classes = sums.setdefault(of, {})
                classes[name] = classes.get(name, ClassCapacity()) + found
    if groups is None:
        everything = sums.setdefault("", {})
        async for name, found in _shared(pools):
            everything[name] = everything.get(name, ClassCapacity()) + found
    if by is CapacityBy.PROJECT:
        return await _by_project(cells, sums[""])
    return tuple(CapacityRow(of, dict(sorted(classes.items()))) for of, classes in sorted(sums.items()))


async def _by_project(cells: Cells, everything: Mapping[str, ClassCapacity]) -> tuple[CapacityRow, ...]:
    rows = await usage(cells, (UsageBy.CLASS, UsageBy.PROJECT))
    totals = {name: ClassCapacity(total=one.total) for name, one in everything.items()}

    def classes(used: Mapping[str, int]) -> dict[str, ClassCapacity]:
        claimed = sorted((name, amount) for name, amount in used.items() if name != CLAIMS)
        return {name: replace(totals.get(name, ClassCapacity()), claimed=amount) for name, amount in claimed}

    return tuple(CapacityRow(one.of["project"], classes(one.used)) for one in rows)


async def _shared(pools: "SharedPoolService") -> Any:
    """Yield the amounts of the shared pools, by class."""
    after: str | None = ""
    while after is not None:
        page = await pools.list(limit=PAGE, after=after)
        for view in page.items:
            for name, slot in view.slots.items():
                free = max(0, slot.free)
                at = f"{SHARED_POOL}{view.name}" if free else ""
                yield name, ClassCapacity(slot.capacity, slot.claimed, slot.external, free, 0, free, at)
        after = page.next


def _sums(columns: "Columns", by: CapacityBy | None) -> Iterator[tuple[str, str, ClassCapacity]]:
    """Yield the amounts of each slot on the hosts of each group: the name of the group, the class, the amounts."""
    import numpy as np

    ready = columns.present & columns.alive & columns.attested & (columns.status == 0)
    for of, members in _groups(columns, by):
        rows = np.flatnonzero(columns.present & members)
        if not len(rows):
            continue
        for slot in columns.capacity:
            total = columns.capacity[slot][rows]
            claimed, external = columns.claimed[slot][rows], columns.external[slot][rows]
            if not (total.any() or claimed.any()):
                continue
            left = np.maximum(total - claimed - external, 0)
            free = np.where(ready[rows], left, 0)
            best = int(free.argmax())
            pool, name = split_slot(slot)
            at = " ".join(filter(None, (columns.name(int(rows[best])), pool))) if free[best] else ""
            found = ClassCapacity(
                int(total.sum()),
                int(claimed.sum()),
                int(external.sum()),
                int(free.sum()),
                int((left - free).sum()),
                int(free[best]),
                at,
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
