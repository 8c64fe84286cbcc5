"""The weigher that keeps GPUs usable: least growth of fragmentation.

A GPU with 300 thousandths left is useless to a task that needs a whole GPU, or half of one. What is left of a GPU
counts as lost to the extent that typical tasks cannot use it.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.decide.fit import free_on
from redsched.decide.rules import Rows
from redsched.decide.scoring.weigher import Score
from redsched.model import Request

GPU_SHARES = "CUSTOM_GPU_MILLI"
WHOLE = 1000


def gpu_fragmentation(shares: Mapping[int, float]) -> Callable[[Columns, Request, Rows], Score]:
    """Make the raw score, for these typical shares (thousandths of a GPU) and their frequencies.

    0..1: 1 if placing uses up what was lost of a whole GPU, 0.5 if the loss does not change, 0 if a whole GPU is lost.
    Each part of the request is taken from the GPU on which it loses least.

    Source: Weng et al., Beware of Fragmentation (FGD), ATC 2023: what is left of a GPU is lost to larger shares,
    weighed by how common they are. Simplified: that CPUs or memory may run out first is ignored here, and left to
    `balance` and `best_fit`.
    """
    # The loss by what is left of a GPU; a whole GPU, or a pool with more than one, loses nothing.
    levels = np.arange(2 * WHOLE + 1)
    lost = levels * sum(common * (levels < share) for share, common in sorted(shares.items())) / sum(shares.values())

    @lru_cache(WHOLE + 1)
    def growth_of(part: int) -> NDArray[np.float64]:
        """Return the growth of the loss when a GPU gives the part, by what is left of it; inf if that is too little."""
        growth = np.full(len(levels), np.inf)
        if part <= WHOLE:
            growth[part:] = lost[: len(lost) - part] - lost[part:]
        return growth

    def raw(columns: Columns, request: Request, rows: Rows) -> Score:
        grown: Score = np.zeros(np.shape(columns.versions[rows]))[()]
        parts = _parts(request)
        if not parts:
            return grown + 0.5
        rests = np.stack([_rest(columns, slot, rows) for slot in (GPU_SHARES, *columns.pool_slots(GPU_SHARES))])
        for number, part in enumerate(parts, 1):
            growth = growth_of(min(part, WHOLE + 1))[np.minimum(rests, 2 * WHOLE)]
            least = growth.min(axis=0)
            # A part that no GPU has left in one piece, or that exceeds a GPU, counts as losing nothing.
            fits = np.isfinite(least)
            grown = grown + np.where(fits, least, 0.0)
            if number < len(parts):
                gpu = np.expand_dims(growth.argmin(axis=0), 0)
                np.put_along_axis(rests, gpu, np.take_along_axis(rests, gpu, 0) - part * fits, 0)
        return 0.5 - grown / (2 * WHOLE * len(parts))

    return raw


def _rest(columns: Columns, slot: str, rows: Rows) -> Score:
    return np.maximum(0, free_on(columns, slot, rows))


def _parts(request: Request) -> list[int]:
    """Return the shares taken from one GPU each, largest first: those of groups, and unnumbered ones by whole GPUs."""
    whole, rest = divmod(request.resources.get(GPU_SHARES, 0), WHOLE)
    parts = [WHOLE] * whole + ([rest] if rest else [])
    parts += [group.resources[GPU_SHARES] for group in request.groups if group.resources.get(GPU_SHARES)]
    return sorted(parts, reverse=True)
