"""The nearest misses: the hosts closest to taking a request, with the smallest change that makes them."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.decide.explain.changes import Effort, change_steps
from redsched.decide.explain.parts import has_classes, is_about_parts, kinds_of, lack_of_parts, left_for
from redsched.decide.filters.places import (
    PlaceTraits,
    given_in_units,
    largest,
    pools_with,
    slot_free,
    slot_of,
)
from redsched.decide.filters.pools import NUMA, node_lack
from redsched.decide.filters.units import ANY, KINDS, forbidding, next_valid
from redsched.decide.pick import best_of_all
from redsched.decide.pools import may_use, shared_with
from redsched.decide.profile import RequestProfile
from redsched.decide.rules import ALL_ROWS, Rule
from redsched.decide.scoring.demand import demand
from redsched.decide.steps import Steps
from redsched.decide.work_limit import TooMuchWork, check_work
from redsched.model import Amounts, Request
from redsched.model.records.explanations import Miss
from redsched.model.validation import SHARED_POOL

NEAREST = 3


def nearest(profile: RequestProfile) -> tuple[Miss, ...]:
    """Return the nearest misses, nearest first, without the changes that would help.

    Hosts that lack only amounts come first, by the smallest relative lack (summed over the classes), so those where
    most of the request fits; then those that fail the fewest other rules. A host that is down, or closed to new claims,
    is not a miss. Neither is a host that has none of a class at all, used or not. A host whose max_unit forbids an
    amount lacks what is beyond max_unit; one whose min_unit or step_size does lacks as much as to the next amount that
    it can give, and is no miss if it can give none.
    """
    columns = profile.columns
    failed, lack = profile.fitting.failed_host_rules(), lack_of_parts(columns, profile.request)
    has_parts = lack == 0
    for rule in profile.fitting.other_rules():
        check_work("comparing the hosts that are nearest to fit")
        passing = _guarded(rule, columns, failed + lack == 0) if rule.guarded else rule.passes(columns, ALL_ROWS)
        if rule.slot is not None:
            amount = profile.request.resources[rule.slot]
            to_next = _to_next_valid(columns, rule.slot, amount)
            lack += ~passing * np.maximum(_relative_lack(profile, rule.slot, amount), np.minimum(to_next, 1))
            failed[~passing & np.isinf(to_next)] = np.inf
        else:
            failed += ~passing & has_parts if is_about_parts(rule) else ~passing
    if not profile.pools.is_plain:
        # Amounts that the pools cannot provide together count as one more failure.
        failed += (failed == 0) & (lack == 0)
    failed[_fitting(profile) | ~has_classes(columns, profile.request)] = np.inf
    failed[(failed == 0) & (lack == 0)] = np.inf
    least = _least(columns, failed.copy(), lack)
    return tuple(_miss(profile, row, (int(failed[row]), lack.item(row))) for row in least)


def with_changes(
    profile: RequestProfile, misses: Sequence[Miss], effort: Effort
) -> Steps[tuple[tuple[Miss, ...], bool]]:
    """Return the misses with the changes that would help, as far as the hosts are still there and the effort allows.

    Also whether the search for them reached the limit in force.
    """
    found, cut_short = [], False
    for miss in misses:
        row = profile.columns.row(miss.host)
        try:
            edits = () if row is None else (yield from change_steps(profile, row, effort))
        except TooMuchWork:
            edits, cut_short = (), True
        found.append(replace(miss, changes=tuple(edit.says for edit in edits)))
        yield
    return tuple(found), cut_short


def _guarded(rule: Rule, columns: Columns, reached: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which rows pass a rule that is tested only on the rows that it is reached on."""
    rows, passing = np.flatnonzero(reached), np.ones(columns.size, np.bool_)
    passing[rows] = rule.passes(columns, rows)
    return passing


def _fitting(profile: RequestProfile) -> NDArray[np.bool_]:
    fitting = np.zeros(profile.columns.size, np.bool_)
    fitting[profile.fitting.open_rows()] = True
    fitting[profile.unassigned()] = False
    return fitting


def _least(columns: Columns, failed: NDArray[np.float64], lack: NDArray[np.float64]) -> list[int]:
    """Return the rows of the nearest misses: with the fewest failed rules (inf: no miss), then the least lack.

    Overwrites `failed`.
    """
    order, found = columns.order, list[int]()
    while len(found) < NEAREST and np.isfinite(fewest := failed.min()):
        level = failed == fewest
        found += best_of_all(np.where(level, -lack, -np.inf), order, NEAREST - len(found)).tolist()
        failed[level] = np.inf
    return found


def _relative_lack(profile: RequestProfile, slot: str, amount: int) -> NDArray[np.float64]:
    """Return the part of an amount that hosts lack: the mean of what their largest place and all their places lack."""
    columns, of_pools = profile.columns, PlaceTraits(forbidden=profile.request.forbidden)
    largest_place = largest(columns, slot, PlaceTraits(), of_pools, ALL_ROWS)
    all_places = given_in_units(columns, slot, 1, PlaceTraits(), ALL_ROWS)
    lacking = np.maximum(0, amount - largest_place) + np.maximum(0, amount - all_places)
    relative: NDArray[np.float64] = lacking / (2 * amount)
    return relative


def _to_next_valid(columns: Columns, slot: str, amount: int) -> NDArray[np.float64]:
    """Return how far the next amount is that hosts can give, relative to this one, where min_unit or step_size forbids
    this one: 0 elsewhere, inf if they can give none.
    """
    kind = forbidding(slot, amount, ANY, ANY, shared=True, enough=1, columns=columns, rows=ALL_ROWS)
    below, above = next_valid(columns, slot, amount, ALL_ROWS)
    down, up = np.where(below > 0, amount - below, np.inf), np.where(above > 0, above - amount, np.inf)
    forbids = (kind == KINDS.index("min_unit")) | (kind == KINDS.index("step_size"))
    return np.where(forbids, np.minimum(down, up) / amount, 0.0)


def _miss(profile: RequestProfile, row: int, distance: tuple[int, float]) -> Miss:
    columns, amounts = profile.columns, profile.request.resources
    rules = (*profile.fitting.rules, *(rule for rule in profile.fitting.dynamic_rules() if not rule.guarded))
    failing = [rule for rule in rules if not _is_met(rule, columns, row)]
    slots = [rule.slot for rule in failing if rule.slot is not None]
    lacking = {slot: _largest_place(columns, slot, row) for slot in slots}
    # If no rule fails, it is the search of pools.
    of_parts = not slots and all(map(is_about_parts, failing))
    miss = Miss(
        columns.name(row),
        {slot: amounts[slot] for slot in lacking},
        {slot: left for slot, (left, _) in lacking.items()},
        (),
        distance,
        places={slot: place for slot, (_, place) in lacking.items() if place},
        kept=columns.reserved.for_request(row, demand(profile.request)),
    )
    if of_parts:
        miss = _with_parts(profile, row, miss)
    return _with_node(columns, row, profile.request, miss) if any(rule.reason == NUMA for rule in failing) else miss


def _with_parts(profile: RequestProfile, row: int, miss: Miss) -> Miss:
    """Return a miss with what the parts of a request need of the classes that the host lacks, or of all if of none.

    What is kept for a request that waits is free, though not for this one.
    """
    columns, kept = profile.columns, profile.columns.reserved.get(row)
    kinds = kinds_of(profile.request)
    lacking = {one.resource_class for one in kinds if left_for(columns, profile.request, one, row)[0] < one.amount}
    needs, free, places = Counter[str](), Counter[str](), dict[str, str]()
    total_free, capacity = dict[str, int](), dict[str, int]()
    with columns.without_reserved([(row, kept)] if kept is not None else []):
        for kind in kinds:
            name = kind.resource_class
            if name in lacking or not lacking:
                needs[name] += kind.amount
                left, node = left_for(columns, profile.request, kind, row)
                free[name] += left
                places |= {name: node} if node else {}
                in_all = kind.in_all(columns, row)
                total_free[name], capacity[name] = max(total_free.get(name, 0), in_all[0]), in_all[1]
    return replace(miss, needs=dict(needs), free=dict(free), places=places, total_free=total_free, capacity=capacity)


def _with_node(columns: Columns, row: int, request: Request, miss: Miss) -> Miss:
    """Return a miss with what one guest cell needs of the classes that its NUMA node lacks, and has free of them."""
    if request.numa is None:
        return miss
    lack = node_lack(columns, request.numa, row)
    others = {name for group in request.groups for name in group.resources} | request.resources.keys()
    of_cells = {name for name, _ in lack.demands} - others
    return replace(
        miss,
        needs={**_less(miss.needs, of_cells), **lack.needs},
        free={**_less(miss.free, of_cells), **lack.free},
        places=dict(miss.places) | (dict.fromkeys(lack.needs, lack.node) if lack.node else {}),
        total_free=_less(miss.total_free, of_cells),
        capacity=_less(miss.capacity, of_cells),
    )


def _less(amounts: Amounts, names: Collection[str]) -> dict[str, int]:
    return {name: amount for name, amount in amounts.items() if name not in names}


def _largest_place(columns: Columns, resource_class: str, row: int) -> tuple[int, str]:
    """Return the largest free amount of a class in one place of a host, and that place: '' for the host itself."""
    shared = [f"{SHARED_POOL}{name}" for name in shared_with(columns, resource_class) if may_use(columns, name, row)]
    places = [*pools_with(columns, ((resource_class, 1),), row), *shared]
    if columns.capacity[resource_class][row] or not places:
        places = ["", *places]
    slots = {place: slot_of(place, resource_class) for place in places}
    # What is kept for a request that waits is free, though not for this one.
    free = {place: slot_free(columns, slot, row) + columns.reserved.amount(row, slot) for place, slot in slots.items()}
    largest = max(free, key=lambda place: free[place])
    return free[largest], largest


def _is_met(rule: Rule, columns: Columns, row: int) -> bool:
    return bool(rule.passes(columns, row))
