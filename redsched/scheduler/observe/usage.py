"""Usage: what all claims hold, summed by class, and by zone or project. Read from the store, host by host.

What is counted are claims that have not ended, those that end among them: their amounts are taken until their hosts say
that the work is gone. Hosts are read in pages, so that no reading holds the store for long: claims that are made or end
meanwhile may be in or not.
"""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

from redsched.errors import InvalidRequest
from redsched.model import CLAIMS
from redsched.pacing import paced
from redsched.scheduler.cells import Cells
from redsched.scheduler.quotas.usage import quota_usage
from redsched.scheduler.results import UsageRow


class UsageBy(StrEnum):
    """What usage is summed by."""

    CLASS = "class"
    ZONE = "zone"
    PROJECT = "project"


def usage_by(text: str) -> tuple[UsageBy, ...]:
    """What a list such as `class,zone,project` names, each once, in its order. Raises InvalidRequest."""
    names = dict.fromkeys(text.split(","))
    unknown = [name for name in names if name not in set(UsageBy)]
    if unknown:
        known = ", ".join(UsageBy)
        raise InvalidRequest(f"by {unknown[0][:80]!r} is nothing to sum by: use one or more of {known}, with commas")
    return tuple(UsageBy(name) for name in names)


async def usage(cells: Cells, by: Sequence[UsageBy]) -> tuple[UsageRow, ...]:
    """The sums for each combination of what is there, in order. Raises StoreUnavailable.

    `used` is by class, with `claims`, their number; without CLASS among `by` it is the number of claims alone.
    """
    await cells.catch_up()
    groups = [one for one in by if one is not UsageBy.CLASS]
    sums: dict[tuple[str, ...], Counter[str]] = {}
    for cell in cells:
        columns = cell.mirror.columns
        async for living in cell.store.claims.living_on(sorted(columns.names())):
            async for claim in paced(living):
                row = columns.row(claim.host)
                zone = "" if row is None else columns.zones.text(row)
                key = tuple(zone if one is UsageBy.ZONE else claim.project for one in groups)
                sums.setdefault(key, Counter()).update(quota_usage(claim.amounts))
    shown = UsageBy.CLASS in by
    return tuple(
        UsageRow(dict(zip(groups, key, strict=True)), found if shown else {CLAIMS: found[CLAIMS]})
        for key, found in sorted(sums.items())
    )
