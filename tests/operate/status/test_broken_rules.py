"""Rules of server groups that hosts break by a change of their zone: a problem of the status, and an event."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from redsched.cache.fleet import fleet_steps
from redsched.decide.steps import finished
from redsched.model import GroupPolicy, Request, ServerGroup
from redsched.model.records.status import StatusProblem
from redsched.operate.observe.recorder import Recorder
from redsched.operate.status.broken_rules import MAX_GROUPS
from redsched.settings import Settings
from redsched.store.codec.keys import Kind
from tests.scheduler.working import Work, at_work
from tests.support.builders.cells import raw_client

KIND = "rule-broken"


@pytest.fixture
async def work(clean_store: str) -> AsyncIterator[Work]:
    """Yield hosts h0 to h2, each in a zone of its own."""
    async with at_work(clean_store, 8, 8, 8) as found:
        for host in range(3):
            await move_to(found, host, f"az{host}")
        yield found


async def move_to(work: Work, host: int, zone: str) -> None:
    """Let a host report another zone."""
    work.hosts[host].report = replace(work.hosts[host].report, zone=zone)
    await work.hosts[host].speak()


async def members(work: Work, policy: GroupPolicy, *hosts: str, by: str = "zone") -> None:
    """Declare the group `web`, and place a member on each of these hosts: `web-h0` ..."""
    await work.scheduler.server_groups.put(ServerGroup("web", policy, by))
    for host in hosts:
        only = frozenset({host})
        request = Request({"VCPU": 1}, hosts=only, server_group="web", claim_ids=(f"web-{host}",))
        await work.active(request, int(host[1:]))


async def broken(work: Work) -> list[StatusProblem]:
    """Return the problems of this kind in the status."""
    return [one for one in (await work.scheduler.status()).problems if one.kind == KIND]


async def figure(work: Work) -> int:
    """Return how many groups are broken by the metrics."""
    await work.scheduler.cells.catch_up()
    return finished(fleet_steps(work.scheduler.cells.named("c1").updater.columns)).broken_groups


async def test_members_that_share_a_zone_are_a_problem_until_the_rule_holds_again(work: Work) -> None:
    """It names the group, the members, the zone and what to do; an event has it, and nothing ends."""
    await members(work, GroupPolicy.ANTI_AFFINITY, "h0", "h1")
    assert await broken(work) == []
    assert await figure(work) == 0
    await move_to(work, 1, "az0")
    assert await figure(work) == 1
    [problem] = await broken(work)
    assert problem.detail == (
        "1 server group has members where its rule does not allow them: "
        "web, anti-affinity by zone: found 2 in az0, at most 1 allowed in each (web-h0, web-h1)"
    )
    assert (problem.about, problem.count) == (("web",), 1)
    assert problem.commands == ("redsched server-group show web", "redsched claim move web-h0")
    await Recorder(work.store, Settings()).record()
    [event] = [one for one in await work.scheduler.events.newest() if one.kind == KIND]
    assert event.facts["thing"] == "server-group:web"
    assert event.facts["reason"] == "anti-affinity by zone allows at most 1 in each, but found 2 in az0"
    assert (await work.scheduler.audit()).broken == ()
    await move_to(work, 1, "az1")
    assert (await broken(work), await figure(work)) == ([], 0)


async def test_a_problem_ends_with_the_member_that_is_one_too_many(work: Work) -> None:
    """Also while its host still stops the work."""
    await members(work, GroupPolicy.ANTI_AFFINITY, "h0", "h1")
    await move_to(work, 1, "az0")
    assert await broken(work)
    await work.scheduler.claims.release("web-h1")
    assert await broken(work) == []


async def test_marks_of_rules_that_hold_again_hide_no_broken_one(work: Work, clean_store: str) -> None:
    """A mark stays when the member that was one too many ends."""
    await members(work, GroupPolicy.ANTI_AFFINITY, "h0", "h1")
    await move_to(work, 1, "az0")
    async with raw_client(clean_store) as raw:
        for number in range(MAX_GROUPS):
            former = ServerGroup(f"former-{number}", GroupPolicy.ANTI_AFFINITY, "zone")
            await work.scheduler.server_groups.put(former)
            await raw.hset(work.store.keys.server_group(former.name), "broken", "1")
    assert [one.about for one in await broken(work)] == [("web",)]


async def test_members_that_are_no_longer_together_are_a_problem(work: Work) -> None:
    """Those that are not where most are, are named."""
    await move_to(work, 1, "az0")
    await members(work, GroupPolicy.AFFINITY, "h0", "h1")
    await work.active(Request({"VCPU": 1}, hosts=frozenset({"h0"}), server_group="web", claim_ids=("web-2",)))
    await move_to(work, 1, "az1")
    [problem] = await broken(work)
    assert problem.detail.endswith("web, affinity by zone: members are split: 2 in az0, 1 in az1 (web-h1)")


async def test_soft_policies_are_never_broken(work: Work) -> None:
    await members(work, GroupPolicy.SOFT_ANTI_AFFINITY, "h0", "h1")
    await move_to(work, 1, "az0")
    assert (await broken(work), await figure(work)) == ([], 0)


async def test_a_lower_limit_than_members_share_is_a_problem(work: Work) -> None:
    two = ServerGroup("web", GroupPolicy.ANTI_AFFINITY, "zone", 2)
    await work.scheduler.server_groups.put(two)
    for one in ("a", "b"):
        await work.active(Request({"VCPU": 1}, hosts=frozenset({"h0"}), server_group="web", claim_ids=(one,)))
    assert await broken(work) == []
    await work.scheduler.server_groups.put(replace(two, max_per_host=1))
    [problem] = await broken(work)
    assert "found 2 in az0, at most 1 allowed in each (a, b)" in problem.detail


async def test_the_next_claim_goes_by_where_members_are_now(work: Work) -> None:
    """In the replica and in the script: the zone that the member has left is free, its present one is not."""
    await members(work, GroupPolicy.ANTI_AFFINITY, "h0")
    await move_to(work, 0, "az1")
    await move_to(work, 2, "az0")
    await work.active(Request({"VCPU": 1}, server_group="web", claim_ids=("next",)), 2)
    state = work.scheduler.cells.named("c1").updater.columns.declared.groups["web"]
    assert dict(state.counts("zone")) == {"az0": 1, "az1": 1}


async def test_an_audit_lists_rules_that_are_broken(work: Work) -> None:
    """As no problem of the store: nothing is repaired, and nothing ends."""
    await members(work, GroupPolicy.ANTI_AFFINITY, "h0", "h1")
    await move_to(work, 1, "az0")
    report = await work.scheduler.repair()
    assert (report.problems, report.broken_rules) == (
        (),
        ("web, anti-affinity by zone: found 2 in az0, at most 1 allowed in each",),
    )
    assert await work.held() == {"h0": ["web-h0"], "h1": ["web-h1"]}


async def test_a_claim_that_moves_breaks_no_rule(work: Work, clean_store: str) -> None:
    """It counts at both places until it is active at the new one: members of an affinity group seem to be apart."""
    await work.scheduler.server_groups.put(ServerGroup("web", GroupPolicy.AFFINITY, "zone"))
    beside = frozenset({"h2"})  # so that it starts on h0
    claim = await work.active(Request({"VCPU": 1}, server_group="web", claim_ids=("web",), exclude_hosts=beside))
    await work.scheduler.claims.move("web", claim.token, hosts=frozenset({"h1"}))
    state = (await work.store.declared.read(Kind.SERVER_GROUP, ["web"]))["web"]
    assert (state["count.zone=az0"], state["count.zone=az1"]) == ("1", "1")
    assert (await work.scheduler.audit()).broken_rules == ()
    async with raw_client(clean_store) as raw:
        await raw.hset(work.store.keys.server_group("web"), "broken", "1")
    assert await broken(work) == []
