"""The rules for applying feed entries: each prevents a way in which a cache could become wrong."""

import pytest

from redsched.cache.columns import Columns
from redsched.cache.diff import difference
from redsched.cache.feed import Gap, apply, check_dense, objects_to_read, whole_scripts
from redsched.store.codec.replies import Change
from tests.support.builders.columns import FIELDS, columns_of

CLAIMED = {"claimed.VCPU": "9"}


def change(
    seq: int, version: int, name: str = "h1", op: str = "claimed", more: int = 0, fields: dict[str, str] | None = None
) -> Change:
    return Change(f"{seq}-0", seq, "host", name, version, op, more, fields or CLAIMED)


def test_a_missing_seq_is_a_gap() -> None:
    """Trimmed entries are detected, both before a batch and within it."""
    check_dense([change(4, 1), change(5, 2)], seq=3)
    with pytest.raises(Gap):
        check_dense([change(5, 2)], seq=3)
    with pytest.raises(Gap):
        check_dense([change(4, 1), change(6, 3)], seq=3)


def test_a_script_is_taken_whole_or_not_yet() -> None:
    """If a read returns only some of a script's entries, they are not applied before the rest."""
    batch = [change(1, 8), change(2, 9, more=2), change(3, 10, more=1)]
    assert list(whole_scripts(batch)) == batch[:1]
    assert list(whole_scripts(batch[1:])) == []


def test_the_next_version_is_applied_from_the_batch() -> None:
    """A change to the next version needs no read, and sets the version together with the fields."""
    columns = columns_of(h1=FIELDS)
    batch = [change(1, 8), change(2, 9, fields={"claimed.VCPU": "11"})]
    assert objects_to_read(columns, batch) == []
    apply(columns, batch)
    assert columns.version("h1") == 9
    assert difference(columns, columns_of(h1=FIELDS | {"version": "9", "claimed.VCPU": "11"})) == []


def test_an_older_version_is_passed_over() -> None:
    """Later feed entries do not undo what a reply or a read has already set."""
    columns = columns_of(h1=FIELDS)
    assert objects_to_read(columns, [change(1, 7)]) == []
    apply(columns, [change(1, 7)])
    assert difference(columns, columns_of(h1=FIELDS)) == []


@pytest.mark.parametrize(
    "batch",
    [
        pytest.param([change(1, 9)], id="its version skips one"),
        pytest.param([change(1, 8), change(2, 10)], id="it skips one within the batch"),
        pytest.param([change(1, 8, fields={"reread": "1"})], id="the entry says so"),
    ],
)
def test_a_host_that_cannot_be_followed_is_read_alone(batch: list[Change]) -> None:
    """Only the affected host is read again."""
    columns = columns_of(h1=FIELDS, h2=FIELDS)
    assert objects_to_read(columns, [*batch, change(3, 8, name="h2")]) == [("host", "h1")]


def test_a_new_host_is_read_unless_it_is_gone_again() -> None:
    """A host that was created and removed within the batch is not read."""
    columns = columns_of(h1=FIELDS)
    came = change(1, 1, name="h9", op="report")
    assert objects_to_read(columns, [came]) == [("host", "h9")]
    assert objects_to_read(columns, [came, change(2, 2, name="h9", op="removed")]) == []


def test_a_removed_host_goes_and_may_come_back() -> None:
    """A host that was removed and created again within the batch is read as a new host."""
    columns = columns_of(h1=FIELDS)
    removed, back = change(1, 8, op="removed"), change(2, 2, op="report")
    assert objects_to_read(columns, [removed, back]) == [("host", "h1")]
    apply(columns, [removed])
    assert "h1" not in columns


DECLARED = {
    "aggregate": {"version": "7", "meta.disk": "ssd"},
    "server-group": {"version": "7", "policy": "affinity", "members": "1", "count.host=h1": "1"},
    "pool": {"version": "7", "capacity.CUSTOM_SEAT": "9"},
}
THEN = {
    "aggregate": {"meta.disk": "hdd", "meta.net": "fast"},
    "server-group": {"members": "2", "count.host=h1": "", "count.host=h2": "2"},
    "pool": {"claimed.CUSTOM_SEAT": "4"},
}


def columns_with(kind: str, fields: dict[str, str]) -> Columns:
    columns = columns_of(h1=FIELDS)
    columns.declared.put(kind, "h1", fields)
    return columns


def declared_change(kind: str, version: int, op: str = "declared", fields: dict[str, str] | None = None) -> Change:
    return Change("1-0", version, kind, "h1", version, op, 0, THEN[kind] if fields is None else fields)


@pytest.mark.parametrize("kind", DECLARED)
def test_declared_objects_follow_the_rules_of_hosts(kind: str) -> None:
    """The next version is applied and an older one is not; objects that skip a version or are new are read."""
    columns = columns_with(kind, DECLARED[kind])
    following = declared_change(kind, 8)
    assert objects_to_read(columns, [following]) == []
    assert objects_to_read(columns, [declared_change(kind, 9)]) == [(kind, "h1")]
    assert objects_to_read(columns, [declared_change(kind, 8, fields={"reread": "1"})]) == [(kind, "h1")]
    assert objects_to_read(columns_of(), [following]) == [(kind, "h1")]
    apply(columns, [following])
    expected = {field: text for field, text in (DECLARED[kind] | THEN[kind]).items() if text}
    assert difference(columns, columns_with(kind, expected | {"version": "8"})) == []
    apply(columns, [declared_change(kind, 8, fields=DECLARED[kind])])
    assert difference(columns, columns_with(kind, expected | {"version": "8"})) == []


@pytest.mark.parametrize("kind", DECLARED)
def test_what_is_no_longer_declared_goes_and_the_host_of_its_name_stays(kind: str) -> None:
    columns = columns_with(kind, DECLARED[kind])
    removed = declared_change(kind, 8, "removed", {})
    assert objects_to_read(columns, [removed]) == []
    apply(columns, [removed])
    assert difference(columns, columns_of(h1=FIELDS)) == []
    assert columns.declared.version(kind, "h1") is None


def test_objects_of_one_name_and_different_kinds_are_different_objects() -> None:
    """The version of one does not matter for the other."""
    columns = columns_with("pool", DECLARED["pool"])
    batch = [declared_change("pool", 8), declared_change("aggregate", 8), change(1, 8)]
    assert objects_to_read(columns, batch) == [("aggregate", "h1")]


def test_other_kinds_are_passed_over() -> None:
    """Entries about kinds of objects that this release does not know are ignored."""
    columns = columns_of(h1=FIELDS)
    other = Change("1-0", 1, "weather", "h1", 99, "report", 0, {"claimed.VCPU": "1"})
    assert objects_to_read(columns, [other]) == []
    apply(columns, [other])
    assert difference(columns, columns_of(h1=FIELDS)) == []
