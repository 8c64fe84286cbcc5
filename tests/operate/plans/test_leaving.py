"""Hosts that leave: what the plan says is what a drain and an evacuation then do; and N+1."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from redsched.errors import InvalidRequest, NotFound, TooHard
from redsched.model import (
    ClaimStatus,
    GangMember,
    GroupPolicy,
    Hints,
    OnExit,
    Relation,
    RelationType,
    Request,
    ServerGroup,
)
from redsched.model.records.hosts import UnmovableClaim
from redsched.model.records.plans import LeavingPlan
from redsched.operate.backup.archive import Archive
from redsched.operate.plans import leaving, merging
from redsched.operate.plans.questions import LeavingQuestion
from tests.operate.plans.parts import Plans, archive, claim, copy, host
from tests.scheduler.working import Work, at_work
from tests.support.builders.counted_claims import group

ON = {"h0": frozenset({"h0"}), "h1": frozenset({"h1"}), "h2": frozenset({"h2"})}


def goes_to(plan: LeavingPlan) -> Mapping[str, str]:
    return {one.claim_id: one.target for one in plan.moves}


async def only_on(work: Work, *open_hosts: str) -> None:
    """Let only these hosts take claims."""
    for one in work.hosts:
        hosts = work.scheduler.hosts
        await (hosts.enable if one.name in open_hosts else hosts.disable)(one.name)


async def test_a_drain_does_what_the_plan_said(clean_store: str) -> None:
    """Each claim goes where it was said to go, and the one that was said to stay stays, for the same reason."""
    async with at_work(clean_store, 16, 8, 8) as work:
        await group(work.store, policy=GroupPolicy.ANTI_AFFINITY)
        near = {"large": "h1", "small": "h2", "apart": "h1", "bound": "h0"}
        await work.active(Request({"VCPU": 1}, server_group="web", claim_ids=("other",), hosts=ON["h2"]), host=2)
        for name, target in near.items():
            grouped = "web" if name == "apart" else ""
            size = 4 if name == "large" else 1
            hosts = ON["h0"] | (ON["h1"] | ON["h2"] if grouped else ON[target])
            request = Request({"VCPU": size}, server_group=grouped, hosts=hosts, weights={}, claim_ids=(name,))
            await only_on(work, "h0")
            await work.active(request)
        await only_on(work, "h0", "h1", "h2")
        plan = await work.scheduler.plans.drain(["h0"])
        assert goes_to(plan) == {"large": "h1", "small": "h2", "apart": "h1"}
        [stays] = plan.unplaced
        assert (stays.claim_id, stays.host) == ("bound", "h0")
        assert await work.held() == {"h0": ["apart", "bound", "large", "small"], "h2": ["other"]}
        await work.scheduler.hosts.drain("h0", move=True)
        await work.settle()
        view = await work.scheduler.hosts.get("h0")
        assert view.unmovable == (UnmovableClaim("bound", stays.reason),)
        for name, target in goes_to(plan).items():
            now = await work.scheduler.claims.get(name)
            assert (now.host, now.state) == (target, ClaimStatus.ACTIVE)


async def test_an_evacuation_does_what_the_plan_said(clean_store: str) -> None:
    """Both find a place only because the larger one is placed first; the one that is bound to the host is left."""
    async with at_work(clean_store, 9, 4, 3) as work:
        await only_on(work, "h0")
        for name, size in (("a", 3), ("b", 4)):
            await work.active(Request({"VCPU": size}, claim_ids=(name,), policy="pack"))
        await work.active(Request({"VCPU": 1}, hosts=ON["h0"], claim_ids=("bound",)))
        await only_on(work, "h0", "h1", "h2")
        plan = await work.scheduler.plans.without(["h0"])
        assert (goes_to(plan), [one.claim_id for one in plan.unplaced]) == ({"a": "h2", "b": "h1"}, ["bound"])
        [vcpu] = plan.classes
        assert (vcpu.capacity, vcpu.free, vcpu.after) == (16, 8, 0)
        dead = work.hosts.pop(0)
        await work.scheduler.hosts.write_off(dead.name, evacuate=True, force=True)
        await work.settle()
        assert await work.held() == {"h1": ["b"], "h2": ["a"]}
        assert await work.store.hosts.claim_ids("h0") == {"bound"}


def test_a_group_that_must_stay_together_leaves_as_a_whole() -> None:
    together = ServerGroup("db", GroupPolicy.AFFINITY)
    member = Request({"VCPU": 2}, server_group="db")
    fleet = [host("a", VCPU=8), host("b", VCPU=3), host("c", VCPU=8)]
    one = archive(fleet, {"db-1": ("a", member), "db-2": ("a", member)}, groups=(together,))
    assert goes_to(Plans(one).drain(["a"])) == {"db-1": "c", "db-2": "c"}
    narrow = archive(fleet[:2], {"db-1": ("a", member), "db-2": ("a", member)}, groups=(together,))
    found = Plans(narrow).drain(["a"])
    assert goes_to(found) == {}
    assert [one.claim_id for one in found.unplaced] == ["db-1", "db-2"]
    assert "moves as a whole, 2 members" in found.unplaced[0].reason


def test_a_claim_that_leaves_later_with_its_group_is_not_unplaced() -> None:
    """Alone it has no place while the one that it follows is still there."""
    group_of_two = ServerGroup("db", GroupPolicy.AFFINITY)
    follows = Request({"VCPU": 3}, server_group="db", hints=Hints(same_host=frozenset({"lead"})))
    claims = {
        "follows": ("a", follows),
        "lead": ("a", Request({"VCPU": 2})),
        "last": ("a", Request({"VCPU": 1}, server_group="db")),
    }
    found = Plans(archive([host("a", VCPU=8), host("b", VCPU=8)], claims, groups=(group_of_two,))).drain(["a"])
    assert goes_to(found) == {"lead": "b", "last": "b", "follows": "b"}
    assert found.unplaced == ()


def test_the_relations_of_a_gang_hold() -> None:
    members = tuple(GangMember(name, Request({"VCPU": 2})) for name in ("db", "web"))
    gang = Request(members=members, relations=(Relation(RelationType.APART, ("db", "web")),))
    fleet = [host("a", VCPU=8), host("b", VCPU=8)]
    ids = "db=db-1 web=web-1"
    others = {
        name: claim(where, gang, number, {"VCPU": 2}, gang_members=ids)
        for number, (name, where) in enumerate((("db-1", "a"), ("web-1", "b")), 1)
    }
    found = Plans(archive(fleet, others=others, requests=(gang,))).drain(["a"])
    assert found.moves == ()
    assert "the relations of its gang must hold" in found.unplaced[0].reason


def gang_on_a_and_b(gang_on_exit: str, *free: str) -> Archive:
    """Return an exported cell with a gang on a and b, each of which it nearly fills."""
    gang = Request({"VCPU": 6}, count=2, on_exit=OnExit.REPLACE)
    others = {
        f"g-{number}": claim(on, gang, number + 1, gang_members="=g-0,g-1", gang_on_exit=gang_on_exit)
        for number, on in enumerate("ab")
    }
    fleet = [host(name, VCPU=8) for name in ("a", "b", *free)]
    return archive(fleet, others=others, requests=(gang,))


def without_a(gang_on_exit: str, *free: str) -> LeavingPlan:
    """Return what happens to the gang if a dies."""
    return Plans(gang_on_a_and_b(gang_on_exit, *free)).without(["a"])


def test_a_gang_that_restarts_as_a_whole_is_placed_as_a_whole() -> None:
    """Also on the room that its other members leave; one that keeps them needs room for the lost one only."""
    assert goes_to(without_a("keep", "c")) == {"g-0": "c"}
    moved = goes_to(without_a("replace", "c"))
    assert (sorted(moved), sorted(moved.values())) == (["g-0", "g-1"], ["b", "c"])
    found = without_a("replace")
    assert (found.moves, [one.claim_id for one in found.unplaced]) == ((), ["g-0"])
    assert "gang of g-0, g-1 is placed again as a whole, 2 members: none of 2 hosts" in found.unplaced[0].reason


@pytest.mark.parametrize("gang_on_exit", ["keep", "replace"])
def test_a_lost_gang_gets_what_is_kept_for_a_request_that_waits(gang_on_exit: str) -> None:
    found = copy(gang_on_a_and_b(gang_on_exit, "c"))
    found.columns.patch("c", {"reservation": "r", "kept.VCPU": "8"})
    assert "c" in goes_to(leaving.without(found, ["a"])).values()


def test_the_rest_of_a_gang_that_ends_with_a_member_is_told() -> None:
    [ends] = without_a("release", "c").unplaced
    assert ends.claim_id == "g-0"
    assert ends.reason == "it ends, and all of its gang is released: its gang_on_exit is release"


def test_what_may_not_be_moved_is_named_with_its_reason() -> None:
    """A claim without a known request, one that its host made, and a gang that is not active yet."""
    one = Request({"VCPU": 1})
    others = {
        "unknown": claim("a", Request({"VCPU": 2}), 1),
        "early": claim("a", one, 2, gang="early", state="claimed"),
        "ending": claim("a", one, 3, state="ending", end_reason="released"),
    }
    found = Plans(archive([host("a", VCPU=8), host("b", VCPU=8)], others=others, requests=(one,))).drain(["a"])
    reasons = {one.claim_id: one.reason for one in found.unplaced}
    assert reasons.keys() == {"unknown", "early"}
    assert "request of claim unknown is not known" in reasons["unknown"]
    assert "gang that is not active yet" in reasons["early"]


def test_without_any_one_zone_or_rack() -> None:
    """Claims of one rack do not fit elsewhere. The copy is as before, so the next is tried on the whole fleet."""
    fleet = [
        host("a", rack="r1", VCPU=8),
        host("b", rack="r2", VCPU=8),
        host("c", rack="r2", VCPU=2),
        host("d", VCPU=1),
    ]
    claims = {name: (where, Request({"VCPU": 4})) for name, where in (("one", "a"), ("two", "b"), ("three", "b"))}
    found = Plans(archive(fleet, claims)).capacity(Request({"VCPU": 1}), "label:rack").redundancy
    assert found is not None
    assert (found.checked, found.unchecked, found.unlabelled) == (2, 0, 1)
    [r1, r2] = found.failing
    assert (r1.domain, r1.claims, [one.claim_id for one in r1.examples]) == ("r1", 1, ["one"])
    assert (r2.domain, r2.hosts, r2.claims, r2.unplaced) == ("r2", 2, 2, 1)
    by_host = Plans(archive(fleet, claims)).capacity(Request({"VCPU": 1}), "host").redundancy
    assert by_host is not None
    assert [one.domain for one in by_host.failing] == ["a", "b"]


def test_an_answer_names_the_worst_and_counts_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaving, "FAILING", 3)
    monkeypatch.setattr(leaving, "ALL_EXAMPLES", 4)
    fleet = [host(name, VCPU=8) for name in "abcd"]
    held = {
        f"{name}{n}": (name, Request({"VCPU": 1}, hosts=frozenset({name})))
        for name, many in (("a", 1), ("b", 3), ("c", 2), ("d", 1))
        for n in range(many)
    }
    found = Plans(archive(fleet, held)).capacity(Request({"VCPU": 1}), "host").redundancy
    assert found is not None
    assert (found.checked, found.failed) == (4, 4)
    shown = [(one.domain, one.unplaced, len(one.examples)) for one in found.failing]
    assert shown == [("b", 3, 3), ("c", 2, 1), ("a", 1, 0)]
    both = merging._redundancy([found, found])
    assert both is not None
    assert (both.failed, [one.domain for one in both.failing]) == (8, ["b", "b", "c"])


def test_the_largest_claims_are_placed_first() -> None:
    """The smaller one would rather go to the host that only the larger one needs."""
    fleet = [host("a", VCPU=7), host("b", VCPU=4), host("c", VCPU=3)]
    claims = {"first": ("a", Request({"VCPU": 3}, policy="spread")), "second": ("a", Request({"VCPU": 4}))}
    for plan in (Plans(archive(fleet, claims)).without(["a"]), Plans(archive(fleet, claims)).drain(["a"])):
        assert goes_to(plan) == {"second": "b", "first": "c"}


def test_a_plan_changes_nothing_of_its_copy() -> None:
    fleet = [host("a", VCPU=8, zone="az1"), host("b", VCPU=8)]
    one = copy(archive(fleet, {"x": ("a", Request({"VCPU": 2}))}))
    before = {name: one.columns.claimed[name].tolist() for name in one.columns.claimed}
    first = LeavingQuestion(["a"], gone=True)(one)
    assert LeavingQuestion(["a"], gone=True)(one) == first
    assert {name: one.columns.claimed[name].tolist() for name in one.columns.claimed} == before
    assert [claim.host for claim in one.claims.values()] == ["a"]


async def test_unknown_hosts_are_refused(clean_store: str) -> None:
    async with at_work(clean_store, 8) as work:
        with pytest.raises(NotFound, match="no host 'h9'"):
            await work.scheduler.plans.drain(["h9"])
        with pytest.raises(InvalidRequest, match="no hosts are given"):
            await work.scheduler.plans.without([])


def test_a_plan_that_takes_too_long_is_refused() -> None:
    one = archive([host("a", VCPU=8)], {"x": ("a", Request({"VCPU": 2}))})
    with pytest.raises(TooHard, match=r"not complete within .* on 1 hosts and 1 claims: .*--budget"):
        replace(Plans(one), limit_s=0.0).drain(["a"])
