"""The collector of machines under libvirt, with the real binding and the test driver that libvirt has built in."""

from collections.abc import Callable
from pathlib import Path

import pytest

from redsched.agent.collectors.base import Named, Observation, Work, load_collector
from redsched.errors import InvalidRequest
from redsched.model import Inventory
from redsched.settings import Settings

libvirt = pytest.importorskip("libvirt", reason="libvirt-python is not installed: pip install 'redsched[libvirt]'")

from redsched.agent.hypervisor.collector import LibvirtCollector  # noqa: E402 - only with the binding

DOMAIN = """
<domain type='test'>
  <name>{name}</name><uuid>{uuid}</uuid><memory unit='MiB'>{memory_mb}</memory><vcpu>{vcpus}</vcpu>
  <os><type arch='x86_64'>hvm</type></os>
</domain>"""
UUID = "6695eb01-f6a4-8304-79aa-97f2502e193{}"
NODE = """
<node>
  <cpu><nodes>2</nodes><sockets>1</sockets><cores>8</cores><threads>2</threads><active>32</active><mhz>2600</mhz></cpu>
  <memory>67108864</memory>
  {domains}
  <pool type='dir'>
    <name>default</name><target><path>/pool</path></target>
    <capacity unit='GiB'>100</capacity>
  </pool>
</node>"""
Look = Callable[..., Observation]


def domain(number: int, name: str, vcpus: int, memory_mb: int) -> str:
    return DOMAIN.format(name=name, uuid=UUID.format(number), vcpus=vcpus, memory_mb=memory_mb)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    """Return the URI of a machine of 32 CPUs and 64 GiB with three running domains."""
    domains = domain(0, "web", 4, 8192), domain(1, "db", 8, 16_384), domain(2, "by-hand", 2, 1000)
    file = tmp_path / "node.xml"
    file.write_text(NODE.format(domains="".join(domains)))
    return f"test://{file}"


@pytest.fixture
def look(uri: str) -> Look:
    """Return a function that observes that machine with settings and works."""

    def look(*works: Work, **settings: object) -> Observation:
        given = {"libvirt_uri": uri, "host_name": "h1", **settings}
        return LibvirtCollector(Settings.model_validate(given)).look(works)

    return look


def work(claim_id: str, **named: object) -> Work:
    return Work(claim_id, Named(**named) if named else None)  # type: ignore[arg-type] # the fields of Named


def test_the_machine_is_what_libvirt_says(look: Look) -> None:
    report = look(reserved_vcpu=2, ratio_vcpu=4.0, reserved_memory_mb=1024, dedicated_cpus="0-7").report
    assert report.inventories["VCPU"] == Inventory(24, 2, 4.0)
    assert report.inventories["PCPU"] == Inventory(8)
    assert report.inventories["MEMORY_MB"] == Inventory(65_536, 1024)
    assert report.inventories["DISK_GB"].total == 100
    assert report.labels["hypervisor"] == "TEST"
    assert report.labels["hypervisor_version"].count(".") == 2
    assert report.metrics == {"domains": 3.0}


def test_the_default_test_machine_is_observed() -> None:
    """With the architecture of an old CPU, and a storage pool of another name."""
    collector = LibvirtCollector(Settings(libvirt_uri="test:///default", libvirt_pool="default-pool", host_name="h1"))
    found = collector.look([])
    assert found.report.inventories["VCPU"].total == 16
    assert found.report.inventories["MEMORY_MB"].total == 3072
    assert found.report.traits == {"HW_ARCH_X86_64"}
    assert found.report.labels["numa.nodes"] == "2"
    assert found.unexplained["VCPU"] == 2, "of the domain `test`"


def test_without_claims_all_domains_are_external(look: Look) -> None:
    found = look()
    assert (found.unexplained["VCPU"], found.unexplained["MEMORY_MB"]) == (14, 25_576)
    assert found.unexplained["DISK_GB"] == 0, "the test driver's pools are empty"
    assert found.trusted == {"VCPU", "MEMORY_MB", "DISK_GB"}


@pytest.mark.parametrize("by", ["web", UUID.format(0)], ids=["name", "UUID"])
def test_the_domain_of_a_claim_is_not_external(look: Look, by: str) -> None:
    found = look(work("claim-1", domain=by))
    assert (found.unexplained["VCPU"], found.unexplained["MEMORY_MB"]) == (10, 17_384)
    assert found.trusted == {"VCPU", "MEMORY_MB"}, "the volumes of claims are not told from others"


def test_work_without_a_domain_leaves_domains_external(look: Look) -> None:
    found = look(work("claim-1", domain="web"), work("claim-2", cgroup="machine.slice/job-7.scope"))
    assert found.unexplained["VCPU"] == 10
    assert "VCPU" in found.trusted


def test_while_work_is_not_named_usage_is_not_trusted(look: Look) -> None:
    """Its domain may be one of those that run."""
    assert look(work("claim-1", domain="web"), work("claim-2")).trusted == frozenset()


def test_no_such_storage_pool_is_no_disk(look: Look) -> None:
    assert "DISK_GB" not in look(libvirt_pool="images").report.inventories
    assert "DISK_GB" not in look(libvirt_pool="").report.inventories


@pytest.mark.parametrize("read", ["virDomain.info", "virConnect.storagePoolLookupByName"])
def test_what_cannot_be_read_now_is_an_error(uri: str, read: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A domain or a pool that was left out would be reported as room that is free, or as a disk that is gone."""

    def fail(*_: object) -> None:
        error = libvirt.libvirtError("it takes too long")
        error.err = (libvirt.VIR_ERR_OPERATION_TIMEOUT, 0, "it takes too long", 0, "", "", "", 0, 0)
        raise error

    monkeypatch.setattr(f"libvirt.{read}", fail)
    with pytest.raises(OSError, match="it takes too long"):
        LibvirtCollector(Settings(libvirt_uri=uri, host_name="h1")).look([])


def test_a_libvirtd_that_is_gone_is_an_error_until_it_is_back(tmp_path: Path, uri: str) -> None:
    file = Path(uri.removeprefix("test://"))
    text = file.read_text()
    file.unlink()
    collector = LibvirtCollector(Settings(libvirt_uri=uri, host_name="h1"))
    with pytest.raises(OSError, match="REDSCHED_LIBVIRT_URI"):
        collector.look([])
    file.write_text(text)
    assert collector.look([]).report.inventories["VCPU"].total == 32


def test_numa_pools_are_refused() -> None:
    with pytest.raises(InvalidRequest, match="REDSCHED_NUMA_POOLS"):
        LibvirtCollector(Settings(numa_pools=True))


def test_it_is_installed_as_a_collector(uri: str) -> None:
    collector = load_collector("libvirt", Settings(libvirt_uri=uri, host_name="h1"))
    assert collector.look([]).report.name == "h1"
