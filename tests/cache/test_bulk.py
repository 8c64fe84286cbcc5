"""Hosts that are added together have the columns that they would have one by one, whatever their fields are."""

import random

import numpy as np
import pytest

from redsched.cache.bulk import put_new
from redsched.cache.columns import Columns
from redsched.cache.diff import difference
from redsched.store.codec.wire import flat
from tests.support.builders.columns import FIELDS, columns_of

ODD = ("", "0", "1", "-1", "7.5", "nan", "x", "numa0", "enabled", "draining", "1-a", "az2", str(2**60))
"""Values of other fields, and of manual edits."""

Hosts = dict[str, dict[str, str]]


def some_hosts(rng: random.Random) -> Hosts:
    """Return hosts most of which have the same fields, in several orders, and some of which have odd values."""
    hosts = Hosts()
    for number in range(60):
        fields = dict(FIELDS) | {"version": str(number)}
        for name in rng.sample(sorted(FIELDS), rng.choice((0, 0, 0, 1, 3))):
            if rng.random() < 0.5:
                del fields[name]
            else:
                fields[name] = rng.choice(ODD)
        hosts[f"h{number}"] = dict(sorted(fields.items(), key=lambda _: rng.random())) if number % 5 == 0 else fields
    return hosts


def added_together(hosts: Hosts) -> Columns:
    columns = Columns(8)
    columns.set_epoch("1-a")
    names = list(hosts)
    for page in (names[:25], names[25:]):
        put_new(columns, {name: [str(one) for one in flat(hosts[name])] for name in page})
    return columns


@pytest.mark.parametrize("seed", range(20))
def test_hosts_added_together_equal_those_added_one_by_one(seed: int) -> None:
    hosts = some_hosts(random.Random(seed))
    one_by_one, together = columns_of(**hosts), added_together(hosts)
    assert difference(together, one_by_one) == []
    assert set(together.order[together.present]) == set(range(len(hosts)))
    for kind, family in one_by_one.amounts.items():
        assert set(together.amounts[kind]) == set(family), "no column that holds only defaults"


@pytest.mark.parametrize("seed", range(5))
def test_they_change_and_go_like_any_other_host(seed: int) -> None:
    """The codes of texts that no host has any longer are reused, so each text must be counted once for each host."""
    hosts = some_hosts(random.Random(seed))
    one_by_one, together = columns_of(**hosts), added_together(hosts)
    for columns in (one_by_one, together):
        for name in list(hosts)[::2]:
            columns.remove(name)
        for number, name in enumerate(list(hosts)[1::2]):
            columns.patch(name, {"zone": f"zone-{number % 3}", "label.rack.row": f"r{number}", "pool.gpu0": "/"})
        columns.put("new", FIELDS | {"zone": "zone-new"})
    assert difference(together, one_by_one) == []


def test_a_field_in_both_hashes_of_a_host_has_the_later_value() -> None:
    columns = Columns()
    put_new(columns, {"h1": ["zone", "az1", "claims", "2", "zone", "az2"]})
    columns.patch("h1", {"zone": "az3"})
    assert columns.zones.text(0) == "az3"
    assert (columns.zones.code("az1"), columns.zones.code("az2")) == (-2, -2)


def test_readers_of_the_rows_notice() -> None:
    columns = columns_of(h1=FIELDS)
    before = columns.dirty.now
    put_new(columns, {"h2": [str(one) for one in flat(FIELDS)]})
    assert columns.dirty.since(before) is None
    assert np.flatnonzero(columns.present).tolist() == [0, 1]
