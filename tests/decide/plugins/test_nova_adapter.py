"""Filters and weighers written for Nova: their arguments, their results, and how their errors are reported."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import Any
from unittest import mock

import numpy as np
import pytest

from redsched.cache.columns import Columns
from redsched.decide.decider import Decider
from redsched.decide.plugins.nova import nova_filters, nova_weighers
from redsched.decide.plugins.nova.host_state import HostState
from redsched.decide.plugins.nova.request_spec import RequestSpec
from redsched.decide.plugins.registry import multipliers, plugin_registry
from redsched.decide.rules import Rule
from redsched.decide.scoring import score
from redsched.decide.work_limit import TooMuchWork, WorkLimit
from redsched.errors import InvalidRequest, PluginError
from redsched.model import CpuPolicy, Group, Hints, Numa, NumaCell, PciDevices, Request
from redsched.settings import Settings
from tests.support.builders.columns import columns_of
from tests.support.builders.decisions import hosts_of
from tests.support.builders.weighed import aggregate, raw_of, value_of
from tests.support.fleets import novas

NOVAS = "tests.support.fleets.novas."
USUAL = {"version": "1", "epoch": "1-a", "status": "enabled", "alive": "1", "capacity.VCPU": "10", "zone": "az1"}
SMALL = Request({"VCPU": 1, "MEMORY_MB": 100})


def rule(name: str, request: Request = SMALL) -> Rule:
    [made] = nova_filters([NOVAS + name])
    [found] = made(request)
    return found


def passing(name: str, columns: Columns, request: Request = SMALL) -> dict[str, bool]:
    rows = np.array([columns.row(host) for host in columns.names()])
    return dict(zip(columns.names(), rule(name, request).passes(columns, rows).tolist(), strict=True))


def memory(**free: str) -> Columns:
    return columns_of(**{host: USUAL | {"capacity.MEMORY_MB": text} for host, text in free.items()})


# Filters


def test_a_filter_for_nova_removes_the_hosts_that_do_not_pass_it() -> None:
    found, columns = rule("RamFilter"), memory(a="100", b="99")
    assert found.reason == "nova:RamFilter"
    assert found.dynamic
    assert passing("RamFilter", columns) == {"a": True, "b": False}
    assert [bool(found.passes(columns, row)) for row in (0, 1)] == [True, False]
    assert [found.detail(columns, row) for row in (0, 1)] == ["RamFilter passes it", "RamFilter does not pass it"]


def test_a_class_needs_no_base_class() -> None:
    columns = columns_of(a=USUAL | {"aggregate.red": "1"}, b=USUAL)
    aggregate(columns, "red", {"tenant": "red"})
    assert passing("TenantFilter", columns) == {"a": False, "b": True}
    assert passing("TenantFilter", columns, Request({"VCPU": 1}, project="red")) == {"a": True, "b": True}


def test_a_filter_of_all_hosts_is_given_all_hosts() -> None:
    columns = columns_of(a=USUAL | {"claims": "2"}, b=USUAL | {"claims": "1"}, c=USUAL | {"claims": "1"})
    assert passing("FewestFilter", columns) == {"a": False, "b": True, "c": True}


def test_a_filter_that_says_stop_leaves_no_host() -> None:
    assert passing("NoneFilter", columns_of(a=USUAL)) == {"a": False}


def test_filters_and_weighers_for_nova_decide_with_all_others() -> None:
    settings = Settings(
        nova_filters=(NOVAS + "TenantFilter",),
        nova_weighers=(NOVAS + "RAMWeigher",),
        weights={"spread": 0},
    )
    columns = memory(a="300", b="200", c="900", d="50")
    columns.patch("c", {"version": "2", "aggregate.red": "1"})
    aggregate(columns, "red", {"tenant": "red"})
    decider = Decider(columns, settings)
    assert hosts_of(decider.decide(SMALL, Random(0))) == [("a", "b")]
    reasons = {one.reason: one.hosts for one in decider.explain(SMALL).reasons}
    assert reasons == {"MEMORY_MB": 1, "nova:TenantFilter": 1}


def test_explanations_ask_a_class_only_of_hosts_that_pass_all_else() -> None:
    columns = columns_of(a=USUAL, b=USUAL | {"label.ip": "10.0.0.7"}, c=USUAL | {"label.ip": "10.0.0.8"})
    decider = Decider(columns, Settings(nova_filters=(NOVAS + "AddressFilter",)))
    found = decider.explain(Request({"VCPU": 1}, hints=Hints(build_near_host_ip="10.0.0.1")), "a", "b", "c")
    assert {one.reason: one.hosts for one in found.reasons} == {"build_near_host_ip": 1, "nova:AddressFilter": 1}
    checks = {one.host: {check.name: check.ok for check in one.checks} for one in found.checks}
    assert "nova:AddressFilter" not in checks["a"]
    assert (checks["b"]["nova:AddressFilter"], checks["c"]["nova:AddressFilter"]) == (True, False)
    assert {one.host for one in found.nearest} == {"a", "c"}


# Weighers


def test_a_weigher_for_nova_is_stretched_from_its_minval_and_multiplied_by_its_own() -> None:
    columns = memory(a="100", b="400", c="200")
    columns.patch("c", {"version": "2", "aggregate.x": "1"})
    aggregate(columns, "x", {"ram_x": "-4"})
    known = plugin_registry(Settings(nova_weighers=(NOVAS + "RAMWeigher",), weights={"spread": 0}))
    one = known.weighers["RAMWeigher"]
    assert raw_of(one, columns) == {"a": 100.0, "b": 400.0, "c": 200.0}
    assert value_of(one, columns) == {"a": 0.25, "b": 1.0, "c": 0.5}
    rows = np.arange(3)
    assert score(columns, SMALL, multipliers(SMALL, known), rows).tolist() == [0.5, 2.0, -2.0]
    doubled = Request({"VCPU": 1}, weights={"RAMWeigher": 2.0})
    assert score(columns, doubled, multipliers(doubled, known), rows).tolist() == [1.0, 4.0, -4.0]
    unwanted = multipliers(Request({"VCPU": 1}, weights={"RAMWeigher": 0}), known)
    assert "RAMWeigher" not in {weigher.name for weigher in unwanted}


def test_a_weigher_without_a_base_class_is_held_to_its_ends() -> None:
    columns = columns_of(
        **{host: USUAL | {"metric.power": text} for host, text in (("a", "-5"), ("b", "5"), ("c", "50"))}
    )
    one = nova_weighers([NOVAS + "PlainWeigher"])["PlainWeigher"]
    assert value_of(one, columns) == {"a": 0.0, "b": 0.5, "c": 1.0}
    assert one.multiplied(columns, 0, 3.0) == 3.0


def test_affinity_can_be_read_from_instances_and_members() -> None:
    columns = columns_of(a=USUAL | {"claims": "3"}, b=USUAL | {"claims": "1"})
    columns.declared.put("server-group", "g", {"version": "1", "policy": "soft-affinity", "count.host=a": "2"})
    one = nova_weighers([NOVAS + "AffinityWeigher"])["AffinityWeigher"]
    assert raw_of(one, columns, Request({"VCPU": 1}, server_group="g")) == {"a": 2.0, "b": 0.0}
    assert raw_of(one, columns) == {"a": 0.0, "b": 0.0}
    assert len(HostState(_columns=columns, _row=0, _request=None).instances) == 3


# The limit of work


@pytest.mark.parametrize("name", ["RamFilter", "TenantFilter"])
def test_a_filter_goes_through_hosts_only_as_far_as_the_limit_allows(name: str) -> None:
    columns = memory(**{f"h{number}": "500" for number in range(50)})
    with WorkLimit(1e-6, 1.0).working(), pytest.raises(TooMuchWork, match="asking classes written for Nova"):
        passing(name, columns)


@pytest.mark.parametrize("name", ["RAMWeigher", "PlainWeigher"])
def test_so_does_a_weigher(name: str) -> None:
    columns = memory(**{f"h{number}": "500" for number in range(50)})
    one = nova_weighers([NOVAS + name])[name]
    with WorkLimit(1e-6, 1.0).working(), pytest.raises(TooMuchWork, match="asking classes written for Nova"):
        one.raw(columns, SMALL, np.arange(50))


# Their arguments

HOST = USUAL | {
    "capacity.MEMORY_MB": "1000",
    "claimed.MEMORY_MB": "300",
    "capacity.numa0/MEMORY_MB": "500",
    "external.numa0/MEMORY_MB": "100",
    "claimed.VCPU": "3",
    "external.VCPU": "1",
    "capacity.DISK_GB": "20",
    "claimed.DISK_GB": "5",
    "claims": "4",
    "starting": "2",
    "failures": "1",
    "status": "draining",
    "metric.power": "12.5",
    "trait.HW_CPU_X86_AVX2": "1",
    "label.ip": "10.0.0.7",
    "label.hypervisor_version": "8.2.0",
    "label.hypervisor_type": "QEMU",
    "label.architecture": "x86_64",
    "capacity.pf0/SRIOV_NET_VF": "8",
    "aggregate.ssd": "1",
}


def state_of(fields: dict[str, str]) -> HostState:
    columns = columns_of(h1=fields)
    aggregate(columns, "ssd", {"ssd": "true"})
    return HostState(_columns=columns, _row=0, _request=None)


@pytest.mark.parametrize(
    ("attribute", "value"),
    {
        "host": "h1",
        "nodename": "h1",
        "total_usable_ram_mb": 1500,
        "free_ram_mb": 1100,
        "total_usable_disk_gb": 20,
        "free_disk_mb": 15 * 1024,
        "disk_mb_used": 5 * 1024,
        "vcpus_total": 10,
        "vcpus_used": 4,
        "cpu_allocation_ratio": 1.0,
        "num_instances": 4,
        "num_io_ops": 2,
        "failed_builds": 1,
        "host_ip": "10.0.0.7",
        "hypervisor_type": "QEMU",
        "hypervisor_version": 8002000,
        "hypervisor_hostname": "h1",
        "supported_instances": [["x86_64", "qemu", None]],
        "numa_topology": None,
        "limits": {},
    }.items(),
)
def test_a_host_state_says_of_a_row_what_nova_would(attribute: str, value: Any) -> None:
    assert getattr(state_of(HOST), attribute) == value


def test_a_host_state_has_aggregates_metrics_devices_features_and_labels() -> None:
    state = state_of(HOST)
    found = {one.name: one.metadata for one in state.aggregates}
    assert found == {"ssd": {"ssd": "true"}, "az1": {"availability_zone": "az1"}}
    assert [(one.name, one.value) for one in state.metrics] == [("power", 12.5)]
    assert state.pci_stats.pools == [{"resource_class": "SRIOV_NET_VF", "count": 8}]
    assert json.loads(state.cpu_info) == {"arch": "x86_64", "features": ["avx2"]}
    assert state.stats["hypervisor_type"] == "QEMU"
    assert state.stats["num_instances"] == 4


def test_a_host_state_may_be_written_to_and_each_has_its_own() -> None:
    state, other = state_of(HOST), state_of(HOST)
    state.limits["memory_mb"] = 5
    state.free_ram_mb = 1  # type: ignore[attr-defined]  # as Nova's classes do
    assert (state.limits, state.free_ram_mb) == ({"memory_mb": 5}, 1)
    assert (other.limits, other.free_ram_mb) == ({}, 1100)


def test_a_bare_host_has_nothing_to_say_and_fails_nobody() -> None:
    state = state_of({"version": "1"})
    assert (state.aggregates, state.metrics, state.supported_instances, state.instances) == ([], [], [], {})
    assert (state.hypervisor_version, state.host_ip, state.free_ram_mb) == (None, None, 0)


def test_totals_are_without_allocation_ratios_and_pools_that_differ_have_a_common_one() -> None:
    fields = {"capacity.VCPU": "32", "ratio.VCPU": "4", "claimed.VCPU": "10", "external.VCPU": "1"}
    fields |= {"capacity.MEMORY_MB": "1500", "ratio.MEMORY_MB": "1.5", "claimed.MEMORY_MB": "1200"}
    fields |= {"capacity.d0/DISK_GB": "20", "ratio.d0/DISK_GB": "2", "capacity.d1/DISK_GB": "10"}
    state = state_of(fields)
    assert (state.vcpus_total, state.vcpus_used, state.cpu_allocation_ratio) == (8, 11, 4.0)
    assert (state.total_usable_ram_mb, state.free_ram_mb, state.ram_allocation_ratio) == (1000, -200, 1.5)
    assert (state.total_usable_disk_gb, state.free_disk_mb, state.disk_allocation_ratio) == (20, 20 * 1024, 1.5)


@pytest.mark.parametrize(
    ("labels", "supported"),
    [
        ({"arch": "aarch64"}, [["aarch64", None, None]]),
        ({"arch": "aarch64", "architecture": "x86_64"}, [["x86_64", None, None]]),
        ({"hypervisor_type": "QEMU,kvm", "vm_mode": "HVM"}, [[None, "kvm", "hvm"], [None, "qemu", "hvm"]]),
        ({"rack": "r1"}, []),
    ],
)
def test_supported_instances_are_labels_of_which_agents_report_one(
    labels: dict[str, str], supported: list[list[str | None]]
) -> None:
    assert state_of({f"label.{key}": text for key, text in labels.items()}).supported_instances == supported


def test_cpu_info_is_json_that_can_be_asked_like_a_mapping() -> None:
    info = state_of({"label.arch": "aarch64"}).cpu_info
    assert json.loads(info) == {"arch": "aarch64", "features": []}
    assert (info.get("arch"), info.get("maxphysaddr", {})) == ("aarch64", {})


@pytest.mark.parametrize(
    ("fields", "disabled", "down"),
    [(USUAL, False, False), (USUAL | {"status": "disabled"}, True, False), (USUAL | {"alive": "0"}, False, True)],
)
def test_a_service_is_up_while_the_lease_of_its_host_is_valid(
    fields: dict[str, str], disabled: bool, down: bool
) -> None:
    before = datetime.now(UTC)
    service = state_of(fields).service
    assert (service["host"], service["disabled"], service["forced_down"]) == ("h1", disabled, down)
    assert before <= service["last_seen_up"] <= datetime.now(UTC)


def test_what_a_request_may_name_is_no_attribute_of_our_own() -> None:
    """Nova looks up the capabilities that a request names as attributes of a host, and only then in `stats`."""
    state = state_of({"label.kind": "big", "label.row": "7"})
    novas = {"host", "nodename", "uuid", "stats", "free_ram_mb"}
    assert all(hasattr(state, name) for name in novas)
    assert not any(hasattr(state, name) for name in ("kind", "row", "columns", "request", "free", "capacity", "label"))
    assert (state.stats["kind"], state.stats["row"]) == ("big", "7")


def test_a_pool_of_devices_never_has_less_than_none() -> None:
    over = {"capacity.pf0/SRIOV_NET_VF": "2", "claimed.pf0/SRIOV_NET_VF": "3"}
    assert state_of(over).pci_stats.pools == [{"resource_class": "SRIOV_NET_VF", "count": 0}]


REQUEST = Request(
    {"VCPU": 2, "MEMORY_MB": 512, "DISK_GB": 10},
    groups=(Group("1", {"CUSTOM_GPU_MILLI": 500}),),
    required=frozenset({"HW_CPU_X86_AVX2"}),
    forbidden=frozenset({"CUSTOM_OLD"}),
    zones=frozenset({"az1"}),
    exclude_hosts=frozenset({"h9"}),
    labels={"rack": "r1"},
    aggregate_metadata={"ssd": "true"},
    properties={"flavor": "m1.small", "os_type": "linux"},
    server_group="g",
    pci=(PciDevices("SRIOV_NET_VF", 2),),
    hints=Hints(same_host=frozenset({"c1", "c2"}), build_near_host_ip="10.0.0.7", cidr="/16"),
    project="red",
    consumer="ann",
    count=2,
)


def spec_of(request: Request) -> RequestSpec:
    columns = columns_of(a=USUAL)
    fields = {"version": "1", "policy": "anti-affinity", "max_per_host": "2", "count.host=a": "1", "members": "1"}
    columns.declared.put("server-group", "g", fields)
    return RequestSpec(_request=request, _columns=columns)


@pytest.mark.parametrize(
    ("attribute", "value"),
    {
        "vcpus": 2,
        "memory_mb": 512,
        "root_gb": 10,
        "ephemeral_gb": 0,
        "project_id": "red",
        "user_id": "ann",
        "availability_zone": "az1",
        "num_instances": 2,
        "instance_uuid": None,
        "ignore_hosts": ["h9"],
        "force_hosts": [],
        "numa_topology": None,
        "scheduler_hints": {
            "same_host": ["c1", "c2"],
            "build_near_host_ip": ["10.0.0.7"],
            "cidr": ["/16"],
            "group": ["g"],
        },
    }.items(),
)
def test_a_request_spec_says_of_a_request_what_nova_would(attribute: str, value: Any) -> None:
    assert getattr(spec_of(REQUEST), attribute) == value


def test_a_request_spec_has_a_flavor_with_extra_specs_and_an_image() -> None:
    spec = spec_of(REQUEST)
    assert (spec.flavor.name, spec.flavor.vcpus) == ("m1.small", 2)
    assert spec.flavor.extra_specs == {
        "resources:CUSTOM_GPU_MILLI": "500",
        "resources:SRIOV_NET_VF": "2",
        "trait:HW_CPU_X86_AVX2": "required",
        "trait:CUSTOM_OLD": "forbidden",
        "capabilities:rack": "r1",
        "aggregate_instance_extra_specs:ssd": "true",
    }
    properties = spec.image.properties
    assert (properties.os_type, properties.get("os_type"), properties.get("other", 7)) == ("linux", "linux", 7)
    assert properties.to_dict() == {"flavor": "m1.small", "os_type": "linux"}
    assert ("os_type" in properties, "other" in properties) == (True, False)
    assert [(one.resource_class, one.count) for one in spec.pci_requests.requests] == [("SRIOV_NET_VF", 2)]


@pytest.mark.parametrize(
    ("properties", "image", "flavor"),
    [
        ({}, None, ""),
        ({"image": "img-1", "instance_type": "m1.tiny"}, "img-1", "m1.tiny"),
        ({"flavor": "m1.small", "instance_type": "m1.tiny"}, None, "m1.small"),
    ],
)
def test_image_and_flavor_are_named_by_properties(properties: dict[str, str], image: str | None, flavor: str) -> None:
    spec = spec_of(Request({"VCPU": 1}, properties=properties))
    assert (spec.image.id, spec.flavor.name) == (image, flavor)


def test_a_label_that_a_host_must_not_have_is_no_extra_spec() -> None:
    spec = spec_of(Request({"VCPU": 1}, labels={"rack": "", "row": "7"}))
    assert spec.flavor.extra_specs == {"capabilities:row": "7"}


@pytest.mark.parametrize(("given", "hint"), [("/16", "/16"), ("16", "/16"), ("", "/24")])
def test_a_prefix_has_its_slash(given: str, hint: str) -> None:
    hints = Hints(build_near_host_ip="10.0.0.7", cidr=given)
    assert spec_of(Request({"VCPU": 1}, hints=hints)).get_scheduler_hint("cidr", "/24") == hint


@pytest.mark.parametrize(("by", "known"), [("host", True), ("zone", False), ("label:rack", False)])
def test_only_groups_that_count_by_host_are_novas(by: str, known: bool) -> None:
    columns = columns_of(a=USUAL)
    fields = {"version": "1", "policy": "affinity", "by": by, "count.host=a": "1", "members": "1"}
    columns.declared.put("server-group", "g", fields)
    group = RequestSpec(_request=Request({"VCPU": 1}, server_group="g"), _columns=columns).instance_group
    assert (group is not None) is known
    assert group is None or group.policies == ["affinity"]


def test_a_request_spec_has_the_server_group_and_hints_in_novas_ways() -> None:
    spec = spec_of(REQUEST)
    group = spec.instance_group
    assert (group.policy, group.rules, group.hosts, len(group.members)) == (
        "anti-affinity",
        {"max_server_per_host": 2},
        ["a"],
        1,
    )
    assert spec.get_scheduler_hint("same_host") == ["c1", "c2"]
    assert spec.get_scheduler_hint("cidr") == "/16"
    assert spec.get_scheduler_hint("different_host", []) == []
    assert spec_of(SMALL).instance_group is None
    assert "scheduler_hints" in spec
    assert not spec.obj_attr_is_set("colour")
    assert spec.obj_clone().vcpus == 2


def test_pinned_cpus_and_huge_pages_are_cpus_and_memory_of_the_flavor() -> None:
    spec = spec_of(Request(numa=Numa((NumaCell(4, 1024), NumaCell(2, 1024)), CpuPolicy.DEDICATED, 2048)))
    assert (spec.vcpus, spec.memory_mb) == (6, 2048)
    assert spec.flavor.extra_specs["hw:numa_nodes"] == "2"
    assert spec.flavor.extra_specs["hw:cpu_policy"] == "dedicated"


# Errors


def test_an_attribute_that_there_is_not_is_reported_with_class_and_host() -> None:
    message = "class CuriousFilter failed on host a: AttributeError: redsched's stand-in for Nova's HostState has no "
    with pytest.raises(PluginError, match=message + "attribute 'colour'"):
        Decider(memory(a="500"), Settings(nova_filters=(NOVAS + "CuriousFilter",))).decide(SMALL, Random(0))


def test_the_host_is_named_also_if_the_class_goes_through_all_of_them() -> None:
    columns = memory(a="500", b="400", c="300")
    with pytest.raises(PluginError, match="class CuriousBaseFilter failed on host b: AttributeError"):
        passing("CuriousBaseFilter", columns)
    one = nova_weighers([NOVAS + "CuriousWeigher"])["CuriousWeigher"]
    with pytest.raises(PluginError, match="class CuriousWeigher failed on host b: AttributeError"):
        one.raw(columns, SMALL, np.arange(3))


def breaks(hosts: list[HostState]) -> None:
    for one in hosts:
        if one.host == "b":
            break
    raise ValueError("metric of c")


def takes_the_first(hosts: list[HostState]) -> None:
    next(one for one in hosts if one.host == "b")
    raise ValueError("metric of c")


def goes_through_all(hosts: list[HostState]) -> None:
    len([one for one in hosts if one.host == "b"])
    raise ValueError("metric of c")


def fails_in_a_loop(hosts: list[HostState]) -> None:
    for one in hosts:
        if one.host == "b":
            raise ValueError("metric of b")


def fails_in_a_comprehension(hosts: list[HostState]) -> None:
    len([int("x" * (one.host == "b") or "1") for one in hosts])


def breaks_and_fails_later(hosts: list[HostState]) -> None:
    for one in hosts:
        if one.host == "a":
            break
    fails_in_a_loop(hosts)


@pytest.mark.parametrize(
    ("going", "at"),
    [
        (breaks, ""),
        (takes_the_first, ""),
        (goes_through_all, ""),
        (fails_in_a_loop, " on host b"),
        (fails_in_a_comprehension, " on host b"),
        (breaks_and_fails_later, " on host b"),
    ],
)
def test_a_host_is_named_only_while_a_class_goes_through_them(
    going: Callable[[list[HostState]], None], at: str
) -> None:
    with (
        mock.patch.object(novas.NoneFilter, "filter_all", lambda _, hosts, spec: going(hosts)),
        pytest.raises(PluginError, match=f"class NoneFilter failed{at}: ValueError"),
    ):
        passing("NoneFilter", memory(a="500", b="400", c="300"))


def test_a_weigher_that_does_not_weigh_each_host_is_reported() -> None:
    one = nova_weighers([NOVAS + "ShortWeigher"])["ShortWeigher"]
    with pytest.raises(PluginError, match="class ShortWeigher returned 1 weights for 3 hosts"):
        one.raw(memory(a="500", b="400", c="300"), SMALL, np.arange(3))


def test_a_weigher_that_fails_is_reported_likewise() -> None:
    one = nova_weighers([NOVAS + "PlainWeigher"])["PlainWeigher"]
    with pytest.raises(PluginError, match="class PlainWeigher failed on host a: StopIteration"):
        one.raw(memory(a="500"), SMALL, 0)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("RamFilter", "REDSCHED_NOVA_FILTERS names 'RamFilter': give the import path of a class"),
        (NOVAS + "Absent", "names 'tests.support.fleets.novas.Absent', which cannot be instantiated: AttributeError"),
        ("no.such.module.Filter", "which cannot be instantiated: ModuleNotFoundError"),
        (NOVAS + "NeedsArguments", "which cannot be instantiated: TypeError"),
        (NOVAS + "Nothing", "'tests.support.fleets.novas.Nothing', which has no method host_passes or filter_all"),
    ],
)
def test_what_is_no_class_for_nova_is_refused(path: str, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        plugin_registry(Settings(nova_filters=(path,)))


def test_a_class_that_is_named_twice_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="two classes of the same name"):
        plugin_registry(Settings(nova_weighers=(NOVAS + "RAMWeigher", NOVAS + "RAMWeigher")))


def test_the_settings_are_comma_separated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REDSCHED_NOVA_FILTERS", "a.B, c.D")
    monkeypatch.setenv("REDSCHED_NOVA_WEIGHERS", "")
    assert (Settings().nova_filters, Settings().nova_weighers) == (("a.B", "c.D"), ())
