"""The collector of the machine that the agent runs on: psutil, /proc and /sys. What it cannot see: docs/agent.md."""

import math
import os
import platform
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil

from redsched.agent.collector import Look, Work
from redsched.agent.cpu_traits import CPUINFO, has_hyperthreading, read_flags, traits_of
from redsched.agent.usage import Usage, measure
from redsched.errors import InvalidRequest
from redsched.model import HostReport, Inventory
from redsched.names import check_name
from redsched.settings import Settings

MIB = 2**20
GIB = 2**30
NODES = Path("/sys/devices/system/node")
PRODUCT = Path("/sys/class/dmi/id/product_name")
LOAD_WINDOW_S = 60.0
LABEL_LENGTH = 63


@dataclass(slots=True)
class ClaimLoad:
    """CPU seconds a second that the work of claims uses, averaged as the kernel averages its 1-minute load."""

    average: float = 0.0
    _cpu_s: float | None = None
    _at_s: float = 0.0

    def update(self, cpu_s: float, now_s: float) -> float:
        """Take in the CPU seconds used so far and return the average."""
        if self._cpu_s is not None and now_s > self._at_s:
            elapsed = now_s - self._at_s
            # Ended processes take their seconds with them, so the sum can shrink.
            present = max(0.0, cpu_s - self._cpu_s) / elapsed
            self.average += (present - self.average) * (1 - math.exp(-elapsed / LOAD_WINDOW_S))
        self._cpu_s, self._at_s = cpu_s, now_s
        return self.average


class MachineCollector:
    """This machine: VCPU, MEMORY_MB, DISK_GB, CPU traits, labels, and what is used by work that no claim explains."""

    def __init__(self, settings: Settings) -> None:
        _check_disk_path(settings)
        self.name = check_name("host", settings.host_name or socket.gethostname())
        self.cell = settings.cells[0]
        self.period_s: float | None = settings.collect_s
        self._settings = settings
        self._claim_load = ClaimLoad()
        # These change only with a reboot, and reading them costs more than all the rest.
        self._traits = _cpu_traits()
        self._labels = machine_labels() | settings.labels
        psutil.cpu_percent()  # the first call only starts the interval that the next one ends

    def look(self, works: Sequence[Work]) -> Look:
        """Look at the machine now. Raises OSError when disk_path cannot be read any more."""
        usage = measure(works)
        inventories = self._inventories()
        report = HostReport(
            name=self.name,
            inventories=inventories,
            cell=self.cell,
            zone=self._settings.zone,
            labels=self._labels,
            traits=self._traits,
            metrics={
                "cpu.percent": psutil.cpu_percent(),
                "memory.percent": psutil.virtual_memory().percent,
                "load.1m": psutil.getloadavg()[0],
            },
            lease_s=self._settings.lease_s,
        )
        trusted = {"VCPU", "MEMORY_MB"} if usage.complete else set()
        # Nothing tells whose a file is, so the disk can be measured only while no claim is here.
        if not works:
            trusted.add("DISK_GB")
        return Look(report, self._unexplained(usage), frozenset(trusted & inventories.keys()))

    def _inventories(self) -> dict[str, Inventory]:
        kept = self._settings
        totals = {
            "VCPU": (psutil.cpu_count() or 1, kept.reserved_vcpu, kept.ratio_vcpu),
            "MEMORY_MB": (psutil.virtual_memory().total // MIB, kept.reserved_memory_mb, kept.ratio_memory),
            "DISK_GB": (self._disk_bytes()[0] // GIB, kept.reserved_disk_gb, kept.ratio_disk),
        }
        return {
            slot: Inventory(total, reserved=reserved, allocation_ratio=ratio)
            for slot, (total, reserved, ratio) in totals.items()
            if total > 0
        }

    def _unexplained(self, usage: Usage) -> dict[str, int]:
        kept = self._settings
        memory = psutil.virtual_memory()
        # total - available is what cannot be had; `used` would leave out what the kernel cannot give back.
        memory_mb = math.ceil((memory.total - memory.available - usage.memory_bytes) / MIB)
        disk_gb = math.ceil(self._disk_bytes()[1] / GIB)
        return {
            "VCPU": self._unexplained_vcpu(usage),
            "MEMORY_MB": max(0, memory_mb - kept.reserved_memory_mb),
            "DISK_GB": max(0, disk_gb - kept.reserved_disk_gb),
        }

    def _unexplained_vcpu(self, usage: Usage) -> int:
        explained = self._claim_load.update(usage.cpu_s, time.monotonic())
        if not self._settings.external_vcpu_from_load:
            return 0
        return max(0, round(psutil.getloadavg()[0] - explained) - self._settings.reserved_vcpu)

    def _disk_bytes(self) -> tuple[int, int]:
        """Total and used."""
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


def _cpu_traits() -> frozenset[str]:
    traits = traits_of(platform.machine(), read_flags())
    return traits | {"HW_CPU_HYPERTHREADING"} if has_hyperthreading() else traits


def machine_labels() -> dict[str, str]:
    """Return what is worth choosing a machine by: its names, kernel, architecture, CPU and NUMA nodes."""
    found = {
        "hostname": socket.gethostname(),
        "kernel": platform.release(),
        "arch": platform.machine(),
        "os": _os_name(),
        "cpu.model": _cpu_model(),
        "cpu.cores": str(psutil.cpu_count(logical=False) or ""),
        "numa.nodes": str(len(list(NODES.glob("node[0-9]*"))) or ""),
        "product": _first_line(PRODUCT),
    }
    return {key: _label_value(value) for key, value in found.items() if value}


def _label_value(text: str) -> str:
    printable = "".join(char if " " <= char <= "~" else "?" for char in text)
    return printable[:LABEL_LENGTH].strip()


def _os_name() -> str:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        return os.uname().sysname


def _cpu_model() -> str:
    try:
        lines = CPUINFO.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")


def _first_line(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip().partition("\n")[0]
    except OSError:
        return ""
