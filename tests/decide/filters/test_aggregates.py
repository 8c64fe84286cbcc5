"""Aggregates: those that a request names, metadata that describe hosts, and metadata that restrict requests."""

from random import Random
from typing import Any

import pytest

from redsched.cache.columns import Columns
from redsched.decide.decider import Decider
from redsched.decide.filters.demands import keeps_projects
from redsched.model import Group, PciDevices, Request
from redsched.settings import Settings
from tests.support.builders.columns import FIELDS, columns_of

HOST = FIELDS | {"min.VCPU": "", "max.VCPU": "", "step.VCPU": "", "aggregate.fast": ""}
PLAIN = {"resources": {"VCPU": 4}}
AVX = "HW_CPU_X86_AVX2"


def aggregate(columns: Columns, name: str, **metadata: str) -> None:
    """Declare an aggregate with exactly these metadata."""
    fields = {f"meta.{key}": value for key, value in metadata.items()}
    columns.declared.put("aggregate", name, {"version": "1"} | fields)


def fleet() -> Columns:
    """Return h1 in aggregates a and b, h2 in b, h3 in none; the aggregates have no metadata."""
    columns = columns_of(h1=HOST | {"aggregate.a": "1", "aggregate.b": "1"}, h2=HOST | {"aggregate.b": "1"}, h3=HOST)
    aggregate(columns, "a")
    aggregate(columns, "b")
    return columns


def fitting(columns: Columns, **conditions: Any) -> list[str]:
    """Return the hosts on which a request may be placed."""
    explained = (
        Decider(columns, Settings()).explain(Request(**(PLAIN | conditions)), name) for name in columns.names()
    )
    return [one.checks[0].host for one in explained if one.checks[0].reason is None]


def refusal(columns: Columns, host: str, **conditions: Any) -> tuple[str | None, list[str]]:
    """Return why a host does not fit: the reason, and the details of each failed check."""
    found = Decider(columns, Settings()).explain(Request(**(PLAIN | conditions)), host).checks[0]
    return found.reason, [one.detail for one in found.checks if not one.ok]


# By name


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ({"member_of": (frozenset({"a"}),)}, ["h1"]),
        ({"member_of": (frozenset({"a", "b"}),)}, ["h1", "h2"]),
        ({"member_of": (frozenset({"a"}), frozenset({"b"}))}, ["h1"]),
        ({"member_of": (frozenset({"unknown"}),)}, []),
        ({"member_of": (frozenset({"unknown", "b"}),)}, ["h1", "h2"]),
        ({"not_member_of": frozenset({"a"})}, ["h2", "h3"]),
        ({"not_member_of": frozenset({"a", "b"})}, ["h3"]),
        ({"not_member_of": frozenset({"unknown"})}, ["h1", "h2", "h3"]),
    ],
)
def test_a_request_names_aggregates_and_forbids_them(conditions: dict[str, Any], expected: list[str]) -> None:
    assert fitting(fleet(), **conditions) == expected


def test_a_host_shows_in_which_aggregates_it_is() -> None:
    reason, details = refusal(fleet(), "h2", member_of=(frozenset({"c", "a"}),))
    assert (reason, details) == ("member_of:a,c", ["needs aggregate a or c, is in b"])
    assert refusal(fleet(), "h3", member_of=(frozenset({"a"}),))[1] == ["needs aggregate a, is in none"]
    reason, details = refusal(fleet(), "h1", not_member_of=frozenset({"b"}))
    assert (reason, details) == ("not_member_of", ["must not be in aggregate b, is in a, b"])


# By metadata that describe hosts


@pytest.mark.parametrize(
    ("text", "expected"),
    [("ssd", ["h1"]), ("nvme", ["h1"]), ("<or> ssd <or> hdd", ["h1", "h2"]), ("s!= hdd", ["h1"]), ("nvme, ssd", [])],
)
def test_one_value_of_one_aggregate_is_enough(text: str, expected: list[str]) -> None:
    columns = fleet()
    aggregate(columns, "a", disk="nvme, ssd")
    aggregate(columns, "b", disk="hdd")
    assert fitting(columns, aggregate_metadata={"disk": text}) == expected


@pytest.mark.parametrize("value", ["aes,mmx", "mmx, sse, aes", "mmx aes"])
def test_all_words_of_a_condition_are_in_one_value(value: str) -> None:
    columns = fleet()
    aggregate(columns, "a", flags=value)
    aggregate(columns, "b", flags="sse")
    assert fitting(columns, aggregate_metadata={"flags": "<all-in> aes mmx"}) == ["h1"]
    assert fitting(columns, aggregate_metadata={"flags": "<all-in> sse"}) == ["h1", "h2"]
    assert fitting(columns, aggregate_metadata={"flags": "<all-in> aes avx"}) == []


def test_two_keys_may_be_satisfied_by_two_aggregates() -> None:
    columns = fleet()
    aggregate(columns, "a", disk="ssd")
    aggregate(columns, "b", net="10")
    assert fitting(columns, aggregate_metadata={"disk": "ssd", "net": ">= 10"}) == ["h1"]
    reason, details = refusal(columns, "h2", aggregate_metadata={"disk": "ssd", "net": ">= 40"})
    assert reason == "aggregate_metadata:disk"
    assert details == [
        "needs an aggregate with disk ssd, has none with that key",
        "needs an aggregate with net >= 40, has b 10",
    ]


def test_metadata_of_an_aggregate_without_the_host_say_nothing_of_it() -> None:
    columns = fleet()
    aggregate(columns, "c", disk="ssd")
    assert fitting(columns, aggregate_metadata={"disk": "ssd"}) == []


# Metadata that restrict requests


def test_hosts_of_an_aggregate_for_projects_take_no_others() -> None:
    columns = fleet()
    aggregate(columns, "a", filter_tenant_id="web,db")
    assert fitting(columns, project="web") == ["h1", "h2", "h3"]
    assert fitting(columns, project="db") == ["h1", "h2", "h3"]
    assert fitting(columns, project="shop") == ["h2", "h3"]
    reason, details = refusal(columns, "h1")
    assert reason == "aggregate-projects"
    assert details == ["aggregate a is only for the projects of its filter_tenant_id, this is for no project"]


def test_lists_of_projects_count_together() -> None:
    """The lists of several keys of one aggregate, and of all aggregates of a host, are combined."""
    columns = fleet()
    aggregate(columns, "a", filter_tenant_id="web", filter_tenant_id2="db")
    aggregate(columns, "b", filter_tenant_id="shop")
    assert fitting(columns, project="db") == ["h1", "h3"]
    assert fitting(columns, project="shop") == ["h1", "h2", "h3"]
    assert fitting(columns, project="other") == ["h3"]


def test_whether_aggregates_look_at_projects_is_known() -> None:
    columns = fleet()
    assert not keeps_projects(columns.declared)
    aggregate(columns, "a", filter_tenant_id7="web")
    assert keeps_projects(columns.declared)


@pytest.mark.parametrize(
    "conditions",
    [
        {"required": frozenset({AVX})},
        {"root_required": frozenset({AVX})},
        {"groups": (Group("g", {"VCPU": 1}, required=frozenset({AVX})),)},
        {"resources": {}, "pci": (PciDevices("VCPU", required=frozenset({AVX})),)},
    ],
)
def test_a_trait_that_an_aggregate_wants_is_required_anywhere_in_a_request(conditions: dict[str, Any]) -> None:
    columns = fleet()
    aggregate(columns, "a", **{f"trait:{AVX}": "required"})
    assert fitting(columns) == ["h2", "h3"]
    assert fitting(columns, **conditions) == ["h1", "h2", "h3"]
    aggregate(columns, "a", **{f"trait:{AVX}": "forbidden"})
    assert fitting(columns) == ["h1", "h2", "h3"]
    assert fitting(columns, **conditions) == ["h2", "h3"]


def test_a_trait_that_would_only_do_is_not_required() -> None:
    columns = fleet()
    aggregate(columns, "a", **{f"trait:{AVX}": "required"})
    assert fitting(columns, any_of=(frozenset({AVX, "CUSTOM_B"}),)) == ["h2", "h3"]


def test_every_aggregate_of_a_host_has_its_say_about_traits() -> None:
    columns = fleet()
    aggregate(columns, "a", **{f"trait:{AVX}": "required"})
    aggregate(columns, "b", **{"trait:CUSTOM_B": "required"})
    assert fitting(columns, required=frozenset({AVX})) == ["h3"]
    assert refusal(columns, "h1") == (
        "aggregate-traits",
        [
            f"aggregate a is only for requests that require {AVX}; "
            "aggregate b is only for requests that require CUSTOM_B"
        ],
    )


def test_labels_are_wanted_and_forbidden_likewise() -> None:
    columns = fleet()
    aggregate(columns, "a", **{"label:rack.row": "required"})
    assert fitting(columns) == ["h2", "h3"]
    assert fitting(columns, labels={"rack.row": "s!= r5"}) == ["h1", "h2", "h3"]
    assert refusal(columns, "h1", labels={"rack.row": ""})[0] == "aggregate-labels"
    aggregate(columns, "a", **{"label:rack.row": "forbidden"})
    assert fitting(columns) == ["h1", "h2", "h3"]
    assert refusal(columns, "h1", labels={"rack.row": "r4"}) == (
        "aggregate-labels",
        ["aggregate a is not for requests that request label rack.row"],
    )


def test_what_was_written_by_hand_and_cannot_be_read_admits_nothing() -> None:
    columns = fleet()
    aggregate(columns, "a", **{f"trait:{AVX}": "maybe"})
    assert fitting(columns) == fitting(columns, required=frozenset({AVX})) == ["h2", "h3"]
    assert refusal(columns, "h1")[1] == [f"aggregate a has trait:{AVX}=maybe, which is neither required nor forbidden"]


@pytest.mark.parametrize(
    ("key", "properties", "expected"),
    [
        ("property:os", {}, ["h1", "h2", "h3"]),
        ("property:os", {"os": "linux"}, ["h1", "h2", "h3"]),
        ("property:os", {"os": "bsd"}, ["h2", "h3"]),
        ("property-required:os", {}, ["h2", "h3"]),
        ("property-required:os", {"os": "windows"}, ["h1", "h2", "h3"]),
        ("property-required:os", {"os": "bsd"}, ["h2", "h3"]),
        ("property-forbidden:os", {}, ["h1", "h2", "h3"]),
        ("property-forbidden:os", {"os": "linux"}, ["h2", "h3"]),
        ("property-forbidden:os", {"os": "bsd"}, ["h1", "h2", "h3"]),
        ("property-confined:os", {}, ["h1", "h2", "h3"]),
        ("property-confined:os", {"os": "linux"}, ["h1"]),
        ("property-confined:os", {"os": "bsd"}, ["h1", "h2", "h3"]),
        ("instance_type", {"instance_type": "linux"}, ["h1", "h2", "h3"]),
        ("instance_type", {"instance_type": "small"}, ["h2", "h3"]),
        ("instance_type", {}, ["h2", "h3"]),
        ("os", {"os": "bsd"}, ["h1", "h2", "h3"]),
    ],
)
def test_aggregates_choose_requests_by_their_properties(
    key: str, properties: dict[str, str], expected: list[str]
) -> None:
    columns = fleet()
    aggregate(columns, "a", **{key: "linux, windows"})
    assert fitting(columns, properties=properties) == expected


def test_isolated_hosts_and_what_is_isolated_on_them_keep_to_each_other() -> None:
    """The equivalent of Nova's IsolatedHostsFilter with restrict_isolated_hosts_to_isolated_images."""
    columns = fleet()
    aggregate(columns, "a", **{"property-required:image": "secret", "property-confined:image": "secret"})
    assert fitting(columns, properties={"image": "secret"}) == ["h1"]
    assert fitting(columns, properties={"image": "plain"}) == ["h2", "h3"]
    assert refusal(columns, "h2", properties={"image": "secret"}) == (
        "aggregate-properties",
        ["property image=secret goes only to aggregate a"],
    )
    assert refusal(columns, "h1", properties={"image": "plain"})[1] == [
        "aggregate a is only for the values of its property-required:image, this has plain"
    ]
    assert refusal(columns, "h1")[1] == [
        "aggregate a is only for the values of its property-required:image, this has no such property"
    ]


def test_lists_of_a_property_count_together_over_the_aggregates_of_a_host() -> None:
    columns = fleet()
    aggregate(columns, "a", **{"property-required:os": "linux"})
    aggregate(columns, "b", **{"property-required:os": "bsd"})
    assert fitting(columns, properties={"os": "bsd"}) == ["h1", "h2", "h3"]
    assert fitting(columns, properties={"os": "linux"}) == ["h1", "h3"]


def test_a_remembered_request_follows_what_aggregates_come_to_say() -> None:
    columns = fleet()
    decider, request = Decider(columns, Settings()), Request({"VCPU": 4}, project="web")
    assert decider.explain(request).fits == 3
    columns.declared.patch("aggregate", "b", {"version": "2", "meta.filter_tenant_id": "db"})
    assert decider.explain(request).fits == 1
    columns.patch("h2", {"aggregate.b": ""})
    assert decider.explain(request).fits == 2
    columns.declared.remove("aggregate", "b")
    assert decider.explain(request).fits == 3


def test_a_shape_that_was_shared_between_projects_lets_nobody_into_what_is_reserved_later() -> None:
    """Whichever project used the shape first, other requests stay out of an aggregate reserved for a project."""
    columns = fleet()
    decider = Decider(columns, Settings())
    assert decider.decide(Request({"VCPU": 4}, project="web"), Random(0)).places
    for host in columns.names():
        columns.patch(host, {"aggregate.secure": "1"})
    aggregate(columns, "secure", filter_tenant_id="web")
    assert not decider.decide(Request({"VCPU": 4}), Random(0)).places
    assert not decider.decide(Request({"VCPU": 4}, project="evil"), Random(0)).places
    assert decider.decide(Request({"VCPU": 4}, project="web"), Random(0)).places
