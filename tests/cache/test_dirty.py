"""The ring of changed rows: it returns them, or reports that it has forgotten some."""

from redsched.cache.columns import Columns
from redsched.cache.dirty import DirtyRows
from redsched.store.codec.replies import HostUsage


def test_rows_marked_since_are_named_once() -> None:
    dirty = DirtyRows()
    dirty.mark(1)
    seen = dirty.now
    for row in (2, 3, 2):
        dirty.mark(row)
    assert dirty.since(seen) == {2, 3}
    assert dirty.since(dirty.now) == set()


def test_a_reader_too_far_back_looks_at_everything() -> None:
    dirty = DirtyRows(remembered=4)
    for row in range(4):
        dirty.mark(row)
    assert dirty.since(0) == {0, 1, 2, 3}
    dirty.mark(4)
    assert dirty.since(0) is None
    assert dirty.since(1) == {1, 2, 3, 4}


def test_marking_all_sends_every_earlier_reader_to_everything() -> None:
    dirty = DirtyRows()
    dirty.mark(1)
    before = dirty.now
    dirty.mark_all()
    assert dirty.since(before) is None
    assert dirty.since(dirty.now) == set()


def test_every_way_of_writing_marks_the_row() -> None:
    columns = Columns()
    columns.set_epoch("1-a")
    for write in (
        lambda: columns.put("h1", {"version": "1", "epoch": "1-a"}),
        lambda: columns.patch("h1", {"claimed.VCPU": "1"}),
        lambda: columns.from_reply(HostUsage("h1", 2, "", {"VCPU": 2}, 1, 1), "1-a"),
        lambda: columns.remove("h1"),
    ):
        seen = columns.dirty.now
        write()
        assert columns.dirty.since(seen) == {0}


def test_growing_and_a_new_epoch_mark_everything() -> None:
    columns = Columns(1)
    columns.put("h1", {})
    seen = columns.dirty.now
    columns.put("h2", {})
    assert columns.dirty.since(seen) is None
    seen = columns.dirty.now
    columns.set_epoch("1-a")
    assert columns.dirty.since(seen) is None
