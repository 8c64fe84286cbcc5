"""Nova's own weighers agree with redsched's, if Nova is installed (400 MB, so not in normal runs).

Every weigher of the policy `nova` returns the same value for each host as Nova's class, aggregate multipliers included.
"""

import numpy as np
import pytest

from redsched.cache.columns import Columns
from redsched.decide.plugins.registry import plugin_registry
from redsched.decide.scoring import Weigher, score
from redsched.model import Request
from redsched.settings import Settings
from tests.support.builders.columns import columns_of
from tests.support.builders.weighed import aggregate

pytestmark = pytest.mark.filterwarnings("ignore")  # Nova's libraries emit warnings about each other

WEIGHTS = "nova.scheduler.weights."
CLASSES = {
    "ram": "ram.RAMWeigher",
    "cpu": "cpu.CPUWeigher",
    "disk": "disk.DiskWeigher",
    "io_ops": "io_ops.IoOpsWeigher",
    "metrics": "metrics.MetricsWeigher",
    "pci": "pci.PCIWeigher",
    "soft_affinity": "affinity.ServerGroupSoftAffinityWeigher",
    "soft_anti_affinity": "affinity.ServerGroupSoftAntiAffinityWeigher",
    "build_failure": "compute.BuildFailureWeigher",
    "cross_cell": "cross_cell.CrossCellWeigher",
    "hypervisor_version": "hypervisor_version.HypervisorVersionWeigher",
    "num_instances": "num_instances.NumInstancesWeigher",
}
"""All except image_props, which reads the instances' images from Nova's database."""


@pytest.fixture(autouse=True)
def nova() -> None:
    """Skip the tests if Nova is not installed; otherwise configure weights of metrics."""
    conf = pytest.importorskip("nova.conf", reason="Nova is not installed").CONF
    conf([], project="nova", default_config_files=[])
    conf.set_override("weight_setting", ["power=-2.0", "noise=0.5"], "metrics")
    conf.set_override("required", False, "metrics")


def fleet(policy: str) -> Columns:
    """Return hosts that differ in all weighed values, some of them in aggregates with multipliers."""
    rng = np.random.default_rng(7)

    def number(most: int) -> str:
        return str(rng.integers(0, most))

    def host(n: int) -> dict[str, str]:
        return {
            "capacity.VCPU": "64",
            "claimed.VCPU": number(64),
            "capacity.MEMORY_MB": "65536",
            "claimed.MEMORY_MB": number(65536),
            "external.MEMORY_MB": number(9000),
            "capacity.DISK_GB": "1000",
            "claimed.DISK_GB": number(1000),
            "capacity.pf0/SRIOV_NET_VF": number(120),
            "claims": str(rng.integers(3, 9)),
            "starting": number(4),
            "failures": number(3),
            "metric.power": number(500),
            "label.hypervisor_version": ("8.2.0", "6005003", "7.1")[n % 3],
            **({"metric.noise": number(50)} if n % 4 else {}),
            **({"aggregate.fast": "1"} if n % 2 else {}),
            **({"aggregate.slow": "1"} if n % 3 else {}),
        }

    columns = columns_of(**{f"h{n}": host(n) for n in range(12)})
    counts = {"count.host=h1": "2", "count.host=h2": "1", "count.host=h5": "3"}
    columns.declared.put("server-group", "g", {"version": "1", "policy": policy} | counts)
    names = [*CLASSES, "cross_cell_move"]
    aggregate(columns, "fast", {f"{name}_weight_multiplier": "3.5" for name in names})
    aggregate(columns, "slow", {f"{name}_weight_multiplier": "-1.5" for name in names})
    return columns


REQUEST = Request({"VCPU": 1}, server_group="g")
SETTINGS = {"metrics_weights": {"power": -2.0, "noise": 0.5}}


def weighers(name: str) -> tuple[Weigher, Weigher]:
    """Return redsched's weigher and Nova's."""
    known = plugin_registry(Settings.model_validate({**SETTINGS, "nova_weighers": (WEIGHTS + CLASSES[name],)})).weighers
    return known[name], known[CLASSES[name].rpartition(".")[2]]


@pytest.mark.parametrize("policy", ["soft-affinity", "soft-anti-affinity", "anti-affinity"])
@pytest.mark.parametrize("name", CLASSES)
def test_a_weigher_gives_what_novas_gives(name: str, policy: str) -> None:
    columns, rows = fleet(policy), np.arange(12)
    ours, novas = weighers(name)
    expected = score(columns, REQUEST, {novas: 1.0}, rows)
    default = plugin_registry(Settings()).policies["nova"][name]
    found = np.broadcast_to(score(columns, REQUEST, {ours: default}, rows), 12)
    assert found.tolist() == pytest.approx(expected.tolist(), abs=1e-9)


@pytest.mark.parametrize(
    ("path", "fields", "request_", "passes"),
    [
        ("all_hosts_filter.AllHostsFilter", {}, Request({"VCPU": 1}), True),
        ("num_instances_filter.NumInstancesFilter", {"claims": "50"}, Request({"VCPU": 1}), False),
        ("num_instances_filter.NumInstancesFilter", {"claims": "49"}, Request({"VCPU": 1}), True),
        ("io_ops_filter.IoOpsFilter", {"starting": "8"}, Request({"VCPU": 1}), False),
        ("num_instances_filter.AggregateNumInstancesFilter", {"claims": "3", "aggregate.few": "1"}, REQUEST, False),
        (
            "aggregate_multitenancy_isolation.AggregateMultiTenancyIsolation",
            {"aggregate.few": "1"},
            Request({"VCPU": 1}, project="blue"),
            False,
        ),
        (
            "aggregate_multitenancy_isolation.AggregateMultiTenancyIsolation",
            {"aggregate.few": "1"},
            Request({"VCPU": 1}, project="red"),
            True,
        ),
        (
            "aggregate_instance_extra_specs.AggregateInstanceExtraSpecsFilter",
            {"aggregate.few": "1"},
            Request({"VCPU": 1}, aggregate_metadata={"ssd": "true"}),
            True,
        ),
        (
            "aggregate_instance_extra_specs.AggregateInstanceExtraSpecsFilter",
            {},
            Request({"VCPU": 1}, aggregate_metadata={"ssd": "true"}),
            False,
        ),
        ("affinity_filter.ServerGroupAntiAffinityFilter", {}, Request({"VCPU": 1}, server_group="g"), False),
        ("affinity_filter.ServerGroupAntiAffinityFilter", {}, Request({"VCPU": 1}), True),
        ("metrics_filter.MetricsFilter", {"metric.power": "1"}, Request({"VCPU": 1}), False),
        ("metrics_filter.MetricsFilter", {"metric.power": "1", "metric.noise": "1"}, Request({"VCPU": 1}), True),
        ("numa_topology_filter.NUMATopologyFilter", {}, Request({"VCPU": 1}), True),
        ("image_props_filter.ImagePropertiesFilter", {}, Request({"VCPU": 1}), True),
        ("isolated_hosts_filter.IsolatedHostsFilter", {}, Request({"VCPU": 1}), True),
        ("compute_capabilities_filter.ComputeCapabilitiesFilter", {}, Request({"VCPU": 1}), True),
    ],
)
def test_a_filter_of_nova_runs_as_it_is(path: str, fields: dict[str, str], request_: Request, passes: bool) -> None:
    columns = columns_of(h1=fields)
    aggregate(columns, "few", {"max_instances_per_host": "3", "filter_tenant_id": "red", "ssd": "true"})
    group = {"version": "1", "policy": "anti-affinity", "count.host=h1": "1", "members": "1"}
    columns.declared.put("server-group", "g", group)
    [*_, last] = plugin_registry(Settings(nova_filters=("nova.scheduler.filters." + path,))).filters
    [rule] = last(request_)
    assert bool(rule.passes(columns, 0)) is passes
