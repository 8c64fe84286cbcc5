"""Nova's own weighers agree with redsched's, if Nova is installed (400 MB, so not in normal runs).

Every weigher of the policy `nova` returns the same value for each host as Nova's class, aggregate multipliers included,
and Nova's class the same for our stand-ins as for Nova's own objects.
"""

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from redsched.cache.columns import Columns
from redsched.decide.plugins.nova.catalogue import WEIGHER_PACKAGE, WEIGHERS, path_of
from redsched.decide.plugins.registry import plugin_registry
from redsched.decide.scoring import Weigher, score
from redsched.model import Request
from redsched.settings import Settings
from tests.support.builders.columns import columns_of
from tests.support.builders.weighed import aggregate
from tests.support.fleets import novas_own as novas

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
    "hypervisor_version": "hypervisor_version.HypervisorVersionWeigher",
    "num_instances": "num_instances.NumInstancesWeigher",
}
"""All that the adapter runs: image_props reads Nova's database, and cross_cell compares hosts of several cells."""


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
            "ratio.VCPU": ("1", "4")[n % 2],
            "claimed.VCPU": number(64),
            "capacity.MEMORY_MB": "65536",
            "ratio.MEMORY_MB": ("1", "1.5")[n % 2],
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
    names = list(CLASSES)
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


SIMPLE = {
    "capacity.VCPU": "32",
    "ratio.VCPU": "4",
    "claimed.VCPU": "3",
    "capacity.MEMORY_MB": "6144",
    "ratio.MEMORY_MB": "1.5",
    "claimed.MEMORY_MB": "1024",
    "external.MEMORY_MB": "72",
    "capacity.DISK_GB": "40",
    "claimed.DISK_GB": "15",
    "capacity.pf0/SRIOV_NET_VF": "8",
    "claimed.pf0/SRIOV_NET_VF": "1",
    "claims": "4",
    "starting": "2",
    "failures": "1",
    "metric.power": "12.5",
    "metric.noise": "3",
    "label.hypervisor_version": "8.2.0",
    "aggregate.fast": "1",
}


def novas_host(policy: str) -> Any:
    """Return the host of SIMPLE as Nova has it: two of its four instances are in the group."""
    state = novas.host_state(
        vcpus_total=8,
        vcpus_used=3,
        total_usable_ram_mb=4096,
        free_ram_mb=3000,
        total_usable_disk_gb=40,
        free_disk_mb=25 * 1024,
        num_instances=4,
        num_io_ops=2,
        failed_builds=1,
        metrics=novas.metrics(power=12.5, noise=3),
        hypervisor_version=8002000,
        instances=novas.instances("a", "b", "c", "d"),
        aggregates=novas.aggregates(fast={f"{name}_weight_multiplier": "3.5" for name in CLASSES}),
        cpu_allocation_ratio=4.0,
    )
    state.pci_stats = SimpleNamespace(pools=[{"count": 7}])
    return state


@pytest.mark.parametrize("policy", ["soft-affinity", "soft-anti-affinity", "anti-affinity"])
@pytest.mark.parametrize("name", CLASSES)
def test_a_weigher_weighs_as_on_novas_own_objects(name: str, policy: str) -> None:
    columns = columns_of(h1=SIMPLE)
    columns.declared.put("server-group", "g", {"version": "1", "policy": policy, "count.host=h1": "2"})
    aggregate(columns, "fast", {f"{name}_weight_multiplier": "3.5" for name in CLASSES})
    _, ours = weighers(name)
    module, _, class_name = (WEIGHTS + CLASSES[name]).rpartition(".")
    theirs, host = getattr(import_module(module), class_name)(), novas_host(policy)
    spec = novas.spec(group=novas.group(policy, ["h1"], ["a", "b", "elsewhere"]))
    assert float(ours.raw(columns, REQUEST, 0)) == theirs._weigh_object(host, spec)
    assert float(ours.multiplied(columns, 0, 1.0)) == theirs.weight_multiplier(host)


@pytest.mark.parametrize(
    ("cell", "excluded", "value", "normalized"),
    [("here", "h1", 1.0, 1.0), ("there", "h9", -1.0, 0.0), ("", "", 0.0, 0.0)],
)
def test_cross_cell_is_what_nova_normalizes_its_value_to(
    cell: str, excluded: str, value: float, normalized: float
) -> None:
    """Nova's class is refused: a class weighs the hosts of one cell at a time, and Nova those of all cells."""
    mapping = {"here": "cell", "there": "another cell"}
    target = SimpleNamespace(uuid=mapping.get(cell))
    destination = _Fields(cell=target, allow_cross_cell_move=True) if cell else None
    theirs = import_module(WEIGHTS + "cross_cell").CrossCellWeigher()
    spec = _Fields(requested_destination=destination)
    assert theirs._weigh_object(novas.host_state(), spec) == value
    known = plugin_registry(Settings()).weighers["cross_cell"]
    request = Request({"VCPU": 1}, exclude_hosts=frozenset({excluded} - {""}))
    assert float(known.raw(columns_of(h1=SIMPLE), request, 0)) == normalized


class _Fields(SimpleNamespace):
    """Like Nova's objects: `in` tells whether a field is set."""

    def __contains__(self, name: object) -> bool:
        return name in self.__dict__


def test_the_catalogue_has_every_weigher_of_nova() -> None:
    found = import_module("nova.scheduler.weights").all_weighers()
    paths = {f"{one.__module__}.{one.__qualname__}" for one in found}
    assert paths == {path_of(WEIGHER_PACKAGE, name) for name in WEIGHERS}


def test_each_weigher_that_runs_here_is_compared() -> None:
    runs = {path_of(WEIGHER_PACKAGE, name) for name, one in WEIGHERS.items() if not one.refused}
    assert {WEIGHTS + path for path in CLASSES.values()} == runs
