"""The PCI devices of this machine, as the kernel lists them below /sys."""

from dataclasses import dataclass
from pathlib import Path

from redsched.agent.machine.sysfs import SYS, read_number, read_text

DEVICES = "bus/pci/devices"
"""Below /sys: a folder for each device, named by its address."""


@dataclass(frozen=True, slots=True)
class PciDevice:
    """One function. `vendor` and `product` are four hexadecimal digits, `address` as in `0000:3b:00.0`.

    `numa_node` is -1 where the firmware names none. `physical` is the address of the physical function that a virtual
    one belongs to, '' for all others.
    """

    address: str
    vendor: str
    product: str
    numa_node: int = -1
    physical: str = ""


def read_devices(sys: Path = SYS) -> list[PciDevice]:
    """Return the devices by address. Which driver one is bound to, or whether to any, makes no difference."""
    devices = (_read(folder) for folder in (sys / DEVICES).glob("*:*"))
    # Unplugged while it was read: nothing is left of it.
    return sorted((one for one in devices if one.vendor and one.product), key=lambda one: one.address)


def _read(folder: Path) -> PciDevice:
    return PciDevice(
        address=folder.name,
        vendor=_id(folder / "vendor"),
        product=_id(folder / "device"),
        numa_node=numa_node(folder),
        physical=_target(folder / "physfn"),
    )


def numa_node(device: Path) -> int:
    """Return the NUMA node that a device's folder names, -1 for none."""
    return read_number(device / "numa_node", otherwise=-1)


def _id(path: Path) -> str:
    return read_text(path).lower().removeprefix("0x")


def _target(link: Path) -> str:
    try:
        return link.readlink().name
    except OSError:
        return ""
