"""Auditing invariants 1, 2 and 5 of the design over the live store, while work goes on.

Each host is read with its claims in one script. What spans more than that (deadlines, keys without a host, groups and
pools) is read at different instants, so a suspicion counts only when it is seen again.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence

from redsched.model import ClaimStatus
from redsched.names import SHARED_POOL, whole
from redsched.scheduler.audit_counts import count_problems, over_by_rights, read_counts
from redsched.scheduler.cells import Cell, Cells
from redsched.scheduler.views import AuditReport, Problem
from redsched.store import AuditedHost
from redsched.store.fields import AMOUNT

HOSTS_AT_ONCE = 200
LOOKS = 3
OVERDUE_MS = 15_000
"""How long after its deadline a claim may wait for a sweep before that is a leak."""

_LEASED = (ClaimStatus.CLAIMED, ClaimStatus.STARTING)


async def audit(cells: Cells) -> AuditReport:
    """Look at everything; again at what looked wrong. Raises StoreUnavailable."""
    reports = [await _audit_cell(cell) for cell in cells]
    return AuditReport(
        sum(one.hosts for one in reports),
        sum(one.claims for one in reports),
        tuple(problem for one in reports for problem in one.problems),
        tuple(host for one in reports for host in one.over),
    )


async def _audit_cell(cell: Cell) -> AuditReport:
    report = await _look(cell)
    for _ in range(LOOKS - 1):
        if not report.problems:
            break
        again = await _look(cell)
        seen = {(one.invariant, one.thing) for one in report.problems}
        still = tuple(one for one in again.problems if (one.invariant, one.thing) in seen)
        report = AuditReport(again.hosts, again.claims, still, again.over)
    return report


async def _look(cell: Cell) -> AuditReport:
    counts = await read_counts(cell.store)
    deadlines = await cell.store.deadlines()
    ids = await cell.store.all_claim_ids()
    names = await cell.store.host_names()
    hosts: list[AuditedHost] = []
    for first in range(0, len(names), HOSTS_AT_ONCE):
        hosts += await asyncio.gather(*(cell.store.audited(name) for name in names[first : first + HOSTS_AT_ONCE]))
    held = {claim_id: fields for host in hosts for claim_id, fields in host.claims.items()}
    clock = await cell.store.tick()
    problems = [problem for host in hosts for problem in _host_problems(cell.name, host)]
    heard = [host for host in hosts if clock.epoch in (host.fields.get("epoch"), host.fields.get("written_off"))]
    problems += [problem for host in heard for problem in _lease_problems(cell.name, host, deadlines, clock.now_ms)]
    problems += [
        Problem(5, cell.name, claim_id, "it has a deadline, and no host holds it")
        for claim_id in deadlines
        if claim_id not in held
    ]
    problems += await _strays(cell, held, ids)
    present = await read_counts(cell.store)
    live = (fields for fields in held.values() if fields.get("state") != ClaimStatus.ENDED)
    problems += count_problems(cell.name, counts, present, live)
    over = (*(host.name for host in hosts if _over_by_rights(host)), *over_by_rights(present))
    return AuditReport(len(hosts), len(held), tuple(problems), over)


def _amount(fields: Mapping[str, str], name: str) -> int:
    """-1 for what somebody has made unreadable, so that it equals no sum."""
    return whole(fields.get(name, "0"), -1)


def _slots(host: AuditedHost) -> Sequence[str]:
    kinds = ("claimed.", "capacity.")
    return sorted({name.partition(".")[2] for name in host.fields if name.startswith(kinds)} | set(_sums(host)))


def _sums(host: AuditedHost) -> Counter[str]:
    sums: Counter[str] = Counter()
    for fields in host.claims.values():
        slots = {name: name[len(AMOUNT) :] for name in fields if name.startswith(AMOUNT)}
        sums.update({slot: _amount(fields, name) for name, slot in slots.items() if not slot.startswith(SHARED_POOL)})
    return sums


def _host_problems(cell: str, host: AuditedHost) -> list[Problem]:
    found = []
    sums = _sums(host)
    for slot in _slots(host):
        thing = f"{host.name} {slot}"
        claimed, capacity = _amount(host.fields, f"claimed.{slot}"), _amount(host.fields, f"capacity.{slot}")
        if claimed > capacity and f"over.{slot}" not in host.fields:
            found.append(Problem(1, cell, thing, f"claimed {claimed} of a capacity of {capacity}"))
        if claimed != sums[slot]:
            says = host.fields.get(f"claimed.{slot}", "0")
            found.append(Problem(2, cell, thing, f"claimed says {says[:40]}, its claims hold {sums[slot]}"))
    leased = sum(host.claims[claim_id].get("state") in _LEASED for claim_id in host.ids)
    for name, count in (("claims", len(host.ids)), ("starting", leased)):
        if _amount(host.fields, name) != count:
            says = host.fields.get(name, "0")
            found.append(Problem(2, cell, f"{host.name} {name}", f"says {says[:40]}, there are {count}"))
    for claim_id in host.ids:
        fields = host.claims[claim_id]
        if fields.get("host") != host.name or fields.get("state") == ClaimStatus.ENDED:
            detail = f"counted on {host.name}, but the claim is {fields.get('state', 'unknown')} there"
            found.append(Problem(2, cell, claim_id, detail))
    return found


def _over_by_rights(host: AuditedHost) -> bool:
    """Over by its own word (`over.<slot>`: it shrank, or attested more than it has), or by external usage."""
    return any(
        f"over.{slot}" in host.fields
        or _amount(host.fields, f"claimed.{slot}")
        <= _amount(host.fields, f"capacity.{slot}")
        < _amount(host.fields, f"claimed.{slot}") + _amount(host.fields, f"external.{slot}")
        for slot in _slots(host)
    )


def _lease_problems(cell: str, host: AuditedHost, deadlines: Mapping[str, int], now_ms: int) -> list[Problem]:
    """Of a host that has been heard in this epoch: on others nothing may be expired, and that is no leak."""
    found = []
    for claim_id, fields in host.claims.items():
        if fields.get("state") not in _LEASED:
            continue
        deadline = deadlines.get(claim_id)
        if deadline is None:
            found.append(Problem(5, cell, claim_id, "a lease should run, and it has no deadline"))
        elif deadline < now_ms - OVERDUE_MS:
            found.append(Problem(5, cell, claim_id, f"its lease ended {(now_ms - deadline) // 1000} s ago"))
    return found


async def _strays(cell: Cell, held: Mapping[str, object], ids: Sequence[str]) -> list[Problem]:
    """Claims that have not ended and that no host's set has."""
    unheld = await cell.store.read_claims(claim_id for claim_id in ids if claim_id not in held)
    return [
        Problem(5, cell.name, claim.id, f"{claim.state} on {claim.host}, which does not count it")
        for claim in unheld.values()
        if claim.state is not ClaimStatus.ENDED
    ]
