"""Fleets as plain fields, and decision rules applied to them host by host: slow, obvious, and without numpy.

Written from the design and not from redsched.decide, so that each can reveal errors of the other.
"""

from collections.abc import Mapping
from fractions import Fraction

from redsched.cache.columns import Columns
from redsched.model import Request

Fields = Mapping[str, str]
Fleet = dict[str, dict[str, str]]

EPOCH = "1-a"


def columns_from(fleet: Mapping[str, Fields], epoch: str = EPOCH) -> Columns:
    """Return columns that contain only a fleet's present fields."""
    columns = Columns(4)
    columns.set_epoch(epoch)
    for name, fields in fleet.items():
        columns.put(name, fields)
    return columns


def amount_of(fields: Fields, kind: str, slot: str, absent: int = 0) -> int:
    """Return one amount of a slot."""
    return int(fields.get(f"{kind}.{slot}") or absent)


def free_of(fields: Fields, slot: str) -> int:
    """Return what is left of a slot."""
    return (
        amount_of(fields, "capacity", slot) - amount_of(fields, "claimed", slot) - amount_of(fields, "external", slot)
    )


def in_units(fields: Fields, slot: str, amount: int) -> bool:
    """Return whether the slot's minimum, maximum and step allow this amount."""
    if amount < amount_of(fields, "min", slot, 1) or amount % amount_of(fields, "step", slot, 1) != 0:
        return False
    return not fields.get(f"max.{slot}") or amount <= int(fields[f"max.{slot}"])


def reason_of(name: str, fields: Fields, request: Request, epoch: str = EPOCH) -> str | None:
    """Return the first reason why a host cannot take one place of a request; None if it can."""
    for reason in reasons_besides_amounts(name, fields, request, epoch):
        return reason
    for slot in sorted(request.resources):
        amount = request.resources[slot]
        if not in_units(fields, slot, amount) or free_of(fields, slot) < amount:
            return unit_against(fields, slot, amount) or slot
    return None


def unit_against(fields: Fields, slot: str, amount: int) -> str | None:
    """Return the reason of a slot that is large enough for an amount, and whose units forbid it; None for no such."""
    if amount_of(fields, "capacity", slot) < amount:
        return None
    if amount < amount_of(fields, "min", slot, 1):
        return f"min_unit:{slot}"
    if fields.get(f"max.{slot}") and amount > int(fields[f"max.{slot}"]):
        return f"max_unit:{slot}"
    return f"step_size:{slot}" if amount % amount_of(fields, "step", slot, 1) else None


def reasons_besides_amounts(name: str, fields: Fields, request: Request, epoch: str = EPOCH) -> list[str]:
    """Return all reasons against a host except those of amounts, in the order of the checks."""
    held = {field.removeprefix("trait.") for field, value in fields.items() if field.startswith("trait.") and value}
    zone = fields.get("zone", "")
    return [
        *(["zone"] if request.zones and zone not in request.zones else []),
        *(["hosts"] if request.hosts and name not in request.hosts else []),
        *(["exclude_hosts"] if name in request.exclude_hosts else []),
        *(["down"] if fields.get("alive") != "1" else []),
        *(["not-attested"] if fields.get("epoch", "") != epoch or not epoch else []),
        *(["disabled"] if fields.get("status") not in ("enabled", "draining") else []),
        *(["draining"] if fields.get("status") == "draining" else []),
        *(f"required:{trait}" for trait in sorted(request.required - held)),
        *(f"forbidden:{trait}" for trait in sorted(request.forbidden & held)),
        *("any_of:" + ",".join(one) for one in sorted({tuple(sorted(o)) for o in request.any_of}) if not held & {*one}),
        *(f"labels:{key}" for key in sorted(request.labels) if fields.get(f"label.{key}", "") != request.labels[key]),
    ]


def places_in(fields: Fields, request: Request) -> int:
    """Return the number of places of a request for which a passing host has room."""
    return min(free_of(fields, slot) // amount for slot, amount in request.resources.items())


def score_of(fields: Fields, request: Request, spread: float = 1.0, pack: float = 0.0) -> float:
    """Return the weighted score of a host that fits, with floats added up in the order of the classes' names."""
    fractions = 0.0
    for slot in sorted(request.resources):
        fractions += (free_of(fields, slot) - request.resources[slot]) / amount_of(fields, "capacity", slot)
    mean = fractions / len(request.resources)
    return spread * mean + pack * (1.0 - mean)


def take(fields: dict[str, str], request: Request) -> None:
    """Claim one place on a host."""
    for slot, amount in request.resources.items():
        fields[f"claimed.{slot}"] = str(amount_of(fields, "claimed", slot) + amount)


def lack_of(fields: Fields, request: Request) -> Fraction:
    """Return the part of each amount that a host lacks, summed over the classes; 0 for none.

    That is up to each max_unit, and at least as much as to the next amount that it can give if other units forbid it.
    """
    most = {slot: int(fields.get(f"max.{slot}") or 2**53) for slot in request.resources}
    left = {slot: max(0, min(free_of(fields, slot), most[slot])) for slot in request.resources}
    lacks = (
        Fraction(max(0, amount - left[slot], min(to_next_valid(fields, slot, amount) or 0, amount)), amount)
        for slot, amount in request.resources.items()
    )
    return sum(lacks, Fraction(0))


def to_next_valid(fields: Fields, slot: str, amount: int) -> int | None:
    """Return how far the next amount is that a slot can give, if its min_unit or step_size forbids this one; else 0.

    None if it can give none.
    """
    step, least = amount_of(fields, "step", slot, 1), amount_of(fields, "min", slot, 1)
    most = int(fields.get(f"max.{slot}") or 2**53)
    if least <= amount and (amount > most or amount % step == 0):
        return 0
    top = min(free_of(fields, slot), most)
    below = min(top, amount - 1) // step * step
    above = -(-max(least, amount + 1) // step) * step
    return min([abs(amount - one) for one in (below, above) if max(least, 1) <= one <= top], default=None)
