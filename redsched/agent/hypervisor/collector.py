"""The collector of a machine with virtual machines under libvirt: its amounts, and what other domains have of them.

A domain has what it was defined with, whether it uses that or not: external usage is what the running domains have that
belong to no claim. docs/agent.md lists what each value is read from.
"""

import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from redsched.agent.collectors.base import Observation, Work
from redsched.agent.hypervisor.capabilities import Capabilities, expanded_features
from redsched.agent.hypervisor.connection import Connection, load_libvirt
from redsched.agent.machine.cpu_list import parse_cpus
from redsched.agent.machine.cpu_traits import traits_of
from redsched.errors import InvalidRequest
from redsched.model import HostReport, Inventory
from redsched.model.validation import MAX_LABEL_LENGTH, check_name
from redsched.settings import Settings

KIB_IN_MIB = 1024
GIB = 2**30
X86 = {"i686": "x86_64"}


@dataclass(frozen=True, slots=True)
class Domain:
    """A running domain, with what it was defined with."""

    name: str
    uuid: str
    vcpus: int
    memory_mb: int


class LibvirtCollector:
    """Observes the machine of a libvirtd. Raises InvalidRequest without the binding, or with NUMA pools."""

    def __init__(self, settings: Settings, libvirt: ModuleType | None = None) -> None:
        if settings.numa_pools:
            raise InvalidRequest(
                "the collector libvirt reports no NUMA pools: unset REDSCHED_NUMA_POOLS, or use the collector machine"
            )
        self.name = check_name("host", settings.host_name or socket.gethostname())
        self.cell = settings.cells[0]
        self.period_s: float | None = settings.collect_s
        self._settings = settings
        self._dedicated = len(parse_cpus(settings.dedicated_cpus))
        self._libvirt = libvirt or load_libvirt()
        self._connection = Connection(settings.libvirt_uri, self._libvirt)

    def look(self, works: Sequence[Work]) -> Observation:
        """Observe the machine now. Raises OSError when libvirt cannot be read."""
        return self._connection.read(lambda open_: self._observe(open_, works))

    def _observe(self, open_: Any, works: Sequence[Work]) -> Observation:
        disk = self._disk_gb(open_)
        inventories = self._inventories(open_, disk)
        domains = list(self._domains(open_))
        others = foreign(domains, works)
        unexplained = {
            "VCPU": sum(one.vcpus for one in others),
            "MEMORY_MB": sum(one.memory_mb for one in others),
            "DISK_GB": max(0, disk[1] - self._settings.reserved_disk_gb),
            "PCPU": 0,
        }
        # Volumes are not attributed to claims, so the pool's usage is meaningful only while the host holds none.
        trusted = {"VCPU", "PCPU", "MEMORY_MB"} if are_named(works) else set()
        trusted |= set() if works else {"DISK_GB"}
        return Observation(
            self._report(open_, inventories, len(domains)),
            {slot: amount for slot, amount in unexplained.items() if slot in inventories},
            frozenset(trusted & inventories.keys()),
        )

    def _domains(self, open_: Any) -> Iterable[Domain]:
        for one in open_.listAllDomains(self._libvirt.VIR_CONNECT_LIST_DOMAINS_ACTIVE):
            info = self._connection.or_none(one.info)
            if info is not None:  # it may have ended since it was listed
                _state, memory_kib, _current_kib, vcpus, _cpu_ns = info
                yield Domain(one.name(), one.UUIDString(), vcpus, -(-memory_kib // KIB_IN_MIB))

    def _inventories(self, open_: Any, disk: tuple[int, int]) -> Mapping[str, Inventory]:
        settings = self._settings
        _model, memory_mib, cpus, *_ = open_.getInfo()
        found = {
            "VCPU": Inventory(max(0, cpus - self._dedicated), settings.reserved_vcpu, settings.ratio_vcpu),
            "PCPU": Inventory(min(cpus, self._dedicated)),
            "MEMORY_MB": Inventory(memory_mib, settings.reserved_memory_mb, settings.ratio_memory),
            "DISK_GB": Inventory(disk[0], settings.reserved_disk_gb, settings.ratio_disk),
        }
        return {name: one for name, one in found.items() if one.total}

    def _disk_gb(self, open_: Any) -> tuple[int, int]:
        """Return the size of the storage pool, and how much of it is used; nothing if there is no such pool."""
        name = self._settings.libvirt_pool
        pool = self._connection.or_none(lambda: open_.storagePoolLookupByName(name)) if name else None
        if pool is None or not pool.isActive():
            return 0, 0
        _state, capacity, allocation, _available = pool.info()
        return capacity // GIB, -(-allocation // GIB)

    def _report(self, open_: Any, inventories: Mapping[str, Inventory], domains: int) -> HostReport:
        found = Capabilities.from_xml(open_.getCapabilities())
        return HostReport(
            name=self.name,
            inventories=inventories,
            cell=self.cell,
            zone=self._settings.zone,
            labels=_labels(open_, found) | self._settings.labels,
            traits=traits_of(X86.get(found.arch, found.arch), self._features(open_, found)),
            metrics={"domains": float(domains)},
            lease_s=self._settings.lease_s,
        )

    def _features(self, open_: Any, found: Capabilities) -> frozenset[str]:
        """Return the features of the CPU: those of its model too, if the hypervisor can tell them."""
        flags = self._libvirt.VIR_CONNECT_BASELINE_CPU_EXPAND_FEATURES
        expanded = self._connection.or_none(lambda: open_.baselineCPU([found.cpu], flags)) if found.model else None
        return found.features | (expanded_features(expanded) if expanded else frozenset())


def foreign(domains: Iterable[Domain], works: Iterable[Work]) -> list[Domain]:
    """Return the domains that are not the work of a claim, by their name or UUID."""
    own = {work.named.domain for work in works if work.named is not None}
    return [one for one in domains if one.name not in own and one.uuid not in own]


def are_named(works: Iterable[Work]) -> bool:
    """Return whether it is known of all work which domain it is. Work with a pid or a cgroup of its own is in none."""
    return all(one.named is not None and (one.named.domain or one.named.cgroup or one.named.pids) for one in works)


def _labels(open_: Any, found: Capabilities) -> dict[str, str]:
    labels = {
        "hostname": open_.getHostname(),
        "arch": found.arch,
        "cpu.model": found.model or open_.getInfo()[0],
        "numa.nodes": str(found.numa_nodes or ""),
        "hypervisor": open_.getType(),
        "hypervisor_version": _version(open_.getVersion()),
        "libvirt_version": _version(open_.getLibVersion()),
    }
    return {name: text[:MAX_LABEL_LENGTH] for name, text in labels.items() if text}


def _version(number: int) -> str:
    """Return a version with dots: libvirt counts a million for the first part, and a thousand for the second."""
    return f"{number // 1_000_000}.{number // 1000 % 1000}.{number % 1000}"
