"""What is free to projects: on the hosts that they may use, and within their quotas. It names no hosts."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from redsched.errors import NotFound
from redsched.model import CLAIMS, Request
from redsched.model.records.capacity import CapacityBy, CapacityRow, ClassCapacity
from redsched.operate.observe.capacity import amounts_of_shared_pools, by_claims, sums_of
from redsched.operate.observe.usage import claimed_by
from redsched.scheduler.cells import Cells

if TYPE_CHECKING:
    from redsched.cache.columns import Columns
    from redsched.decide.rules import Mask
    from redsched.scheduler.declared.declarations import SharedPoolService
    from redsched.scheduler.quotas.quotas import QuotaService

Classes = dict[str, ClassCapacity]


async def own_capacity(
    cells: Cells,
    pools: "SharedPoolService",
    quotas: "QuotaService",
    projects: Iterable[str],
    by: CapacityBy | None = None,
) -> tuple[CapacityRow, ...]:
    """Return a row for each project, or for each consumer of their claims. Raises StoreUnavailable.

    `total` is the limit of the project's quota, or what there is if that is less; `free` is what the limit leaves.
    """
    names = tuple(projects)
    await cells.catch_up()
    used = await claimed_by(cells, lambda claim: claim.project, names)
    rows = []
    for project in names:
        found = await _classes(cells, pools, project)
        limits = await _limits(quotas, project)
        rows.append(CapacityRow(project, _within(found, used.get(project, Counter()), limits)))
    if by is not CapacityBy.CONSUMER:
        return tuple(rows)
    totals = {name: one for row in rows for name, one in row.classes.items()}
    return await by_claims(cells, totals, lambda claim: claim.consumer, names)


async def _classes(cells: Cells, pools: "SharedPoolService", project: str) -> Classes:
    """Return the amounts on the hosts that a project may use."""
    found: Classes = {}
    for cell in cells:
        columns = cell.updater.columns
        for _, name, one in sums_of(columns, None, _open_to(columns, project)):
            found[name] = found.get(name, ClassCapacity()) + one
    async for name, one in amounts_of_shared_pools(pools):
        found[name] = found.get(name, ClassCapacity()) + one
    return dict(sorted(found.items()))


def _open_to(columns: "Columns", project: str) -> "Mask":
    """Return which hosts no aggregate keeps for other projects."""
    from redsched.decide.filters.demands import AGGREGATE_PROJECTS, demands
    from redsched.decide.rules import ALL_ROWS

    [rule] = [one for one in demands(Request({"VCPU": 1}, project=project)) if one.reason == AGGREGATE_PROJECTS]
    return rule.passes(columns, ALL_ROWS)


async def _limits(quotas: "QuotaService", project: str) -> Mapping[str, int]:
    if not project:
        return {}
    try:
        return (await quotas.get(project)).limits
    except NotFound:
        return {}


def _within(found: Mapping[str, ClassCapacity], used: Mapping[str, int], limits: Mapping[str, int]) -> Classes:
    """Return the amounts of classes as far as the limits of a project admit them."""
    may_claim = used.get(CLAIMS, 0) < limits.get(CLAIMS, used.get(CLAIMS, 0) + 1)
    classes: Classes = {}
    for name, one in sorted(found.items()):
        claimed = used.get(name, 0)
        total = min(one.total, limits.get(name, one.total))
        left = one.free if name not in limits else max(0, limits[name] - claimed)
        free = min(one.free, left) if may_claim else 0
        classes[name] = ClassCapacity(total=total, claimed=claimed, free=free, largest=min(one.largest, free))
    return classes
