"""The weigher that keeps GPUs usable: least growth of fragmentation.

A GPU of which 300 thousandths are left is of no use to who wants a whole one, nor to who wants half. What is left of a
GPU counts as lost as far as the usual tasks cannot use it.
"""

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.decide.fit import free
from redsched.decide.rules import Rows
from redsched.decide.weighers.weigher import Score
from redsched.model import Request

GPU_SHARES = "CUSTOM_GPU_MILLI"
WHOLE = 1000


def gpu_fragmentation(shares: Mapping[int, float]) -> Callable[[Columns, Request, Rows], Score]:
    """Make the raw numbers of the weigher, for these usual shares (thousandths of a GPU) and how common each is.

    0..1: 1 where placing uses up what was lost of a whole GPU, 0.5 where nothing more or less is lost, 0 where a whole
    GPU is lost. Each part of the request is taken from the GPU where it loses least.

    Source: Weng et al., Beware of Fragmentation (FGD), ATC 2023: what is left of a GPU is lost to a share that is
    larger, weighed by how common the share is. Simpler than there: that CPUs or memory may run out first is not looked
    at, which `balance` and `best_fit` do.
    """
    sizes = np.array(sorted(shares), np.int64)
    common = np.array([shares[size] for size in sizes.tolist()], np.float64)
    # lost_to[i]: how much of all tasks want more than a rest that is smaller than sizes[i].
    lost_to = np.append(np.cumsum(common[::-1])[::-1], 0.0) / max(float(common.sum()), 1e-9)

    def lost(rest: NDArray[np.int64]) -> NDArray[np.float64]:
        part: NDArray[np.float64] = rest * lost_to[np.searchsorted(sizes, rest, side="right")]
        return part

    def raw(columns: Columns, request: Request, rows: Rows) -> Score:
        grown: Score = np.float64(0.0)
        parts = _parts(request)
        slots = (GPU_SHARES, *columns.pool_slots(GPU_SHARES)) if parts else ()
        rests = np.stack([_free(columns, slot, rows) for slot in slots]) if slots else np.zeros((0, 0), np.int64)
        for part in parts:
            growth = np.where(rests >= part, lost(np.maximum(rests - part, 0)) - lost(rests), np.inf)
            gpu = np.expand_dims(growth.argmin(axis=0), 0)
            least = np.take_along_axis(growth, gpu, 0)
            # Parts that fit only in another way (over several pools) are taken to lose nothing.
            fits = np.isfinite(least)
            grown = grown + np.where(fits, least, 0.0)[0]
            np.put_along_axis(rests, gpu, np.take_along_axis(rests, gpu, 0) - part * fits, 0)
        return np.zeros_like(columns.versions[rows], np.float64) + 0.5 - grown / (2 * WHOLE * max(len(parts), 1))

    return raw


def _free(columns: Columns, slot: str, rows: Rows) -> Score:
    return np.maximum(0, free(columns.capacity[slot][rows], columns.claimed[slot][rows], columns.external[slot][rows]))


def _parts(request: Request) -> list[int]:
    """What is taken from one GPU each, the largest first: the groups' shares, and unnumbered ones by whole GPUs."""
    whole, rest = divmod(request.resources.get(GPU_SHARES, 0), WHOLE)
    parts = [WHOLE] * whole + ([rest] if rest else [])
    parts += [group.resources[GPU_SHARES] for group in request.groups if group.resources.get(GPU_SHARES)]
    return sorted(parts, reverse=True)
