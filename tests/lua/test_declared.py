"""declare, undeclare and membership: what operators declare about aggregates, server groups and shared pools."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from redsched.model import Aggregate, GroupPolicy, Inventory, ServerGroup, SharedPool
from redsched.store.cell import CellStore
from redsched.store.codec.fields import digest
from redsched.store.codec.keys import Kind
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import Change
from redsched.store.commands.base import CHUNK
from tests.support.builders.cells import claim_on, fields_of, nothing_written, open_host, report_of

AFFINE = ServerGroup("db", GroupPolicy.AFFINITY)
APART = ServerGroup("db", GroupPolicy.ANTI_AFFINITY, "label:rack", 2, ("zone", "label:row"))
SEATS = SharedPool(
    "lic",
    {"CUSTOM_SEAT": Inventory(10, 1, 2.0, 2, 6, 2), "DISK_GB": Inventory(7)},
    frozenset({"CUSTOM_FAST"}),
    frozenset({"fast"}),
)


async def told(cell: CellStore, seq: int) -> list[tuple[str, str, str, int, Mapping[str, str]]]:
    """Return the feed entries after a seq: kind, name, op, number of entries that follow, fields."""
    found: list[Change] = [one for one in await cell.feed.read("0-0", 10_000) if one.seq > seq]
    assert [one.seq for one in found] == list(range(seq + 1, (await cell.tick()).seq + 1))
    return [(one.kind, one.name, one.op, one.more, one.fields) for one in found]


async def seq_of(cell: CellStore) -> int:
    return (await cell.tick()).seq


def writing(hosts: str) -> str:
    """Return the digest of hosts as it is until all of them are written."""
    return f"writing:{digest(hosts)}"


# Aggregates


async def test_an_aggregate_is_its_metadata_and_its_hosts_carry_it(cell: CellStore, raw: Any) -> None:
    for host in ("h1", "h2", "h3"):
        await open_host(cell, host)
    before = {host: dict(await fields_of(raw, cell.keys.host(host))) for host in ("h1", "h2", "h3")}
    seq = await seq_of(cell)
    answer = await cell.declared.put_aggregate(Aggregate("fast", {"disk": "ssd"}, frozenset({"h1", "h3", "nowhere"})))
    assert (answer.outcome, answer.facts) == (Outcome.OK, ("nowhere",))
    declared = {"meta.disk": "ssd", "hosts_digest": digest("h1 h3 nowhere")}
    assert await fields_of(raw, cell.keys.aggregate("fast")) == {"version": str(seq + 2), **declared}
    assert await cell.declared.members("fast") == ["h1", "h3"]
    for host, changed in (("h1", 1), ("h2", 0), ("h3", 1)):
        expected = before[host] | {"version": str(int(before[host]["version"]) + changed)}
        assert await fields_of(raw, cell.keys.host(host)) == expected | ({"aggregate.fast": "1"} if changed else {})
    assert await told(cell, seq) == [
        ("aggregate", "fast", "declared", 0, {**declared, "hosts_digest": writing("h1 h3 nowhere")}),
        ("host", "h1", "membership", 2, {"aggregate.fast": "1"}),
        ("host", "h3", "membership", 1, {"aggregate.fast": "1"}),
        ("aggregate", "fast", "membership", 0, {"hosts_digest": digest("h1 h3 nowhere")}),
    ]


async def test_putting_an_aggregate_again_replaces_all_of_it(cell: CellStore, raw: Any) -> None:
    for host in ("h1", "h2"):
        await open_host(cell, host)
    await cell.declared.put_aggregate(Aggregate("fast", {"disk": "ssd", "net": "100"}, frozenset({"h1"})))
    version = int(await raw.hget(cell.keys.aggregate("fast"), "version"))
    seq = await seq_of(cell)
    second = Aggregate("fast", {"net": "200", "trait:CUSTOM_X": "required"}, frozenset({"h2"}))
    assert (await cell.declared.put_aggregate(second)).outcome is Outcome.OK
    assert await cell.declared.members("fast") == ["h2"]
    assert not await raw.hexists(cell.keys.host("h1"), "aggregate.fast"), (
        "a field for each that is, none for the others"
    )
    assert (await cell.declared.read(Kind.AGGREGATE, ["fast", "slow"])) == {
        "fast": {
            "version": str(version + 2),
            "meta.net": "200",
            "meta.trait:CUSTOM_X": "required",
            "hosts_digest": digest("h2"),
        }
    }
    assert await told(cell, seq) == [
        *[
            (
                "aggregate",
                "fast",
                "declared",
                0,
                {
                    "meta.net": "200",
                    "meta.trait:CUSTOM_X": "required",
                    "hosts_digest": writing("h2"),
                    "meta.disk": "",
                },
            )
        ],
        *[
            ("host", "h1", "membership", 2, {"aggregate.fast": ""}),
            ("host", "h2", "membership", 1, {"aggregate.fast": "1"}),
            ("aggregate", "fast", "membership", 0, {"hosts_digest": digest("h2")}),
        ],
    ]
    async with nothing_written(raw):
        assert (await cell.declared.put_aggregate(second)).outcome is Outcome.ALREADY_DONE


async def test_an_aggregate_may_be_nothing_but_a_name(cell: CellStore, raw: Any) -> None:
    assert (await cell.declared.put_aggregate(Aggregate("fast"))).outcome is Outcome.OK
    async with nothing_written(raw):
        assert (await cell.declared.put_aggregate(Aggregate("fast"))).outcome is Outcome.ALREADY_DONE
    assert await cell.declared.names(Kind.AGGREGATE) == ["fast"]
    assert (await cell.declared.delete_aggregate("fast")).outcome is Outcome.OK
    async with nothing_written(raw):
        assert (await cell.declared.delete_aggregate("fast")).outcome is Outcome.UNKNOWN


async def test_other_hosts_alone_are_a_change_of_the_declaration(cell: CellStore) -> None:
    """OK and not ALREADY_DONE, although the metadata are the same."""
    await open_host(cell, "h1")
    await cell.declared.put_aggregate(Aggregate("fast", {"disk": "ssd"}))
    seq = await seq_of(cell)
    assert (
        await cell.declared.put_aggregate(Aggregate("fast", {"disk": "ssd"}, frozenset({"h1"})))
    ).outcome is Outcome.OK
    assert await told(cell, seq) == [
        ("aggregate", "fast", "declared", 0, {"hosts_digest": writing("h1")}),
        ("host", "h1", "membership", 1, {"aggregate.fast": "1"}),
        ("aggregate", "fast", "membership", 0, {"hosts_digest": digest("h1")}),
    ]


async def test_an_aggregate_with_hosts_is_deleted_only_by_force_and_they_leave_it(cell: CellStore, raw: Any) -> None:
    for host in ("h1", "h2"):
        await open_host(cell, host)
    await cell.declared.put_aggregate(Aggregate("fast", {"disk": "ssd"}, frozenset({"h1"})))
    await cell.declared.put_aggregate(Aggregate("old", {}, frozenset({"h1", "h2"})))
    async with nothing_written(raw):
        held = await cell.declared.delete_aggregate("fast")
        assert (held.outcome, held.facts) == (Outcome.IN_USE, ("h1",))
    seq = await seq_of(cell)
    assert (await cell.declared.delete_aggregate("fast", force=True)).outcome is Outcome.OK
    assert await told(cell, seq) == [
        ("aggregate", "fast", "declared", 0, {"hosts_digest": writing("")}),
        ("host", "h1", "membership", 1, {"aggregate.fast": ""}),
        ("aggregate", "fast", "membership", 0, {"hosts_digest": digest("")}),
        ("aggregate", "fast", "removed", 0, {}),
    ]
    assert not await raw.exists(cell.keys.aggregate("fast"))
    assert await cell.declared.names(Kind.AGGREGATE) == ["old"]
    assert await cell.declared.members("old") == ["h1", "h2"], "another aggregate is not touched"


async def test_more_hosts_than_one_call_takes(cell: CellStore, raw: Any) -> None:
    """Each call takes some of the hosts; all of them are covered, and the unknown ones of every call are returned."""
    for number in range(CHUNK + 2):
        await raw.hset(cell.keys.host(f"h{number}"), "version", "1")
        await raw.zadd(cell.keys.hosts, {f"h{number}": 1})
    hosts = frozenset(f"h{number}" for number in range(CHUNK + 2))
    answer = await cell.declared.put_aggregate(Aggregate("all", {}, hosts | {"a-nowhere", "z-nowhere"}))
    assert (answer.outcome, answer.facts) == (Outcome.OK, ("a-nowhere", "z-nowhere"))
    assert await cell.declared.members("all") == sorted(hosts)
    assert (await cell.declared.delete_aggregate("all", force=True)).outcome is Outcome.OK
    assert await cell.declared.members("all") == []


async def test_a_report_leaves_a_host_in_its_aggregates_and_removing_it_does_not(cell: CellStore) -> None:
    await open_host(cell, "h1")
    await cell.declared.put_aggregate(Aggregate("fast", {}, frozenset({"h1"})))
    await cell.hosts.report(report_of("h1", VCPU=99))
    assert await cell.declared.members("fast") == ["h1"]
    await cell.hosts.forget("h1", force=True)
    await open_host(cell, "h1")
    assert await cell.declared.members("fast") == []


# Server groups


async def test_a_server_group_is_what_was_declared(cell: CellStore, raw: Any) -> None:
    seq = await seq_of(cell)
    assert (await cell.declared.put_group(APART)).outcome is Outcome.OK
    fields = {"policy": "anti-affinity", "by": "label:rack", "max_per_host": "2"}
    fields |= {"count_by.1": "label:row", "count_by.2": "zone"}
    assert await fields_of(raw, cell.keys.server_group("db")) == {"version": str(seq + 1), **fields}
    assert await told(cell, seq) == [("server-group", "db", "declared", 0, fields)]
    async with nothing_written(raw):
        assert (await cell.declared.put_group(APART)).outcome is Outcome.ALREADY_DONE


async def test_a_group_with_members_keeps_how_they_are_counted(cell: CellStore, raw: Any) -> None:
    """The number of members that may share a host can change, because that moves no claim."""
    await cell.declared.put_group(APART)
    counts = {"members": "1", "count.host=h1": "1", "count.label:rack=r4": "1"}
    await raw.hset(cell.keys.server_group("db"), mapping=counts)
    others = (
        AFFINE,
        ServerGroup("db", GroupPolicy.ANTI_AFFINITY, "zone", 2, APART.count_by),
        ServerGroup("db", GroupPolicy.ANTI_AFFINITY, "label:rack", 2, ("zone",)),
        ServerGroup("db", GroupPolicy.ANTI_AFFINITY, "label:rack", 2, (*APART.count_by, "label:hall")),
    )
    async with nothing_written(raw):
        for other in others:
            assert (await cell.declared.put_group(other)).outcome is Outcome.IN_USE
    more = ServerGroup("db", APART.policy, APART.by, 9, APART.count_by)
    assert (await cell.declared.put_group(more)).outcome is Outcome.OK
    after = await fields_of(raw, cell.keys.server_group("db"))
    assert after["max_per_host"] == "9"
    assert after.items() >= counts.items()
    await raw.hset(cell.keys.server_group("db"), "members", "0")
    assert (await cell.declared.put_group(AFFINE)).outcome is Outcome.OK


async def test_a_group_without_a_declaration_takes_any_and_keeps_its_counts(cell: CellStore, raw: Any) -> None:
    """After a loss of data, hosts restored their claims before an operator declared the group again."""
    counts = {"version": "7", "members": "2", "count.host=h1": "2"}
    await raw.hset(cell.keys.server_group("db"), mapping=counts)
    assert (await cell.declared.delete_group("db", force=True)).outcome is Outcome.UNKNOWN
    assert await cell.declared.names(Kind.SERVER_GROUP) == []
    assert (await cell.declared.put_group(AFFINE)).outcome is Outcome.OK
    declared = {"policy": "affinity", "by": "host", "max_per_host": "1"}
    assert await cell.declared.read(Kind.SERVER_GROUP, ["db"]) == {"db": counts | declared | {"version": "8"}}


async def test_a_group_is_declared_again_only_by_what_its_members_are_counted_by(cell: CellStore, raw: Any) -> None:
    """Otherwise a forced undeclare would bypass IN_USE, and a rule would ignore the existing members."""
    await cell.declared.put_group(APART)
    key = cell.keys.server_group("db")
    counts = {"members": "3", "count.host=h1": "3", "count.zone=az1": "3"}
    racks = {"count.label:rack=r1": "2", "count.label:rack=r2": "1", "count.label:row=x": "2"}
    await raw.hset(key, mapping=counts | racks)
    await cell.declared.delete_group("db", force=True)
    by_all = replace(APART, by="label:hall", count_by=("label:rack", "label:row", "zone", "host"))
    async with nothing_written(raw):
        held = await cell.declared.put_group(by_all)
        assert (held.outcome, set(held.facts)) == (Outcome.IN_USE, {"label:hall", "label:row"})
        again = await cell.declared.put_group(APART)
        assert (again.outcome, again.facts) == (Outcome.IN_USE, ("label:row",)), "one of its hosts has no such label"
    await raw.hset(key, "count.label:row=y", "1")
    assert (await cell.declared.put_group(APART)).outcome is Outcome.OK
    assert (await fields_of(raw, key)).items() >= (counts | racks).items()


async def test_a_group_with_members_is_deleted_only_by_force_and_what_it_counts_stays(
    cell: CellStore, raw: Any
) -> None:
    await cell.declared.put_group(AFFINE)
    await raw.hset(cell.keys.server_group("db"), mapping={"members": "2", "count.host=h1": "2"})
    version = int(await raw.hget(cell.keys.server_group("db"), "version"))
    async with nothing_written(raw):
        assert (await cell.declared.delete_group("db")).outcome is Outcome.IN_USE
    seq = await seq_of(cell)
    assert (await cell.declared.delete_group("db", force=True)).outcome is Outcome.OK
    kept = {"version": str(version + 1), "members": "2", "count.host=h1": "2"}
    assert await fields_of(raw, cell.keys.server_group("db")) == kept
    assert await told(cell, seq) == [("server-group", "db", "removed", 0, {})]
    assert await cell.declared.names(Kind.SERVER_GROUP) == []
    async with nothing_written(raw):
        assert (await cell.declared.delete_group("db", force=True)).outcome is Outcome.UNKNOWN


async def test_an_empty_group_is_deleted_without_a_trace(cell: CellStore, raw: Any) -> None:
    await cell.declared.put_group(AFFINE)
    await raw.hset(cell.keys.server_group("db"), "members", "0")
    assert (await cell.declared.delete_group("db")).outcome is Outcome.OK
    assert not await raw.exists(cell.keys.server_group("db"))
    assert not await raw.exists(cell.keys.server_groups)
    async with nothing_written(raw):
        assert (await cell.declared.delete_group("db")).outcome is Outcome.UNKNOWN


async def test_a_name_that_comes_back_is_newer_than_what_it_was(cell: CellStore, raw: Any) -> None:
    """A reader that missed the removal must not mistake the new group's entries for those of the former one."""
    for policy in (*GroupPolicy, *GroupPolicy):
        await cell.declared.put_group(ServerGroup("db", policy))
    before = int(await raw.hget(cell.keys.server_group("db"), "version"))
    await cell.declared.delete_group("db")
    await cell.declared.put_group(AFFINE)
    assert int(await raw.hget(cell.keys.server_group("db"), "version")) > before + 1


# Shared pools


async def test_a_shared_pool_is_its_inventories_traits_and_aggregates(cell: CellStore, raw: Any) -> None:
    seq = await seq_of(cell)
    assert (await cell.declared.put_pool(SEATS)).outcome is Outcome.OK
    fields = {
        "capacity.CUSTOM_SEAT": "18",
        "total.CUSTOM_SEAT": "10",
        "max.CUSTOM_SEAT": "6",
        "reserved.CUSTOM_SEAT": "1",
        "ratio.CUSTOM_SEAT": "2.0",
        "min.CUSTOM_SEAT": "2",
        "step.CUSTOM_SEAT": "2",
        "capacity.DISK_GB": "7",
        "total.DISK_GB": "7",
        "max.DISK_GB": "7",
        "reserved.DISK_GB": "0",
        "ratio.DISK_GB": "1.0",
        "trait.CUSTOM_FAST": "1",
        "aggregate.fast": "1",
    }
    assert await fields_of(raw, cell.keys.pool("lic")) == {"version": str(seq + 1), **fields}
    assert await told(cell, seq) == [("pool", "lic", "declared", 0, fields)]
    async with nothing_written(raw):
        assert (await cell.declared.put_pool(SEATS)).outcome is Outcome.ALREADY_DONE


async def test_what_is_claimed_of_a_pool_outlives_every_declaration(cell: CellStore, raw: Any) -> None:
    await cell.declared.put_pool(SEATS)
    await raw.hset(cell.keys.pool("lic"), "claimed.CUSTOM_SEAT", "4")
    smaller = SharedPool("lic", {"CUSTOM_SEAT": Inventory(3)})
    assert (await cell.declared.put_pool(smaller)).outcome is Outcome.OK
    after = await fields_of(raw, cell.keys.pool("lic"))
    assert (after["claimed.CUSTOM_SEAT"], after["capacity.CUSTOM_SEAT"]) == ("4", "3")
    assert after["over.CUSTOM_SEAT"] == "1", "it shrank: an audit can tell that from a claim that was one too many"
    assert not any(field.endswith("DISK_GB") or field.startswith(("trait.", "aggregate.")) for field in after)
    async with nothing_written(raw):
        assert (await cell.declared.put_pool(smaller)).outcome is Outcome.ALREADY_DONE
        assert (await cell.declared.delete_pool("lic")).outcome is Outcome.IN_USE
    assert (await cell.declared.delete_pool("lic", force=True)).outcome is Outcome.OK
    assert await cell.declared.names(Kind.POOL) == []
    assert (await cell.declared.put_pool(SEATS)).outcome is Outcome.OK
    after = await fields_of(raw, cell.keys.pool("lic"))
    assert (after["claimed.CUSTOM_SEAT"], after["capacity.CUSTOM_SEAT"]) == ("4", "18")
    assert "over.CUSTOM_SEAT" not in after


async def test_a_pool_of_which_nothing_is_claimed_is_deleted_without_a_trace(cell: CellStore, raw: Any) -> None:
    await cell.declared.put_pool(SEATS)
    await raw.hset(cell.keys.pool("lic"), "claimed.CUSTOM_SEAT", "0")
    seq = await seq_of(cell)
    assert (await cell.declared.delete_pool("lic")).outcome is Outcome.OK
    assert await told(cell, seq) == [("pool", "lic", "removed", 0, {})]
    assert not await raw.exists(cell.keys.pool("lic"), cell.keys.pools)
    async with nothing_written(raw):
        assert (await cell.declared.delete_pool("lic", force=True)).outcome is Outcome.UNKNOWN


# All of them


async def test_all_that_is_declared_is_read_by_its_kind(cell: CellStore) -> None:
    await cell.declared.put_aggregate(Aggregate("x", {"disk": "ssd"}))
    await cell.declared.put_group(ServerGroup("x", GroupPolicy.SOFT_AFFINITY))
    await cell.declared.put_pool(SharedPool("x", {"VCPU": Inventory(1)}))
    said = {Kind.AGGREGATE: "meta.disk", Kind.SERVER_GROUP: "policy", Kind.POOL: "capacity.VCPU"}
    for kind, field in said.items():
        assert await cell.declared.names(kind) == ["x"]
        [(name, fields)] = (await cell.declared.read(kind, ["nowhere", "x"])).items()
        assert (name, field in fields) == ("x", True)


@pytest.mark.parametrize("version", ["x", "-1", "", "9" * 17])
async def test_a_version_that_somebody_made_unreadable_starts_again(cell: CellStore, raw: Any, version: str) -> None:
    await cell.declared.put_group(AFFINE)
    await raw.hset(cell.keys.server_group("db"), "version", version)
    seq = await seq_of(cell)
    assert (await cell.declared.put_group(APART)).outcome is Outcome.OK
    assert await raw.hget(cell.keys.server_group("db"), "version") == str(seq + 1)


async def test_declaring_leaves_the_claims_of_hosts_alone(cell: CellStore, raw: Any) -> None:
    await open_host(cell, "h1")
    await claim_on(cell, "a", "h1")
    claim = dict(await fields_of(raw, cell.keys.claim("a")))
    await cell.declared.put_aggregate(Aggregate("fast", {}, frozenset({"h1"})))
    await cell.declared.delete_aggregate("fast", force=True)
    assert await fields_of(raw, cell.keys.claim("a")) == claim
    assert await raw.hget(cell.keys.host("h1"), "claimed.VCPU") == "1"
