"""Columns for tests of weighers, and a weigher's values of their hosts."""

from collections.abc import Mapping

import numpy as np

from redsched.cache.columns import Columns
from redsched.decide.plugins.registry import plugin_registry
from redsched.decide.scoring import Weigher
from redsched.model import Request
from redsched.settings import Settings

SMALL = Request({"VCPU": 1})


def weigher(name: str, settings: Settings | None = None) -> Weigher:
    """Return a weigher by its name."""
    return plugin_registry(settings or Settings()).weighers[name]


def rows_of(columns: Columns) -> list[int]:
    """Return the rows of all hosts, in the order of their names."""
    return [row for name in columns.names() if (row := columns.row(name)) is not None]


def raw_of(one: Weigher, columns: Columns, request: Request = SMALL) -> dict[str, float]:
    """Return the raw number of each host: computed together and one by one, which must agree."""
    rows = rows_of(columns)
    together = np.broadcast_to(one.raw(columns, request, np.array(rows)), len(rows)).tolist()
    assert together == [float(one.raw(columns, request, row)) for row in rows]
    return dict(zip(columns.names(), together, strict=True))


def value_of(one: Weigher, columns: Columns, request: Request = SMALL) -> dict[str, float]:
    """Return the factor of each host's multiplier."""
    values = one.value(columns, request, np.array(rows_of(columns)))
    return dict(zip(columns.names(), np.broadcast_to(values, len(columns)).tolist(), strict=True))


def aggregate(columns: Columns, name: str, metadata: Mapping[str, str]) -> None:
    """Declare an aggregate; its hosts have `aggregate.<name>` among their fields."""
    columns.declared.put("aggregate", name, {"version": "1"} | {f"meta.{key}": text for key, text in metadata.items()})
