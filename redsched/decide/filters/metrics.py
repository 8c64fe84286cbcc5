"""The filter on metrics: reject hosts that do not report the metrics by which they are weighed."""

from collections.abc import Iterator

import numpy as np

from redsched.cache.columns import Columns
from redsched.decide.rules import Filter, Rule
from redsched.model import Request
from redsched.settings import Settings

METRICS = "metrics"


def metrics_filter(settings: Settings) -> Filter:
    """Make the filter that requires every metric of the setting metrics_weights, if metrics_required is set.

    Source: Nova's MetricsFilter.
    """
    names = sorted(settings.metrics_weights) if settings.metrics_required else []
    rules = [_reported(name) for name in names]

    def metrics(_request: Request) -> Iterator[Rule]:
        yield from rules

    return metrics


def _reported(name: str) -> Rule:
    def detail(columns: Columns, row: int) -> str:
        value = columns.metrics[name].item(row)
        return f"needs the metric {name}, " + (f"is {value:g}" if np.isfinite(value) else "does not report it")

    return Rule(f"{METRICS}:{name}", lambda columns, rows: np.isfinite(columns.metrics[name][rows]), detail)
