"""The weighers computed from plain fields, host by host: slow, obvious, and without numpy.

Written from docs/weighing.md and not from redsched.decide, so that each can reveal errors of the other.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from math import sqrt

from redsched.model import Request
from tests.support.models.plain_reading import Fields, amount_of, free_of

GPU = "CUSTOM_GPU_MILLI"


def asked_of(request: Request) -> dict[str, int]:
    """Return the amounts of one place by class. For requests of resources and groups."""
    total = dict(request.resources)
    for group in request.groups:
        for name, amount in group.resources.items():
            total[name] = total.get(name, 0) + amount
    return total


def slots_of(fields: Fields, resource_class: str) -> list[str]:
    """Return the host's slots of a class: its own, then those of its pools."""
    slots = [field.removeprefix("capacity.") for field in fields if field.startswith("capacity.")]
    return sorted((one for one in slots if one.rpartition("/")[2] == resource_class), key=lambda one: ("/" in one, one))


def total_of(fields: Fields, resource_class: str) -> int:
    """Return the capacity of a class over all slots."""
    return sum(amount_of(fields, "capacity", slot) for slot in slots_of(fields, resource_class))


def left_of(fields: Fields, resource_class: str) -> int:
    """Return the free amount of a class over all slots."""
    return sum(free_of(fields, slot) for slot in slots_of(fields, resource_class))


def rests_of(fields: Fields, request: Request) -> list[float]:
    """Return the free fraction after placing, of each requested class."""
    asked = sorted(asked_of(request).items())
    return [(left_of(fields, name) - amount) / total_of(fields, name) for name, amount in asked]


def spread_of(fields: Fields, request: Request) -> float:
    rests = rests_of(fields, request)
    return sum(rests) / len(rests)


def best_fit_of(fields: Fields, request: Request) -> float:
    rests = rests_of(fields, request)
    return 1.0 - sqrt(sum(rest * rest for rest in rests) / len(rests))


def dot_product_of(fields: Fields, request: Request) -> float:
    asked = sorted(asked_of(request).items())
    parts = [n / total_of(fields, name) * (left_of(fields, name) / total_of(fields, name)) for name, n in asked]
    return sum(parts) / len(parts)


def balance_of(fields: Fields, request: Request) -> float:
    asked = asked_of(request)
    names = [name for name in sorted({"VCPU", "MEMORY_MB", "DISK_GB", *asked}) if total_of(fields, name) > 0]
    used = [1.0 - (left_of(fields, name) - asked.get(name, 0)) / total_of(fields, name) for name in names]
    used = [min(1.0, max(0.0, one)) for one in used]
    mean = sum(used) / max(len(used), 1)
    return 1.0 - 2.0 * sqrt(sum((one - mean) * (one - mean) for one in used) / max(len(used), 1))


def gpu_fragmentation_of(
    fields: Fields, request: Request, shares: Mapping[int, float], beside: Mapping[str, float]
) -> float:
    def unused(rest: int) -> float:
        return unused_after(rest, tuple(sorted(shares.items())))

    parts = gpu_parts_of(request)
    rests = [max(0, free_of(fields, slot)) for slot in slots_of(fields, GPU)]
    grown = 0.0
    for part in parts:
        fitting = [number for number, one in enumerate(rests) if one >= part]
        if fitting:
            grown_on = {number: unused(rests[number] - part) - unused(rests[number]) for number in fitting}
            chosen = min(fitting, key=lambda number: round(grown_on[number], 9))
            grown += grown_on[chosen]
            rests[chosen] -= part
    return 0.5 - grown / (2 * scale_of(request, GPU, beside, 1000))


@cache
def unused_after(rest: int, shares: tuple[tuple[int, float], ...], requests: int = 16) -> float:
    """Return what is expected to be left of a free part after so many requests, each of which takes its share."""
    if rest > 1000:
        return unused_after(rest - 1000, shares) + unused_after(1000, shares)
    if not requests:
        return rest
    return sum(
        common * unused_after(rest - share if share <= rest else rest, shares, requests - 1) for share, common in shares
    ) / sum(common for _, common in shares)


def gpu_parts_of(request: Request) -> list[int]:
    """Return the shares taken from one GPU each, largest first."""
    whole, rest = divmod(request.resources.get(GPU, 0), 1000)
    parts = [1000] * whole + [rest] * bool(rest)
    parts += [group.resources[GPU] for group in request.groups if GPU in group.resources]
    return sorted(parts, reverse=True)


def scale_of(request: Request, scarce: str, beside: Mapping[str, float], unit: int) -> float:
    """Return how much of a scarce class the request can waste at most, at least a unit."""
    asked = asked_of(request)
    return max(unit, asked.get(scarce, 0), *(unit * asked.get(name, 0) / amount for name, amount in beside.items()))


def stranding_of(fields: Fields, request: Request, scarce: Mapping[str, Mapping[str, float]], unit: int = 1) -> float:
    def stranded(name: str, taken: Mapping[str, int]) -> float:
        left = left_of(fields, name) - taken.get(name, 0)
        held = [(one, amount) for one, amount in scarce[name].items() if total_of(fields, one)]
        served = [unit * (left_of(fields, one) - taken.get(one, 0)) / amount for one, amount in held]
        return max(0.0, left - min(served)) if served else 0.0

    grown = 0.0
    for name, beside in scarce.items():
        grown += (stranded(name, asked_of(request)) - stranded(name, {})) / scale_of(request, name, beside, unit)
    return 0.5 - min(1.0, max(-1.0, grown)) / 2


def against_of(fleet: Mapping[str, Fields], fields: Fields, request: Request, up_to: float) -> float:
    """Return what counts against a host of the fleet for its scarce classes that the request does not ask for."""
    names = {field.rpartition("/")[2].removeprefix("capacity.") for field in fields if field.startswith("capacity.")}
    scarce = 0
    for name in (
        names - {"VCPU", "MEMORY_MB", "DISK_GB"} - {name for name, amount in asked_of(request).items() if amount}
    ):
        having = sum(total_of(one, name) > 0 for one in fleet.values())
        scarce += total_of(fields, name) > 0 and having <= up_to * len(fleet)
    return 2 * scarce / (scarce + 1)


def stretched_of(values: Sequence[float], lowest: float | None = None) -> list[float]:
    """Normalize to 0..1 between the lowest and the highest; all 0 if these are equal."""
    values = [value if lowest is None else max(value, lowest) for value in values]
    low, high = min(values) if lowest is None else lowest, max(values)
    return [0.0 if low == high else (value - low) / (high - low) for value in values]
