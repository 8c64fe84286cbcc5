"""Weighers configured by name in settings: metrics of hosts, properties of the work."""

from collections.abc import Callable, Mapping

import numpy as np

from redsched.cache.arrays import TextColumn
from redsched.cache.columns import Columns
from redsched.decide.rules import Rows
from redsched.decide.scoring.weigher import Score
from redsched.model import Request


def metrics(factors: Mapping[str, float], unavailable: float) -> Callable[[Columns, Request, Rows], Score]:
    """Make the raw score of the metrics weigher: the sum of each metric times its factor.

    The score is `unavailable` if a host lacks one of them. A factor of 0 requires nothing.
    """
    wanted = sorted((name, factor) for name, factor in factors.items() if factor)

    def raw(columns: Columns, _request: Request, rows: Rows) -> Score:
        total: Score = columns.claims[rows] * 0.0
        for name, factor in wanted:
            total = total + columns.metrics[name][rows] * factor
        return np.where(np.isfinite(total), total, unavailable)[()]

    return raw


def image_props(factors: Mapping[str, float]) -> Callable[[Columns, Request, Rows], Score]:
    """Make the raw score of image_props: the sum of the factors of those properties that are also labels of the host.

    Without factors each property counts 1.
    """

    def raw(columns: Columns, request: Request, rows: Rows) -> Score:
        total: Score = columns.claims[rows] * 0.0
        for key, value in sorted(request.properties.items()):
            factor = factors.get(key, 0.0) if factors else 1.0
            texts: TextColumn | None = columns.labels.get(key)
            if factor and texts is not None:
                total = total + (texts.codes[rows] == texts.code(value)) * factor
        return total

    return raw
