"""Declared objects in memory: their parsed fields, their description, and the undoing of tentative placements."""

from collections.abc import Mapping

import pytest

from redsched.cache.declared import Declared
from redsched.model import GroupPolicy, ServerGroup
from redsched.model.validation import MAX_AMOUNT
from redsched.store.codec.keys import Kind
from redsched.store.codec.replies import SharedObject

GROUP = {
    "version": "4",
    "policy": "anti-affinity",
    "by": "label:rack",
    "max_per_host": "2",
    "count_by.1": "zone",
    "members": "3",
    "count.host=h1": "2",
    "count.host=h2": "1",
    "count.label:rack=a=b": "3",
}
POOL = {
    "version": "4",
    "capacity.CUSTOM_SEAT": "10",
    "claimed.CUSTOM_SEAT": "3",
    "min.CUSTOM_SEAT": "2",
    "max.CUSTOM_SEAT": "8",
    "step.CUSTOM_SEAT": "2",
    "total.CUSTOM_SEAT": "5",
    "capacity.DISK_GB": "7",
    "trait.CUSTOM_FAST": "1",
    "aggregate.fast": "1",
}


def declared(**objects: tuple[Kind, Mapping[str, str]]) -> Declared:
    found = Declared()
    for name, (kind, fields) in objects.items():
        found.put(kind, name, fields)
    return found


def test_an_aggregate_is_its_metadata() -> None:
    found = declared(fast=(Kind.AGGREGATE, {"version": "4", "meta.trait:CUSTOM_X": "required", "meta.disk": "ssd"}))
    assert found.aggregates["fast"].metadata == {"trait:CUSTOM_X": "required", "disk": "ssd"}
    assert found.version(Kind.AGGREGATE, "fast") == found.aggregates["fast"].version == 4
    found.patch(Kind.AGGREGATE, "fast", {"version": "5", "meta.disk": ""})
    assert found.aggregates["fast"].metadata == {"trait:CUSTOM_X": "required"}
    assert found.version(Kind.AGGREGATE, "slow") is None


def test_a_group_is_its_declaration_and_counts() -> None:
    found = declared(db=(Kind.SERVER_GROUP, GROUP)).groups["db"]
    assert found.group == ServerGroup("db", GroupPolicy.ANTI_AFFINITY, "label:rack", 2, ("zone",))
    assert (found.members, found.count("host", "h1"), found.count("host", "h9")) == (3, 2, 0)
    assert found.counts("host") == {"h1": 2, "h2": 1}
    assert found.counts("label:rack") == {"a=b": 3}, "a value may hold what stands before it"
    assert found.counts("zone") == {}


def test_a_count_of_nothing_is_no_domain() -> None:
    found = declared(db=(Kind.SERVER_GROUP, GROUP))
    found.patch(Kind.SERVER_GROUP, "db", {"version": "5", "members": "1", "count.host=h1": "0", "count.host=h2": ""})
    assert (found.groups["db"].members, found.groups["db"].counts("host")) == (1, {})


def test_a_pool_is_its_slots_traits_and_aggregates() -> None:
    found = declared(lic=(Kind.POOL, POOL)).pools["lic"]
    seat, disk = found.slots["CUSTOM_SEAT"], found.slots["DISK_GB"]
    assert (seat.capacity, seat.claimed, seat.external, seat.minimum, seat.maximum, seat.step) == (10, 3, 0, 2, 8, 2)
    assert (disk.capacity, disk.claimed, disk.minimum, disk.maximum, disk.step) == (7, 0, 1, MAX_AMOUNT, 1)
    assert (set(found.traits), set(found.aggregates)) == ({"CUSTOM_FAST"}, {"fast"})
    assert found.slots.keys() == {"CUSTOM_SEAT", "DISK_GB"}


def test_a_patch_of_a_pool_sets_what_it_names_and_removes_what_is_empty() -> None:
    found = declared(lic=(Kind.POOL, POOL))
    gone = {"trait.CUSTOM_FAST": "", "aggregate.fast": "", "capacity.DISK_GB": "", "step.CUSTOM_SEAT": ""}
    found.patch(Kind.POOL, "lic", {"version": "5", "claimed.CUSTOM_SEAT": "4", **gone})
    lic = found.pools["lic"]
    assert not lic.traits | lic.aggregates
    assert (lic.version, list(lic.slots)) == (5, ["CUSTOM_SEAT"])
    assert (lic.slots["CUSTOM_SEAT"].claimed, lic.slots["CUSTOM_SEAT"].step) == (4, 1)


def test_what_nobody_can_read_admits_nothing() -> None:
    found = declared(
        lic=(Kind.POOL, {"capacity.DISK_GB": "x", "claimed.DISK_GB": "-1"}),
        db=(Kind.SERVER_GROUP, {"policy": "affinity", "members": "x", "count.host=h1": "1.5"}),
    )
    assert (found.pools["lic"].slots["DISK_GB"].capacity, found.pools["lic"].slots["DISK_GB"].claimed) == (
        0,
        MAX_AMOUNT,
    )
    assert (found.groups["db"].members, found.groups["db"].count("host", "h1")) == (MAX_AMOUNT, MAX_AMOUNT)


@pytest.mark.parametrize(
    "damage",
    [{"policy": "close"}, {"by": "planet"}, {"max_per_host": "two"}, {"max_per_host": "0"}, {"count_by.2": "x"}],
)
def test_a_group_whose_declaration_nobody_can_read_is_not_shown(damage: dict[str, str]) -> None:
    found = declared(db=(Kind.SERVER_GROUP, GROUP | damage))
    assert "db" not in found.groups
    assert found.version(Kind.SERVER_GROUP, "db") == 4
    found.patch(Kind.SERVER_GROUP, "db", {"version": "5", **{field: GROUP.get(field, "") for field in damage}})
    assert found.groups["db"].count("host", "h1") == 2


@pytest.mark.parametrize(
    ("kind", "counted", "definition"),
    [
        (Kind.SERVER_GROUP, {"members": "2", "count.host=h1": "2"}, {"policy": "affinity"}),
        (Kind.POOL, {"claimed.DISK_GB": "2"}, {"capacity.DISK_GB": "9"}),
    ],
)
def test_counts_without_a_declaration_are_kept_and_not_shown(
    kind: Kind, counted: dict[str, str], definition: dict[str, str]
) -> None:
    found = declared(x=(kind, {"version": "4", **counted}))
    assert (len(found.groups), len(found.pools), found.version(kind, "x")) == (0, 0, 4)
    found.patch(kind, "x", {"version": "5", **definition})
    assert found.describe() == declared(x=(kind, {"version": "5", **counted, **definition})).describe()
    found.patch(kind, "x", {"version": "6", **dict.fromkeys(definition, "")})
    assert found.describe() == {}


def test_put_replaces_and_remove_forgets() -> None:
    found = declared(x=(Kind.POOL, POOL))
    found.put(Kind.POOL, "x", {"version": "5", "capacity.VCPU": "1"})
    assert found.pools["x"].slots.keys() == {"VCPU"}
    found.put(Kind.POOL, "x", {"version": "6"})
    assert "x" not in found.pools
    found.remove(Kind.POOL, "x")
    found.remove(Kind.POOL, "x")
    assert found.version(Kind.POOL, "x") is None
    with pytest.raises(KeyError):
        found.patch(Kind.POOL, "x", {"version": "7"})


def test_the_revision_moves_with_what_masks_depend_on_and_not_with_claims() -> None:
    found = declared(a=(Kind.AGGREGATE, {"version": "1"}), lic=(Kind.POOL, POOL), db=(Kind.SERVER_GROUP, GROUP))

    def moved(kind: Kind, name: str, fields: dict[str, str]) -> bool:
        before = found.revision
        found.patch(kind, name, fields)
        return found.revision > before

    assert moved(Kind.AGGREGATE, "a", {"version": "2", "meta.x": "1"})
    assert moved(Kind.POOL, "lic", {"version": "5", "capacity.DISK_GB": "8"})
    assert moved(Kind.POOL, "lic", {"version": "6", "aggregate.fast": ""})
    assert not moved(Kind.POOL, "lic", {"version": "7", "claimed.DISK_GB": "8"})
    assert not moved(Kind.SERVER_GROUP, "db", {"version": "5", "members": "4", "count.host=h1": "3"})
    before = found.revision
    found.remove(Kind.POOL, "lic")
    assert found.revision > before


def test_places_that_are_tried_out_leave_nothing_behind() -> None:
    found = declared(db=(Kind.SERVER_GROUP, GROUP), lic=(Kind.POOL, POOL))
    before = found.describe()
    found.place("db", "h1", {"host": "h1", "zone": "az1", "label:rack": ""})
    found.place("db", "h3", {"zone": "az1"})
    found.take("lic", "CUSTOM_SEAT", 4)
    db = found.groups["db"]
    assert (db.members, db.counts("host"), db.counts("zone")) == (5, {"h1": 3, "h2": 1, "h3": 1}, {"az1": 2})
    assert db.counts("label:rack") == {"a=b": 3}, "a host without a rack is in none"
    found.place("db", "h4", {"host": "", "zone": "az2"})
    assert (db.count("host", "h4"), db.count("zone", "az2")) == (0, 1), "counted by what is asked for alone"
    found.place("db", "h4", {"host": "", "zone": "az2"}, -1)
    assert found.pools["lic"].slots["CUSTOM_SEAT"].claimed == 7
    found.take("lic", "CUSTOM_SEAT", -4)
    found.place("db", "h3", {"zone": "az1"}, -1)
    found.place("db", "h1", {"host": "h1", "zone": "az1", "label:rack": ""}, -1)
    assert found.describe() == before


def test_the_places_of_one_request_can_be_a_group_without_a_name() -> None:
    found = declared()
    found.put(Kind.SERVER_GROUP, "", {"policy": "soft-anti-affinity", "count_by.1": "label:rack"})
    found.place("", "h1", {"label:rack": "r4"})
    assert found.groups[""].group.topologies() == ("host", "zone", "label:rack")
    assert found.groups[""].counts("label:rack") == {"r4": 1}
    found.remove(Kind.SERVER_GROUP, "")
    assert found.describe() == {}


def test_a_reply_that_follows_moves_the_version_and_one_that_skips_does_not() -> None:
    found = declared(db=(Kind.SERVER_GROUP, GROUP))
    assert found.from_reply(SharedObject(Kind.SERVER_GROUP, "db", 5, {"members": "4"}))
    assert (found.groups["db"].version, found.groups["db"].members) == (5, 4)
    assert found.from_reply(SharedObject(Kind.SERVER_GROUP, "db", 8, {"members": "6"}))
    assert (found.groups["db"].version, found.groups["db"].members) == (5, 6)
    assert not found.from_reply(SharedObject(Kind.SERVER_GROUP, "db", 5, {"members": "1"}))
    assert not found.from_reply(SharedObject(Kind.SERVER_GROUP, "unpublished", 5, {"members": "1"}))
    assert found.groups["db"].members == 6
