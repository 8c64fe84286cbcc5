"""A fake /sys: the files that the agent reads about NUMA nodes, huge pages and PCI devices, in the kernel's format."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class SysTree:
    """Write files below `root`."""

    root: Path

    def write(self, path: str, text: object) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{text}\n")

    def online(self, cpus: str) -> None:
        self.write("devices/system/cpu/online", cpus)

    def node(
        self,
        number: int,
        cpus: str,
        total_mb: int,
        free_mb: int,
        cached_mb: int = 0,
        reclaimable_mb: int = 0,
        pages: Mapping[int, tuple[int, int]] | None = None,
        sockets: Mapping[int, int] | None = None,
    ) -> None:
        """Write a NUMA node; `pages` by size in KB: the total and the free number; `sockets` by CPU."""
        values = {
            "MemTotal": total_mb,
            "MemFree": free_mb,
            "Active(file)": cached_mb // 2,
            "Inactive(file)": cached_mb - cached_mb // 2,
            "SReclaimable": reclaimable_mb,
        }
        folder = f"devices/system/node/node{number}"
        self.write(f"{folder}/cpulist", cpus)
        lines = [f"Node {number} {name}: {value * 1024:>10} kB" for name, value in values.items()]
        self.write(f"{folder}/meminfo", "\n".join([*lines, f"Node {number} HugePages_Total:    12"]))
        for size_kb, (total, free) in (pages or {}).items():
            self.write(f"{folder}/hugepages/hugepages-{size_kb}kB/nr_hugepages", total)
            self.write(f"{folder}/hugepages/hugepages-{size_kb}kB/free_hugepages", free)

        for cpu, socket in (sockets or {}).items():
            self.write(f"devices/system/cpu/cpu{cpu}/topology/physical_package_id", socket)

    def device(
        self,
        address: str,
        vendor: str,
        product: str,
        numa: int = -1,
        physical: str = "",
        kind: str = "020000",
        driver: str = "",
    ) -> None:
        """Write a PCI device; `physical`: the physical function of which it is a virtual one; `kind`: its class."""
        folder = f"bus/pci/devices/{address}"
        self.write(f"{folder}/vendor", f"0x{vendor}")
        self.write(f"{folder}/device", f"0x{product}")
        self.write(f"{folder}/numa_node", numa)
        self.write(f"{folder}/class", f"0x{kind}")
        if driver:
            (self.root / folder / "driver").symlink_to(f"../../drivers/{driver}")
        if physical:
            (self.root / folder / "physfn").symlink_to(f"../{physical}")
