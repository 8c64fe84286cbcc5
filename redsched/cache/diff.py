"""Comparison of two sets of columns, object by object and value by value, for tests of the cache and the feed."""

from collections.abc import Mapping

import numpy as np

from redsched.cache.columns import Columns

Described = Mapping[str, Mapping[str, object]]


def describe(columns: Columns, host: str) -> dict[str, object]:
    """Return every column's value of a host by field name, omitting keyed values that are the default.

    Raises KeyError if the host is unknown.
    """
    row = columns.row(host)
    if row is None:
        raise KeyError(host)
    values: dict[str, object] = {
        "version": columns.versions.item(row),
        "epoch": columns.epochs.text(row),
        "status": columns.status.item(row),
        "alive": columns.alive.item(row),
        "attested": columns.attested.item(row),
        "zone": columns.zones.text(row),
        "claims": columns.claims.item(row),
        "starting": columns.starting.item(row),
        "failures": columns.failures.item(row),
    }
    for kind, family in columns.amounts.items():
        values |= {f"{kind}.{slot}": n for slot in family if (n := family[slot].item(row)) != family.default}
    values |= columns.reserved.describe(row)
    values |= {f"ratio.{slot}": x for slot in columns.ratios if (x := columns.ratios[slot].item(row)) != 1}
    values |= {f"trait.{name}": True for name in columns.traits if columns.traits[name].item(row)}
    layout = columns.layout(row)
    values |= {f"pool.{pool}": (layout.parent[pool], sorted(layout.classes[pool])) for pool in layout.pools}
    values |= {f"aggregate.{name}": True for name in columns.aggregates if columns.aggregates[name].item(row)}
    values |= {f"metric.{key}": x for key in columns.metrics if not np.isnan(x := columns.metrics[key].item(row))}
    return values | {f"label.{key}": text for key, texts in columns.labels.items() if (text := texts.text(row))}


def difference(one: Columns, other: Columns) -> list[str]:
    """Return readable differences: one for the epoch, and one for each differing value. Empty if all is equal."""
    lines = [] if one.epoch == other.epoch else [f"cell epoch: {one.epoch!r} != {other.epoch!r}"]
    for host in sorted({*one.names(), *other.names()}):
        if host in one and host in other:
            lines += _values_that_differ(host, describe(one, host), describe(other, host))
        else:
            lines.append(f"{host}: only in the {'first' if host in one else 'second'}")
    return lines + _declared_difference(one.declared.describe(), other.declared.describe())


def _declared_difference(one: Described, other: Described) -> list[str]:
    lines = []
    for thing in sorted(one.keys() | other.keys()):
        if thing in one and thing in other:
            lines += _values_that_differ(thing, one[thing], other[thing])
        else:
            lines.append(f"{thing}: only in the {'first' if thing in one else 'second'}")
    return lines


def _values_that_differ(thing: str, one: Mapping[str, object], other: Mapping[str, object]) -> list[str]:
    return [
        f"{thing} {field}: {one.get(field)!r} != {other.get(field)!r}"
        for field in sorted(one.keys() | other.keys())
        if one.get(field) != other.get(field)
    ]
