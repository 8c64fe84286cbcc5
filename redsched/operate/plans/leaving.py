"""What would happen if hosts were drained, or gone; and whether everything fits without any one of them (N+1)."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from redsched.decide.work_limit import TooMuchWork, check_work
from redsched.errors import Conflict, NotFound
from redsched.model import HELD, Claim
from redsched.model.records.plans import (
    ClassAmounts,
    LeavingPlan,
    PlannedMove,
    Redundancy,
    Unplaced,
    WithoutDomain,
)
from redsched.operate.plans.cell_copy import CellCopy, free_by_class
from redsched.operate.plans.relocation import NOWHERE, Relocation

EXAMPLES, ALL_EXAMPLES = 10, 1000
"""The most claims without a place that N+1 names for each host, zone or label value, and for all of them."""
FAILING = 1000
"""The most hosts, zones or label values that N+1 names."""


def drained(copy: CellCopy, hosts: Collection[str]) -> LeavingPlan:
    """Return where the claims of these hosts would go in a drain with moves. Raises NotFound, TooMuchWork."""
    return _plan(copy, hosts, gone=False)


def without(copy: CellCopy, hosts: Collection[str]) -> LeavingPlan:
    """Return where the claims of these hosts would go if the hosts died and were evacuated. Raises as `drained`."""
    return _plan(copy, hosts, gone=True)


def n_plus_one(copy: CellCopy, by: str) -> Redundancy:
    """Return whether all claims fit without any one host, zone or label value (`host`, `zone`, `label:<key>`).

    Domains that were not tried before the time was up are counted as unchecked.
    """
    domains: dict[str, list[str]] = {}
    columns = copy.columns
    for host in columns.names():
        row = columns.row(host)
        assert row is not None
        domains.setdefault(columns.domain(by, row), []).append(host)
    unlabelled = domains.pop("", [])
    failing, checked = list[WithoutDomain](), 0
    try:
        for domain, hosts in sorted(domains.items()):
            found = _without_domain(copy, domain, hosts)
            checked += 1
            if found.unplaced:
                failing.append(found)
    except TooMuchWork:
        pass
    return Redundancy(by, checked, len(failing), worst(failing), len(domains) - checked, len(unlabelled))


def worst(failing: Iterable[WithoutDomain]) -> tuple[WithoutDomain, ...]:
    """Return those without which most claims have no place, these first, with no more examples than an answer may have.

    At most FAILING of them, with ALL_EXAMPLES together.
    """
    found, left = list[WithoutDomain](), ALL_EXAMPLES
    for one in sorted(failing, key=lambda one: (-one.unplaced, one.domain))[:FAILING]:
        found.append(replace(one, examples=one.examples[:left]))
        left -= len(found[-1].examples)
    return tuple(found)


def _without_domain(copy: CellCopy, domain: str, hosts: Sequence[str]) -> WithoutDomain:
    with copy.trial():
        moves, unplaced = _relocate(copy, hosts, gone=True)
    claims = len(moves) + len(unplaced)
    return WithoutDomain(domain, len(hosts), claims, len(unplaced), tuple(unplaced[:EXAMPLES]))


def _plan(copy: CellCopy, hosts: Collection[str], gone: bool) -> LeavingPlan:
    unknown = [host for host in hosts if host not in copy.columns]
    if unknown:
        raise NotFound(f"there is no host {unknown[0]!r} in cell {copy.cell}")
    before = free_by_class(copy.columns)
    with copy.trial():
        moves, unplaced = _relocate(copy, hosts, gone)
        after = free_by_class(copy.columns)
    classes = (ClassAmounts(name, *before[name], after.get(name, (0, 0))[1]) for name in before)
    return LeavingPlan(tuple(sorted(hosts)), tuple(moves), tuple(unplaced), tuple(classes))


def _relocate(copy: CellCopy, hosts: Collection[str], gone: bool) -> tuple[list[PlannedMove], list[Unplaced]]:
    """Place all claims of hosts elsewhere, the largest first."""
    for host in hosts:
        copy.close(host, gone)
    names = frozenset(hosts)
    relocation = Relocation(copy, NOWHERE if gone else names, names if gone else NOWHERE)
    moves, unplaced = list[PlannedMove](), list[Unplaced]()
    moved = set[str]()
    for claim in _leaving(copy, names):
        check_work("placing claims elsewhere")
        if claim.claim_id in moved:
            continue  # with its group
        try:
            found = relocation.move(claim)
        except (Conflict, NotFound) as error:
            unplaced.append(Unplaced(claim.claim_id, claim.project, claim.host, error.detail))
        else:
            moves += found
            moved.update(one.claim_id for one in found)
    unplaced = [one for one in unplaced if one.claim_id not in moved]
    return moves, unplaced


def _leaving(copy: CellCopy, hosts: frozenset[str]) -> list[Claim]:
    """Return the claims that run, or are to run, on these hosts only; the largest first."""
    found: dict[str, Claim] = {}
    for one in _views(copy, hosts):
        if one.state in HELD and {place.host for place in one.wanted} <= hosts:
            found.setdefault(one.claim_id, one)
    return sorted(found.values(), key=lambda one: (-sum(one.slots.values()), one.claim_id))


def _views(copy: CellCopy, hosts: Iterable[str]) -> Iterable[Claim]:
    return (one for host in sorted(hosts) for one in copy.on_host(host))
