"""What requests have asked for recently, in sums: the workload that some weighers prepare hosts for."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from redsched.model.request import Request

GPU_SHARES, WHOLE_GPU = "CUSTOM_GPU_MILLI", 1000
"""The class of shares of GPUs, and how many a GPU has."""


@dataclass(frozen=True, slots=True)
class ScarceDemand:
    """Sums over the places that asked for a scarce class: their number, and their amounts of it and of others."""

    places: float
    amounts: Mapping[str, float]


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """Sums over the requests of a cell.

    `shares`: how many GPUs were asked for, by the share of each in thousandths. `scarce`: the places that asked for a
    scarce class, by the class. Compared by identity: weighers cache what they derive from it.
    """

    shares: Mapping[int, float] = field(default_factory=dict)
    scarce: Mapping[str, ScarceDemand] = field(default_factory=dict)

    def same_as(self, other: "Workload") -> bool:
        """Return whether the sums are equal."""
        return (self.shares, self.scarce) == (other.shares, other.scarce)


EMPTY = Workload()


def gpu_parts(request: Request) -> list[int]:
    """Return the shares taken from one GPU each, largest first: those of groups, and unnumbered ones by whole GPUs."""
    whole, rest = divmod(request.resources.get(GPU_SHARES, 0), WHOLE_GPU)
    parts = [WHOLE_GPU] * whole + ([rest] if rest else [])
    parts += [group.resources[GPU_SHARES] for group in request.groups if group.resources.get(GPU_SHARES)]
    return sorted(parts, reverse=True)
