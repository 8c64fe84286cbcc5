"""What requests have asked for recently, in sums: the workload that some weighers prepare hosts for."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from redsched.model.request import Request

GPU_SHARES, WHOLE_GPU = "CUSTOM_GPU_MILLI", 1000
"""The class of shares of GPUs, and how many a GPU has."""

NOTHING: Mapping[str, float] = MappingProxyType({})
NO_SHARES: Mapping[int, float] = MappingProxyType({})


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """Sums over the requests of a cell.

    `shares`: how many GPUs were asked for, by the share of each in thousandths. `beside`: the amounts of other classes
    that the same requests asked for. Compared by identity: weighers cache what they derive from it.
    """

    shares: Mapping[int, float] = field(default_factory=lambda: NO_SHARES)
    beside: Mapping[str, float] = field(default_factory=lambda: NOTHING)

    @property
    def gpu_milli(self) -> float:
        """The GPU shares of all requests together, in thousandths."""
        return sum(share * count for share, count in self.shares.items())


EMPTY = Workload()


def gpu_parts(request: Request) -> list[int]:
    """Return the shares taken from one GPU each, largest first: those of groups, and unnumbered ones by whole GPUs."""
    whole, rest = divmod(request.resources.get(GPU_SHARES, 0), WHOLE_GPU)
    parts = [WHOLE_GPU] * whole + ([rest] if rest else [])
    parts += [group.resources[GPU_SHARES] for group in request.groups if group.resources.get(GPU_SHARES)]
    return sorted(parts, reverse=True)
