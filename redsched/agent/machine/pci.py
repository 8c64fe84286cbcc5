"""Read the PCI devices of this machine from sysfs."""

from dataclasses import dataclass
from pathlib import Path

from redsched.agent.machine.sysfs import SYS, read_number, read_text

DEVICES = "bus/pci/devices"
"""Path in sysfs, with a directory for each device, named by its address."""

NVIDIA, DISPLAY = "10de", "03"
"""The vendor, and the beginning of the class of its display and 3D controllers."""


@dataclass(frozen=True, slots=True)
class PciDevice:
    """One PCI function. `vendor` and `product` are four hexadecimal digits; `address` is like `0000:3b:00.0`.

    `numa_node` is -1 if the firmware names none. `physical` is the address of a virtual function's physical function,
    '' for all other functions. `kind` is its class in hexadecimal digits, `driver` the driver that it is bound to.
    """

    address: str
    vendor: str
    product: str
    numa_node: int = -1
    physical: str = ""
    kind: str = ""
    driver: str = ""

    @property
    def is_nvidia_gpu(self) -> bool:
        """Whether it is a whole GPU of NVIDIA."""
        return self.vendor == NVIDIA and self.kind.startswith(DISPLAY) and not self.physical


def read_devices(sys: Path = SYS) -> list[PciDevice]:
    """Return all devices, with any driver or none, in the order of their addresses."""
    devices = (_read(folder) for folder in (sys / DEVICES).glob("*:*"))
    # A device that was unplugged during the read has empty ids.
    return sorted((one for one in devices if one.vendor and one.product), key=lambda one: one.address)


def _read(folder: Path) -> PciDevice:
    return PciDevice(
        address=folder.name,
        vendor=_id(folder / "vendor"),
        product=_id(folder / "device"),
        numa_node=numa_node(folder),
        physical=_target(folder / "physfn"),
        kind=_id(folder / "class"),
        driver=_target(folder / "driver"),
    )


def numa_node(device: Path) -> int:
    """Return the NUMA node of a device's directory, -1 for none."""
    return read_number(device / "numa_node", otherwise=-1)


def _id(path: Path) -> str:
    return read_text(path).lower().removeprefix("0x")


def _target(link: Path) -> str:
    try:
        return link.readlink().name
    except OSError:
        return ""
