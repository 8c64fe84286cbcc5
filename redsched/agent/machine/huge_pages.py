"""Read the huge pages of a NUMA node from sysfs. The kernel has a pool of whole pages for each page size."""

from dataclasses import dataclass
from pathlib import Path

from redsched.agent.machine.sysfs import read_number


@dataclass(frozen=True, slots=True)
class HugePages:
    """The huge pages of one size on one node: how many there are, and how many are free."""

    size_kb: int
    total: int
    free: int

    @property
    def resource_class(self) -> str:
        """The resource class that counts them, in pages."""
        return f"CUSTOM_HUGE_PAGES_{self.size_kb}KB"


def read_huge_pages(node: Path) -> tuple[HugePages, ...]:
    """Return the huge pages of a node's directory, smallest size first; sizes without pages are omitted."""
    found = (_read(folder) for folder in (node / "hugepages").glob("hugepages-*kB"))
    return tuple(sorted((pages for pages in found if pages.total), key=lambda pages: pages.size_kb))


def _read(folder: Path) -> HugePages:
    size_kb = int(folder.name.removeprefix("hugepages-").removesuffix("kB"))
    return HugePages(size_kb, read_number(folder / "nr_hugepages"), read_number(folder / "free_hugepages"))
