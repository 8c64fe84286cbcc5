"""HostState: the attributes of a host that Nova's classes read, taken from a row of the columns.

Capacities are those available to claims: the reserved part is subtracted and the allocation ratio applied, so the
ratios here are 1. Amounts are those of the host and its pools together.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

import numpy as np

from redsched.cache.columns import ENABLED, Columns
from redsched.decide.aggregates import aggregates_of
from redsched.decide.plugins.nova.lazy_object import LazyObject, constant, make_object
from redsched.decide.rules import Rows
from redsched.decide.scoring.demand import room
from redsched.decide.scoring.hosts import HYPERVISOR_VERSION, device_classes, version_number

_CPU_FEATURE = "HW_CPU_X86_"


class HostState(LazyObject):
    """One host, read from `row` of `columns`."""

    kind = "HostState"
    columns: Columns
    row: int

    def label(self, key: str) -> str | None:
        """Return a label of the host; None if it has no such label."""
        texts = self.columns.labels.get(key)
        return (texts.text(self.row) if texts is not None else "") or None

    def capacity(self, resource_class: str) -> int:
        """Return the capacity of a class."""
        return int(room(self.columns, resource_class, self.row)[0])

    def free(self, resource_class: str) -> int:
        """Return the free amount of a class."""
        return int(room(self.columns, resource_class, self.row)[1])

    def used(self, resource_class: str) -> int:
        """Return the used amount of a class, by claims or externally."""
        return self.capacity(resource_class) - self.free(resource_class)


def states_of(columns: Columns, rows: Rows) -> list[HostState]:
    """Return the state of each row."""
    numbers = np.atleast_1d(np.arange(columns.size)[rows]).tolist()
    return [HostState(columns=columns, row=row) for row in numbers]


def _uuid(state: HostState) -> str:
    return str(uuid5(NAMESPACE_DNS, state.host))


def _aggregates(state: HostState) -> list[LazyObject]:
    columns = state.columns
    declared = columns.declared.aggregates
    names = [name for name in aggregates_of(columns, state.row) if name in declared]
    found = [_aggregate(name, declared[name].metadata) for name in names]
    # In Nova, a host's zone is metadata of one of its aggregates.
    zone = columns.zones.text(state.row)
    return [*found, _aggregate(zone, {"availability_zone": zone})] if zone else found


def _aggregate(name: str, metadata: Mapping[str, str]) -> LazyObject:
    return make_object("Aggregate", id=name, uuid=name, name=name, metadata=dict(metadata))


def _instances(state: HostState) -> dict[str, LazyObject]:
    """Return the host's claims, with artificial ids.

    Claims in server groups have the ids that `member_ids` returns for the groups' members.
    """
    ids = [one for group in state.columns.declared.groups for one in member_ids(state.columns, group, state.host)]
    ids += [f"{state.host}.{number}" for number in range(state.num_instances - len(ids))]
    return {one: make_object("Instance", uuid=one, host=state.host) for one in ids}


def member_ids(columns: Columns, group: str, host: str) -> list[str]:
    """Return artificial ids for a group's members on a host, as the columns have their number but not their ids."""
    return [f"{group}.{host}.{number}" for number in range(columns.declared.groups[group].count("host", host))]


def _metrics(state: HostState) -> list[LazyObject]:
    values = {name: state.columns.metrics[name].item(state.row) for name in state.columns.metrics}
    return [
        make_object("MonitorMetric", name=name, value=value) for name, value in values.items() if np.isfinite(value)
    ]


def _cpu_info(state: HostState) -> str:
    traits = state.columns.traits
    features = sorted(
        one.removeprefix(_CPU_FEATURE).lower()
        for one in traits
        if one.startswith(_CPU_FEATURE) and traits[one][state.row]
    )
    return json.dumps({"arch": state.label("architecture"), "features": features})


def _supported_instances(state: HostState) -> list[list[str | None]]:
    words = [state.label(key) for key in ("architecture", "hypervisor_type", "vm_mode")]
    return [words] if any(words) else []


def _service(state: HostState) -> dict[str, Any]:
    return {
        "host": state.host,
        "disabled": bool(state.columns.status[state.row] != ENABLED),
        "disabled_reason": None,
        "forced_down": not state.columns.alive[state.row],
    }


def _stats(state: HostState) -> dict[str, Any]:
    labels = {key: text for key in state.columns.labels if (text := state.label(key)) is not None}
    counts = {
        "num_instances": state.num_instances,
        "io_workload": state.num_io_ops,
        "failed_builds": state.failed_builds,
    }
    return {**labels, **counts}


def _pci_stats(state: HostState) -> LazyObject:
    classes = sorted(device_classes(state.columns))
    return make_object("PciDeviceStats", pools=[{"resource_class": one, "count": state.free(one)} for one in classes])


_READERS: Mapping[str, Callable[[HostState], Any]] = {
    "host": lambda state: state.columns.name(state.row),
    "nodename": lambda state: state.host,
    "uuid": _uuid,
    "cell_uuid": constant(None),
    "total_usable_ram_mb": lambda state: state.capacity("MEMORY_MB"),
    "free_ram_mb": lambda state: state.free("MEMORY_MB"),
    "total_usable_disk_gb": lambda state: state.capacity("DISK_GB"),
    "free_disk_mb": lambda state: state.free("DISK_GB") * 1024,
    "disk_mb_used": lambda state: state.used("DISK_GB") * 1024,
    "vcpus_total": lambda state: state.capacity("VCPU"),
    "vcpus_used": lambda state: state.used("VCPU"),
    "cpu_allocation_ratio": constant(1.0),
    "ram_allocation_ratio": constant(1.0),
    "disk_allocation_ratio": constant(1.0),
    "num_instances": lambda state: state.columns.claims.item(state.row),
    "num_io_ops": lambda state: state.columns.starting.item(state.row),
    "failed_builds": lambda state: state.columns.failures.item(state.row),
    "host_ip": lambda state: state.label("ip"),
    "hypervisor_type": lambda state: state.label("hypervisor_type"),
    "hypervisor_version": lambda state: int(version_number(state.label(HYPERVISOR_VERSION) or "")) or None,
    "hypervisor_hostname": lambda state: state.label("hypervisor_hostname") or state.host,
    "cpu_info": _cpu_info,
    "supported_instances": _supported_instances,
    "aggregates": _aggregates,
    "instances": _instances,
    "metrics": _metrics,
    "service": _service,
    "stats": _stats,
    "pci_stats": _pci_stats,
    "numa_topology": constant(None),
    "limits": constant({}),
    "allocation_candidates": constant([]),
    "updated": constant(None),
}
HostState.readers = _READERS
