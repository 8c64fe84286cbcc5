"""The collector of this machine."""

import os
import socket
from types import SimpleNamespace

import psutil
import pytest

from redsched.agent.collector import Named, StaticCollector, Work, load_collector
from redsched.agent.machine import GIB, MIB, ClaimLoad, MachineCollector, machine_labels
from redsched.agent.usage import start_time
from redsched.errors import InvalidRequest
from redsched.model import HostReport, Inventory
from redsched.names import check_label_value, check_name
from redsched.settings import Settings


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


def test_a_disk_path_that_is_not_there_is_said_at_the_start() -> None:
    with pytest.raises(InvalidRequest, match="REDSCHED_DISK_PATH"):
        MachineCollector(Settings(disk_path="/no/such/path"))


def test_a_name_that_is_none_is_said_at_the_start() -> None:
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
    # Work that ended takes its seconds with it: that is no negative load.
    assert load.update(0.0, 605.0) < 2.0
    assert load.average > 0.0


def test_collectors_are_found_by_their_entry_point() -> None:
    assert isinstance(load_collector("machine", Settings()), MachineCollector)
    with pytest.raises(InvalidRequest, match=r"no collector 'mine'.*there are machine"):
        load_collector("mine", Settings())


def test_a_described_host_is_as_it_was_described() -> None:
    report = HostReport("h1", {"VCPU": Inventory(4)}, cell="c2", external={"VCPU": 1})
    collector = StaticCollector(report)
    assert (collector.name, collector.cell, collector.period_s) == ("h1", "c2", None)
    assert collector.look([Work("a")]).report is report
