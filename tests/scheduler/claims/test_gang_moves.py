"""Members of active gangs that are placed again keep their relations to the other members, wherever these are."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from redsched.errors import NoValidHost
from redsched.model import (
    Aggregate,
    Claim,
    ClaimStatus,
    GangMember,
    GroupPolicy,
    Relation,
    RelationType,
    Request,
)
from redsched.scheduler import Scheduler
from redsched.store.codec.claim_fields import request_name
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimReply
from tests.scheduler.working import QUICK, Work, at_work, empty
from tests.support.builders.cells import raw_client
from tests.support.builders.counted_claims import group
from tests.support.fleets.hosts import speak_all

APART, TOGETHER = RelationType.APART, RelationType.TOGETHER
SAME_ZONE, SAME_AGGREGATE = RelationType.SAME_ZONE, RelationType.SAME_AGGREGATE


def pair(*types: RelationType, **more: Any) -> Request:
    """Return a request for a gang of two equal members that are related in these ways."""
    relations = tuple(Relation(one, ("db",)) for one in types)
    return Request(members=(GangMember("db", Request({"VCPU": 2}, count=2, **more)),), relations=relations)


async def start(work: Work, request: Request, *ids: str) -> list[str]:
    """Select a gang and start its work; return the hosts of its claims."""
    found = await work.scheduler.select(replace(request, claim_ids=ids or ("one", "two")))
    await work.work()
    return [one.host for one in found.selections]


async def in_zones(work: Work, **zones: str) -> None:
    for host in work.hosts:
        host.report = replace(host.report, zone=zones.get(host.name, "az1"))
        await host.speak()
    await work.scheduler.cells.catch_up()


async def drain(work: Work, *hosts: str) -> None:
    for host in hosts:
        await work.scheduler.hosts.drain(host, move=True)


async def now(work: Work, *ids: str) -> dict[str, str]:
    """Return the host of each claim; all must be active with a single placement."""
    await work.settle()
    claims: list[Claim] = [await work.scheduler.claims.get(one) for one in ids or ("one", "two")]
    assert {one.state for one in claims} == {ClaimStatus.ACTIVE}
    assert {len(one.placements) for one in claims} == {1}
    await work.is_sound()
    return {one.claim_id: one.host for one in claims}


async def unmovable(work: Work, host: str) -> Mapping[str, str]:
    await work.sweep()
    return {one.claim_id: one.reason for one in (await work.scheduler.hosts.get(host)).unmovable}


async def test_a_member_leaves_a_drained_host_for_one_that_keeps_its_relations(clean_store: str) -> None:
    """The hosts with more capacity are in another zone, or run the other member."""
    async with at_work(clean_store, 10, 9, 2, 8) as work:
        await in_zones(work, h3="az2")
        assert await start(work, pair(APART, SAME_ZONE)) == ["h0", "h1"]
        await drain(work, "h0")
        await empty(work, "h0")
        assert await now(work) == {"one": "h2", "two": "h1"}


async def test_a_member_that_no_host_takes_apart_from_the_others_stays_and_says_so(clean_store: str) -> None:
    """Only the host of the other member has capacity."""
    async with at_work(clean_store, 10, 9, 1) as work:
        assert await start(work, pair(APART)) == ["h0", "h1"]
        await drain(work, "h0")
        [(claim_id, reason)] = (await unmovable(work, "h0")).items()
        assert claim_id == "one"
        assert reason.endswith("; the relations of its gang must hold: apart with two (h1)")
        assert await now(work) == {"one": "h0", "two": "h1"}


async def test_a_member_whose_zone_has_no_other_host_stays_and_says_which_relation(clean_store: str) -> None:
    """Only a host of another zone has capacity."""
    async with at_work(clean_store, 3, 3, 9) as work:
        await in_zones(work, h2="az2")
        request = pair(SAME_ZONE, zones=frozenset({"az1", "az2"}))
        await work.scheduler.hosts.disable("h2")
        assert await start(work, request) == ["h0", "h1"]
        await work.scheduler.hosts.enable("h2")
        await drain(work, "h0")
        [(claim_id, reason)] = (await unmovable(work, "h0")).items()
        assert claim_id == "one"
        assert reason.endswith("; the relations of its gang must hold: same-zone with two (h1)")
        assert await now(work) == {"one": "h0", "two": "h1"}


async def test_relations_go_by_the_zones_that_hosts_have_now(clean_store: str) -> None:
    """The other member's host has come into another zone: the member that moves follows it there."""
    async with at_work(clean_store, 3, 3, 9, 2) as work:
        await in_zones(work, h2="az3", h3="az2")
        request = pair(SAME_ZONE, APART, zones=frozenset({"az1", "az2"}))
        assert await start(work, request) == ["h0", "h1"]
        await in_zones(work, h1="az2", h2="az1", h3="az2")
        await drain(work, "h0")
        await empty(work, "h0")
        assert await now(work) == {"one": "h3", "two": "h1"}


async def test_members_apart_on_two_hosts_drained_at_once_never_meet(clean_store: str) -> None:
    """Three schedulers move them, and one host has capacity for both."""
    async with (
        at_work(clean_store, 10, 10, 9, 2, 2) as work,
        Scheduler.connect(clean_store, QUICK),
        Scheduler.connect(clean_store, QUICK),
    ):
        assert sorted(await start(work, pair(APART))) == ["h0", "h1"]
        await drain(work, "h0", "h1")
        await empty(work, "h0")
        await empty(work, "h1")
        hosts = (await now(work)).values()
        assert len(set(hosts)) == 2
        assert not {"h0", "h1"} & set(hosts)


async def test_a_member_that_moves_in_between_is_not_met(clean_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store refuses a target that was chosen before the other member moved there, and another one is chosen."""
    async with at_work(clean_store, 10, 9, 8, 3) as work:
        assert await start(work, pair(APART)) == ["h0", "h1"]
        cell, answers = work.scheduler.cells.named("c1"), list[ClaimReply]()
        overtaking = list[bool]()
        ask = cell.store.claims.place

        async def overtaken(call: Any) -> ClaimReply:
            if not overtaking:
                overtaking.append(True)
                other = await work.scheduler.claims.get("two")
                await work.scheduler.claims.move("two", other.token, ["h2"])
            answers.append(await ask(call))
            return answers[-1]

        monkeypatch.setattr(cell.store.claims, "place", overtaken)
        claim = await work.scheduler.claims.get("one")
        await work.scheduler.claims.move("one", claim.token)
        assert [one.outcome for one in answers] == [Outcome.OK, Outcome.RETRY, Outcome.OK]
        assert await now(work) == {"one": "h3", "two": "h2"}


async def test_members_that_must_share_a_host_leave_it_together(clean_store: str) -> None:
    """They also stay apart from a member that does not move, although its host has more capacity."""
    async with at_work(clean_store, 10, 9, 6, 2) as work:
        members = (
            GangMember("db", Request({"VCPU": 2}, count=2)),
            GangMember("web", Request({"VCPU": 3}, hosts=frozenset({"h1"}))),
            GangMember("app", Request({"VCPU": 1})),
        )
        request = Request(
            members=members,
            relations=(Relation(TOGETHER, ("db", "app")), Relation(APART, ("app", "web"))),
        )
        assert await start(work, request, "one", "two", "web", "app") == ["h0", "h0", "h1", "h0"]
        await drain(work, "h0")
        await empty(work, "h0")
        assert await now(work, "one", "two", "web", "app") == {"one": "h2", "two": "h2", "web": "h1", "app": "h2"}


async def test_members_that_must_share_a_host_stay_where_no_other_has_room_for_all(clean_store: str) -> None:
    async with at_work(clean_store, 4, 3, 3) as work:
        assert await start(work, pair(TOGETHER)) == ["h0", "h0"]
        await drain(work, "h0")
        found = await unmovable(work, "h0")
        assert sorted(found) == ["one", "two"]
        assert all(one.startswith("gang of one, two (together) moves as a whole") for one in found.values()), found
        assert await now(work) == {"one": "h0", "two": "h0"}


async def test_a_zone_that_is_drained_is_left_for_one_zone(clean_store: str) -> None:
    """The members move to two hosts of that zone, since they must be apart."""
    async with at_work(clean_store, 10, 10, 9, 4, 4) as work:
        await in_zones(work, h2="az2", h3="az3", h4="az3")
        assert sorted(await start(work, pair(SAME_ZONE, APART))) == ["h0", "h1"]
        await drain(work, "h0", "h1")
        await empty(work, "h0")
        await empty(work, "h1")
        assert sorted((await now(work)).values()) == ["h3", "h4"]


async def test_an_aggregate_that_is_shared_is_kept(clean_store: str) -> None:
    async with at_work(clean_store, 10, 9, 8, 2) as work:
        await work.scheduler.aggregates.put(Aggregate("near", {}, frozenset({"h0", "h1", "h3"})))
        assert await start(work, pair(APART, SAME_AGGREGATE)) == ["h0", "h1"]
        await drain(work, "h0")
        await empty(work, "h0")
        assert await now(work) == {"one": "h3", "two": "h1"}


async def test_a_member_of_a_dead_host_is_evacuated_with_its_relations(clean_store: str) -> None:
    async with at_work(clean_store, 10, 9, 2, 8) as work:
        await in_zones(work, h3="az2")
        assert await start(work, pair(APART, SAME_ZONE)) == ["h0", "h1"]
        work.hosts.pop(0)
        await work.scheduler.hosts.write_off("h0", evacuate=True, force=True)
        assert await now(work) == {"one": "h2", "two": "h1"}


async def test_members_on_two_dead_hosts_do_not_hold_each_other_there(clean_store: str) -> None:
    """No host of their zone is left. One moves to another zone; the other follows, though a third has more capacity."""
    async with at_work(clean_store, 10, 10, 5, 2, 4) as work:
        await in_zones(work, h2="az2", h3="az2", h4="az3")
        assert sorted(await start(work, pair(SAME_ZONE))) == ["h0", "h1"]
        del work.hosts[:2]
        for host in ("h0", "h1"):
            await work.store.hosts.write_off(host, evacuate=True, force=True)
        assert await now(work) == {"one": "h2", "two": "h2"}


async def test_relations_outlast_a_wipe(clean_store: str) -> None:
    """Hosts restore the relations of a gang together with its claims."""
    async with at_work(clean_store, 10, 9, 2, 8) as work, raw_client(clean_store) as raw:
        await in_zones(work, h3="az2")
        request = pair(APART, SAME_ZONE)
        assert await start(work, request) == ["h0", "h1"]
        await raw.flushdb()
        await speak_all(work.hosts)
        await work.store.texts.restore(request_name(request.digest()), request.canonical())
        await raw.hset(work.store.keys.meta, "settle_at_ms", 1)
        await work.settle()
        assert await raw.hget(work.store.keys.claim("one"), "gang_members") == "db=one,two"
        await drain(work, "h0")
        await empty(work, "h0")
        assert await now(work) == {"one": "h2", "two": "h1"}


async def test_a_member_is_unshelved_where_its_relations_allow(clean_store: str) -> None:
    async with at_work(clean_store, 10, 9) as work:
        assert await start(work, pair(APART)) == ["h0", "h1"]
        claim = await work.scheduler.claims.get("one")
        await work.scheduler.claims.shelve("one", claim.token)
        await work.settle()
        await work.scheduler.select(Request({"VCPU": 9}, hosts=frozenset({"h0"})))
        with pytest.raises(NoValidHost, match=r"apart with two \(h1\)"):
            await work.scheduler.claims.unshelve("one")


async def test_members_of_one_kind_are_distinguished(clean_store: str) -> None:
    """Equal members may differ in their relations, so each claim records which member it belongs to."""
    async with at_work(clean_store, 10, 9, 8) as work:
        alike = Request({"VCPU": 2})
        request = Request(
            members=(
                GangMember("free", alike),
                GangMember("a", replace(alike, exclude_hosts=frozenset({"h9"}))),
                GangMember("b", alike),
            ),
            relations=(Relation(APART, ("a", "b")),),
        )
        hosts = await start(work, request, "free", "a", "b")
        claims = work.scheduler.claims
        with pytest.raises(NoValidHost, match="apart with b"):
            await claims.move("a", (await claims.get("a")).token, [hosts[2]])
        elsewhere = {"h0", "h1", "h2"} - {hosts[0]}
        for host in sorted(elsewhere):
            found = await claims.move("free", (await claims.get("free")).token, [host])
            assert found.host == host
            await work.settle()


async def test_members_of_a_hard_affinity_group_keep_their_relations_as_it_moves(clean_store: str) -> None:
    """The group moves to one zone, and its members, which must be apart, to two hosts."""
    async with at_work(clean_store, 10, 10, 9, 4, 4) as work:
        await in_zones(work, h2="az2", h3="az3", h4="az3")
        await group(work.store, policy=GroupPolicy.AFFINITY, by="zone")
        assert sorted(await start(work, pair(APART, server_group="web"))) == ["h0", "h1"]
        await drain(work, "h0", "h1")
        await empty(work, "h0")
        await empty(work, "h1")
        assert sorted((await now(work)).values()) == ["h3", "h4"]
