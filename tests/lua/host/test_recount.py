"""report.lua: if the zone or a label of a host changes, groups count its members where they are now."""

from dataclasses import replace
from typing import Any

import pytest

from redsched.model import GroupPolicy, HostReport, Inventory
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ReleaseMode
from tests.support.builders.cells import HOUR_S
from tests.support.builders.counted_claims import ask, begin_move, causes, counts, given, group, joining, open_in

APART = GroupPolicy.ANTI_AFFINITY


def told(name: str, zone: str, **labels: str) -> HostReport:
    return HostReport(name, {"VCPU": Inventory(8)}, zone=zone, labels=labels, lease_s=HOUR_S)


@pytest.fixture
async def cell(cell: CellStore) -> CellStore:
    """h1 in az1 and rack r1, h2 in az2."""
    await open_in(cell, "h1", "az1", rack="r1")
    await open_in(cell, "h2", "az2")
    return cell


async def test_members_are_counted_in_the_zone_that_their_host_has_now(cell: CellStore, raw: Any) -> None:
    """So the next member of a group with anti-affinity by zone goes where the former one was, and to no zone of two."""
    await group(cell, policy=APART, by="zone")
    await given(cell, joining("a", "h1"))
    assert (await cell.hosts.report(told("h1", "az2"))).outcome is Outcome.OK
    assert await counts(raw, cell) == {"members": 1, "host=h1": 1, "zone=az2": 1}
    assert (await cell.claims.read("a"))["a"].counted == {"zone": "az2"}
    await open_in(cell, "h3", "az1")
    assert causes(await ask(cell, joining("b", "h2"))) == {"h2": "GROUP"}
    assert await given(cell, joining("b", "h2", "h3")) == ["h3"]


async def test_the_feed_has_the_counts_together_with_the_host(cell: CellStore) -> None:
    await group(cell)
    await given(cell, joining("a", "h1"), joining("b", "h1"))
    seq = (await cell.tick()).seq
    await cell.hosts.report(told("h1", "az2", rack="r1"))
    entries = [one for one in await cell.feed.read("0-0", 100) if one.seq > seq]
    assert [(one.kind, one.op, one.more) for one in entries] == [
        ("host", "report", 1),
        ("server-group", "recounted", 0),
    ]
    assert dict(entries[1].fields) == {"count.zone=az1": "", "count.zone=az2": "2"}


async def test_a_label_counts_if_the_group_counts_by_it(cell: CellStore, raw: Any) -> None:
    """One that is added, changed or removed; others, and reports without a change, write nothing of claims."""
    await group(cell, count_by=("label:rack",))
    await given(cell, joining("a", "h1"), joining("b", "h2"))
    await cell.hosts.report(told("h1", "az1", rack="r2", row="7"))
    await cell.hosts.report(told("h2", "az2", rack="r2"))
    both = {"members": 2, "host=h1": 1, "host=h2": 1, "zone=az1": 1, "zone=az2": 1}
    assert await counts(raw, cell) == {**both, "label:rack=r2": 2}
    await cell.hosts.report(told("h1", "az1"))
    assert await counts(raw, cell) == {**both, "label:rack=r2": 1}
    version = await raw.hget(cell.keys.server_group("web"), "version")
    await cell.hosts.report(told("h1", "az1", row="8"))
    assert await raw.hget(cell.keys.server_group("web"), "version") == version


async def test_only_the_placement_on_that_host_is_counted_anew(cell: CellStore, raw: Any) -> None:
    """While the claim moves, it has another one; both are counted out where they are."""
    first, second = await begin_move(cell)
    await cell.hosts.report(told("h2", "az3"))
    await cell.hosts.report(told("h1", "az4"))
    assert await counts(raw, cell) == {"members": 2, "host=h1": 1, "host=h2": 1, "zone=az4": 1, "zone=az3": 1}
    for _ in (first, second):
        await cell.claims.release("h1", "a", how=ReleaseMode.FORCE)
        await cell.claims.release("h2", "a", how=ReleaseMode.FORCE)
    assert await counts(raw, cell) == {"members": 0}


async def test_a_claim_that_joins_meanwhile_is_counted_once(cell: CellStore, raw: Any) -> None:
    """It joins between the script's refusal, which names the claims of the host, and the call that passes them."""
    await group(cell)
    await given(cell, joining("a", "h1"))
    run, late = cell.hosts._cell.run, ["b", "c"]

    async def with_another(script: str, *arguments: Any, **more: Any) -> Any:
        reply = await run(script, *arguments, **more)
        if script == "report" and reply[0] == Outcome.RETRY and late:
            await given(cell, joining(late.pop(), "h1"))
        return reply

    cell.hosts._cell.run = with_another  # type: ignore[method-assign]
    assert (await cell.hosts.report(told("h1", "az2"))).outcome is Outcome.OK
    assert not late
    assert await counts(raw, cell) == {"members": 3, "host=h1": 3, "zone=az2": 3}
    assert {one.counted["zone"] for one in (await cell.claims.read("abc")).values()} == {"az2"}


async def test_a_group_that_was_undeclared_by_force_counts_on(cell: CellStore, raw: Any) -> None:
    """By what it has counted each member by."""
    await group(cell, count_by=("label:rack",))
    await given(cell, joining("a", "h1"))
    await cell.declared.delete_group("web", force=True)
    await cell.hosts.report(told("h1", "az2", rack="r2"))
    assert await counts(raw, cell) == {"members": 1, "host=h1": 1, "zone=az2": 1, "label:rack=r2": 1}
    await group(cell, count_by=("label:rack",))


async def test_claims_without_a_group_are_left_alone(cell: CellStore, raw: Any) -> None:
    await given(cell, replace(joining("a", "h1"), group=""))
    before = await raw.hgetall(cell.keys.claim("a"))
    await cell.hosts.report(told("h1", "az2", rack="r2"))
    assert await raw.hgetall(cell.keys.claim("a")) == before


async def test_a_rule_that_a_change_of_zone_breaks_is_reported(cell: CellStore, raw: Any) -> None:
    """Once, with where the members are; nothing ends, and the mark goes when the rule holds again."""
    await group(cell, policy=APART, by="zone", count_by=("label:rack",))
    await given(cell, joining("a", "h1"), joining("b", "h2"))
    seq = (await cell.tick()).seq

    async def broken() -> list[str]:
        entries = [one for one in await cell.feed.read("0-0", 100) if one.seq > seq and one.op == "rule-broken"]
        assert {(one.kind, one.name) for one in entries} <= {("server-group", "web")}
        return [one.fields["reason"] for one in entries]

    await cell.hosts.report(told("h1", "az2"))
    why = "anti-affinity by zone allows at most 1 in each, but found 2 in az2"
    assert (await broken(), await raw.hget(cell.keys.server_group("web"), "broken")) == ([why], "1")
    await cell.hosts.report(told("h1", "az2", rack="r9"))
    assert (await counts(raw, cell))["label:rack=r9"] == 1, "the group was counted again"
    assert await broken() == [why]
    assert {one.state.value for one in (await cell.claims.read("ab")).values()} == {"claimed"}
    await cell.hosts.report(told("h1", "az1"))
    assert await raw.hget(cell.keys.server_group("web"), "broken") is None


async def test_a_member_whose_host_loses_the_label_is_reported(cell: CellStore) -> None:
    """The rule lets no member join there, because nobody knows which others it would be with."""
    await group(cell, policy=APART, by="label:rack")
    await given(cell, joining("a", "h1"))
    await cell.hosts.report(told("h1", "az1"))
    (entry,) = [one for one in await cell.feed.read("0-0", 100) if one.op == "rule-broken"]
    assert (
        entry.fields["reason"] == "anti-affinity by label:rack allows at most 1 in each, but found 1 in no label:rack"
    )


async def test_members_that_were_together_are_reported_when_they_are_apart(cell: CellStore, raw: Any) -> None:
    await open_in(cell, "h3", "az1")
    await group(cell, policy=GroupPolicy.AFFINITY, by="zone")
    await given(cell, joining("a", "h1"), joining("b", "h3"), joining("c", "h3"))
    await cell.hosts.report(told("h1", "az2"))
    (entry,) = [one for one in await cell.feed.read("0-0", 100) if one.op == "rule-broken"]
    assert entry.fields["reason"] == "affinity by zone, but members are split: 1 in az2, 2 in az1"
    assert causes(await ask(cell, joining("d", "h1", "h2", "h3"))) == dict.fromkeys(("h1", "h2", "h3"), "GROUP")
    await cell.hosts.report(told("h3", "az2"))
    assert await raw.hget(cell.keys.server_group("web"), "broken") is None
    await given(cell, joining("d", "h2"))
