"""The collector of the machine that the agent runs on, by psutil, /proc, /sys and the GPU driver.

NUMA nodes, PCI devices and GPUs are components, each with pools of its own; here they are combined with the inventories
of the host itself. docs/agent.md lists what the collector cannot see.
"""

import math
import platform
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from redsched.agent.collectors.base import Observation, Work
from redsched.agent.collectors.component import Part
from redsched.agent.machine.cpu_list import parse_cpus
from redsched.agent.machine.cpu_traits import has_hyperthreading, read_flags, traits_of
from redsched.agent.machine.gpu_pools import gpu_pools
from redsched.agent.machine.labels import machine_labels
from redsched.agent.machine.numa_pools import NumaPools
from redsched.agent.machine.nvidia import Gpus, load_nvml
from redsched.agent.machine.pci import PciDevice, read_devices
from redsched.agent.machine.pci_pools import pci_pools
from redsched.agent.machine.pci_spec import read_specs
from redsched.agent.machine.sysfs import SYS, read_text
from redsched.agent.machine.usage import Usage, measure
from redsched.errors import InvalidRequest
from redsched.model import HostReport, Inventory
from redsched.model.validation import check_name
from redsched.settings import Settings

MIB = 2**20
GIB = 2**30
LOAD_WINDOW_S = 60.0


@dataclass(slots=True)
class ClaimLoad:
    """The CPU seconds per second that the work of claims uses, averaged like the kernel's 1-minute load."""

    average: float = 0.0
    _cpu_s: float | None = None
    _at_s: float = 0.0

    def update(self, cpu_s: float, now_s: float) -> float:
        """Add a sample of the CPU seconds used so far, and return the average."""
        if self._cpu_s is not None and now_s > self._at_s:
            elapsed = now_s - self._at_s
            # The seconds of ended processes disappear, so the sum can shrink.
            present = max(0.0, cpu_s - self._cpu_s) / elapsed
            self.average += (present - self.average) * (1 - math.exp(-elapsed / LOAD_WINDOW_S))
        self._cpu_s, self._at_s = cpu_s, now_s
        return self.average


class MachineCollector:
    """Observes this machine: CPUs, memory, disk, NUMA nodes, devices, labels, and usage that belongs to no claim.

    `sys` is the path of sysfs. Creating it raises InvalidRequest for settings that do not match this machine.
    """

    def __init__(self, settings: Settings, sys: Path = SYS, gpus: Gpus | None = None) -> None:
        _check_disk_path(settings)
        self.name = check_name("host", settings.host_name or socket.gethostname())
        self.cell = settings.cells[0]
        self.period_s: float | None = settings.collect_s
        self._settings, self._sys = settings, sys
        self._dedicated = _dedicated_cpus(settings, sys)
        self._numa = NumaPools(settings, self._dedicated, sys) if settings.numa_pools else None
        self._specs = read_specs(settings.pci_devices)
        self._gpus = gpus or Gpus(load_nvml())
        self._claim_load = ClaimLoad()
        # These change only on a reboot, and reading them costs more than everything else.
        self._traits = _cpu_traits()
        self._labels = machine_labels() | settings.labels
        psutil.cpu_percent()  # the first call only starts the interval that the next one ends
        # Report settings that do not match this machine now, not at the first observation.
        self._parts(measure([]), 0)

    def look(self, works: Sequence[Work]) -> Observation:
        """Observe the machine now. Raises OSError when disk_path can no longer be read."""
        usage = measure(works)
        unexplained = self._unexplained(usage)
        parts = self._parts(usage, unexplained["VCPU"])
        inventories = self._inventories()
        trusted = {"VCPU", "PCPU", "MEMORY_MB"} if usage.complete else set()
        # Files cannot be attributed to claims, so disk usage is meaningful only while the host holds no claim.
        if not works:
            trusted.add("DISK_GB")
        return Observation(
            self._report(inventories, parts),
            {slot: amount for slot, amount in unexplained.items() if slot in inventories}
            | {slot: amount for part in parts for slot, amount in part.unexplained.items()},
            frozenset(trusted & inventories.keys()).union(*(part.trusted for part in parts)),
        )

    def _parts(self, usage: Usage, unexplained_vcpu: int) -> list[Part]:
        """Return the components: NUMA nodes, PCI devices and GPUs."""
        numa = self._numa.observe(usage, unexplained_vcpu) if self._numa else Part({})
        gpus = self._gpus.read()
        # GPUs that the driver manages are offered in shares, and therefore not as PCI devices.
        shared = {gpu.address for gpu in gpus}
        found = read_devices(self._sys) if self._specs else []
        devices = [one for one in found if one.address not in shared and not self._is_shared(one)]
        return [
            numa,
            pci_pools(devices, self._specs, numa.pools.keys()),
            gpu_pools(gpus, usage.by_device if usage.complete else None, numa.pools.keys(), self._sys),
        ]

    def _is_shared(self, device: PciDevice) -> bool:
        """Return whether a device is a GPU of the driver, which may not answer just now: it has failed, or restarts.

        Another claim may hold the GPU then, so it is a device to pass through only once another driver has it.
        """
        return self._gpus.is_installed and device.is_nvidia_gpu and device.driver in ("", "nvidia")

    def _report(self, inventories: dict[str, Inventory], parts: Sequence[Part]) -> HostReport:
        metrics = {
            "cpu.percent": psutil.cpu_percent(),
            "memory.percent": psutil.virtual_memory().percent,
            "load.1m": psutil.getloadavg()[0],
        }
        return HostReport(
            name=self.name,
            inventories=inventories,
            cell=self.cell,
            zone=self._settings.zone,
            labels=self._labels,
            traits=self._traits,
            metrics=metrics | {name: value for part in parts for name, value in part.metrics.items()},
            lease_s=self._settings.lease_s,
            pools={name: pool for part in parts for name, pool in part.pools.items()},
        )

    def _inventories(self) -> dict[str, Inventory]:
        """Return the inventories of the host itself; with NUMA pools, only those that belong to no node."""
        settings = self._settings
        inventories = {
            "DISK_GB": Inventory(self._disk_bytes()[0] // GIB, settings.reserved_disk_gb, settings.ratio_disk)
        }
        if self._numa is None:
            shared = (psutil.cpu_count() or 1) - len(self._dedicated)
            memory_mb = psutil.virtual_memory().total // MIB
            inventories |= {
                "VCPU": Inventory(max(0, shared), settings.reserved_vcpu, settings.ratio_vcpu),
                "PCPU": Inventory(len(self._dedicated)),
                "MEMORY_MB": Inventory(memory_mb, settings.reserved_memory_mb, settings.ratio_memory),
            }
        return {one: inventory for one, inventory in inventories.items() if inventory.total}

    def _unexplained(self, usage: Usage) -> dict[str, int]:
        settings = self._settings
        memory = psutil.virtual_memory()
        # total - available is the memory that cannot be allocated; `used` would omit what the kernel cannot reclaim.
        memory_mb = math.ceil((memory.total - memory.available - usage.memory_bytes) / MIB)
        disk_gb = math.ceil(self._disk_bytes()[1] / GIB)
        return {
            "VCPU": self._unexplained_vcpu(usage),
            "PCPU": 0,
            "MEMORY_MB": max(0, memory_mb - settings.reserved_memory_mb),
            "DISK_GB": max(0, disk_gb - settings.reserved_disk_gb),
        }

    def _unexplained_vcpu(self, usage: Usage) -> int:
        explained = self._claim_load.update(usage.cpu_s, time.monotonic())
        if not self._settings.external_vcpu_from_load:
            return 0
        return max(0, round(psutil.getloadavg()[0] - explained) - self._settings.reserved_vcpu)

    def _disk_bytes(self) -> tuple[int, int]:
        """Return the total and the used bytes of the disk."""
        disk = psutil.disk_usage(self._settings.disk_path)
        return int(disk.total), int(disk.used)


def _check_disk_path(settings: Settings) -> None:
    try:
        psutil.disk_usage(settings.disk_path)
    except OSError as error:
        raise InvalidRequest(
            f"disk_path {settings.disk_path!r} cannot be read ({error.strerror}): "
            "set REDSCHED_DISK_PATH to a folder of the file system that claims use"
        ) from error


def _dedicated_cpus(settings: Settings, sys: Path) -> frozenset[int]:
    dedicated = parse_cpus(settings.dedicated_cpus)
    online = parse_cpus(read_text(sys / "devices/system/cpu/online"))
    missing = sorted(dedicated - online)
    if missing:
        raise InvalidRequest(
            f"dedicated_cpus {settings.dedicated_cpus!r} names CPU {missing[0]}, which is not online: "
            f"set REDSCHED_DEDICATED_CPUS to CPUs of {read_text(sys / 'devices/system/cpu/online') or 'no list'}"
        )
    return dedicated


def _cpu_traits() -> frozenset[str]:
    traits = traits_of(platform.machine(), read_flags())
    return traits | {"HW_CPU_HYPERTHREADING"} if has_hyperthreading() else traits
