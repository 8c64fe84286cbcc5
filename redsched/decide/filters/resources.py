"""The filter on unnumbered amounts: room for each in the root, a pool or a shared pool of the host."""

from collections.abc import Hashable, Iterator, Sequence

from redsched.cache.columns import Columns
from redsched.decide.filters.places import (
    PlaceTraits,
    class_has_units,
    gives,
    largest,
    nearest_place,
    pools_with,
    slot_free,
    slot_of,
)
from redsched.decide.filters.units import unit_causes
from redsched.decide.pools import may_use, shared_with
from redsched.decide.rules import Cause, Mask, Rows, Rule
from redsched.model import Request
from redsched.model.reserved_for import UNNAMED
from redsched.model.validation import SHARED_POOL

ANY_PLACE = PlaceTraits()


def resources(request: Request) -> Iterator[Rule]:
    """Require room for each amount in some place that the unnumbered resources may come from."""
    of_pools = PlaceTraits(forbidden=request.forbidden) if request.forbidden else ANY_PLACE
    for resource_class, amount in sorted(request.resources.items()):
        yield _amount(of_pools, resource_class, amount)


def _amount(of_pools: PlaceTraits, resource_class: str, amount: int) -> Rule:
    def passes_alone(columns: Columns, rows: Rows) -> Mask:
        is_one = isinstance(rows, int)
        if not (is_one or class_has_units(columns, resource_class)):
            return largest(columns, resource_class, ANY_PLACE, of_pools, rows) >= amount
        passing = gives(columns, resource_class, amount, rows)
        if is_one and passing:
            return passing
        for pool in pools_with(columns, ((resource_class, amount),), rows):
            has_room = gives(columns, slot_of(pool, resource_class), amount, rows)
            passing = passing | has_room & of_pools.suits(columns, pool, rows)
        return passing

    def passes(columns: Columns, rows: Rows) -> Mask:
        passing = passes_alone(columns, rows)
        for name in shared_with(columns, resource_class):
            if gives(columns, _shared_slot(name, resource_class), amount, rows):
                passing = passing | may_use(columns, name, rows)
        return passing

    def depends(columns: Columns) -> Hashable:
        pools = shared_with(columns, resource_class)
        room = tuple(gives(columns, _shared_slot(name, resource_class), amount, 0) for name in pools)
        return (columns.declared.revision, *map(bool, room)) if pools else None

    def detail(columns: Columns, row: int) -> str:
        text = amount_detail(columns, resource_class, amount, row)
        places = pools_with(columns, ((resource_class, amount),), row) + _shared_pools(columns, resource_class, row)
        return (
            f"{text}; elsewhere {nearest_place(columns, row, ((resource_class, amount),), places)}" if places else text
        )

    def causes() -> Sequence[Cause]:
        return unit_causes(((resource_class, amount),), ANY_PLACE, of_pools, shared=True)

    return Rule(resource_class, passes, detail, resource_class, depends, room=True, causes=causes)


def _shared_slot(name: str, resource_class: str) -> str:
    return slot_of(f"{SHARED_POOL}{name}", resource_class)


def _shared_pools(columns: Columns, resource_class: str, row: int) -> list[str]:
    return [f"{SHARED_POOL}{name}" for name in shared_with(columns, resource_class) if may_use(columns, name, row)]


def amount_detail(columns: Columns, slot: str, amount: int, row: int) -> str:
    """Return "needs 4096 MEMORY_MB, free 2048", and the units of the slot if they are what forbids the amount."""
    left = slot_free(columns, slot, row)
    kept = columns.reserved.amount(row, slot)
    text = f"needs {amount} {slot}, free {left + kept}"
    least, most, step = (f[slot].item(row) for f in (columns.minimum, columns.maximum, columns.step))
    if (kept_free := min(kept, left + kept)) > 0:
        text += f", of which {kept_free} are {UNNAMED}"
    if amount < least:
        text += f"; min_unit is {least}"
    if amount > most:
        text += f"; max_unit is {most}"
    return text if amount % step == 0 else f"{text}; step_size is {step}"
