"""Explains which hosts fit a request, or why none does, from the same shape, rules and numbers as the decision."""

from collections.abc import Sequence
from dataclasses import replace

from redsched.decide.causes import Reasons
from redsched.decide.explain.changes import Effort
from redsched.decide.explain.closed import closed_hosts
from redsched.decide.explain.nearest import nearest, with_changes
from redsched.decide.explain.parts import lack_text
from redsched.decide.explain.ranking import ranked
from redsched.decide.explain.unknown import unknown
from redsched.decide.filters import COUNT
from redsched.decide.filters.pools import POOLS
from redsched.decide.profile import RequestProfile
from redsched.decide.scoring.demand import demand
from redsched.decide.steps import Steps
from redsched.model import Request
from redsched.model.records.explanations import Check, Explanation, HostCheck, of_unknown


def explain_steps(
    profile: RequestProfile, request: Request, places: int, hosts: Sequence[str], effort: Effort
) -> Steps[Explanation]:
    """Explain a request of this shape, and check the named hosts. The columns change only while changes are searched.

    `places` is the number of places that were found for it, at most its count. Hosts that take no claims are only
    looked for if the effort is not limited.
    """
    refused = places < request.count
    reasons = profile.refusal() if refused else profile.counts()
    found = Explanation(
        hosts=len(profile.columns),
        fits=0 if refused else len(profile.columns) - sum(one.hosts for one in reasons),
        reasons=reasons,
        nearest=nearest(profile),
        unsearched=0 if refused else profile.unsearched,
        ranked=() if refused else ranked(profile),
        **of_unknown(unknown(profile.columns, request)),
        closed=closed_hosts(profile) if effort.tests is None else (),
    )
    yield
    checks = []
    for host in hosts:
        if (row := profile.columns.row(host)) is not None:
            checks.append(check_host(profile, request, places, row))
            yield
    near, cut_short = yield from with_changes(profile, found.nearest, effort)
    return replace(found, nearest=near, checks=tuple(checks), cut_short=cut_short)


def check_host(profile: RequestProfile, request: Request, places: int, row: int) -> HostCheck:
    """Return every check of one host, failed and passed."""
    columns = profile.columns
    rules = (*profile.fitting.rules, *profile.fitting.dynamic_rules())
    checks = list[Check]()
    for rule in rules:
        if not rule.guarded or all(check.ok for check in checks):
            ok = bool(rule.passes(columns, row))
            if ok:
                name, detail = rule.reason, rule.detail(columns, row)
            else:
                name, detail = Reasons(rule).explained_on(columns, row)
            checks.append(Check(name, ok, detail))
    if all(check.ok for check in checks) and not profile.takes(row):
        lack = lack_text(columns, request, row)
        detail = "its pools can give each part of the request, and not all of them together"
        checks.append(Check(POOLS, False, f"{detail}: {lack}" if lack else detail))
    if request.count > 1:
        detail = f"needs {request.count} places, the hosts that fit have room for {places}"
        checks.append(Check(COUNT, places >= request.count, detail + (" or more" if places >= request.count else "")))
    reason = next((check.name for check in checks if not check.ok), None)
    kept = columns.reserved.for_request(row, demand(request))
    return HostCheck(columns.name(row), reason, tuple(checks), kept)
