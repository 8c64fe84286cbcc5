"""Gangs: the hosts of members, relations and spreading, the rules for the claim script, and refusals."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

from redsched.cache.columns import Columns
from redsched.decide.decider import Decider
from redsched.decide.gang import Kind, requests_of
from redsched.decide.gang.queue import CachedQueue, make_queue
from redsched.decide.gang.repair import Repair
from redsched.decide.gang.search import Search
from redsched.decide.gang.state import GangState
from redsched.decide.overlay import Overlay
from redsched.decide.profile import RequestProfile
from redsched.decide.result import Decision
from redsched.errors import InvalidRequest
from redsched.model import (
    Amounts,
    Candidate,
    ClaimRule,
    GangMember,
    Group,
    ReasonCount,
    Relation,
    RelationType,
    Request,
    RuleKind,
    Spread,
)
from redsched.settings import Settings
from tests.support.builders.decisions import hosts_of

DEFAULTS = Settings()
ENABLED = {"version": "1", "epoch": "1-a", "status": "enabled", "alive": "1"}


def fleet(*capacities: int, **more: tuple[str, ...]) -> Columns:
    """Return hosts h0, h1, ... with this much VCPU; each further field has a value per host ('' for none)."""
    columns = Columns()
    columns.set_epoch("1-a")
    for number, capacity in enumerate(capacities):
        given = {name.replace("__", "."): values[number] for name, values in more.items() if values[number]}
        columns.put(f"h{number}", ENABLED | {"capacity.VCPU": str(capacity)} | given)
    return columns


def gang(*members: GangMember, relations: tuple[Relation, ...] = (), alternates: int = 0) -> Request:
    return Request(members=members, relations=relations, alternates=alternates)


def member(name: str, vcpu: int = 1, count: int = 1, **more: object) -> GangMember:
    return GangMember(name, Request({"VCPU": vcpu}, count=count, **more))  # type: ignore[arg-type]


def related(kind: RelationType, *names: str) -> tuple[Relation, ...]:
    return (Relation(kind, names),)


def decide(columns: Columns, request: Request, settings: Settings = DEFAULTS) -> Decision:
    return Decider(columns, settings).decide(request, Random(0))


def chosen(decision: Decision) -> list[str]:
    return [place.chosen.host for place in decision.places]


def declare(columns: Columns, name: str, policy: str, by: str = "host", **more: str) -> None:
    columns.declared.put("server-group", name, {"version": "1", "policy": policy, "by": by} | more)


def test_places_are_answered_in_the_order_of_the_members_and_their_counts() -> None:
    columns = fleet(8, 4, 2)
    declare(columns, "web", "soft-anti-affinity")
    decision = decide(columns, gang(member("small", 1, 2, server_group="web"), member("large", 8)))
    assert [(place.member, place.group) for place in decision.places] == [
        ("small", "web"),
        ("small", "web"),
        ("large", ""),
    ]
    assert chosen(decision)[2] == "h0"
    assert decision.places[2].chosen.amounts == {"VCPU": 8}


def test_a_member_has_the_calls_project_and_its_policy_and_weights_where_it_has_none() -> None:
    own = GangMember("own", Request({"VCPU": 1}, policy="spread", weights={"pack": 2.0}))
    call = Request(members=(member("bare"), own), policy="pack", weights={"spread": 1.0}, project="a")
    (_, bare), (_, kept) = requests_of(call)
    assert (bare.policy, bare.weights, bare.project) == ("pack", {"spread": 1.0}, "a")
    assert kept == replace(own.request, project="a")
    with pytest.raises(InvalidRequest, match="has a project"):
        GangMember("other", Request({"VCPU": 1}, project="b"))


def test_hard_spreads_by_one_topology_hold_together_with_the_smallest_skew() -> None:
    call = gang(
        member("a", spread=(Spread("zone", 2), Spread("host", 2, hard=False))),
        member("b", spread=(Spread("zone", 3),)),
        member("c", spread=(Spread("zone", 1, hard=False),)),
        member("d", spread=(Spread("zone", 1),), server_group="g"),
    )
    spreads = {name: request.spread for name, request in requests_of(call)}
    assert spreads["a"] == (Spread("zone", 2), Spread("host", 2, hard=False))
    assert spreads["b"] == (Spread("zone", 2),)
    assert spreads["c"] == ()
    assert spreads["d"] == (Spread("zone", 1),)


def test_together_lists_the_one_host_alone_and_needs_no_rule() -> None:
    decision = decide(
        fleet(8, 4, 4), gang(member("a"), member("b", 2, 2), relations=related(RelationType.TOGETHER, "a", "b"))
    )
    assert hosts_of(decision) == [("h0",)] * 3
    assert decision.rules == ()


def test_together_takes_the_host_that_holds_all_of_them() -> None:
    """The host that is best for each member alone has no room for both."""
    columns = fleet(6, 6, 6, capacity__MEMORY_MB=("9", "9", "40"), claimed__VCPU=("0", "0", "2"))
    members = (
        GangMember("a", Request({"VCPU": 2, "MEMORY_MB": 6})),
        GangMember("b", Request({"VCPU": 2, "MEMORY_MB": 6})),
    )
    assert chosen(decide(columns, gang(*members, relations=related(RelationType.TOGETHER, "a", "b")))) == ["h2", "h2"]


def test_apart_leaves_several_candidates_to_each_and_a_rule_to_the_script() -> None:
    call = gang(member("a", 1, 2), member("b"), member("c"), relations=related(RelationType.APART, "a", "b"))
    decision = decide(fleet(9, 8, 7, 6), call)
    assert len(set(chosen(decision)[:3])) == 3
    assert decision.rules == (ClaimRule(RuleKind.APART, "host", (0, 1, 2)),)
    assert all(len(place.candidates) == 2 for place in decision.places[:3])
    assert len(decision.places[3].candidates) == 4


def test_two_relations_apart_are_two_rules() -> None:
    relations = (*related(RelationType.APART, "a", "b"), *related(RelationType.APART, "b", "c"))
    decision = decide(fleet(9, 8), gang(member("a"), member("b"), member("c"), relations=relations))
    assert [rule.members for rule in decision.rules] == [(0, 1), (1, 2)]


def test_same_zone_goes_where_all_fit_and_lists_no_host_elsewhere() -> None:
    columns = fleet(9, 3, 3, 3, zone=("az1", "az2", "az2", ""))
    call = gang(member("a", 3), member("b", 3, 2), relations=related(RelationType.SAME_ZONE, "a", "b"))
    assert set(chosen(decide(columns, call))) == {"h0"}
    columns.patch("h0", {"version": "2", "claimed.VCPU": "2"})
    assert not decide(columns, call).places
    two = gang(member("a", 3), member("b", 3), relations=related(RelationType.SAME_ZONE, "a", "b"))
    assert {host for place in hosts_of(decide(columns, two)) for host in place} == {"h0"}


def test_same_aggregate_keeps_to_one_of_those_that_all_can_be_in() -> None:
    columns = fleet(4, 4, 4, aggregate__net1=("1", "1", ""), aggregate__net2=("", "1", "1"))
    relations = related(RelationType.SAME_AGGREGATE, "a", "b")
    decision = decide(columns, gang(member("a", 4), member("b", 4, hosts=frozenset(("h2",))), relations=relations))
    assert chosen(decision) == ["h1", "h2"]
    assert not decide(
        columns,
        gang(
            *(member(name, 4, hosts=frozenset((host,))) for name, host in (("a", "h0"), ("b", "h2"))),
            relations=relations,
        ),
    ).places


def test_relations_that_overlap_hold_all() -> None:
    columns = fleet(8, 2, 2, 2, 2, zone=("az1", "az2", "az2", "az2", "az1"))
    relations = (
        *related(RelationType.SAME_ZONE, "a", "b", "c"),
        *related(RelationType.TOGETHER, "a", "b"),
        *related(RelationType.APART, "b", "c"),
    )
    decision = decide(columns, gang(member("a", 1), member("b", 1), member("c", 2), relations=relations))
    hosts, zones = chosen(decision), {"h0": "az1", "h4": "az1"}
    assert hosts[0] == hosts[1] != hosts[2]
    assert len({zones.get(host, "az2") for host in hosts}) == 1


def test_one_place_needs_nobody_to_be_in_a_zone_with() -> None:
    columns = fleet(4, zone=("",))
    assert chosen(decide(columns, gang(member("a"), relations=related(RelationType.SAME_ZONE, "a")))) == ["h0"]


def pinned(**hosts: str) -> Request:
    """Return a gang whose members take a whole host each, restricted to these hosts."""
    return gang(*(member(name, 8, hosts=frozenset(names.split())) for name, names in hosts.items()))


@pytest.mark.parametrize("left", ["repair", "systematic"])
def test_places_that_took_the_wrong_host_make_room(left: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`a` gets the best host first, but `b` and `c` need it. Repair or the systematic search alone resolves that."""
    if left == "repair":
        monkeypatch.setattr(Search, "systematic", lambda _: False)
    else:
        monkeypatch.setattr(Repair, "make_room", lambda *_: False)
    decision = decide(fleet(9, 8, 8), pinned(a="h0 h2", b="h0 h1", c="h0 h1"))
    assert chosen(decision)[0] == "h2"
    assert set(chosen(decision)[1:]) == {"h0", "h1"}


def test_the_last_host_of_another_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """`c` can only use h3. That leaves only h0 for `b`, so `a` must not take it, although it is best for `a`."""
    monkeypatch.setattr(Search, "systematic", lambda _: False)
    monkeypatch.setattr(Repair, "make_room", lambda *_: False)
    assert chosen(decide(fleet(9, 8, 8, 8), pinned(c="h3", a="h0 h1", b="h0 h3"))) == ["h3", "h1", "h0"]


def test_a_chain_of_places_moves_on() -> None:
    names = [f"h{number}" for number in range(6)]
    pairs = {f"m{at}": " ".join(names[at : at + 2]) for at in range(5)}
    assert chosen(decide(fleet(*[8] * 6), pinned(**pairs, last="h0"))) == [*names[1:], "h0"]


def test_what_is_spread_is_placed_in_the_order_in_which_the_script_counts() -> None:
    """`b` is harder to place, but if it came first, both places of `a` would go to the best zone."""
    columns = fleet(9, 50, zone=("az1", "az2"))
    spread = (Spread("zone"),)
    decision = decide(
        columns, gang(member("a", count=2, spread=spread), member("b", spread=spread, hosts=frozenset(("h0",))))
    )
    assert set(chosen(decision)[:2]) == {"h0", "h1"}
    assert chosen(decision)[2] == "h0"


def test_places_of_several_members_count_in_one_group_under_one_rule() -> None:
    columns = fleet(9, 8, 7)
    declare(columns, "g", "anti-affinity", **{"members": "1", "count.host=h0": "1"})
    call = gang(member("a", server_group="g"), member("x"), member("b", 2, server_group="g"))
    decision = decide(columns, call)
    assert {chosen(decision)[0], chosen(decision)[2]} == {"h1", "h2"}
    assert decision.rules == (ClaimRule(RuleKind.APART, "host", (0, 2), "g", 1),)
    assert [place.group for place in decision.places] == ["g", "", "g"]


def test_affinity_without_members_goes_to_a_zone_that_holds_all() -> None:
    columns = fleet(9, 5, 5, zone=("az1", "az2", "az2"))
    declare(columns, "g", "affinity", "zone")
    decision = decide(columns, Request({"VCPU": 5}, count=2, server_group="g"))
    assert set(chosen(decision)) == {"h1", "h2"}
    assert decision.rules == (ClaimRule(RuleKind.TOGETHER, "zone", (0, 1), "g"),)


def test_soft_policies_bring_no_rule() -> None:
    columns = fleet(9, 8)
    declare(columns, "g", "soft-affinity")
    assert decide(columns, Request({"VCPU": 1}, count=2, server_group="g")).rules == ()


def test_a_spread_over_the_call_counts_all_members_that_ask_for_it() -> None:
    columns = fleet(9, 9, 4, zone=("az1", "az1", "az2"))
    spread = (Spread("zone"),)
    decision = decide(columns, gang(member("a", spread=spread), member("x"), member("b", spread=spread)))
    zones = {"h0": "az1", "h1": "az1", "h2": "az2"}
    assert {zones[chosen(decision)[0]], zones[chosen(decision)[2]]} == {"az1", "az2"}
    assert decision.rules == (ClaimRule(RuleKind.SKEW, "zone", (0, 2), "", 1, ("az1", "az2")),)


def test_a_spread_reaches_zones_beyond_the_best_hosts() -> None:
    """All the best hosts are in one zone; every second place must be in the other zone."""
    columns = fleet(*[100] * 60, 5, 5, zone=(*["az1"] * 60, "az2", "az2"))
    decision = decide(columns, Request({"VCPU": 1}, count=8, spread=(Spread("zone"),)))
    assert sum(host in ("h60", "h61") for host in chosen(decision)) == 4


def test_a_spread_over_racks_does_not_count_what_is_spread_over_hosts() -> None:
    """`a` may share a host with `b`, because they are spread over different domains."""
    columns = fleet(9, label__rack=("r1",))
    decision = decide(columns, gang(member("a", spread=(Spread("label:rack"),)), member("b", spread=(Spread("host"),))))
    assert chosen(decision) == ["h0", "h0"]
    assert decision.rules == ()


def test_the_first_member_without_a_place_is_named_in_the_reasons() -> None:
    decision = decide(fleet(4, 2), gang(member("web", 1), member("db", 8)))
    assert decision.reasons == (ReasonCount("db: VCPU", 2),)
    assert (decision.places, decision.fits, decision.alternates) == ((), 0, ())


def test_a_relation_that_no_domain_can_hold_is_the_reason() -> None:
    decision = decide(
        fleet(4, 4), gang(member("a", 3), member("b", 3), relations=related(RelationType.TOGETHER, "a", "b"))
    )
    assert decision.reasons == (ReasonCount("a: together", 2),)
    decision = decide(
        fleet(4, 4), gang(member("a", 1, 3), member("b"), relations=related(RelationType.APART, "a", "b"))
    )
    assert decision.reasons == (ReasonCount("b: apart", 2),)


def test_an_incremental_request_gets_what_fits() -> None:
    decision = decide(fleet(4, 2), Request({"VCPU": 2}, count=5, mode="incremental"))
    assert (len(decision.places), decision.reasons) == (3, ())
    call = Request(members=(member("a", 4, 2), member("b", 2)), mode="incremental")
    assert [place.member for place in decide(fleet(4, 2), call).places] == ["a", "b"]
    assert decide(fleet(1), Request({"VCPU": 2}, count=5, mode="incremental")).reasons


def test_an_incremental_gang_keeps_its_relations_among_those_placed() -> None:
    columns = fleet(3, 2, zone=("az1", "az2"))
    call = Request(members=(member("a", 1, 5),), relations=related(RelationType.SAME_ZONE, "a"), mode="incremental")
    assert chosen(decide(columns, call)) == ["h0"] * 3


def test_alternates_take_any_of_the_places_and_none_is_given_where_places_are_related() -> None:
    columns = fleet(90, 80, 2, 60)
    members = (member("a", 10, hosts=frozenset(("h0", "h2", "h3"))), member("b", 30))
    decision = decide(columns, gang(*members, alternates=2))
    assert chosen(decision) == ["h0", "h1"]
    assert decision.alternates == ("h3",)
    relations = related(RelationType.APART, "a", "b")
    assert decide(columns, gang(*members, relations=relations, alternates=2)).alternates == ()


def test_candidates_on_the_chosen_host_come_with_its_other_pools() -> None:
    pools = {"pool__gpu0": ("/", "/"), "pool__gpu1": ("/", "/")}
    more = {f"capacity__gpu{at}/CUSTOM_GPU_MILLI": ("1000", "1000") for at in (0, 1)}
    columns = fleet(4, 4, **pools, **more)
    asked = Request({"VCPU": 1}, groups=(Group("gpu", {"CUSTOM_GPU_MILLI": 1000}),))
    decision = decide(
        columns,
        gang(GangMember("a", asked), GangMember("b", asked), relations=related(RelationType.TOGETHER, "a", "b")),
    )
    taken: list[Amounts] = [place.chosen.amounts for place in decision.places]
    assert len({place.chosen.host for place in decision.places}) == 1
    assert sorted(slot for amounts in taken for slot in amounts if "gpu" in slot) == [
        "gpu0/CUSTOM_GPU_MILLI",
        "gpu1/CUSTOM_GPU_MILLI",
    ]


def test_hosts_beyond_the_best_are_examined_where_pools_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """On sixty better hosts the two pools are siblings; only on the last two hosts one contains the other."""
    monkeypatch.setattr(Search, "systematic", lambda _: False)
    pools = {"pool__p": ("/",) * 62, "pool__q": ("/",) * 60 + ("p",) * 2}
    amounts = {"capacity__p/CUSTOM_A": ("9",) * 62, "capacity__q/CUSTOM_B": ("9",) * 62}
    columns = fleet(*[50] * 60, 4, 4, **pools, **amounts)
    groups = (Group("one", {"CUSTOM_A": 1}), Group("other", {"CUSTOM_B": 1}))
    subtree = (frozenset(("one", "other")),)
    decision = decide(columns, Request({"VCPU": 1}, groups=groups, same_subtree=subtree, count=2))
    assert len(decision.places) == 2
    assert set(chosen(decision)) <= {"h60", "h61"}


def test_a_gang_of_many_members_leaves_other_shapes_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    decider = Decider(fleet(200), DEFAULTS, remembered=4)
    decider.decide(Request({"VCPU": 7}), Random(0))
    decider.decide(gang(*(member(f"m{at}", at + 1) for at in range(6))), Random(0))
    monkeypatch.setattr(RequestProfile, "__init__", lambda *_: pytest.fail("a shape was forgotten"))
    assert decider.decide(Request({"VCPU": 7}), Random(0)).places


def test_a_gang_is_explained_by_the_member_that_fails() -> None:
    explanation = Decider(fleet(4, 2), DEFAULTS).explain(gang(member("web", 1), member("db", 8)), "h0")
    assert explanation.reasons == (ReasonCount("db: VCPU", 2),)
    assert explanation.fits == 0
    assert explanation.checks[0].reason == "VCPU"


def test_a_host_with_a_member_is_closed_although_its_whole_zone_is_examined() -> None:
    """A relation examines all hosts of a domain, including those that the group's rule excludes."""
    columns = fleet(9, 8, 7, 3, zone=("a", "a", "a", "b"))
    declare(columns, "g", "anti-affinity", **{"members": "1", "count.host=h0": "1"})
    call = gang(member("m", count=2, server_group="g"), relations=related(RelationType.SAME_ZONE, "m"))
    assert set(chosen(decide(columns, call))) == {"h1", "h2"}


def test_a_place_that_gets_up_opens_its_host_again_but_not_to_those_whom_a_member_keeps_off() -> None:
    """Rules that depend on the members of a host are evaluated again for it on each assignment and unassignment."""
    columns = fleet(9, 9, 9)
    declare(columns, "g", "anti-affinity", **{"members": "1", "count.host=h0": "1"})
    profile = RequestProfile(columns, Request({"VCPU": 1}, server_group="g"), {})
    kinds = (Kind(profile, 2),)
    with Overlay(columns) as overlay:
        state = GangState(columns, kinds, (), overlay)
        queue = make_queue(profile, profile.fitting.dynamic_rules(), state, np.arange(3), np.zeros(columns.size))
        assert isinstance(queue, CachedQueue)
        assert [row for row, _ in queue.options()] == [1, 2]
        state.assign(0, 1, Candidate("h1", {"VCPU": 1}))
        assert [row for row, _ in queue.options()] == [2]
        state.unassign(0)
        assert [row for row, _ in queue.options()] == [1, 2]


@pytest.mark.parametrize(
    "call",
    [
        gang(member("m", count=4), relations=related(RelationType.APART, "m")),
        Request({"VCPU": 1}, count=4, server_group="g"),
    ],
)
def test_more_places_than_hosts_to_be_apart_on_are_refused_without_a_search(
    call: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = fleet(9, 9, 9)
    declare(columns, "g", "anti-affinity")
    monkeypatch.setattr(Search, "greedy", lambda _: pytest.fail("searched"))
    reason = "apart" if call.members else "count"
    assert decide(columns, call).reasons == (ReasonCount(reason, 3),)


@pytest.mark.parametrize(
    "call",
    [
        Request(members=(member("m", count=4),), relations=related(RelationType.APART, "m"), mode="incremental"),
        Request({"VCPU": 1}, count=4, server_group="g", mode="incremental"),
    ],
)
def test_as_many_as_there_are_hosts_to_be_apart_on_are_placed_where_some_will_do(call: Request) -> None:
    columns = fleet(9, 9, 9)
    declare(columns, "g", "anti-affinity")
    assert sorted(chosen(decide(columns, call))) == ["h0", "h1", "h2"]


def test_queries_on_free_amounts_count_the_places_of_other_members() -> None:
    """Each member requires a host that has 12 VCPU free, which the place of either one takes from the other."""
    roomy = (">=", "$free.VCPU", 12)
    request = gang(member("a", 5, query=roomy), member("b", 4, query=roomy))
    assert hosts_of(decide(fleet(16), request)) == []
    assert len(set(hosts_of(decide(fleet(16, 16), request)))) == 2
