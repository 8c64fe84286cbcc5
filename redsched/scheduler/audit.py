"""Auditing invariants 1, 2, 5 and 10 of docs/architecture.md over the live store, while work goes on, and mending.

Each host is read with its claims in one script. What spans more than that (deadlines, keys without a host, groups,
pools and quotas) is read at different instants, so a suspicion counts only when it is seen again. What is mended is
looked at once more afterwards: what was still wrong then, was not mended.
"""

from collections.abc import Sequence
from dataclasses import replace

from redsched.scheduler.audit_again import LOOKS, seen_again, with_mended
from redsched.scheduler.audit_cache import cache_problems
from redsched.scheduler.audit_counts import count_problems, over_by_rights, read_counts
from redsched.scheduler.audit_hosts import host_problems, lease_problems, unheard_endings
from redsched.scheduler.audit_hosts import over_by_rights as host_over
from redsched.scheduler.audit_leftovers import leftover_problems
from redsched.scheduler.audit_reading import Seen, read_cell
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.mending import mend
from redsched.scheduler.views import AuditReport
from redsched.store import CellStore


async def audit(cells: Cells) -> AuditReport:
    """Look at everything; again at what looked wrong. Raises StoreUnavailable."""
    return _together([await audit_cell(cell) for cell in cells])


async def repair(cells: Cells, operator: bool) -> AuditReport:
    """Audit, mend what can be mended, and look again. Raises StoreUnavailable.

    `operator`: a person has asked for it, so that claims which only a person may end are ended too.
    """
    return _together([await repair_cell(cell, operator) for cell in cells])


async def audit_cell(cell: Cell) -> AuditReport:
    """`audit` of one cell."""
    report, _ = await _look_again(cell)
    return report


async def repair_cell(cell: Cell, operator: bool) -> AuditReport:
    """`repair` of one cell. Requests that claims name are kept for another while."""
    before, seen = await _look_again(cell)
    await cell.store.keep_requests(seen.digests())
    if not before.problems:
        return before
    await mend(cell, before.problems, operator)
    after = await audit_cell(cell)
    return replace(after, problems=with_mended(before.problems, after.problems))


async def _look_again(cell: Cell) -> tuple[AuditReport, Seen]:
    """Look; and where something looks wrong, whether it still does."""
    report, seen = await _look(cell.store)
    for _ in range(LOOKS - 1):
        if not report.problems:
            break
        again, seen = await _look(cell.store)
        report = replace(again, problems=seen_again(report.problems, again.problems))
    return replace(report, problems=(*report.problems, *await cache_problems(cell.mirror))), seen


async def repair_picture(cell: Cell) -> AuditReport:
    """`repair` of this scheduler's picture of a cell alone."""
    problems = await cache_problems(cell.mirror)
    await mend(cell, problems, operator=False)
    left = await cache_problems(cell.mirror) if problems else ()
    return AuditReport(len(cell.mirror.columns), 0, with_mended(problems, left))


def _together(reports: Sequence[AuditReport]) -> AuditReport:
    return AuditReport(
        sum(one.hosts for one in reports),
        sum(one.claims for one in reports),
        tuple(problem for one in reports for problem in one.problems),
        tuple(host for one in reports for host in one.over),
    )


async def _look(store: CellStore) -> tuple[AuditReport, Seen]:
    before = await read_counts(store)
    seen = await read_cell(store)
    clock, after = await store.tick(), await read_counts(store)
    hosts = [host for host in seen.hosts if host.fields]
    problems = [one for host in hosts for one in host_problems(store.name, host, clock)]
    problems += [one for host in hosts for one in lease_problems(store.name, host, seen.deadlines, clock)]
    problems += [one for host in hosts for one in unheard_endings(store.name, host, clock)]
    problems += leftover_problems(store.name, seen)
    problems += count_problems(store.name, before, after, seen.living())
    over = (*(host.name for host in hosts if host_over(host)), *over_by_rights(after))
    report = AuditReport(len(hosts), sum(len(host.ids) for host in hosts), tuple(problems), over)
    return report, seen
