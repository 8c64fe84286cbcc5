"""The collector of this machine."""

import os
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from redsched.agent.collectors.base import Named, StaticCollector, Work, load_collector
from redsched.agent.external import remember, with_external
from redsched.agent.machine.collector import GIB, MIB, ClaimLoad, MachineCollector
from redsched.agent.machine.labels import machine_labels
from redsched.agent.machine.numa import read_nodes
from redsched.agent.machine.nvidia import Gpus
from redsched.agent.machine.usage import start_time
from redsched.errors import InvalidRequest
from redsched.model import HostReport, Inventory
from redsched.model.validation import check_label_value, check_name
from redsched.settings import Settings
from tests.support.fleets.nvml import StandInGpu, StandInNvml
from tests.support.fleets.sys_tree import SysTree


def test_what_this_machine_has_is_reported() -> None:
    settings = Settings(host_name="here", zone="az9", labels={"rack": "r1"}, reserved_memory_mb=100, ratio_vcpu=2.0)
    report = MachineCollector(settings).look([]).report
    assert (report.name, report.zone, report.cell) == ("here", "az9", "c1")
    assert report.inventories["VCPU"] == Inventory(psutil.cpu_count() or 1, allocation_ratio=2.0)
    assert report.inventories["MEMORY_MB"] == Inventory(psutil.virtual_memory().total // MIB, reserved=100)
    assert report.inventories["DISK_GB"].total == psutil.disk_usage("/").total // GIB
    assert report.labels["rack"] == "r1"
    assert report.labels["kernel"] == os.uname().release
    assert any(trait.startswith("HW_ARCH_") for trait in report.traits)
    assert report.metrics.keys() == {"cpu.percent", "memory.percent", "load.1m"}


def test_the_machine_is_called_as_it_calls_itself() -> None:
    assert MachineCollector(Settings()).name == socket.gethostname()


def test_its_labels_are_labels() -> None:
    for key, value in machine_labels().items():
        check_label_value(check_name("label", key), value)


def test_a_disk_path_that_is_not_there_is_reported_at_the_start() -> None:
    with pytest.raises(InvalidRequest, match="REDSCHED_DISK_PATH"):
        MachineCollector(Settings(disk_path="/no/such/path"))


def test_a_name_that_is_none_is_reported_at_the_start() -> None:
    with pytest.raises(InvalidRequest, match="host 'no spaces please'"):
        MachineCollector(Settings(host_name="no spaces please"))


def memory(monkeypatch: pytest.MonkeyPatch, total_mb: int, available_mb: int) -> None:
    seen = SimpleNamespace(total=total_mb * MIB, available=available_mb * MIB, percent=0.0)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: seen)


def test_unexplained_memory_is_used_minus_reserved_minus_the_claims_own(monkeypatch: pytest.MonkeyPatch) -> None:
    memory(monkeypatch, total_mb=10_000, available_mb=7_000)
    collector = MachineCollector(Settings(reserved_memory_mb=500))
    assert collector.look([]).unexplained["MEMORY_MB"] == 2_500
    me = os.getpid()
    work = Work("a", Named(pids={me: start_time(me) or 0.0}))
    mine = [psutil.Process(), *psutil.Process().children(recursive=True)]
    mine_mb = sum(one.memory_full_info().pss for one in mine) / MIB
    assert collector.look([work]).unexplained["MEMORY_MB"] == pytest.approx(2_500 - mine_mb, abs=20)


def test_unexplained_memory_is_never_below_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    memory(monkeypatch, total_mb=10_000, available_mb=9_900)
    assert MachineCollector(Settings(reserved_memory_mb=500)).look([]).unexplained["MEMORY_MB"] == 0


def test_with_unnamed_work_nothing_measured_is_trusted() -> None:
    collector = MachineCollector(Settings())
    assert collector.look([]).trusted == {"VCPU", "MEMORY_MB", "DISK_GB"}
    assert collector.look([Work("a", None)]).trusted == frozenset()
    me = os.getpid()
    assert collector.look([Work("a", Named(pids={me: start_time(me) or 0.0}))]).trusted == {"VCPU", "MEMORY_MB"}


def test_vcpu_follows_the_load_only_when_asked_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "getloadavg", lambda: (3.2, 0.0, 0.0))
    assert MachineCollector(Settings()).look([]).unexplained["VCPU"] == 0
    follows = Settings(external_vcpu_from_load=True, reserved_vcpu=1)
    assert MachineCollector(follows).look([]).unexplained["VCPU"] == 2


def test_the_load_of_claims_is_averaged_like_the_kernels() -> None:
    load = ClaimLoad()
    for second in range(0, 601, 5):
        load.update(cpu_s=2.0 * second, now_s=float(second))
    assert load.average == pytest.approx(2.0, abs=0.01)
    # Work that has ended no longer adds its CPU seconds; that is no negative load.
    assert load.update(0.0, 605.0) < 2.0
    assert load.average > 0.0


def test_collectors_are_found_by_their_entry_point() -> None:
    assert isinstance(load_collector("machine", Settings()), MachineCollector)
    with pytest.raises(InvalidRequest, match=r"unknown collector 'mine'.*have libvirt, machine"):
        load_collector("mine", Settings())


def test_a_described_host_is_as_it_was_described() -> None:
    report = HostReport("h1", {"VCPU": Inventory(4)}, cell="c2", external={"VCPU": 1})
    collector = StaticCollector(report)
    assert (collector.name, collector.cell, collector.period_s) == ("h1", "c2", None)
    assert collector.look([Work("a")]).report is report


@pytest.fixture
def tree(tmp_path: Path) -> SysTree:
    """Return a tree of two NUMA nodes; two GPUs and an accelerator are at the second one."""
    made = SysTree(tmp_path)
    made.online("0-7")
    made.node(0, "0-3", 8_000, 6_000, pages={2048: (100, 90)})
    made.node(1, "4-7", 8_000, 8_000)
    made.device("0000:3b:00.0", "10de", "1eb8", numa=1)
    made.device("0000:5e:00.0", "10de", "1eb8", numa=1)
    made.device("0000:af:00.0", "8086", "0d5c", numa=1)
    return made


EVERYTHING: dict[str, Any] = {
    "numa_pools": True,
    "dedicated_cpus": "2-5",
    "pci_devices": [{"vendor_id": "8086", "product_id": "0d5c", "resource_class": "CUSTOM_ACCELERATOR"}],
    "reserved_memory_mb": 0,
}


def machine(tree: SysTree, nvml: StandInNvml | None = None, **settings: object) -> MachineCollector:
    return MachineCollector(Settings.model_validate(settings), tree.root, Gpus(nvml.module if nvml else None))


def test_a_machine_with_pools_reports_a_tree(tree: SysTree) -> None:
    nvml = StandInNvml([StandInGpu(processes={1: 4 * GIB})])
    look = machine(tree, nvml, **EVERYTHING).look([])
    report = look.report
    assert report.inventories.keys() == {"DISK_GB"}, "amounts lie in the nodes, and nowhere twice"
    assert {name: pool.parent for name, pool in report.pools.items()} == {
        "numa0": "",
        "numa1": "",
        "pci-numa1-CUSTOM_ACCELERATOR": "numa1",
        "gpu0": "numa1",
    }
    totals = {slot: inventory.total for slot, inventory in report.slots().items() if slot != "DISK_GB"}
    assert totals == {
        "numa0/VCPU": 2,
        "numa0/PCPU": 2,
        "numa0/MEMORY_MB": 7_800,
        "numa0/CUSTOM_HUGE_PAGES_2048KB": 100,
        "numa1/VCPU": 2,
        "numa1/PCPU": 2,
        "numa1/MEMORY_MB": 8_000,
        "pci-numa1-CUSTOM_ACCELERATOR/CUSTOM_ACCELERATOR": 1,
        "gpu0/CUSTOM_GPU_MILLI": 1000,
        "gpu0/CUSTOM_GPU_MEMORY_MB": 16384,
    }
    assert report.metrics["gpu0.percent"] == 7.0
    external = with_external(report, remember(look, {})).external
    assert external.keys() <= report.slots().keys()
    assert external["numa0/CUSTOM_HUGE_PAGES_2048KB"] == 10
    assert (external["gpu0/CUSTOM_GPU_MILLI"], external["gpu0/CUSTOM_GPU_MEMORY_MB"]) == (250, 4096)
    assert external["numa0/MEMORY_MB"] == 1_856, "1800 of them, in steps of 64"
    assert look.trusted == report.slots().keys() - {"pci-numa1-CUSTOM_ACCELERATOR/CUSTOM_ACCELERATOR"}


def test_without_numa_pools_the_host_has_its_cpus_and_memory_itself(tree: SysTree) -> None:
    nvml = StandInNvml([StandInGpu()])
    report = machine(tree, nvml, **EVERYTHING | {"numa_pools": False, "dedicated_cpus": "0"}).look([]).report
    cpus = psutil.cpu_count() or 1
    assert report.inventories.keys() - {"VCPU"} == {"PCPU", "MEMORY_MB", "DISK_GB"}
    assert (report.inventories["PCPU"].total, report.slots().get("VCPU", Inventory(0)).total) == (1, cpus - 1)
    assert {name: pool.parent for name, pool in report.pools.items()} == {"pci-CUSTOM_ACCELERATOR": "", "gpu0": ""}


def test_unnamed_work_leaves_nothing_of_the_pools_trusted(tree: SysTree) -> None:
    nvml = StandInNvml([StandInGpu(processes={1: GIB})])
    look = machine(tree, nvml, **EVERYTHING).look([Work("a", None)])
    assert look.trusted == frozenset()
    assert "gpu0/CUSTOM_GPU_MILLI" not in look.unexplained


def test_the_processes_of_claims_are_no_foreign_load_of_a_gpu(tree: SysTree) -> None:
    me = os.getpid()
    nvml = StandInNvml([StandInGpu(processes={me: GIB})])
    named = Named(pids={me: start_time(me) or 0.0})
    own, other = (Work("a", named, devices=frozenset({device})) for device in ("GPU-5fd4f087", "GPU-86f37a43"))
    collector = machine(tree, nvml, **EVERYTHING)
    assert collector.look([own]).unexplained["gpu0/CUSTOM_GPU_MILLI"] == 0
    assert collector.look([other]).unexplained["gpu0/CUSTOM_GPU_MILLI"] == 63, "its claim holds another GPU"
    assert collector.look([other, own]).unexplained["gpu0/CUSTOM_GPU_MILLI"] == 0, "one of two placements in a move"


def test_what_the_gpu_driver_has_is_no_device_to_pass_through(tree: SysTree) -> None:
    """The driver uses one of two equal GPUs; the other one is bound to vfio-pci."""
    entry = {"vendor_id": "10de", "resource_class": "PGPU"}
    report = machine(tree, StandInNvml([StandInGpu()]), pci_devices=[entry]).look([]).report
    assert report.slots()["pci-PGPU/PGPU"] == Inventory(1)
    report = machine(tree, pci_devices=[entry]).look([]).report
    assert report.slots()["pci-PGPU/PGPU"] == Inventory(2)


@pytest.mark.parametrize("nvml", [StandInNvml(broken="Driver Not Loaded"), StandInNvml([StandInGpu(failing={"uuid"})])])
def test_a_gpu_that_the_driver_does_not_know_just_now_is_no_device_either(tree: SysTree, nvml: StandInNvml) -> None:
    """A claim may hold a share of it. `0000:5e:00.0` is bound to vfio-pci, and a virtual function is no whole GPU."""
    tree.device("0000:60:00.0", "10de", "1eb8", kind="030200", driver="nvidia")
    tree.device("0000:61:00.0", "10de", "1eb8", kind="030000")
    tree.device("0000:62:00.0", "10de", "1eb8", kind="030200", driver="vfio-pci")
    tree.device("0000:60:00.4", "10de", "1eb8", kind="030200", driver="nvidia", physical="0000:60:00.0")
    entry = {"vendor_id": "10de", "address": "0000:6*", "resource_class": "PGPU"}
    found = machine(tree, nvml, pci_devices=[entry]).look([]).report.slots()
    assert {slot: one.total for slot, one in found.items() if "PGPU" in slot} == {
        "pci-PGPU/PGPU": 1,
        "pci-0000-60-00.0/PGPU": 1,
    }


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"dedicated_cpus": "6-9"}, r"names CPU 8, which is not online: .* CPUs of 0-7"),
        ({"dedicated_cpus": "two"}, "'two' is not a CPU number"),
        ({"pci_devices": [{"vendor": "8086"}]}, "pci_devices, entry 1: unknown key 'vendor'"),
    ],
)
def test_settings_that_the_machine_cannot_meet_are_reported_at_the_start(
    tree: SysTree, settings: dict[str, Any], expected: str
) -> None:
    with pytest.raises(InvalidRequest, match=expected):
        machine(tree, **settings)


def test_this_machine_reports_its_own_nodes() -> None:
    if not read_nodes():
        pytest.skip("this kernel knows of no NUMA node")
    report = MachineCollector(Settings(numa_pools=True, reserved_memory_mb=10)).look([]).report
    cpus = sum(inventory.total for slot, inventory in report.slots().items() if slot.endswith("/VCPU"))
    kept_mb = sum(inventory.reserved for slot, inventory in report.slots().items() if slot.endswith("/MEMORY_MB"))
    assert (cpus, kept_mb) == (psutil.cpu_count(), 10)
