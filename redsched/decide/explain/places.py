"""Why hosts that fit one place of a request do not fit all of them: the rule between the places, and how many fit."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from redsched.cache.columns import Columns
from redsched.decide.affinity import SERVER_GROUP, SPREAD, counts, domains
from redsched.decide.explain.changes import Effort, TooLongError
from redsched.decide.filters import COUNT
from redsched.decide.gang.order import places_on
from redsched.decide.profile import RequestProfile
from redsched.decide.steps import Steps
from redsched.decide.work_limit import TooMuchWork
from redsched.model import GroupPolicy, Request
from redsched.model.records.explanations import HostCheck, PlacesMiss

MAX_DOMAINS = 20
"""The most domains with their room that are reported, those with least room first."""

Fits = Callable[[Request], bool]
"""Returns whether all places of a request fit."""


def places_miss(
    profile: RequestProfile, request: Request, room: int, fits: Fits, effort: Effort
) -> Steps[PlacesMiss | None]:
    """Return how many places of a refused request fit, and the rule without which all of them would.

    `room` is the number that a search has found. Each step decides one changed request. None if that takes more than
    the effort, or the work in force.
    """
    try:
        miss = PlacesMiss(request.count, (yield from _most(request, room, fits, effort)))
        for rule, without, says, by in _without_rules(request, profile.columns):
            yield
            if _helps(without, fits, effort):
                found = _rooms(profile, by, request)
                return replace(miss, rule=rule, says=says, without=_name(rule, request), by=by, domains=found)
    except (TooLongError, TooMuchWork):
        return None
    return miss


def _most(request: Request, room: int, fits: Fits, effort: Effort) -> Steps[int]:
    """Return the largest count below that of the request which fits, from one that probably does."""
    low, high = 0, request.count
    probable = [one for one in (room, room + 1) if 0 < one < request.count]
    while high - low > 1:
        yield
        middle = probable.pop(0) if probable else (low + high) // 2
        if not low < middle < high:
            continue
        if _helps(replace(request, count=middle, claim_ids=()), fits, effort):
            low = middle
        else:
            high = middle
    return low


def _helps(request: Request, fits: Fits, effort: Effort) -> bool:
    effort.count_test()
    return fits(replace(request, claim_ids=()))


def _without_rules(request: Request, columns: Columns) -> Iterator[tuple[str, Request, str, str]]:
    """Yield the reason of each rule between places, the request without it, the rule in words, and its topology."""
    for one in request.spread:
        if one.hard:
            rest = tuple(other for other in request.spread if other != one)
            yield f"{SPREAD}:{one.by}", replace(request, spread=rest), f"max_skew {one.max_skew}", one.by
    state = columns.declared.groups.get(request.server_group) if request.server_group else None
    if state is not None:
        group = state.group
        says = f"{group.policy}" + (
            f", at most {group.max_per_host} in one {group.by}" if group.policy is GroupPolicy.ANTI_AFFINITY else ""
        )
        yield SERVER_GROUP, replace(request, server_group=""), says, group.by


def _name(rule: str, request: Request) -> str:
    return (
        f"server group {request.server_group}" if rule == SERVER_GROUP else f"spreading over {rule.partition(':')[2]}"
    )


def _rooms(profile: RequestProfile, by: str, request: Request) -> Mapping[str, int]:
    """Return how many places each domain has room for by amounts alone, the fewest first; {} for hosts, and pools."""
    columns = profile.columns
    if by == "host" or not profile.pools.is_plain:
        return {}
    rows = np.flatnonzero(profile.fitting.mask)
    found = dict.fromkeys(domains(columns, by, profile.fitting.eligible), 0)
    for row, places in zip(rows.tolist(), places_on(profile, rows).tolist(), strict=True):
        if domain := columns.domain(by, row):
            found[domain] = min(request.count, found.get(domain, 0) + places)
    held = counts(columns, request.server_group, by) if request.server_group else {}
    state = columns.declared.groups.get(request.server_group) if request.server_group else None
    if state is not None and state.group.policy is GroupPolicy.ANTI_AFFINITY and state.group.by == by:
        most = state.group.max_per_host
        found = {name: max(0, min(room, most - held.get(name, 0))) for name, room in found.items()}
    return dict(sorted(found.items(), key=lambda one: (one[1], one[0]))[:MAX_DOMAINS])


def merge_places(found: Iterable[PlacesMiss | None]) -> PlacesMiss | None:
    """Return that of the cell in which most places fit; a call's places lie in one cell."""
    return max((one for one in found if one is not None), key=lambda one: one.fits, default=None)


def with_rule(found: HostCheck, miss: PlacesMiss) -> HostCheck:
    """Return the checks of a host with the rule between places in that of their number, if one is the cause."""
    if not miss.without:
        return found
    checks = (replace(one, name=miss.rule, detail=miss.text) if one.name == COUNT else one for one in found.checks)
    return replace(found, checks=tuple(checks), reason=miss.rule if found.reason == COUNT else found.reason)
