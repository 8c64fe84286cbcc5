"""The weigher `gpu_fragmentation`: keep each GPU usable to the last share.

A GPU with 300 thousandths left is useless to a task that needs a whole one. The weigher estimates how much of the free
GPUs the workload will not be able to use. The workload is what requests have asked for, with the settings' values as a
start.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.decide.fit import free_on
from redsched.decide.rules import Rows
from redsched.decide.scoring.demand import demand
from redsched.decide.scoring.stranding import PRIOR_PLACES, Beside, Scarce
from redsched.decide.scoring.weigher import Score
from redsched.model import Request
from redsched.model.workload import GPU_SHARES, WHOLE_GPU as WHOLE, Workload, gpu_parts

DEPTH = 16
"""How many requests in a row a GPU is imagined to meet."""


@dataclass(frozen=True)
class GpuDemand:
    """What the GPUs of a fleet have to serve.

    `unusable`: by the free thousandths of a GPU, 0 to 2000, how many of them stay unused. `beside`: what is requested
    with whole GPUs.
    """

    unusable: NDArray[np.float64]
    beside: Beside
    _growths: dict[int, NDArray[np.float64]] = field(default_factory=dict, init=False)
    """By part, of which there are at most WHOLE + 1: each row that changes asks for it again."""

    def growth(self, part: int) -> NDArray[np.float64]:
        """Return the growth of what stays unused when a GPU gives the part, by what is free; inf if that is less."""
        growth = self._growths.get(part)
        if growth is None:
            growth = self._growths[part] = np.full(len(self.unusable), np.inf)
            if part <= WHOLE:
                growth[part:] = self.unusable[: len(growth) - part] - self.unusable[part:]
        return growth


class GpuDemands:
    """The demand that the weigher prepares for: the settings' shares, and those that the cell's requests asked for."""

    def __init__(self, shares: Mapping[int, float], gpus: Scarce) -> None:
        total = sum(shares.values())
        self._shares = {share: PRIOR_PLACES * common / total for share, common in shares.items()}
        self._gpus = gpus
        self._of = lru_cache(8)(self._mixed)

    def of(self, columns: Columns) -> GpuDemand:
        """Return the demand in the columns' cell."""
        return self._of(columns.workload)

    def _mixed(self, workload: Workload) -> GpuDemand:
        shares = dict(self._shares)
        for share, count in workload.shares.items():
            shares[share] = shares.get(share, 0.0) + count
        return GpuDemand(unusable_part(shares), self._gpus.of(workload))


def unusable_part(shares: Mapping[int, float]) -> NDArray[np.float64]:
    """Return how many of a GPU's free thousandths stay unused, by the free ones: float64 for 0 to 2000.

    It is what is expected to be left after DEPTH requests, each of which takes its share if it fits. More than a whole
    GPU, as of a pool with several, is what is above whole GPUs.
    """
    left = np.arange(WHOLE + 1, dtype=np.float64)
    total = sum(shares.values())
    for _ in range(DEPTH):
        after = np.zeros_like(left)
        for share, common in sorted(shares.items()):
            taken = left.copy()
            taken[share:] = left[: len(left) - share]
            after += common / total * taken
        left = after
    return np.concatenate([left, left[1:] + left[WHOLE]])


def folded(rests: Score) -> Score:
    """Return the rests of pools as those of one GPU, or of two: whole GPUs that a part leaves alone do not matter."""
    return np.where(rests > WHOLE, (rests - 1) % WHOLE + 1 + WHOLE, rests)


def gpu_fragmentation(demands: GpuDemands) -> Callable[[Columns, Request, Rows], Score]:
    """Make the raw score: 0.5 if the unusable part of the host's GPUs stays the same, lower if it grows.

    Each part of the request is taken from the GPU on which it grows least. Relative to what the request can waste at
    most, as in `stranding`.

    Source: Weng et al., Beware of Fragmentation (FGD), ATC 2023: what is left of a GPU is lost to the requests that it
    is too small for. There, after the next request; here, after a series of them.
    """

    def raw(columns: Columns, request: Request, rows: Rows) -> Score:
        grown: Score = np.zeros(np.shape(columns.versions[rows]))[()]
        parts = gpu_parts(request)
        if not parts:
            return grown + 0.5
        wanted = demands.of(columns)
        rests = np.stack([_rest(columns, slot, rows) for slot in (GPU_SHARES, *columns.pool_slots(GPU_SHARES))])
        for number, part in enumerate(parts, 1):
            growth = wanted.growth(min(part, WHOLE + 1))[folded(rests)]
            least = growth.min(axis=0)
            # A part that no GPU has left in one piece, or that exceeds a GPU, counts as losing nothing.
            fits = np.isfinite(least)
            grown = grown + np.where(fits, least, 0.0)
            if number < len(parts):
                gpu = np.expand_dims(growth.argmin(axis=0), 0)
                np.put_along_axis(rests, gpu, np.take_along_axis(rests, gpu, 0) - part * fits, 0)
        return 0.5 - grown / (2 * wanted.beside.scale(demand(request)))

    return raw


def _rest(columns: Columns, slot: str, rows: Rows) -> Score:
    return np.maximum(0, free_on(columns, slot, rows))
