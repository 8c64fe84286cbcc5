"""Why a request goes where it goes, or nowhere: from the same shape, rules and numbers as the decision itself."""

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.decide.answers import Check, Explanation, HostCheck, Miss
from redsched.decide.filters import COUNT
from redsched.decide.filters.resources import slot_free
from redsched.decide.fit import fits, free
from redsched.decide.pick import best_rows
from redsched.decide.rules import ALL_ROWS
from redsched.decide.shape import Shape
from redsched.model import Amounts, Request

NEAREST = 5


def explain(shape: Shape, request: Request, places: int, host: str | None) -> Explanation:
    """Explain a request of this shape for which `places` were found (as far as its count), and check a named host."""
    refused = places < request.count
    row = None if host is None else shape.columns.row(host)
    return Explanation(
        hosts=len(shape.columns),
        fits=0 if refused else shape.fits,
        reasons=shape.refusal() if refused else shape.counts(),
        nearest=nearest(shape),
        checks=() if row is None else (check_host(shape, request, places, row),),
    )


def check_host(shape: Shape, request: Request, places: int, row: int) -> HostCheck:
    """Every check of one host, the failed and the passed."""
    columns = shape.columns
    checks = [Check(rule.reason, bool(rule.passes(columns, row)), rule.detail(columns, row)) for rule in shape.rules]
    if request.count > 1:
        detail = f"needs {request.count} places, the hosts that fit have room for {places}"
        checks.append(Check(COUNT, places >= request.count, detail + (" or more" if places >= request.count else "")))
    reason = next((check.name for check in checks if not check.ok), None)
    return HostCheck(columns.name(row), reason, tuple(checks))


def nearest(shape: Shape) -> tuple[Miss, ...]:
    """Hosts that lack nothing but free amounts, the smallest relative lack first (summed over the classes).

    A host whose units forbid the amount (min_unit, step_size) is not near: it gives only larger or other amounts. One
    whose max_unit does is, for that is its total by default: who asks for too much is to hear what there is.
    """
    columns, amounts = shape.columns, shape.request.resources
    mask = columns.present & (shape.reasons != len(shape.rules))
    for rule in shape.rules:
        if rule.slot is None:
            mask = mask & rule.passes(columns, ALL_ROWS)
    lack = np.zeros(columns.size)
    for slot, amount in amounts.items():
        mask = mask & fits(amount, amount, 0, 0, columns.minimum[slot], amount, columns.step[slot])
        lack += _relative_lack(columns, slot, amount)
    rows = best_rows(np.flatnonzero(mask & (lack > 0)), -lack, columns.order, NEAREST)
    return tuple(_miss(columns, amounts, row) for row in rows.tolist())


def _relative_lack(columns: Columns, slot: str, amount: int) -> NDArray[np.float64]:
    left = free(columns.capacity[slot], columns.claimed[slot], columns.external[slot])
    relative: NDArray[np.float64] = np.maximum(0, amount - left) / amount
    return relative


def _miss(columns: Columns, amounts: Amounts, row: int) -> Miss:
    left = {slot: slot_free(columns, slot, row) for slot in sorted(amounts)}
    lacking = {slot: have for slot, have in left.items() if have < amounts[slot]}
    return Miss(columns.name(row), {slot: amounts[slot] for slot in lacking}, lacking)
