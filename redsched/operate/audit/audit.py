"""Audit invariants 1, 2, 3, 5 and 10 of docs/architecture.md in a live store under load, and repair violations.

Each host is read with its claims in one script. Checks that span more than a host (deadlines, keys without a host,
groups, pools and quotas) read at different instants, so a suspicion counts only if it is found again. After a repair,
the audit runs once more: what it still finds was not repaired. Names of hosts, and ids, are audited over all cells
(homes.py, ids.py).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from redsched.cache.entries import GroupState
from redsched.model import ClaimStatus
from redsched.model.records.audit import AuditReport, Problem
from redsched.operate.audit.cache import cache_problems
from redsched.operate.audit.counts import Counted, count_problems, legitimate_excess, read_counts
from redsched.operate.audit.homes import audit_homes, repair_homes
from redsched.operate.audit.hosts import (
    host_problems,
    lease_problems,
    legitimate_excess as host_over,
    load_of,
    stuck_endings,
)
from redsched.operate.audit.ids import audit_ids, repair_ids
from redsched.operate.audit.leftovers import leftover_problems
from redsched.operate.audit.members import Whereabouts, group_states, member_problems, topologies_of
from redsched.operate.audit.recheck import LOOKS, confirmed, with_repaired
from redsched.operate.audit.repair import repair_problems
from redsched.operate.audit.snapshot import read_cell
from redsched.pacing import Spread
from redsched.scheduler.cells import Cell, Cells
from redsched.store.cell import CellStore
from redsched.store.codec.replies import AuditedHost, Clock


async def audit(cells: Cells) -> AuditReport:
    """Audit all cells, and confirm each suspicion by further audits. Raises StoreUnavailable."""
    return _merged([with_problems(await audit_cell(cell), await audit_between(cell, cells)) for cell in cells])


async def repair(cells: Cells, operator: bool) -> AuditReport:
    """Audit, repair what can be repaired, and audit again. Raises StoreUnavailable.

    With `operator`, a person has requested the repair, and claims that only a person may end are ended too.
    """
    reports = [with_problems(await repair_cell(cell, operator), await repair_between(cell, cells)) for cell in cells]
    return _merged(reports)


async def audit_between(cell: Cell, cells: Cells) -> tuple[Problem, ...]:
    """Return the names of hosts, and the ids of claims, of a cell that later ones, by name, also have."""
    return (*await audit_homes(cell, cells), *await audit_ids(cell, cells))


async def repair_between(cell: Cell, cells: Cells) -> tuple[Problem, ...]:
    """Audit and repair what `audit_between` audits."""
    return (*await repair_homes(cell, cells), *await repair_ids(cell, cells))


async def audit_cell(cell: Cell) -> AuditReport:
    """Audit one cell, as `audit` does."""
    report, texts = await _confirmed_findings(cell)
    await texts.free_in_slices()
    return report


async def repair_cell(cell: Cell, operator: bool) -> AuditReport:
    """Repair one cell, as `repair` does. Also keeps the texts that claims refer to for longer."""
    before, texts = await _confirmed_findings(cell)
    await cell.store.texts.extend(texts)
    await texts.free_in_slices()
    if not before.problems:
        return before
    await repair_problems(cell, before.problems, operator)
    after = await audit_cell(cell)
    return replace(after, problems=with_repaired(before.problems, after.problems))


async def _confirmed_findings(cell: Cell) -> tuple[AuditReport, Spread[bool]]:
    """Return the problems that LOOKS audits in a row find (one audit if it finds none), and the names of
    the texts that claims refer to."""
    report, texts = await _findings(cell.store)
    for _ in range(LOOKS - 1):
        if not report.problems:
            break
        await texts.free_in_slices()
        again, texts = await _findings(cell.store)
        report = replace(again, problems=confirmed(report.problems, again.problems))
    return replace(report, problems=(*report.problems, *await cache_problems(cell.updater))), texts


async def repair_replica(cell: Cell) -> AuditReport:
    """Audit and repair only this scheduler's replica of a cell."""
    problems = await cache_problems(cell.updater)
    await repair_problems(cell, problems, operator=False)
    left = await cache_problems(cell.updater) if problems else ()
    return AuditReport(len(cell.updater.columns), 0, with_repaired(problems, left))


def with_problems(report: AuditReport, more: Sequence[Problem]) -> AuditReport:
    """Return a report with further problems."""
    return replace(report, problems=(*report.problems, *more))


def _merged(reports: Sequence[AuditReport]) -> AuditReport:
    return AuditReport(
        sum(one.hosts for one in reports),
        sum(one.claims for one in reports),
        tuple(problem for one in reports for problem in one.problems),
        tuple(host for one in reports for host in one.over),
        tuple(rule for one in reports for rule in one.broken_rules),
    )


class _Findings:
    """Collects the findings of one pass over all hosts and claims of a cell, as they are read."""

    def __init__(self, store: CellStore, clock: Clock, groups: Mapping[str, GroupState]) -> None:
        self._store, self._cell, self._clock = store, store.name, clock
        self._topologies, self.members = topologies_of(groups), Whereabouts(groups)
        self.counted = Counted()
        self.problems: list[Problem] = []
        self.over: list[str] = []
        self.hosts = self.claims = 0

    async def at_host(self, host: AuditedHost, deadlines: Mapping[str, int]) -> None:
        if not host.fields:
            return
        load = await load_of(host)
        self.hosts, self.claims = self.hosts + 1, self.claims + len(host.ids)
        self.problems += host_problems(self._cell, load, self._clock)
        self.problems += lease_problems(self._cell, load, deadlines, self._clock)
        self.problems += stuck_endings(self._cell, load, self._clock)
        self.problems += await member_problems(self._store, load, self._topologies)
        await self.members.take(host)
        if host_over(load):
            self.over.append(host.name)

    def at_claim(self, _: str, fields: Mapping[str, str]) -> None:
        if fields.get("state", ClaimStatus.ENDED) != ClaimStatus.ENDED:
            self.counted.take(fields)


async def _findings(store: CellStore) -> tuple[AuditReport, Spread[bool]]:
    """Return the findings of one pass over the cell, and the names of the texts that claims refer to."""
    # The clock is read before anything else, so that a deadline that passes during the audit does not count as overdue.
    clock, before = await store.tick(), await read_counts(store)
    findings = _Findings(store, clock, await group_states(before))
    seen = await read_cell(store, findings.at_host, findings.at_claim)
    after = await read_counts(store)
    leftover = await leftover_problems(store.name, seen)
    problems = (*findings.problems, *leftover, *await count_problems(store.name, before, after, findings.counted))
    texts, seen.texts = seen.texts, Spread[bool]()
    await seen.free_in_slices()
    over = (*findings.over, *await legitimate_excess(after))
    rules = await findings.members.broken_rules(before, after)
    return AuditReport(findings.hosts, findings.claims, problems, over, rules), texts
