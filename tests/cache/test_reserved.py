"""What hosts keep for requests that wait: part of their external usage, and free again inside `without_reserved`."""

import itertools

import pytest

from redsched.cache.bulk import put_new
from redsched.cache.columns import Columns
from redsched.cache.diff import difference
from redsched.model.validation import MAX_AMOUNT
from redsched.store.codec.wire import flat
from tests.support.builders.columns import FIELDS, columns_of

RESERVATION = {
    "reservation": "r1",
    "reservation_from_ms": "5000",
    "reservation_request": "big",
    "reservation_project": "web",
    "kept.VCPU": "6",
}
GONE = dict.fromkeys(RESERVATION, "")


def external(columns: Columns, slot: str = "VCPU") -> int:
    row = columns.row("h1")
    assert row is not None
    return columns.external[slot].item(row)


def test_kept_amounts_count_as_external_usage_in_any_order_of_the_fields() -> None:
    for fields in itertools.permutations(RESERVATION.items()):
        for first, last in ((FIELDS, dict(fields)), (dict(fields), FIELDS)):
            columns = columns_of(h1={**first, **last})
            assert external(columns) == int(FIELDS["external.VCPU"]) + 6


def test_changes_apply_to_each_alone() -> None:
    columns = columns_of(h1=FIELDS)
    columns.patch("h1", RESERVATION)
    columns.patch("h1", {"external.VCPU": "2"})
    assert external(columns) == 8
    columns.patch("h1", {"kept.VCPU": "1"})
    assert external(columns) == 3
    columns.patch("h1", GONE)
    assert (external(columns), len(columns.reserved)) == (2, 0)


def test_nothing_of_a_reservation_remains() -> None:
    columns, again = (columns_of(h1=FIELDS | RESERVATION) for _ in range(2))
    columns.patch("h1", GONE)
    again.put("h1", FIELDS)
    assert difference(columns, columns_of(h1=FIELDS)) == difference(again, columns) == []
    columns.patch("h1", RESERVATION)
    columns.remove("h1")
    assert len(columns.reserved) == 0


def test_amounts_edited_by_hand_block() -> None:
    assert external(columns_of(h1=FIELDS | {"kept.VCPU": "many"})) >= MAX_AMOUNT


def test_without_kept_it_is_free_and_the_rows_count_as_changed() -> None:
    columns = columns_of(h1=FIELDS | RESERVATION)
    before = columns.dirty.now
    with columns.without_reserved(columns.reserved.of("r1")):
        assert external(columns) == int(FIELDS["external.VCPU"])
        assert columns.dirty.since(before) == {columns.row("h1")}
        inside = columns.dirty.now
    assert external(columns) == int(FIELDS["external.VCPU"]) + 6
    assert columns.dirty.since(inside) == {columns.row("h1")}


@pytest.mark.parametrize(("reservation", "found"), [("r1", 1), ("r2", 0)])
def test_rows_by_reservation(reservation: str, found: int) -> None:
    assert len(list(columns_of(h1=FIELDS | RESERVATION).reserved.of(reservation))) == found


@pytest.mark.parametrize(("end_ms", "found"), [(4999, 1), (5000, 1), (5001, 0)])
def test_rows_by_how_long_their_request_waits(end_ms: int, found: int) -> None:
    assert len(list(columns_of(h1=FIELDS | RESERVATION).reserved.until(end_ms))) == found


def test_reserved_hosts_are_added_together_with_others() -> None:
    hosts = {"h1": FIELDS, "h2": FIELDS | RESERVATION, "h3": FIELDS | {"kept.VCPU": "6"}}
    columns = Columns()
    columns.set_epoch("1-a")
    put_new(columns, {name: [str(one) for one in flat(fields)] for name, fields in hosts.items()})
    assert difference(columns, columns_of(**hosts)) == []
