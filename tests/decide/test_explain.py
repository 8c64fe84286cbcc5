"""Explanations: which claims are worth waiting for, how much is searched, and the text of a refusal."""

from dataclasses import replace
from random import Random
from unittest.mock import patch

import pytest

from redsched.cache.columns import Columns
from redsched.decide.decider import Decider
from redsched.decide.explain.ranking import RANKED
from redsched.decide.explain.unknown import merge_unknown
from redsched.decide.plugins.registry import multipliers, plugin_registry
from redsched.decide.profile import RequestProfile
from redsched.decide.steps import finished
from redsched.model import Claim, ClaimStatus, GangMember, Group, ReasonCount, Request
from redsched.model.records.explanations import Explanation, Miss, Unknown
from redsched.model.records.problems import members
from redsched.scheduler.selection.blockers import MAX_TRIED, worth_trying
from redsched.scheduler.selection.refusal import near, refusal
from redsched.settings import Settings
from redsched.store.codec.keys import Kind
from tests.support.builders.columns import columns_of
from tests.support.builders.decisions import smallest_change

DEFAULTS = Settings()
UP = {"version": "1", "epoch": "1-a", "status": "enabled", "alive": "1"}
GPU = "CUSTOM_GPU_MILLI"


def gpu_hosts(count: int, free: int = 500, gpus: int = 2) -> Columns:
    """Return hosts h0, h1, ... with some GPUs, each with this much free."""
    fields = dict(UP)
    for number in range(gpus):
        slot = f"gpu{number}/{GPU}"
        fields |= {f"pool.gpu{number}": "/", f"capacity.{slot}": "1000", f"claimed.{slot}": str(1000 - free)}
    return columns_of(**{f"h{number}": fields for number in range(count)})


def shares(*amounts: int) -> Request:
    return Request(groups=tuple(Group(f"g{number}", {GPU: amount}) for number, amount in enumerate(amounts)))


def claim(host: str = "h1", state: ClaimStatus = ClaimStatus.ACTIVE, **more: object) -> Claim:
    return Claim("a", "c1", host, state, "1-a.1", **({"slots": {"VCPU": 2}} | more))  # type: ignore[arg-type]


def after(columns: Columns, request: Request, held: Claim, settings: Settings = DEFAULTS) -> bool:
    """Return whether the nearest host fits once a claim has ended; check that the columns are unchanged."""
    decider = Decider(columns, settings)
    (miss,) = decider.explain(request).nearest
    before = (columns.claims.tolist(), columns.starting.tolist(), columns.claimed["VCPU"].tolist())
    found = decider.may_fit_later(request, miss) and decider.fits_after(request, miss, held)
    assert before == (columns.claims.tolist(), columns.starting.tolist(), columns.claimed["VCPU"].tolist())
    return found


# Waiting for the end of a claim


def test_a_gang_waits_for_room_for_the_member_that_fails() -> None:
    columns = columns_of(h1=UP | {"capacity.VCPU": "8", "claimed.VCPU": "6", "claims": "1"})
    gang = Request(members=(GangMember("web", Request({"VCPU": 1})), GangMember("db", Request({"VCPU": 4}))))
    assert after(columns, gang, claim(slots={"VCPU": 3}))
    assert not after(columns, gang, claim(slots={"VCPU": 1}))
    (miss,) = Decider(columns, DEFAULTS).explain(gang).nearest
    assert (miss.member, miss.changes) == ("db", ("2 VCPU less",))


@pytest.mark.parametrize(("state", "helps"), [(ClaimStatus.STARTING, True), (ClaimStatus.ACTIVE, False)])
def test_only_the_end_of_a_claim_that_is_starting_makes_one_less_that_starts(state: ClaimStatus, helps: bool) -> None:
    columns = columns_of(h1=UP | {"capacity.VCPU": "8", "claimed.VCPU": "4", "claims": "2", "starting": "1"})
    limited = Settings(max_starting_per_host=1)
    assert after(columns, Request({"VCPU": 1}), claim(state=state), limited) == helps


def test_a_claim_may_draw_on_a_pool_that_is_not_declared() -> None:
    """After a wipe of the store, hosts restore such claims before an operator has declared the pool again."""
    columns = columns_of(h1=UP | {"capacity.VCPU": "2", "claimed.VCPU": "2", "claims": "1"})
    assert after(columns, Request({"VCPU": 1}), claim(slots={"VCPU": 2, "pool:licences/CUSTOM_SEAT": 1}))


@pytest.mark.parametrize(("zone", "helps"), [("az1", False), ("az2", True)])
def test_a_claim_is_counted_out_of_the_zone_that_it_was_counted_in(zone: str, helps: bool) -> None:
    """The host was moved to az2 after the claim was placed."""
    columns = columns_of(h1=UP | {"capacity.VCPU": "8", "zone": "az2"})
    fields = {"version": "1", "policy": "anti-affinity", "by": "zone", "max_per_host": "1", "members": "2"}
    columns.declared.put(Kind.SERVER_GROUP, "g", fields | {"count.zone=az1": "1", "count.zone=az2": "1"})
    held = claim(server_group="g", counted={"zone": zone})
    assert after(columns, Request({"VCPU": 1}, server_group="g"), held) == helps


def test_no_wait_where_more_than_room_and_affinity_fails() -> None:
    columns = columns_of(h1=UP | {"capacity.VCPU": "8", "claimed.VCPU": "8"})
    decider = Decider(columns, DEFAULTS)
    for request, could in (
        (Request({"VCPU": 1}), True),
        (Request({"VCPU": 1}, required=frozenset({"CUSTOM_AVX"})), False),
    ):
        (miss,) = decider.explain(request).nearest
        assert decider.may_fit_later(request, miss) == could
    assert not decider.may_fit_later(Request({"VCPU": 1}), Miss("unknown", {}, {}))


def test_of_claims_just_alike_one_is_tried_and_of_many_kinds_the_largest_smallest_first() -> None:
    alike = [claim(slots={"VCPU": 1}), replace(claim(slots={"VCPU": 1}), claim_id="b")]
    assert [one.claim_id for one in worth_trying(alike)] == ["a"]
    many = [replace(claim(slots={"VCPU": size}), claim_id=f"c{size}") for size in range(1, MAX_TRIED + 6)]
    assert [one.claim_id for one in worth_trying(many)] == [f"c{size}" for size in range(6, MAX_TRIED + 6)]


# How much is searched


def test_pools_are_searched_only_to_be_counted_on_some_hosts_of_many() -> None:
    with patch("redsched.decide.pool_assignments.SEARCHED", 3):
        told = Decider(gpu_hosts(20), DEFAULTS).explain(shares(500, 400))
        assert (told.hosts, told.fits, told.reasons) == (20, 20, ())
        assert told.unsearched == 20 - 3 - 1  # the decision has searched the best host
        refused = Decider(gpu_hosts(20), DEFAULTS).explain(shares(500, 400, 300))
    assert (refused.fits, refused.unsearched, refused.reasons) == (0, 0, (ReasonCount("pools", 20),))


def test_hosts_whose_search_takes_long_count_as_not_searched_and_stay_open() -> None:
    columns = gpu_hosts(3)
    request = shares(260, 250, 240, 230)  # both GPUs need 490: the first descent of the search does not find that
    with patch("redsched.decide.pools.assign.STEPS", 1), patch("redsched.decide.pools.assign.LEAST_STEPS", 0):
        shape = RequestProfile(
            columns, request, multipliers(request, plugin_registry(DEFAULTS)), plugin_registry(DEFAULTS).filters
        )
        assert (shape.unassigned(), shape.unsearched) == ([], 3)
    assert shape.pools.of(0)


def test_what_an_earlier_decision_gave_up_does_not_shorten_the_next_one() -> None:
    columns = gpu_hosts(1)
    request = shares(260, 250, 240, 230)
    decider = Decider(columns, DEFAULTS)
    decider.explain(request)
    shape = next(iter(decider._profiles.values()))
    shape.pools.needs.given_up = 50
    columns.patch("h0", {f"claimed.gpu0/{GPU}": "501", "version": "2"})
    assert decider.decide(request, Random(0)).places
    assert shape.pools.needs.given_up == 0


def test_what_is_known_of_pools_lasts_until_the_host_changes() -> None:
    columns = gpu_hosts(40)
    decider = Decider(columns, DEFAULTS)
    with patch("redsched.decide.pool_assignments.assignments", return_value=[]) as searched:
        decider.decide(shares(500, 400), Random(0))
        for number in range(30):  # enough changes that all rows are evaluated by array
            columns.patch(f"h{number}", {"version": "2", f"claimed.gpu0/{GPU}": "499"})
        decider.decide(shares(500, 400), Random(0))
        assert searched.call_count == 40 + 30


def test_a_change_that_takes_too_long_to_find_is_not_reported() -> None:
    columns, request = gpu_hosts(1), shares(500, 499, 498)
    shape = RequestProfile(
        columns, request, multipliers(request, plugin_registry(DEFAULTS)), plugin_registry(DEFAULTS).filters
    )
    assert [edit.says for edit in smallest_change(shape, 0)] == [f"497 {GPU} in group g1 less"]
    with patch("redsched.decide.explain.changes.MAX_PLACED", 20):
        assert smallest_change(shape, 0) == ()


# The contents of explanations


def test_a_change_uses_what_pools_give_and_not_only_the_host_itself() -> None:
    fields = UP | {"capacity.VCPU": "2", "pool.p0": "/", "capacity.p0/VCPU": "5"}
    (miss,) = Decider(columns_of(h1=fields), DEFAULTS).explain(Request({"VCPU": 8})).nearest
    assert miss.changes == ("3 VCPU less",)


def test_without_same_subtree_the_groups_that_only_it_gives_a_meaning_go_too() -> None:
    fields = UP | {"pool.a": "/", "pool.b": "/", "capacity.a/CUSTOM_X": "1", "trait.b/CUSTOM_T": "1"}
    groups = (Group("x", {"CUSTOM_X": 1}), Group("t", required=frozenset({"CUSTOM_T"})))
    request = Request(groups=groups, same_subtree=(frozenset({"x", "t"}),))
    (miss,) = Decider(columns_of(h1=fields), DEFAULTS).explain(request).nearest
    assert miss.changes == ("without same_subtree t, x",)


def test_a_refusal_reads_well_with_every_kind_of_change() -> None:
    miss = Miss("h3", {}, {}, ("2048 MEMORY_MB less", "without trait AVX", "in zone az1 too"))
    assert near(miss) == "nearest h3: 2048 MEMORY_MB less, without trait AVX, in zone az1 too"
    of_gang = replace(miss, member="db", after="c-7")
    assert near(of_gang).startswith("nearest for db h3: ")


def test_a_refusal_has_the_facts_that_the_model_of_a_miss_shows() -> None:
    """The blocking claim, the gang's member and the pools are included only if there are any."""
    miss = Miss("h3", {"VCPU": 2}, {"VCPU": 1}, ("1 VCPU less",), (1, 0.5))
    misses = (miss, replace(miss, member="db", after="c-7", places={"VCPU": "numa0"}))
    found = Explanation(hosts=3, fits=0, reasons=(), nearest=misses)
    facts = members(refusal(True, Request({"VCPU": 2}), [found]))["nearest"]
    assert facts[0] == {"host": "h3", "needs": {"VCPU": 2}, "free": {"VCPU": 1}, "changes": ["1 VCPU less"]}
    assert [one.keys() - facts[0].keys() for one in facts] == [set(), {"member", "after", "places"}]


# Hosts that fit


@pytest.mark.parametrize("policy", ["spread", "nova"])
def test_the_best_hosts_that_fit_are_ranked_with_what_each_weigher_adds(policy: str) -> None:
    """In the order in which decisions prefer them, at most RANKED of them; absolute and relative weighers alike."""
    hosts = {f"h{number}": UP | {"capacity.VCPU": "16", "claimed.VCPU": str(number)} for number in range(RANKED + 2)}
    request = Request({"VCPU": 2}, policy=policy)
    decider = Decider(columns_of(**hosts), DEFAULTS)
    ranking = decider.explain(request).ranked
    assert [one.host for one in ranking] == [f"h{number}" for number in range(RANKED)]
    assert ranking[0].host == decider.decide(request, Random(0)).places[0].chosen.host
    for one in ranking:
        assert one.score == pytest.approx(decider.score_on(request, one.host))
        assert sum(one.weighers.values()) == pytest.approx(one.score)
    assert any(ranking[0].weighers.values())


def test_hosts_whose_pools_fail_are_not_ranked_and_few_are_searched_in_vain() -> None:
    columns = gpu_hosts(6, free=400)
    columns.patch("h5", {"version": "2", f"claimed.gpu0/{GPU}": "0"})
    request = shares(900, 400)
    assert [one.host for one in Decider(columns, DEFAULTS).explain(request).ranked] == ["h5"]
    assert Decider(gpu_hosts(3), DEFAULTS).explain(shares(500, 400, 300)).ranked == ()
    with patch("redsched.decide.explain.ranking.MAX_IN_VAIN", 1):
        assert len(Decider(gpu_hosts(20), DEFAULTS).explain(shares(500, 400)).ranked) == RANKED


def test_the_ranking_of_a_gang_names_the_member() -> None:
    columns = columns_of(h1=UP | {"capacity.VCPU": "8"})
    gang = Request(members=(GangMember("web", Request({"VCPU": 1})), GangMember("db", Request({"VCPU": 4}))))
    assert [(one.host, one.member) for one in Decider(columns, DEFAULTS).explain(gang).ranked] == [("h1", "web")]


# The true cause


def test_max_unit_is_named_where_it_forbids_what_is_free() -> None:
    fields = UP | {"capacity.VCPU": "64", "max.VCPU": "4"}
    (miss,) = Decider(columns_of(h1=fields), DEFAULTS).explain(Request({"VCPU": 8})).nearest
    assert miss.changes == ("4 VCPU less (max_unit 4)",)
    (miss,) = Decider(columns_of(h1=fields | {"claimed.VCPU": "61"}), DEFAULTS).explain(Request({"VCPU": 8})).nearest
    assert miss.changes == ("5 VCPU less",)


def test_a_group_that_is_counted_by_zone_says_how_many_its_zone_has() -> None:
    columns = columns_of(h1=UP | {"capacity.VCPU": "8", "zone": "az1"})
    fields = {"version": "1", "policy": "anti-affinity", "by": "zone", "max_per_host": "2", "members": "2"}
    columns.declared.put(Kind.SERVER_GROUP, "g", fields | {"count.zone=az1": "2"})
    (miss,) = Decider(columns, DEFAULTS).explain(Request({"VCPU": 1}, server_group="g")).nearest
    assert miss.changes == ("without server group g (group g allows 2 in one zone, zone az1 has 2)",)


def test_the_free_amount_is_that_of_the_largest_place_with_its_name() -> None:
    columns = gpu_hosts(1)
    columns.patch("h0", {"version": "2", f"claimed.gpu1/{GPU}": "0"})
    (miss,) = Decider(columns, DEFAULTS).explain(Request({GPU: 2000})).nearest
    assert (miss.free, miss.places) == ({GPU: 1000}, {GPU: "gpu1"})
    own = columns_of(h1=UP | {"capacity.VCPU": "2", "pool.p0": "/", "capacity.p0/VCPU": "1"})
    (miss,) = Decider(own, DEFAULTS).explain(Request({"VCPU": 8})).nearest
    assert (miss.free, miss.places) == ({"VCPU": 2}, {})


# Unknown zones and hosts


def test_a_zone_that_no_host_is_in_is_unknown_and_the_zones_are_listed_up_to_ten() -> None:
    columns = columns_of(**{f"h{number:02}": UP | {"zone": f"az{number:02}"} for number in range(12)})
    decider = Decider(columns, DEFAULTS)
    found = decider.explain(Request({"VCPU": 1}, zones=frozenset({"az9", "az01"})))
    assert found.unknown_text.startswith("unknown zone 'az9': the hosts are in az00, az01, ")
    assert found.unknown_text.endswith(", az09 and more")
    assert decider.explain(Request({"VCPU": 1}, zones=frozenset({"az01"}))).unknown_text == ""


def test_a_zone_is_unknown_only_if_it_is_in_no_cell() -> None:
    first, second = Unknown(frozenset({"a", "x"}), zones=("b",)), Unknown(frozenset({"x", "b"}), zones=("a",))
    assert merge_unknown([first, second]).unknown_text == "unknown zone 'x': the hosts are in a, b"
    assert merge_unknown([first, Unknown()]).unknown_text == ""
    no_zone = Unknown(frozenset({"x", "y"}))
    assert merge_unknown([no_zone]).unknown_text == "unknown zones 'x' and 'y': no host is in a zone"


def test_hosts_that_do_not_exist_are_named_up_to_five() -> None:
    columns = columns_of(h1=UP | {"capacity.VCPU": "8"})
    wanted = Request({"VCPU": 8}, hosts=frozenset({"h1", "nope", *(f"z{number}" for number in range(6))}))
    found = Decider(columns, DEFAULTS).explain(wanted)
    assert found.unknown_text == "unknown hosts 'nope', 'z0', 'z1', 'z2', 'z3' and 2 more"
    assert "; unknown hosts 'nope'" in refusal(True, wanted, [found], is_complete=True).detail
    assert merge_unknown([found, Unknown(unknown_hosts=frozenset({"nope"}))]).unknown_text == "unknown host 'nope'"


# Hosts that take no claims


def closed(columns: Columns, request: Request) -> list[tuple[str, str]]:
    return [(one.host, one.reason) for one in Decider(columns, DEFAULTS).explain(request).closed]


def test_hosts_that_would_fit_if_they_took_claims_are_named_with_the_reason() -> None:
    free = UP | {"capacity.VCPU": "8"}
    columns = columns_of(
        a=free | {"alive": "0", "capacity.VCPU": "4"},
        b=free | {"status": "draining"},
        c=free | {"status": "disabled", "zone": "az1"},
        d=free | {"claimed.VCPU": "8"},
        e=free | {"epoch": "0-a"},
        f=free | {"alive": "0", "status": "draining"},
    )
    assert closed(columns, Request({"VCPU": 8})) == [("b", "draining"), ("c", "disabled"), ("e", "not-attested")]
    assert closed(columns, Request({"VCPU": 2}, zones=frozenset({"az1"}))) == [("c", "disabled")]
    assert closed(columns, Request({"VCPU": 8}, exclude_hosts=frozenset("bce"))) == [("f", "down")]
    assert closed(columns, Request({"VCPU": 9})) == []


def test_hosts_whose_pools_would_fail_are_not_among_them() -> None:
    columns = gpu_hosts(2, free=500)
    assert closed(columns, shares(500)) == []
    apart = {name: dict(UP, status="disabled") for name in ("h1", "h2")}
    for name, free in (("h1", "400"), ("h2", "800")):
        apart[name] |= {"pool.gpu0": "/", f"capacity.gpu0/{GPU}": free}
    assert closed(columns_of(**apart), shares(300, 300)) == [("h2", "disabled")]


def test_a_refusal_does_not_look_for_them() -> None:
    decider = Decider(columns_of(h1=UP | {"status": "disabled", "capacity.VCPU": "8"}), DEFAULTS)
    assert decider.explain(Request({"VCPU": 1})).closed
    assert finished(decider.refusal_steps(Request({"VCPU": 1}), 16)).closed == ()


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        ("zone", "3 in other zones"),
        ("hosts", "3 not among those named"),
        ("VCPU", "3 short of VCPU"),
        ("CUSTOM_GPU_MILLI", "3 short of CUSTOM_GPU_MILLI"),
        ("required:HW_CPU_X86_AVX", "3 by required:HW_CPU_X86_AVX"),
        ("down", "3 down"),
    ],
)
def test_a_count_is_in_words(reason: str, text: str) -> None:
    assert ReasonCount(reason, 3).text == text


def test_a_host_is_counted_for_what_the_request_names_before_its_state() -> None:
    free = UP | {"capacity.VCPU": "8"}
    columns = columns_of(
        a=free | {"alive": "0", "zone": "az1"}, b=free | {"alive": "0", "zone": "az2"}, c=free | {"zone": "az2"}
    )
    in_zone = Decider(columns, DEFAULTS).explain(Request({"VCPU": 9}, zones=frozenset({"az1"})))
    assert in_zone.reasons == (ReasonCount("zone", 2), ReasonCount("down", 1))
    named = Decider(columns, DEFAULTS).explain(Request({"VCPU": 9}, hosts=frozenset({"b"})))
    assert named.reasons == (ReasonCount("hosts", 2), ReasonCount("down", 1))


def test_a_refusal_names_unknown_zones_only_if_it_is_about_all_cells() -> None:
    found = [
        Explanation(
            hosts=3, fits=0, reasons=(ReasonCount("zone", 3),), nearest=(), unknown_zones=frozenset({"x"}), zones=("a",)
        )
    ]
    text = "none of 3 hosts can take 2 VCPU: 3 in other zones"
    assert refusal(True, Request({"VCPU": 2}), found).detail == text
    assert refusal(True, Request({"VCPU": 2}), found, is_complete=True).detail == (
        f"{text}; unknown zone 'x': the hosts are in a"
    )
