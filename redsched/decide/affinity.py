"""Affinity rules: between the members of a server group, and between the places of one request.

They read the number of places in each host, zone or label value, which every claim changes, so their results are never
cached. The claim script checks the hard rules again (`redsched.model.ClaimRule`), as other schedulers may place members
between the decision and the claim.
"""

from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.decide.rules import Mask, Rows, Rule
from redsched.model import ClaimRule, GroupPolicy, Request, RuleKind

SERVER_GROUP = "server_group"
SPREAD = "spread"
THIS_CALL = ""
"""The group of the current request's places, which exists only while they are tried."""

NOWHERE = -1
"""The count of a host that belongs to no domain because it lacks the label."""


Eligible = Callable[[str], Mask]
"""Returns, by topology, the hosts that a request may use, ignoring available room: bool of shape (size,).

Places are spread over the domains of these hosts.
"""


def counted_in(request: Request, columns: Columns) -> Mapping[str, tuple[str, ...]]:
    """Return the groups that count a place of this request while it is tried, each with its topologies."""
    if not request.server_group:
        return {THIS_CALL: tuple(spread.by for spread in request.spread)} if request.spread else {}
    return counted_in_group(request.server_group, columns)


def counted_in_group(name: str, columns: Columns) -> Mapping[str, tuple[str, ...]]:
    """Return the server group, with its topologies, that counts a claim; {} if it has none, or an undeclared one."""
    state = columns.declared.groups.get(name) if name else None
    return {} if state is None else {name: state.group.topologies()}


def affinity_rules(request: Request, columns: Columns, eligible: Eligible) -> Iterator[Rule]:
    """Yield the hard affinity rules against the current places, for checking a single host."""
    for rule in claim_rules(request, columns, eligible, ()):
        yield _RULES[rule.kind](rule)


def claim_rules(
    request: Request, columns: Columns, eligible: Eligible, members: tuple[int, ...]
) -> Iterator[ClaimRule]:
    """Yield the hard affinity rules for the claim script. `members` are the numbers of the places in the call."""
    group = columns.declared.groups.get(request.server_group) if request.server_group else None
    if group is not None:
        by, policy = group.group.by, group.group.policy
        if policy is GroupPolicy.ANTI_AFFINITY:
            yield ClaimRule(RuleKind.APART, by, members, request.server_group, group.group.max_per_host)
        elif policy is GroupPolicy.AFFINITY:
            yield ClaimRule(RuleKind.TOGETHER, by, members, request.server_group)
    for spread in request.spread:
        if spread.hard:
            names = domains(columns, spread.by, eligible(spread.by))
            yield ClaimRule(RuleKind.SKEW, spread.by, members, request.server_group, spread.max_skew, names)


def counts(columns: Columns, group: str, by: str) -> Mapping[str, int]:
    """Return the number of places of a group by domain, for the domains that have any."""
    state = columns.declared.groups.get(group)
    return {} if state is None else state.counts(by)


def counts_by_row(columns: Columns, held: Mapping[str, int], by: str) -> NDArray[np.int64]:
    """Return the count of each row's domain: int64 of shape (size,), NOWHERE if the row has no domain."""
    if by == "host":
        found = np.where(columns.present, 0, NOWHERE).astype(np.int64)
        rows = columns.rows_of(held)
        found[rows[rows >= 0]] = np.fromiter(held.values(), np.int64, len(held))[rows >= 0]
        return found
    texts = columns.texts(by)
    return np.full(columns.size, NOWHERE) if texts is None else texts.table(held, 0, NOWHERE)


def counts_at(columns: Columns, group: str, by: str, rows: Rows) -> Mask:
    """Return the number of a group's places in the domain of each of these rows; NOWHERE as in `counts_by_row`."""
    held = counts(columns, group, by)
    # A Python loop over the rows pays off only for few rows.
    if by == "host" and isinstance(rows, np.ndarray) and 8 * len(rows) < len(held):
        found = [held.get(columns.name(row), 0) if columns.present[row] else NOWHERE for row in rows.tolist()]
        return np.array(found, np.int64)
    if by == "host" and isinstance(rows, int):
        return np.int64(held.get(columns.name(rows), 0) if columns.present[rows] else NOWHERE)
    return counts_by_row(columns, held, by)[rows]


def domains(columns: Columns, by: str, eligible: Mask) -> tuple[str, ...]:
    """Return the domains of the eligible hosts, sorted by name."""
    rows = np.flatnonzero(eligible)
    if by == "host":
        return tuple(sorted(columns.name(row) for row in rows.tolist()))
    texts = columns.texts(by)
    return () if texts is None else tuple(sorted(texts.among(rows)))


def _apart(rule: ClaimRule) -> Rule:
    group, by, most = rule.group, rule.by, rule.most

    def passes(columns: Columns, rows: Rows) -> Mask:
        held = counts_at(columns, group, by, rows)
        return (held >= 0) & (held < most)

    def detail(columns: Columns, row: int) -> str:
        domain = columns.domain(by, row)
        held = counts(columns, group, by).get(domain, 0)
        place = f"{by} {domain}" if domain else f"no {by}"
        return f"group {group} allows {most} in one {by}, {place} has {held}"

    return Rule(SERVER_GROUP, passes, detail, dynamic=True, local=by == "host")


def _affinity_rule(rule: ClaimRule) -> Rule:
    group, by = rule.group, rule.by

    def passes(columns: Columns, rows: Rows) -> Mask:
        held = counts_by_row(columns, counts(columns, group, by), by)[rows]
        state = columns.declared.groups.get(group)
        # Restored claims may lie in several domains, or in none: no host can then join all of them. The claim script
        # applies the same rule.
        return held == (0 if state is None else state.members)

    def detail(columns: Columns, row: int) -> str:
        held = sorted(counts(columns, group, by))
        domain = columns.domain(by, row) or f"no {by}"
        return f"the members of group {group} are in {by} {', '.join(held) or 'none yet'}, this is {domain}"

    return Rule(SERVER_GROUP, passes, detail, dynamic=True)


def _skew(rule: ClaimRule) -> Rule:
    group, by, most, names = rule.group, rule.by, rule.most, rule.domains

    def least(columns: Columns) -> int:
        held = counts(columns, group, by)
        # With many domains some are usually empty, and only non-empty ones have a count.
        return 0 if len(held) < len(names) else min((held.get(name, 0) for name in names), default=0)

    def passes(columns: Columns, rows: Rows) -> Mask:
        held = counts_at(columns, group, by, rows)
        return (held >= 0) & (held + 1 - least(columns) <= most)

    def detail(columns: Columns, row: int) -> str:
        domain = columns.domain(by, row)
        if not domain:
            return f"spreads over {by}, which this host does not have"
        held = counts(columns, group, by).get(domain, 0)
        return f"may be {most} above the emptiest {by}, which has {least(columns)}; {domain} would have {held + 1}"

    return Rule(f"{SPREAD}:{by}", passes, detail, dynamic=True)


_RULES: Mapping[RuleKind, Callable[[ClaimRule], Rule]] = {
    RuleKind.APART: _apart,
    RuleKind.TOGETHER: _affinity_rule,
    RuleKind.SKEW: _skew,
}
