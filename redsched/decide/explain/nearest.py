"""The nearest misses: the hosts closest to taking a request, with the smallest change that makes them."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.decide.explain.changes import smallest_change
from redsched.decide.filters.hosts import DOWN, NOT_ATTESTED, STATUS_DISABLED, STATUS_DRAINING
from redsched.decide.filters.places import slot_free
from redsched.decide.fit import fits, free_on
from redsched.decide.profile import RequestProfile
from redsched.decide.result import Miss
from redsched.decide.rules import ALL_ROWS, Rule

NEAREST = 3
_NOT_FOR_THE_ASKING = frozenset((DOWN, NOT_ATTESTED, STATUS_DISABLED, STATUS_DRAINING))
"""Reasons that no change of a request can remove."""


def nearest(profile: RequestProfile) -> tuple[Miss, ...]:
    """Return the nearest misses, nearest first.

    Hosts that lack only amounts come first, by the smallest relative lack (summed over the classes); then those that
    fail the fewest other rules. A host that is down, or closed to new claims, is not a miss. Neither is a host whose
    min_unit or step_size forbids an amount, because it accepts only larger or other amounts. A host whose max_unit
    forbids an amount is a miss: max_unit is the total by default, and the explanation shows how much there is.
    """
    columns = profile.columns
    failed, lack = np.zeros(columns.size), np.zeros(columns.size)
    mask = columns.present.copy()
    mask[profile.open_rows()] = False
    mask[profile.unassigned()] = True
    for rule in _requested(profile):
        passing = rule.passes(columns, ALL_ROWS)
        if rule.reason in _NOT_FOR_THE_ASKING:
            mask &= passing
        elif rule.slot is not None:
            amount = profile.request.resources[rule.slot]
            mask &= passing | fits(amount, amount, 0, 0, columns.minimum[rule.slot], amount, columns.step[rule.slot])
            lack += ~passing * _relative_lack(columns, rule.slot, amount)
        else:
            failed += ~passing
    rows = np.flatnonzero(mask)
    if not profile.is_plain:
        # Amounts that the pools cannot provide together count as one more failure.
        failed[rows] += (failed[rows] == 0) & (lack[rows] == 0)
    rows = rows[(failed[rows] > 0) | (lack[rows] > 0)]
    ordered = rows[np.lexsort((columns.order[rows], lack[rows], failed[rows]))][:NEAREST]
    return tuple(_miss(profile, row, (int(failed[row]), lack.item(row))) for row in ordered.tolist())


def _requested(profile: RequestProfile) -> Iterator[Rule]:
    return (rule for rule in (*profile.rules, *profile.dynamic_rules()) if not rule.idle(profile.columns))


def _relative_lack(columns: Columns, slot: str, amount: int) -> NDArray[np.float64]:
    left = free_on(columns, slot, ALL_ROWS)
    relative: NDArray[np.float64] = np.maximum(0, amount - left) / amount
    return relative


def _miss(profile: RequestProfile, row: int, distance: tuple[int, float]) -> Miss:
    columns, amounts = profile.columns, profile.request.resources
    slots = [rule.slot for rule in profile.rules if rule.slot is not None and not _is_met(rule, columns, row)]
    lacking = {slot: slot_free(columns, slot, row) for slot in slots}
    changes = tuple(edit.says for edit in smallest_change(profile, row))
    return Miss(columns.name(row), {slot: amounts[slot] for slot in lacking}, lacking, changes, distance)


def _is_met(rule: Rule, columns: Columns, row: int) -> bool:
    return bool(rule.passes(columns, row))
