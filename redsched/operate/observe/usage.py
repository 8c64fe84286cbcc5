"""Sum up the amounts of all claims, by class and by zone or project. Reads the store, host by host.

All claims that have not ended count, also ending ones, whose amounts are held until their hosts report that the work is
gone. Hosts are read in pages, so that no read blocks the store for long; claims that are made or end in the meantime
may or may not be counted.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence

from redsched.model import CLAIMS, Claim, OneOf, accepts
from redsched.model.filters import UsageBy
from redsched.model.records.declared import UsageRow
from redsched.pacing import paced
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.quotas.usage import quota_usage


async def usage(cells: Cells, by: Sequence[UsageBy], project: OneOf = None) -> tuple[UsageRow, ...]:
    """Return the sums for each existing combination of zone and project, sorted. Raises StoreUnavailable.

    With `project`, only its claims count.

    `used` has amounts by class, and the number of claims as `claims`; if `by` lacks CLASS, only the number of claims.
    """
    await cells.catch_up()
    groups = [one for one in by if one is not UsageBy.CLASS]
    sums: dict[tuple[str, ...], Counter[str]] = {}
    for cell in cells:
        async for zone, claim in _claims(cell, project):
            key = tuple(zone if one is UsageBy.ZONE else claim.project for one in groups)
            sums.setdefault(key, Counter()).update(quota_usage(claim.slots))
    shown = UsageBy.CLASS in by
    return tuple(
        UsageRow(found if shown else {CLAIMS: found[CLAIMS]}, **dict(zip(groups, key, strict=True)))
        for key, found in sorted(sums.items())
    )


async def claimed_by(cells: Cells, key: Callable[[Claim], str], project: OneOf = None) -> dict[str, Counter[str]]:
    """Return what claims take by a key of theirs: amounts by class, and the number of claims. Raises StoreUnavailable.

    With `project`, only the claims of that project, or of several.
    """
    await cells.catch_up()
    sums: dict[str, Counter[str]] = {}
    for cell in cells:
        async for _, claim in _claims(cell, project):
            sums.setdefault(key(claim), Counter()).update(quota_usage(claim.slots))
    return sums


async def _claims(cell: Cell, project: OneOf) -> AsyncIterator[tuple[str, Claim]]:
    """Yield the claims of the project on the hosts of the cell's columns, each with the zone of its host."""
    columns = cell.updater.columns
    async for living in cell.store.claims.unended_on(sorted(columns.names())):
        async for claim in paced(living):
            row = columns.row(claim.host)
            if accepts(project, claim.project):
                yield "" if row is None else columns.zones.text(row), claim
