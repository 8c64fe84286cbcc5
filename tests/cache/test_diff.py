"""The comparison of columns covers every column; the tests of the cache rely on that."""

import pytest

from redsched.cache.columns import Columns
from redsched.cache.diff import difference
from redsched.store.codec.keys import Kind
from tests.support.builders.columns import FIELDS, columns_of

OTHER_VALUES = {"status": "draining", "alive": "0", "zone": "az9", "epoch": "2-b", "pool.numa0": ""}
OTHER_VALUES |= {field: "" for field in FIELDS if field.startswith(("trait.", "aggregate."))}
DECIDING = [name for name in FIELDS if name.partition(".")[0] not in {"total", "ratio", "agent"}]


@pytest.mark.parametrize("field", DECIDING)
def test_a_difference_in_any_column_is_seen(field: str) -> None:
    other = columns_of(h1=FIELDS | {field: OTHER_VALUES.get(field, "6")})
    lines = difference(columns_of(h1=FIELDS), other)
    assert lines[0].startswith("h1 ")
    assert any(f" {field}:" in line for line in lines)


def test_hosts_on_one_side_and_epochs_of_the_cell_are_seen() -> None:
    first, second = columns_of(h1=FIELDS), Columns()
    assert difference(first, second) == ["cell epoch: '1-a' != ''", "h1: only in the first"]
    assert difference(second, first) == ["cell epoch: '' != '1-a'", "h1: only in the second"]


def test_equal_values_in_other_rows_and_sizes_are_equal() -> None:
    one, other = columns_of(h1=FIELDS, h2=FIELDS), columns_of(h2=FIELDS, h3=FIELDS, h1=FIELDS)
    other.remove("h3")
    assert difference(one, other) == []


def test_a_default_written_out_equals_an_absent_field() -> None:
    written_out = columns_of(h1={"claimed.VCPU": "0", "min.VCPU": "1", "metric.x": ""})
    assert difference(written_out, columns_of(h1={})) == []


DECLARED = {
    Kind.AGGREGATE: {"version": "1", "meta.disk": "ssd"},
    Kind.SERVER_GROUP: {"version": "1", "policy": "affinity", "by": "zone", "members": "2", "count.zone=az1": "2"},
    Kind.POOL: {"version": "1", "capacity.CUSTOM_SEAT": "9", "claimed.CUSTOM_SEAT": "2", "trait.CUSTOM_T": "1"},
}


@pytest.mark.parametrize(("kind", "field"), [(kind, field) for kind, fields in DECLARED.items() for field in fields])
def test_a_difference_in_anything_declared_is_seen(kind: Kind, field: str) -> None:
    one, other = columns_of(), columns_of()
    other_values = {"meta.disk": "hdd", "policy": "soft-affinity", "by": "host", "trait.CUSTOM_T": ""}
    one.declared.put(kind, "x", DECLARED[kind])
    other.declared.put(kind, "x", DECLARED[kind] | {field: other_values.get(field, "5")})
    [line] = difference(one, other)
    assert line.startswith(f"{kind} x ")
    assert difference(one, columns_of()) == [f"{kind} x: only in the first"]
    assert difference(columns_of(), one) == [f"{kind} x: only in the second"]
