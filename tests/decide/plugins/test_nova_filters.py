"""Nova's own filter classes give the same verdict on our stand-ins as on Nova's objects, if Nova is installed.

Each case describes one host and one request twice: for redsched, and as Nova itself has them.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest

from redsched.cache.columns import Columns
from redsched.decide.plugins.nova.catalogue import FILTER_PACKAGE, FILTERS, path_of
from redsched.decide.plugins.registry import plugin_registry
from redsched.errors import InvalidRequest
from redsched.model import CpuPolicy, Hints, Numa, NumaAffinity, NumaCell, PciDevices, Request
from redsched.settings import Settings
from tests.support.builders.columns import columns_of
from tests.support.builders.weighed import aggregate
from tests.support.fleets import novas_own as novas

pytestmark = pytest.mark.filterwarnings("ignore")  # Nova's libraries emit warnings about each other

CONF = """
[DEFAULT]
service_down_time = 60
[filter_scheduler]
max_io_ops_per_host = 3
max_instances_per_host = 5
isolated_hosts = h1,h7
isolated_images = img-1
[metrics]
weight_setting = power=-2.0, noise=0.5
"""
FEW = {"max_io_ops_per_host": "2", "max_instances_per_host": "2"}
RED = {"filter_tenant_id": "red,blue"}
SSD = {"ssd": "true", "rack": "r1,r2"}
LINUX = {"os_type": "linux", "instance_type": "m1.small, m1.large"}
METADATA = {"few": FEW, "red": RED, "ssd": SSD, "linux": LINUX}
IN = {name: {f"aggregate.{name}": "1"} for name in METADATA}
ALIVE = {"status": "enabled", "alive": "1"}
SMALL = Request({"VCPU": 1})
GROUPED = Request({"VCPU": 1}, server_group="g")
QEMU = {"label.arch": "x86_64", "label.hypervisor_type": "QEMU", "label.vm_mode": "hvm"}
QEMUS = {"supported_instances": [["x86_64", "qemu", "hvm"]]}


class Case(NamedTuple):
    """One host and one request, for redsched and for Nova, and whether the host passes."""

    name: str
    passes: bool
    fields: Mapping[str, str] = MappingProxyType({})
    request: Request = SMALL
    host: Callable[[], dict[str, Any]] = dict
    spec: Callable[[], dict[str, Any]] = dict
    group: Mapping[str, str] = MappingProxyType({})
    on: str = "h1"


def within(*names: str) -> Callable[[], dict[str, Any]]:
    return lambda: {"aggregates": novas.aggregates(**{name: METADATA[name] for name in names})}


def properties(**texts: str) -> Request:
    return Request({"VCPU": 1}, properties=texts)


def image(**texts: str) -> Callable[[], dict[str, Any]]:
    return lambda: {"image": {"properties": texts}}


def grouped(policy: str, here: int, there: int, **rules: int) -> dict[str, Any]:
    """Return the fields of a case with members of a group on h1 and h2."""
    ids = [f"m{number}" for number in range(here + there)]
    hosts = ["h1"] * bool(here) + ["h2"] * bool(there)
    counts = {"count.host=h1": str(here), "count.host=h2": str(there)}
    return {
        "request": GROUPED,
        "fields": {"claims": str(here)},
        "group": {"version": "1", "policy": policy, "members": str(here + there), **counts}
        | ({"max_per_host": str(rules["max_server_per_host"])} if rules else {}),
        "host": lambda: {"instances": novas.instances(*ids[:here])},
        "spec": lambda: {"group": novas.group(policy, hosts, ids, **rules)},
    }


def image_id(uuid: str) -> dict[str, Any]:
    return {"request": properties(image=uuid), "spec": lambda: {"image": {"id": uuid, "properties": {}}}}


def near(address: str, prefix: str = "") -> dict[str, Any]:
    hints = {"build_near_host_ip": [address]} | ({"cidr": [prefix]} if prefix else {})
    request = Request({"VCPU": 1}, hints=Hints(build_near_host_ip=address, cidr=prefix))
    return {"request": request, "spec": lambda: {"hints": hints}}


def labelled(**conditions: str) -> dict[str, Any]:
    specs = {f"capabilities:{key}": text for key, text in conditions.items()}
    return {"request": Request({"VCPU": 1}, labels=conditions), "spec": lambda: {"extra_specs": specs}}


def metadata(**conditions: str) -> dict[str, Any]:
    specs = {f"aggregate_instance_extra_specs:{key}": text for key, text in conditions.items()}
    return {"request": Request({"VCPU": 1}, aggregate_metadata=conditions), "spec": lambda: {"extra_specs": specs}}


def by(project: str) -> dict[str, Any]:
    return {"request": Request({"VCPU": 1}, project=project), "spec": lambda: {"project_id": project or None}}


def flavor(name: str) -> dict[str, Any]:
    return {"request": properties(instance_type=name), "spec": lambda: {"flavor": name}}


def image_property(name: str, text: str) -> dict[str, Any]:
    return {"request": properties(**{name: text}), "spec": image(**{name: text})}


def starting(number: int) -> dict[str, Any]:
    return {"fields": {"starting": str(number)}, "host": lambda: {"num_io_ops": number}}


def holding(number: int) -> dict[str, Any]:
    return {"fields": {"claims": str(number)}, "host": lambda: {"num_instances": number}}


def in_few(case: dict[str, Any]) -> dict[str, Any]:
    return {"fields": case["fields"] | IN["few"], "host": lambda: case["host"]() | within("few")()}


VF = "SRIOV_NET_VF"


def node_fields(number: int) -> dict[str, str]:
    """Return the fields of a NUMA node with 4 CPUs for 8, 3 dedicated ones, 1000 MB and 8 pages, all partly used."""
    amounts = {"VCPU": (8, 1), "PCPU": (3, 1), "MEMORY_MB": (1000, 200), "CUSTOM_HUGE_PAGES_2048KB": (8, 1)}
    fields = {f"pool.numa{number}": "/", f"trait.numa{number}/HW_NUMA_ROOT": "1", f"ratio.numa{number}/VCPU": "2"}
    for name, (capacity, claimed) in amounts.items():
        fields |= {f"capacity.numa{number}/{name}": str(capacity), f"claimed.numa{number}/{name}": str(claimed)}
    return fields


def novas_nodes(number: int, hyperthreading: bool = False) -> Any:
    """Return the same nodes as Nova has them, with other numbers of CPUs."""
    made = novas.objects()
    cells = [
        made.NUMACell(
            id=one,
            cpuset={0, 1, 2, 3},
            pcpuset={4, 5, 6},
            memory=1016,
            cpu_usage=1,
            memory_usage=202,
            pinned_cpus={5},
            siblings=[{4, 6}, {5}] if hyperthreading else [{4}, {5}, {6}],
            mempages=[
                made.NUMAPagesTopology(size_kb=4, total=256_000, used=51_200, reserved=0),
                made.NUMAPagesTopology(size_kb=2048, total=8, used=1, reserved=0),
            ],
            socket=None,
        )
        for one in range(number)
    ]
    return made.NUMATopology(cells=cells)


def novas_guest(numa: Numa) -> Any:
    """Return a guest as Nova has it. Its dedicated CPUs come last."""
    made, cells = novas.objects(), []
    for number, one in enumerate(numa.cells):
        dedicated = one.cpus if numa.policy is CpuPolicy.DEDICATED else one.dedicated_cpus
        ids = [100 * number + cpu for cpu in range(one.cpus)]
        cells.append(
            made.InstanceNUMACell(
                id=number,
                cpuset=set(ids[: one.cpus - dedicated]),
                pcpuset=set(ids[one.cpus - dedicated :]),
                memory=one.memory_mb,
                pagesize=numa.page_size_kb,
                cpu_policy=numa.policy.value,
            )
        )
    return made.InstanceNUMATopology(cells=cells)


def guest(nodes: int, *cells: NumaCell, **given: Any) -> dict[str, Any]:
    """Return the fields of a case with a guest on a host with so many nodes."""
    numa = Numa(cells, **given)
    return {
        "request": Request(numa=numa),
        "fields": {key: text for number in range(nodes) for key, text in node_fields(number).items()},
        "host": lambda: {
            "numa_topology": novas_nodes(nodes) if nodes else None,
            "pci_stats": novas.pci_stats([]),
            "allocation_candidates": [{"mappings": {}}],
            "cpu_allocation_ratio": 2.0,
            "ram_allocation_ratio": 1.0,
        },
        "spec": lambda: {
            "numa_topology": novas_guest(numa),
            "extra_specs": {"hw:cpu_policy": numa.policy.value},
        },
    }


def threads(policy: str, hyperthreading: bool) -> dict[str, Any]:
    case = guest(1, NumaCell(2, 500), policy=CpuPolicy.DEDICATED)
    trait = {"trait.HW_CPU_HYPERTHREADING": "1"} if hyperthreading else {}
    properties = {"hw_cpu_thread_policy": policy}
    return case | {
        "request": replace(case["request"], properties=properties),
        "fields": case["fields"] | trait,
        "host": lambda: case["host"]() | {"numa_topology": novas_nodes(1, hyperthreading)},
        "spec": lambda: case["spec"]() | {"image": {"properties": properties}},
    }


POOLS = {
    "pool.pf0": "/",
    f"capacity.pf0/{VF}": "4",
    f"claimed.pf0/{VF}": "2",
    "pool.pf1": "/",
    f"capacity.pf1/{VF}": "1",
    "trait.pf1/CUSTOM_FAST": "1",
}
"""Two free functions, and one that is fast."""
NOVAS_POOLS = [
    {"product_id": "154c", "vendor_id": "8086", "count": 2, "numa_node": None},
    {"product_id": "154c", "vendor_id": "8086", "count": 1, "numa_node": None, "fast": "yes"},
]


def novas_devices(*devices: PciDevices) -> Any:
    """Return requests for the functions as Nova has them: by vendor and product, and by a tag of the pool."""
    made = novas.objects()
    requests = []
    for one in devices:
        spec = {"vendor_id": "8086", "product_id": "154c" if one.resource_class == VF else "ffff"}
        spec |= {"fast": "yes"} if one.required else {}
        policy = one.numa_policy.value
        requests.append(made.InstancePCIRequest(count=one.count, spec=[spec], alias_name="a", numa_policy=policy))
    return made.InstancePCIRequests(requests=requests)


def devices(*wanted: PciDevices) -> dict[str, Any]:
    return {
        "request": Request(pci=wanted),
        "fields": POOLS,
        "host": lambda: {
            "pci_stats": novas.pci_stats(NOVAS_POOLS),
            "allocation_candidates": [{"mappings": {}}],
        },
        "spec": lambda: {"pci_requests": novas_devices(*wanted)},
    }


def near_devices(affinity: NumaAffinity, count: int) -> dict[str, Any]:
    """Return the fields of a case with a device at each of two nodes, and a guest with one cell."""
    numa, wanted = Numa((NumaCell(1, 100),)), PciDevices(VF, count, affinity)
    fields = node_fields(0) | node_fields(1)
    for number in (0, 1):
        fields |= {f"pool.pf{number}": f"numa{number}", f"capacity.pf{number}/{VF}": "1"}
    case = guest(2, NumaCell(2, 100))
    pools = [{"product_id": "154c", "vendor_id": "8086", "count": 1, "numa_node": number} for number in (0, 1)]
    return case | {
        "request": Request(numa=numa, pci=(wanted,)),
        "fields": fields,
        "host": lambda: case["host"]() | {"pci_stats": novas.pci_stats(pools)},
        "spec": lambda: {"numa_topology": novas_guest(numa), "pci_requests": novas_devices(wanted)},
    }


CASES = [
    Case("AggregateImagePropertiesIsolation", True, IN["linux"], host=within("linux")),
    Case(
        "AggregateImagePropertiesIsolation",
        True,
        IN["linux"],
        host=within("linux"),
        **image_property("os_type", "linux"),
    ),
    Case(
        "AggregateImagePropertiesIsolation",
        False,
        IN["linux"],
        host=within("linux"),
        **image_property("os_type", "windows"),
    ),
    # A key of metadata that is no property of images in Nova says nothing about images.
    Case(
        "AggregateImagePropertiesIsolation",
        True,
        IN["linux"],
        host=within("linux"),
        **image_property("instance_type", "m1.tiny"),
    ),
    Case("AggregateInstanceExtraSpecsFilter", True),
    Case("AggregateInstanceExtraSpecsFilter", True, IN["ssd"], host=within("ssd"), **metadata(ssd="true", rack="r2")),
    Case("AggregateInstanceExtraSpecsFilter", False, IN["ssd"], host=within("ssd"), **metadata(rack="r3")),
    Case("AggregateInstanceExtraSpecsFilter", False, **metadata(ssd="true")),
    Case("AggregateIoOpsFilter", True, **starting(2)),
    Case("AggregateIoOpsFilter", True, **in_few(starting(1))),
    Case("AggregateIoOpsFilter", False, **in_few(starting(2))),
    Case("AggregateMultiTenancyIsolation", True, **by("")),
    Case("AggregateMultiTenancyIsolation", True, IN["red"], host=within("red", "ssd"), **by("blue")),
    Case("AggregateMultiTenancyIsolation", False, IN["red"], host=within("red"), **by("green")),
    Case("AggregateMultiTenancyIsolation", False, IN["red"], host=within("red"), **by("")),
    Case("AggregateNumInstancesFilter", True, **holding(4)),
    Case("AggregateNumInstancesFilter", True, **in_few(holding(1))),
    Case("AggregateNumInstancesFilter", False, **in_few(holding(2))),
    Case("AggregateTypeAffinityFilter", True, **flavor("m1.tiny")),
    Case("AggregateTypeAffinityFilter", True, IN["linux"], host=within("linux"), **flavor("m1.large")),
    Case("AggregateTypeAffinityFilter", False, IN["linux"], host=within("linux"), **flavor("m1.tiny")),
    Case("AllHostsFilter", True),
    Case("ComputeCapabilitiesFilter", True),
    Case(
        "ComputeCapabilitiesFilter", True, {"label.row": "7"}, host=lambda: {"stats": {"row": "7"}}, **labelled(row="7")
    ),
    Case(
        "ComputeCapabilitiesFilter",
        False,
        {"label.row": "6"},
        host=lambda: {"stats": {"row": "6"}},
        **labelled(row="7"),
    ),
    Case(
        "ComputeCapabilitiesFilter",
        True,
        {"label.free": "9"},
        host=lambda: {"stats": {"free": "9"}},
        **labelled(free=">= 5"),
    ),
    Case("ComputeCapabilitiesFilter", False, **labelled(row="7")),
    Case("ComputeCapabilitiesFilter", False, **labelled(kind="x")),
    Case("ComputeFilter", True, ALIVE),
    Case(
        "ComputeFilter", False, ALIVE | {"status": "disabled"}, host=lambda: {"service": novas.service(disabled=True)}
    ),
    Case("ComputeFilter", False, ALIVE | {"alive": "0"}, host=lambda: {"service": novas.service(silent_s=61)}),
    Case("ImagePropertiesFilter", True),
    Case("ImagePropertiesFilter", True, QEMU, host=lambda: QEMUS, **image_property("hw_architecture", "x86_64")),
    Case("ImagePropertiesFilter", True, QEMU, host=lambda: QEMUS, **image_property("img_hv_type", "qemu")),
    Case("ImagePropertiesFilter", False, QEMU, host=lambda: QEMUS, **image_property("hw_architecture", "aarch64")),
    Case("ImagePropertiesFilter", False, QEMU, host=lambda: QEMUS, **image_property("hypervisor_type", "kvm")),
    Case("ImagePropertiesFilter", False, **image_property("hw_vm_mode", "hvm")),
    Case(
        "ImagePropertiesFilter",
        True,
        QEMU | {"label.hypervisor_version": "8.2.0"},
        properties(hw_vm_mode="hvm", img_hv_requested_version=">=8.0"),
        host=lambda: QEMUS | {"hypervisor_version": 8002000},
        spec=image(hw_vm_mode="hvm", img_hv_requested_version=">=8.0"),
    ),
    Case(
        "ImagePropertiesFilter",
        False,
        QEMU | {"label.hypervisor_version": "7.1"},
        properties(hw_vm_mode="hvm", img_hv_requested_version=">=8.0"),
        host=lambda: QEMUS | {"hypervisor_version": 7001000},
        spec=image(hw_vm_mode="hvm", img_hv_requested_version=">=8.0"),
    ),
    Case("IoOpsFilter", True, **starting(2)),
    Case("IoOpsFilter", False, **starting(3)),
    Case("IsolatedHostsFilter", True, **image_id("img-1")),
    Case("IsolatedHostsFilter", False, **image_id("img-2")),
    Case("IsolatedHostsFilter", False),
    Case("IsolatedHostsFilter", False, on="h2", **image_id("img-1")),
    Case("IsolatedHostsFilter", True, on="h2", **image_id("img-2")),
    Case(
        "MetricsFilter",
        True,
        {"metric.power": "1", "metric.noise": "2"},
        host=lambda: {"metrics": novas.metrics(power=1, noise=2)},
    ),
    Case("MetricsFilter", False, {"metric.power": "1"}, host=lambda: {"metrics": novas.metrics(power=1)}),
    Case("NUMATopologyFilter", True),
    Case("NUMATopologyFilter", False, **guest(0, NumaCell(1, 100))),
    Case("NUMATopologyFilter", True, **guest(2, NumaCell(3, 500), NumaCell(3, 500))),
    Case("NUMATopologyFilter", False, **guest(1, NumaCell(3, 500), NumaCell(3, 500))),
    Case("NUMATopologyFilter", True, **guest(2, NumaCell(4, 500))),
    Case("NUMATopologyFilter", False, **guest(2, NumaCell(5, 500))),
    Case("NUMATopologyFilter", False, **guest(2, NumaCell(3, 815))),
    Case("NUMATopologyFilter", True, **guest(2, NumaCell(2, 500), policy=CpuPolicy.DEDICATED)),
    Case("NUMATopologyFilter", False, **guest(2, NumaCell(3, 500), policy=CpuPolicy.DEDICATED)),
    Case("NUMATopologyFilter", True, **guest(2, NumaCell(5, 500, 2), policy=CpuPolicy.MIXED)),
    Case("NUMATopologyFilter", False, **guest(2, NumaCell(5, 500, 3), policy=CpuPolicy.MIXED)),
    Case("NUMATopologyFilter", True, **guest(2, NumaCell(1, 14), page_size_kb=2048)),
    Case("NUMATopologyFilter", False, **guest(2, NumaCell(1, 16), page_size_kb=2048)),
    Case("NUMATopologyFilter", False, **guest(2, NumaCell(1, 1024), page_size_kb=1048576)),
    Case("NUMATopologyFilter", True, **threads("require", True)),
    Case("NUMATopologyFilter", False, **threads("require", False)),
    Case("NUMATopologyFilter", True, **threads("prefer", False)),
    Case("NumInstancesFilter", True, **holding(4)),
    Case("NumInstancesFilter", False, **holding(5)),
    Case("PciPassthroughFilter", True),
    Case("PciPassthroughFilter", True, **devices(PciDevices(VF, 3))),
    Case("PciPassthroughFilter", False, **devices(PciDevices(VF, 4))),
    Case("PciPassthroughFilter", False, **devices(PciDevices("CUSTOM_PCI_OTHER", 1))),
    Case("PciPassthroughFilter", True, **devices(PciDevices(VF, 1, required=frozenset({"CUSTOM_FAST"})))),
    Case("PciPassthroughFilter", False, **devices(PciDevices(VF, 2, required=frozenset({"CUSTOM_FAST"})))),
    Case("PciPassthroughFilter", False, **devices(PciDevices(VF, 2), PciDevices(VF, 2))),
    Case("NUMATopologyFilter", True, **near_devices(NumaAffinity.REQUIRED, 1)),
    Case("NUMATopologyFilter", False, **near_devices(NumaAffinity.REQUIRED, 2)),
    Case("NUMATopologyFilter", True, **near_devices(NumaAffinity.LEGACY, 1)),
    Case("NUMATopologyFilter", False, **near_devices(NumaAffinity.LEGACY, 2)),
    Case("NUMATopologyFilter", True, **near_devices(NumaAffinity.PREFERRED, 2)),
    Case("ServerGroupAffinityFilter", True),
    Case("ServerGroupAffinityFilter", True, **grouped("affinity", 0, 0)),
    Case("ServerGroupAffinityFilter", True, **grouped("affinity", 1, 1)),
    Case("ServerGroupAffinityFilter", False, **grouped("affinity", 0, 2)),
    Case("ServerGroupAffinityFilter", True, **grouped("anti-affinity", 0, 2)),
    Case("ServerGroupAntiAffinityFilter", True),
    Case("ServerGroupAntiAffinityFilter", True, **grouped("anti-affinity", 0, 2)),
    Case("ServerGroupAntiAffinityFilter", False, **grouped("anti-affinity", 1, 2)),
    Case("ServerGroupAntiAffinityFilter", True, **grouped("anti-affinity", 1, 0, max_server_per_host=2)),
    Case("ServerGroupAntiAffinityFilter", False, **grouped("anti-affinity", 2, 0, max_server_per_host=2)),
    Case("ServerGroupAntiAffinityFilter", True, **grouped("affinity", 2, 0)),
    Case("SimpleCIDRAffinityFilter", True),
    Case(
        "SimpleCIDRAffinityFilter",
        True,
        {"label.ip": "10.0.0.7"},
        host=lambda: {"host_ip": "10.0.0.7"},
        **near("10.0.0.9"),
    ),
    Case(
        "SimpleCIDRAffinityFilter",
        False,
        {"label.ip": "10.0.1.7"},
        host=lambda: {"host_ip": "10.0.1.7"},
        **near("10.0.0.9"),
    ),
    Case(
        "SimpleCIDRAffinityFilter",
        True,
        {"label.ip": "10.0.1.7"},
        host=lambda: {"host_ip": "10.0.1.7"},
        **near("10.0.0.9", "/16"),
    ),
]


@pytest.fixture
def conf(tmp_path: Path) -> str:
    """Skip the test if Nova is not installed; else return the file of a nova.conf."""
    pytest.importorskip("nova.conf", reason="Nova is not installed")
    file = tmp_path / "nova.conf"
    file.write_text(CONF)
    return str(file)


def columns_for(case: Case) -> Columns:
    columns = columns_of(**{case.on: dict(case.fields)})
    for name, values in METADATA.items():
        aggregate(columns, name, values)
    if case.group:
        columns.declared.put("server-group", "g", case.group)
    return columns


def ours(case: Case, conf: str) -> bool:
    """Return the verdict of the class on our stand-ins."""
    path = path_of(FILTER_PACKAGE, case.name)
    [*_, last] = plugin_registry(Settings(nova_filters=(path,), nova_conf=conf)).filters
    [rule] = last(case.request)
    return bool(rule.passes(columns_for(case), 0))


def theirs(case: Case) -> bool:
    """Return the verdict of the class on Nova's objects, with the configuration that `ours` has read."""
    module, _, name = path_of(FILTER_PACKAGE, case.name).rpartition(".")
    plugin = getattr(__import__(module, fromlist=[name]), name)()
    host, spec = novas.host_state(case.on, **case.host()), novas.spec(**case.spec())
    return list(plugin.filter_all([host], spec)) == [host]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.name}-{case.passes}")
def test_a_filter_decides_as_on_novas_own_objects(case: Case, conf: str) -> None:
    assert (ours(case, conf), theirs(case)) == (case.passes, case.passes)


def test_each_filter_that_runs_here_has_cases_of_both_verdicts() -> None:
    both = {(name, passes) for name, one in FILTERS.items() if not one.refused for passes in (True, False)}
    assert {(case.name, case.passes) for case in CASES} == both - {("AllHostsFilter", False)}


def test_a_property_that_nova_does_not_accept_is_an_error_of_the_request(conf: str) -> None:
    case = Case("ImagePropertiesFilter", False, request=properties(hw_architecture="x8664"))
    with pytest.raises(InvalidRequest, match=r"^properties has hw_architecture 'x8664', which Nova does not accept: "):
        ours(case, conf)


def test_a_policy_for_threads_that_depends_on_taken_cpus_is_an_error_of_the_request(conf: str) -> None:
    case = Case("NUMATopologyFilter", False, **threads("isolate", True))
    with pytest.raises(
        InvalidRequest, match=r"^properties has hw_cpu_thread_policy 'isolate', which .*: use forbidden"
    ):
        ours(case, conf)


def test_metadata_that_are_not_about_images_are_not_logged_for_each_host(
    conf: str, caplog: pytest.LogCaptureFixture
) -> None:
    case = Case("AggregateImagePropertiesIsolation", True, IN["linux"], **image_property("os_type", "linux"))
    assert ours(case, conf)
    assert caplog.records == []


def test_groups_by_zone_are_none_of_nova(conf: str) -> None:
    group = {"version": "1", "policy": "affinity", "by": "zone", "count.host=h2": "1", "members": "1"}
    assert ours(Case("ServerGroupAffinityFilter", True, request=GROUPED, group=group), conf)


def test_the_catalogue_has_every_filter_of_nova(conf: str) -> None:
    found = __import__("nova.scheduler.filters", fromlist=["all_filters"]).all_filters()
    paths = {f"{one.__module__}.{one.__qualname__}" for one in found}
    assert paths == {path_of(FILTER_PACKAGE, name) for name in FILTERS}
