"""Report PCI devices as pools: one for the virtual functions of a physical one, one for each group of like devices.

Names are chosen so that a pool keeps its name when devices come and go: `pci-0000-3b-00.0` after the physical function,
`pci-numa0-CUSTOM_NIC_X` after the NUMA node and class of a group.
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field

from redsched.agent.collectors.component import Part
from redsched.agent.machine.pci import PciDevice
from redsched.agent.machine.pci_spec import DeviceSpec
from redsched.errors import InvalidRequest
from redsched.model import Inventory, Pool

MAX_NAME = 63
DIGEST_LENGTH = 8


@dataclass(slots=True)
class _Filling:
    """A pool that is being built."""

    parent: str
    traits: frozenset[str]
    counts: Counter[str] = field(default_factory=Counter)


def pci_pools(devices: Sequence[PciDevice], specs: Sequence[DeviceSpec], nodes: Collection[str]) -> Part:
    """Return the pools of the `devices` that `specs` offer; the first entry that matches a device counts.

    `nodes` are the pools of NUMA nodes, which may be parents. A physical function with offered virtual functions is not
    offered itself, because it cannot be allocated whole. Raises InvalidRequest if entries give virtual functions of one
    physical function different traits, because traits belong to the pool.
    """
    offered = [(device, spec) for device in devices if (spec := _first(device, specs))]
    physical = {device.physical for device, _ in offered}
    pools = dict[str, _Filling]()
    for device, spec in offered:
        if device.address in physical:
            continue
        node = f"numa{device.numa_node}"
        parent = node if node in nodes else ""
        name = _name_of_physical(device.physical) if device.physical else _name_of_group(parent, device, spec)
        pool = pools.setdefault(name, _Filling(parent, spec.traits))
        if pool.traits != spec.traits:
            raise InvalidRequest(
                f"pci_devices gives the virtual functions of {device.physical} different traits "
                f"({_describe(pool.traits)}; {_describe(spec.traits)}): give all of them the same"
            )
        pool.counts[spec.class_of(device)] += 1
    return _part(pools)


def _part(pools: dict[str, _Filling]) -> Part:
    made = {
        name: Pool({one: Inventory(count) for one, count in pool.counts.items()}, pool.parent, pool.traits)
        for name, pool in pools.items()
    }
    return Part(made)


def _first(device: PciDevice, specs: Iterable[DeviceSpec]) -> DeviceSpec | None:
    return next((spec for spec in specs if spec.matches(device)), None)


def _name_of_physical(address: str) -> str:
    return f"pci-{address.replace(':', '-')}"


def _name_of_group(parent: str, device: PciDevice, spec: DeviceSpec) -> str:
    """Return a group's pool name. A digest of the traits tells groups of one class with different traits apart."""
    name = "-".join(filter(None, ("pci", parent, spec.class_of(device))))
    if not spec.traits and len(name) <= MAX_NAME:
        return name
    digest = hashlib.sha256(" ".join((name, *sorted(spec.traits))).encode()).hexdigest()[:DIGEST_LENGTH]
    return f"{name[: MAX_NAME - DIGEST_LENGTH - 1]}-{digest}"


def _describe(traits: frozenset[str]) -> str:
    return ", ".join(sorted(traits)) or "none"
