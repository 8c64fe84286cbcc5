"""Explains where a request goes, or why nowhere, from the same shape, rules and numbers as the decision."""

from collections.abc import Sequence

from redsched.decide.explain.nearest import nearest
from redsched.decide.filters import COUNT
from redsched.decide.profile import POOLS, RequestProfile
from redsched.decide.result import Check, Explanation, HostCheck
from redsched.model import Request


def explain(shape: RequestProfile, request: Request, places: int, hosts: Sequence[str]) -> Explanation:
    """Explain a request of this shape, and check the named hosts.

    `places` is the number of places that were found for it, at most its count.
    """
    refused = places < request.count
    rows = map(shape.columns.row, hosts)
    reasons = shape.refusal() if refused else shape.counts()
    return Explanation(
        hosts=len(shape.columns),
        fits=0 if refused else len(shape.columns) - sum(one.hosts for one in reasons),
        reasons=reasons,
        nearest=nearest(shape),
        checks=tuple(check_host(shape, request, places, row) for row in rows if row is not None),
        unsearched=0 if refused else shape.unsearched,
    )


def check_host(shape: RequestProfile, request: Request, places: int, row: int) -> HostCheck:
    """Return every check of one host, failed and passed."""
    columns = shape.columns
    rules = (*shape.rules, *shape.late_rules())
    checks = [Check(rule.reason, bool(rule.passes(columns, row)), rule.detail(columns, row)) for rule in rules]
    if all(check.ok for check in checks) and not shape.takes(row):
        checks.append(Check(POOLS, False, "its pools can give each part of the request, and not all of them together"))
    if request.count > 1:
        detail = f"needs {request.count} places, the hosts that fit have room for {places}"
        checks.append(Check(COUNT, places >= request.count, detail + (" or more" if places >= request.count else "")))
    reason = next((check.name for check in checks if not check.ok), None)
    return HostCheck(columns.name(row), reason, tuple(checks))
