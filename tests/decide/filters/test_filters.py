"""The filters: the hosts that each rejects, with which reason and which details."""

from typing import Any

import pytest

from redsched.cache.columns import Columns
from redsched.decide.decider import Decider
from redsched.errors import InvalidRequest
from redsched.model import Hints, Request
from redsched.model.records.explanations import HostCheck
from redsched.settings import Settings
from tests.support.builders.columns import FIELDS, columns_of

HOST = FIELDS | {"min.VCPU": "", "max.VCPU": "", "step.VCPU": ""}

NEAR = Hints(build_near_host_ip="10.0.0.5")


def check(columns: Columns, host: str = "h1", **conditions: Any) -> HostCheck:
    request = Request(**({"resources": {"VCPU": 4}} | conditions))
    return Decider(columns, Settings()).explain(request, host).checks[0]


@pytest.mark.parametrize(
    ("fields", "conditions", "reason", "detail"),
    [
        ({"alive": "0"}, {}, "down", "no heartbeat within its lease"),
        ({"epoch": "0-z"}, {}, "not-attested", "attested to epoch 0-z, the cell's is 1-a"),
        ({"epoch": ""}, {}, "not-attested", "attested to epoch none, the cell's is 1-a"),
        ({"status": "disabled"}, {}, "disabled", "disabled"),
        ({"status": "draining"}, {}, "draining", "draining"),
        ({}, {"zones": frozenset({"az2", "az3"})}, "zone", "needs zone az2 or az3, is az1"),
        ({"zone": ""}, {"zones": frozenset({"az2"})}, "zone", "needs zone az2, is none"),
        ({}, {"hosts": frozenset({"h2"})}, "hosts", "is none of the requested hosts"),
        ({}, {"exclude_hosts": frozenset({"h1"})}, "exclude_hosts", "is one of the excluded hosts"),
        ({}, {"required": frozenset({"CUSTOM_A"})}, "required:CUSTOM_A", "needs CUSTOM_A, does not have it"),
        (
            {},
            {"forbidden": frozenset({"HW_CPU_X86_AVX2"})},
            "forbidden:HW_CPU_X86_AVX2",
            "must not have HW_CPU_X86_AVX2, has it",
        ),
        (
            {},
            {"any_of": (frozenset({"CUSTOM_B", "CUSTOM_A"}),)},
            "any_of:CUSTOM_A,CUSTOM_B",
            "needs CUSTOM_A or CUSTOM_B, has none of them",
        ),
        ({}, {"labels": {"rack.row": "r5"}}, "labels:rack.row", "needs rack.row=r5, has r4"),
        ({}, {"labels": {"floor": "1"}}, "labels:floor", "needs floor=1, has no such label"),
        (
            {},
            {"labels": {"rack.row": "<or> r1 <or> r2"}},
            "labels:rack.row",
            "needs rack.row <or> r1 <or> r2, has r4",
        ),
        ({}, {"labels": {"floor": "!= 1"}}, "labels:floor", "needs floor != 1, has no such label"),
        (
            {},
            {"root_required": frozenset({"CUSTOM_A"})},
            "root_required:CUSTOM_A",
            "needs CUSTOM_A itself, does not have it",
        ),
        (
            {},
            {"root_forbidden": frozenset({"HW_CPU_X86_AVX2"})},
            "root_forbidden:HW_CPU_X86_AVX2",
            "must not have HW_CPU_X86_AVX2, has it",
        ),
        (
            {"label.ip": "10.0.1.7"},
            {"hints": NEAR},
            "build_near_host_ip",
            "needs an address in 10.0.0.0/24, has 10.0.1.7",
        ),
        ({}, {"hints": NEAR}, "build_near_host_ip", "needs an address in 10.0.0.0/24, has no label ip"),
        (
            {"label.ip": "ten"},
            {"hints": NEAR},
            "build_near_host_ip",
            "needs an address in 10.0.0.0/24, has ten, which is not an address",
        ),
        (
            {},
            {"query": ("and", (">", "$free.VCPU", 60), ("=", "$zone", "az1"))},
            "query",
            'needs ["and", [">", "$free.VCPU", 60], ["=", "$zone", "az1"]], and here $free.VCPU is 60, $zone is az1',
        ),
        ({"claimed.VCPU": "61"}, {}, "VCPU", "needs 4 VCPU, free 2"),
        ({"claimed.VCPU": "70"}, {}, "VCPU", "needs 4 VCPU, free -7"),
        ({"min.VCPU": "6", "max.VCPU": "9"}, {}, "min_unit:VCPU", "needs 4 VCPU, free 60; min_unit is 6"),
        ({"step.VCPU": "3"}, {}, "step_size:VCPU", "needs 4 VCPU, free 60; step_size is 3"),
        ({}, {"resources": {"CUSTOM_GPU": 1}}, "CUSTOM_GPU", "needs 1 CUSTOM_GPU, free 0"),
    ],
)
def test_a_host_that_fails_one_check_is_told_which_and_why(
    fields: dict[str, str], conditions: dict[str, Any], reason: str, detail: str
) -> None:
    found = check(columns_of(h1=HOST | fields), "h1", **conditions)
    assert found.reason == reason
    assert [one.detail for one in found.checks if not one.ok] == [detail]


def test_a_host_that_fits_passes_every_check() -> None:
    found = check(
        columns_of(h1=HOST),
        zones=frozenset({"az1"}),
        hosts=frozenset({"h1"}),
        exclude_hosts=frozenset({"h2"}),
        required=frozenset({"HW_CPU_X86_AVX2"}),
        forbidden=frozenset({"CUSTOM_A"}),
        any_of=(frozenset({"CUSTOM_A", "HW_CPU_X86_AVX2"}),),
        labels={"rack.row": "r4"},
    )
    assert found.reason is None
    assert [one.name for one in found.checks] == [
        "zone",
        "hosts",
        "exclude_hosts",
        "down",
        "not-attested",
        "disabled",
        "draining",
        "aggregate-projects",
        "aggregate-traits",
        "aggregate-labels",
        "aggregate-properties",
        "required:HW_CPU_X86_AVX2",
        "forbidden:CUSTOM_A",
        "any_of:CUSTOM_A,HW_CPU_X86_AVX2",
        "labels:rack.row",
        "VCPU",
        "max_claims_per_host",
        "max_starting_per_host",
    ]
    assert all(one.ok for one in found.checks)


def test_a_host_counts_once_under_the_first_reason() -> None:
    columns = columns_of(h1=HOST | {"alive": "0", "claimed.VCPU": "64"}, h2=HOST | {"claimed.VCPU": "64"}, h3=HOST)
    explanation = Decider(columns, Settings()).explain(Request({"VCPU": 4}))
    assert [(count.reason, count.hosts) for count in explanation.reasons] == [("down", 1), ("VCPU", 1)]
    assert (explanation.hosts, explanation.fits) == (3, 1)


def test_a_label_asked_for_as_empty_is_one_that_the_host_lacks() -> None:
    columns = columns_of(h1=HOST, h2=HOST | {"label.rack.row": ""})
    assert check(columns, "h1", labels={"rack.row": ""}).reason == "labels:rack.row"
    assert check(columns, "h2", labels={"rack.row": ""}).reason is None
    assert check(columns, "h1", labels={"floor": ""}).reason is None


def test_codes_used_again_are_not_taken_for_what_they_were() -> None:
    columns = columns_of(h1=HOST | {"zone": "old"}, h2=HOST)
    decider, request = Decider(columns, Settings()), Request({"VCPU": 4}, zones=frozenset({"old"}))
    assert decider.explain(request).fits == 1
    columns.patch("h1", {"zone": ""})
    columns.patch("h2", {"zone": "new"})
    assert decider.explain(request).fits == 0


@pytest.mark.parametrize(
    ("address", "cidr", "near"),
    [
        ("10.0.0.200", "", True),
        ("10.0.1.1", "", False),
        ("10.0.1.1", "/16", True),
        ("10.0.0.4", "31", True),
        ("10.0.0.6", "31", False),
        ("fe80::1", "/8", False),
    ],
)
def test_a_host_is_near_an_address_by_its_network(address: str, cidr: str, near: bool) -> None:
    hints = Hints(build_near_host_ip="10.0.0.5", cidr=cidr)
    found = check(columns_of(h1=HOST | {"label.ip": address}), "h1", hints=hints)
    assert (found.reason is None) == near


# HOST has a GPU in a separate pool.
A_GPU = {"resources": {"VCPU": 4, "CUSTOM_GPU_MILLI": 100}}
T4 = frozenset({"CUSTOM_GPU_T4"})


def test_a_required_trait_may_be_that_of_a_pool() -> None:
    columns = columns_of(h1=HOST, h2=HOST | {"trait.gpu0/CUSTOM_GPU_T4": ""})
    assert check(columns, "h1", **A_GPU, required=T4).reason is None
    assert check(columns, "h1", **A_GPU, any_of=(T4 | {"CUSTOM_B"},)).reason is None
    assert check(columns, "h2", **A_GPU, required=T4).reason == "required:CUSTOM_GPU_T4"
    assert check(columns, "h1", **A_GPU, root_required=T4).reason == "root_required:CUSTOM_GPU_T4"


def test_a_forbidden_trait_of_a_pool_forbids_that_pool_and_not_the_host() -> None:
    columns = columns_of(h1=HOST)
    assert check(columns, "h1", forbidden=T4).reason is None
    assert check(columns, "h1", root_forbidden=T4).reason is None


def test_a_required_trait_may_be_that_of_a_shared_pool_which_the_host_may_use() -> None:
    columns = columns_of(h1=HOST | {"aggregate.a": "1"}, h2=HOST)
    pool = {"version": "1", "capacity.DISK_GB": "9", "trait.CUSTOM_SHARED": "1"}
    columns.declared.put("pool", "nfs", pool | {"aggregate.a": "1"})
    needs = {"resources": {"VCPU": 4, "DISK_GB": 1}, "required": frozenset({"CUSTOM_SHARED"})}
    assert check(columns, "h1", **needs).reason is None
    assert check(columns, "h2", **needs).reason == "required:CUSTOM_SHARED"
    columns.declared.put("pool", "nfs", pool)
    assert check(columns, "h2", **needs).reason is None


@pytest.mark.parametrize(
    "conditions",
    [{"labels": {"rack": ">= high"}}, {"aggregate_metadata": {"tier": "<or>"}}, {"query": ("~", 1, 2)}],
)
def test_a_malformed_condition_is_refused_before_any_host_is_examined(conditions: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        check(columns_of(), **conditions)
