"""The reason of a refusal: the rule that refused, and not the check of amounts that it is a part of."""

from random import Random
from unittest.mock import patch

import pytest

from redsched.cache.columns import Columns
from redsched.cache.diff import difference
from redsched.decide.decider import Decider
from redsched.decide.filters import rules_of
from redsched.decide.plugins.registry import multipliers, plugin_registry
from redsched.decide.profile import RequestProfile
from redsched.decide.rejections import Rejections
from redsched.decide.steps import finished
from redsched.decide.work_limit import TooMuchWork
from redsched.model import CpuPolicy, Group, Numa, NumaCell, PciDevices, ReasonCount, Request, Spread
from redsched.model.records.explanations import Explanation, PlacesMiss
from redsched.scheduler.selection.refusal import refusal
from redsched.settings import Settings
from redsched.store.codec.keys import Kind
from tests.support.builders.columns import columns_of

DEFAULTS = Settings()
UP = {"version": "1", "epoch": "1-a", "status": "enabled", "alive": "1"}
EIGHT = UP | {"capacity.VCPU": "8", "max.VCPU": "8"}
POOL = UP | {"pool.p": "/", "capacity.p/VGPU": "8", "max.p/VGPU": "8"}
NODES = (
    UP | {f"pool.numa{node}": "/" for node in range(2)} | {f"trait.numa{node}/HW_NUMA_ROOT": "1" for node in range(2)}
)
NODES |= {
    f"capacity.numa{node}/{name}": amount
    for node in range(2)
    for name, amount in (("VCPU", "8"), ("MEMORY_MB", "8192"))
}
RESERVED = {"reservation": "r", "reservation_request": "big", "reservation_project": "ml"}
IN_GROUP = Request(groups=(Group("g", {"VGPU": 6}),))


def explained(columns: Columns, request: Request) -> Explanation:
    """Explain a request, and check that what claims keep of decisions counts the same hosts under the same reasons."""
    found = Decider(columns, DEFAULTS).explain(request)
    if request.count == 1:
        registry = plugin_registry(DEFAULTS)
        profile = RequestProfile(columns, request, multipliers(request, registry), registry.filters)
        rejections = Rejections(profile)
        rejections.update()
        known = {one.reason: one.hosts for one in rejections.counts()}
        assert known == {one.reason: one.hosts for one in found.reasons if one.reason in known}
    return found


def takes(columns: Columns, request: Request) -> bool:
    return bool(Decider(columns, DEFAULTS).decide(request, Random(0)).places)


def reasons(columns: Columns, request: Request) -> list[str]:
    return [one.text for one in explained(columns, request).reasons]


# Units


@pytest.mark.parametrize(
    ("units", "asked", "text", "change", "valid"),
    [
        ({"step.VCPU": "4"}, 6, "1 by step_size of VCPU", "4 or 8 VCPU instead of 6 (step_size 4)", (4, 8)),
        (
            {"step.VCPU": "4", "claimed.VCPU": "4"},
            6,
            "1 by step_size of VCPU",
            "4 VCPU instead of 6 (step_size 4)",
            (4,),
        ),
        ({"step.VCPU": "4"}, 3, "1 by step_size of VCPU", "4 VCPU instead of 3 (step_size 4)", (4,)),
        ({"min.VCPU": "4"}, 2, "1 by min_unit of VCPU", "4 VCPU instead of 2 (min_unit 4)", (4,)),
        ({"min.VCPU": "4", "step.VCPU": "3"}, 2, "1 by min_unit of VCPU", "6 VCPU instead of 2 (min_unit 4)", (6,)),
        ({"max.VCPU": "4"}, 6, "1 by max_unit of VCPU", "2 VCPU less (max_unit 4)", (4,)),
        ({}, 9, "1 short of VCPU", "1 VCPU less", (8,)),
    ],
)
def test_units_are_named_with_the_next_amounts(
    units: dict[str, str], asked: int, text: str, change: str, valid: tuple[int, ...]
) -> None:
    columns = columns_of(h1=EIGHT | units)
    assert reasons(columns, Request({"VCPU": asked})) == [text]
    (miss,) = explained(columns, Request({"VCPU": asked})).nearest
    assert (miss.changes, miss.needs) == ((change,), {"VCPU": asked})
    for amount in valid:
        assert takes(columns, Request({"VCPU": amount}))


def test_units_of_pools_forbid_an_amount_and_a_group_alike() -> None:
    columns = columns_of(h1=POOL | {"step.p/VGPU": "4"})
    for request, change in (
        (Request({"VGPU": 6}), "4 or 8 VGPU instead of 6 (step_size 4)"),
        (IN_GROUP, "4 or 8 VGPU in group g instead of 6 (step_size 4)"),
    ):
        assert reasons(columns, request) == ["1 by step_size of VGPU"]
        assert explained(columns, request).nearest[0].changes == (change,)
        (check,) = Decider(columns, DEFAULTS).explain(request, "h1").checks
        details = {one.name: one.detail for one in check.checks}
        assert details["step_size:VGPU"].endswith("p with 8 VGPU free; step_size is 4")


def test_units_of_a_shared_pool_are_named() -> None:
    columns = columns_of(h1=EIGHT)
    pool = {"version": "1", "capacity.CUSTOM_SEAT": "8", "step.CUSTOM_SEAT": "4"}
    columns.declared.put(Kind.POOL, "seats", pool)
    assert reasons(columns, Request({"CUSTOM_SEAT": 6})) == ["1 by step_size of CUSTOM_SEAT"]
    (miss,) = explained(columns, Request({"CUSTOM_SEAT": 6})).nearest
    assert miss.changes == ("4 or 8 CUSTOM_SEAT instead of 6 (step_size 4)",)
    assert takes(columns, Request({"CUSTOM_SEAT": 8}))


def test_a_place_that_admits_the_amount_and_is_full_is_short_of_it() -> None:
    columns = columns_of(
        h1=UP | {"capacity.VCPU": "8", "step.VCPU": "4", "pool.p": "/", "capacity.p/VCPU": "8", "claimed.p/VCPU": "8"}
    )
    assert reasons(columns, Request({"VCPU": 6})) == ["1 short of VCPU"]


def test_units_of_a_shared_pool_do_not_explain_why_an_own_place_is_full() -> None:
    columns = columns_of(h1=UP | {"capacity.CUSTOM_SEAT": "8", "claimed.CUSTOM_SEAT": "8"})
    columns.declared.put(Kind.POOL, "seats", {"version": "1", "capacity.CUSTOM_SEAT": "8", "step.CUSTOM_SEAT": "4"})
    assert reasons(columns, Request({"CUSTOM_SEAT": 6})) == ["1 short of CUSTOM_SEAT"]


def test_hosts_are_counted_by_the_rule_that_refuses_each() -> None:
    columns = columns_of(a=EIGHT | {"step.VCPU": "4"}, b=EIGHT | {"claimed.VCPU": "4"}, c=EIGHT | {"max.VCPU": "2"})
    assert sorted(reasons(columns, Request({"VCPU": 6}))) == [
        *("1 by max_unit of VCPU", "1 by step_size of VCPU", "1 short of VCPU")
    ]


def test_devices_that_max_unit_leaves_to_other_claims_are_not_missing() -> None:
    fields = UP | {"pool.nic": "/", "capacity.nic/SRIOV_NET_VF": "8", "max.nic/SRIOV_NET_VF": "2"}
    columns, request = columns_of(h1=fields), Request(pci=(PciDevices("SRIOV_NET_VF", 4),))
    assert reasons(columns, request) == ["1 by max_unit of SRIOV_NET_VF"]
    (check,) = Decider(columns, DEFAULTS).explain(request, "h1").checks
    assert check.reason == "max_unit:SRIOV_NET_VF"
    assert "needs 4 SRIOV_NET_VF, free 8; by max_unit one claim gets 2" in [one.detail for one in check.checks]
    assert explained(columns, request).nearest[0].changes == ("2 SRIOV_NET_VF less",)


def test_the_traits_of_a_group_are_named_where_its_amounts_are_there() -> None:
    group = Group("g", {"VGPU": 6}, required=frozenset(("CUSTOM_T4",)))
    request = Request(groups=(group,))
    without = columns_of(h1=POOL | {"trait.p/CUSTOM_A100": "1", "pool.q": "/", "trait.q/CUSTOM_T4": "1"})
    assert reasons(without, request) == ["1 without a pool with the traits of group g"]
    assert explained(without, request).nearest[0].changes == ("without trait CUSTOM_T4 in group g",)
    full = columns_of(h1=POOL | {"trait.p/CUSTOM_T4": "1", "claimed.p/VGPU": "4"})
    assert reasons(full, request) == ["1 by group:g"]


# What is kept for another request


@pytest.mark.parametrize(
    ("fields", "request_"),
    [
        (EIGHT | {"claimed.VCPU": "6", "kept.VCPU": "2"}, Request({"VCPU": 2})),
        (POOL | {"kept.p/VGPU": "8"}, IN_GROUP),
        (NODES | {"kept.numa0/VCPU": "8", "kept.numa1/VCPU": "8"}, Request(numa=Numa((NumaCell(4, 1024),)))),
    ],
)
def test_what_is_kept_for_another_request_is_the_reason(fields: dict[str, str], request_: Request) -> None:
    """It was a lack of what is free."""
    columns = columns_of(h1=fields | RESERVED)
    assert reasons(columns, request_) == ["1 kept for another request"]
    error = refusal(True, request_, [explained(columns, request_)])
    assert "are kept for a request that waits" in error.detail
    assert "big" not in error.detail
    assert (error.facts.nearest[0].kept.request, error.facts.nearest[0].kept.project) == ("big", "ml")
    assert difference(columns, columns_of(h1=fields | RESERVED)) == []


def test_pools_that_another_request_keeps_together_are_kept() -> None:
    two = Request(groups=(Group("a", {"VGPU": 4}), Group("b", {"VGPU": 4})))
    assert reasons(columns_of(h1=POOL | {"kept.p/VGPU": "4"} | RESERVED), two) == ["1 kept for another request"]


def test_a_reserved_host_that_lacks_more_than_it_keeps_is_short_of_it() -> None:
    columns = columns_of(h1=EIGHT | {"claimed.VCPU": "6", "kept.VCPU": "2"} | RESERVED)
    assert reasons(columns, Request({"VCPU": 4})) == ["1 short of VCPU"]


# NUMA nodes


@pytest.mark.parametrize(
    ("fields", "numa", "text", "needs", "free", "places", "change"),
    [
        (
            {"claimed.numa0/VCPU": "7", "claimed.numa1/VCPU": "6"}, Numa((NumaCell(4, 1024),)),
            "1 short of VCPU in one NUMA node", {"VCPU": 4}, {"VCPU": 2}, {"VCPU": "numa1"},
            "2 CPUs in the NUMA cell less",
        ),
        (
            {"claimed.numa0/MEMORY_MB": "4000", "claimed.numa1/MEMORY_MB": "6000"}, Numa((NumaCell(2, 6000),)),
            "1 short of MEMORY_MB in one NUMA node", {"MEMORY_MB": 6000}, {"MEMORY_MB": 4192}, {"MEMORY_MB": "numa0"},
            "1808 MEMORY_MB in the NUMA cell less",
        ),
        (
            {f"capacity.numa{node}/CUSTOM_HUGE_PAGES_2048KB": "100" for node in range(2)},
            Numa((NumaCell(2, 1024),), page_size_kb=2048),
            "1 short of CUSTOM_HUGE_PAGES_2048KB in one NUMA node", {"CUSTOM_HUGE_PAGES_2048KB": 512},
            {"CUSTOM_HUGE_PAGES_2048KB": 100}, {"CUSTOM_HUGE_PAGES_2048KB": "numa0"},
            "824 MEMORY_MB in the NUMA cell less",
        ),
        (
            {"claimed.numa0/VCPU": "7", "claimed.numa1/MEMORY_MB": "8000"}, Numa((NumaCell(4, 1024),)),
            "1 without a NUMA node for all of a cell", {"VCPU": 4}, {"VCPU": 1}, {"VCPU": "numa0"},
            "3 CPUs in the NUMA cell less",
        ),
        (
            {"claimed.numa1/VCPU": "6"}, Numa((NumaCell(4, 1024), NumaCell(4, 1024))),
            "1 short of VCPU in one NUMA node", {"VCPU": 4}, {"VCPU": 2}, {"VCPU": "numa1"},
            "2 CPUs in each NUMA cell less",
        ),
        (
            {"ratio.numa0/MEMORY_MB": "2.0", "claimed.numa0/MEMORY_MB": "2000", "claimed.numa1/MEMORY_MB": "8000"},
            Numa((NumaCell(2, 4096),), page_size_kb=4),
            "1 short of MEMORY_MB in one NUMA node", {"MEMORY_MB": 4096}, {"MEMORY_MB": 2096}, {"MEMORY_MB": "numa0"},
            "2000 MEMORY_MB in the NUMA cell less",
        ),
    ],
)  # fmt: skip
def test_what_a_numa_node_lacks_is_named(
    fields: dict[str, str], numa: Numa, text: str, needs: dict[str, int], free: dict[str, int],
    places: dict[str, str], change: str,
) -> None:  # fmt: skip
    """With the node, and with what would help there. It was "by numa", at times with nothing needed or free."""
    columns, request = columns_of(h1=NODES | fields), Request(numa=numa)
    assert reasons(columns, request) == [text]
    (miss,) = explained(columns, request).nearest
    assert (miss.needs, miss.free, miss.places, miss.changes) == (needs, free, places, (change,))


def test_dedicated_cpus_of_a_cell_are_reduced_with_its_cpus() -> None:
    columns = columns_of(h1=NODES | {f"capacity.numa{node}/PCPU": "2" for node in range(2)})
    mixed = Request(numa=Numa((NumaCell(4, 1024, dedicated_cpus=4),), CpuPolicy.MIXED))
    assert reasons(columns, mixed) == ["1 short of PCPU in one NUMA node"]
    assert explained(columns, mixed).nearest[0].changes


def test_a_host_that_lacks_a_trait_too_says_what_its_node_lacks() -> None:
    columns = columns_of(h1=NODES | {"claimed.numa0/VCPU": "7", "claimed.numa1/VCPU": "6"})
    request = Request(numa=Numa((NumaCell(4, 1024),)), required=frozenset(("CUSTOM_T4",)))
    (miss,) = explained(columns, request).nearest
    assert (miss.needs, miss.free, miss.places) == ({"VCPU": 4}, {"VCPU": 2}, {"VCPU": "numa1"})


# The number of places


def in_zones(**vcpus: int) -> Columns:
    """Return hosts in zones that are named by the first three letters, each with this much VCPU."""
    return columns_of(**{name: EIGHT | {"capacity.VCPU": str(vcpu), "zone": name[:3]} for name, vcpu in vcpus.items()})


SPREAD = Request({"VCPU": 1}, spread=(Spread("zone"),))


def counted(request: Request, count: int) -> Request:
    return Request(request.resources, spread=request.spread, server_group=request.server_group, count=count)


@pytest.mark.parametrize(
    ("columns", "request_", "expected", "text"),
    [
        (
            in_zones(az1a=8, az1b=8, az2a=2, az2b=2), counted(SPREAD, 12),
            PlacesMiss(12, 9, "spread:zone", "max_skew 1", "spreading over zone", "zone", {"az2": 4, "az1": 12}),
            "spreading over zone (max_skew 1): az2 has room for 4, az1 has room for 12; count=9 fits, or 12 without it",
        ),
        (
            in_zones(az1a=8, az1b=8), counted(Request({"VCPU": 1}), 20), PlacesMiss(20, 16),
            "the hosts have room for 16 places: count=16 fits",
        ),
        (
            in_zones(az1a=4, az2a=1), counted(SPREAD, 7), PlacesMiss(7, 3),
            "the hosts have room for 3 places: count=3 fits",
        ),
    ],
)  # fmt: skip
def test_a_count_that_does_not_fit_names_the_rule_and_the_count_that_does(
    columns: Columns, request_: Request, expected: PlacesMiss, text: str
) -> None:
    found = explained(columns, request_)
    assert found.places == expected
    assert found.reasons == (ReasonCount(expected.rule, len(columns)),)
    assert expected.text == text
    assert text in refusal(True, request_, [found]).detail
    assert takes(columns, counted(request_, expected.fits))
    assert not takes(columns, counted(request_, expected.fits + 1))


def test_a_server_group_is_the_rule_that_limits_a_count() -> None:
    columns = in_zones(az1a=8, az2a=8)
    fields = {"version": "1", "policy": "anti-affinity", "by": "zone", "max_per_host": "2", "members": "0"}
    columns.declared.put(Kind.SERVER_GROUP, "g", fields)
    found = explained(columns, Request({"VCPU": 1}, server_group="g", count=9)).places
    assert found is not None
    assert (found.fits, found.rule, found.domains) == (4, "server_group", {"az1": 2, "az2": 2})
    assert found.text.startswith("server group g (anti-affinity, at most 2 in one zone): az1 has room for 2, ")
    assert found.text.endswith("; count=4 fits, or 9 without it")


def test_a_count_is_not_searched_for_beyond_the_effort_of_a_refusal() -> None:
    columns = in_zones(az1a=8, az1b=8, az2a=2, az2b=2)
    for tests, fits in ((1, None), (16, 9)):
        found = finished(Decider(columns, DEFAULTS).refusal_steps(counted(SPREAD, 12), tests))
        assert (found.places.fits if found.places else None) == fits
        assert found.reasons == (ReasonCount("spread:zone" if fits else "count", 4),)


def test_a_count_that_takes_too_much_work_to_find_is_left_out() -> None:
    columns = in_zones(az1a=8, az1b=8, az2a=2, az2b=2)
    decider = Decider(columns, DEFAULTS)
    with patch.object(Decider, "_all_fit", side_effect=TooMuchWork("searching", 1.0)):
        found = decider.explain(counted(SPREAD, 12))
    assert (found.places, found.reasons) == (None, (ReasonCount("count", 4),))


def test_hosts_are_not_listed_as_domains() -> None:
    """There are many, and some callers may not know them."""
    columns = in_zones(az1a=8, az2a=2)
    found = explained(columns, Request({"VCPU": 1}, spread=(Spread("host"),), count=8)).places
    assert found is not None
    assert (found.fits, found.rule, found.domains) == (5, "spread:host", {})


def test_the_check_of_a_host_has_the_rule_between_places_too() -> None:
    columns = in_zones(az1a=8, az2a=2)
    (check,) = Decider(columns, DEFAULTS).explain(counted(SPREAD, 8), "az1a").checks
    assert check.reason == "spread:zone"
    assert check.checks[-1].detail.endswith("count=5 fits, or 8 without it")


def test_every_cause_has_its_words() -> None:
    """So that a new cause is not shown as a name for programs."""
    groups = (Group("g", {"VGPU": 1}, required=frozenset(("CUSTOM_T4",))),)
    request = Request({"VCPU": 1}, groups=groups, numa=Numa((NumaCell(2, 1024),)))
    names = {name for rule in rules_of(request) for cause in rule.causes() for name in cause.reasons}
    assert {name.partition(":")[0] for name in names} == {"min_unit", "max_unit", "step_size", "numa", "traits"}
    assert not any(ReasonCount(name, 1).text.endswith(name) for name in names)
