"""HostState: the attributes of a host that Nova's classes read, taken from a row of the columns.

Totals are without the reserved part and, as in Nova, without the allocation ratio. Amounts are those of the host and
its pools together.
"""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from itertools import product
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

import numpy as np

from redsched.cache.columns import ENABLED, Columns
from redsched.decide.aggregates import aggregates_of, listed
from redsched.decide.plugins.nova.lazy_object import LazyObject, constant, make_object
from redsched.decide.plugins.nova.limited import LimitedList
from redsched.decide.rules import Rows
from redsched.decide.scoring.demand import room, unscaled_free
from redsched.decide.scoring.hosts import HYPERVISOR_VERSION, device_classes, version_number
from redsched.model import Request

_CPU_FEATURE = "HW_CPU_X86_"
_ARCHITECTURE = ("architecture", "arch")
"""The labels with a host's architecture: a declared one, else the one that agents report."""


class CpuInfo(str):
    """JSON, as in Nova, with the `get` of a mapping, which Nova's ImagePropertiesFilter calls."""

    def get(self, name: str, default: Any = None) -> Any:
        """Return an entry of the JSON, else the default."""
        return json.loads(self).get(name, default)


class HostState(LazyObject):
    """One host, read from `_row` of `_columns`, for `_request` if there is one."""

    _kind = "HostState"
    _columns: Columns
    _row: int
    _request: Request | None


def states_of(
    columns: Columns, rows: Rows, request: Request | None = None, kind: type[HostState] = HostState
) -> LimitedList[HostState]:
    """Return the state of each row."""
    numbers = np.atleast_1d(np.arange(columns.size)[rows]).tolist()
    return LimitedList([kind(_columns=columns, _row=row, _request=request) for row in numbers])


def label_of(state: HostState, *keys: str) -> str | None:
    """Return the first of these labels that the host has; None if it has none of them."""
    families = (state._columns.labels.get(key) for key in keys)
    return next((text for one in families if one is not None and (text := one.text(state._row))), None)


def free_of(state: HostState, resource_class: str) -> int:
    """Return what is free of the total of a class, of the host and its pools; negative if it is overcommitted."""
    return int(unscaled_free(state._columns, resource_class, state._row))


def used_of(state: HostState, resource_class: str) -> int:
    """Return the used amount of a class, by claims or externally, of the host and its pools."""
    capacity, left = room(state._columns, resource_class, state._row)
    return int(capacity - left)


def total_of(state: HostState, resource_class: str) -> int:
    """Return the total of a class without its reserved part, of the host and its pools."""
    return free_of(state, resource_class) + used_of(state, resource_class)


def ratio_of(state: HostState, resource_class: str) -> float:
    """Return the allocation ratio of a class; if the pools of the host differ, that of all of them together."""
    columns, row = state._columns, state._row
    slots = (resource_class, *columns.pool_slots(resource_class))
    ratios = {columns.ratios[slot].item(row) for slot in slots if columns.capacity[slot][row]}
    if len(ratios) == 1:
        return float(ratios.pop())
    total = total_of(state, resource_class)
    return float(room(columns, resource_class, row)[0]) / total if total else 1.0


def _uuid(state: HostState) -> str:
    return str(uuid5(NAMESPACE_DNS, state.host))


def _aggregates(state: HostState) -> list[LazyObject]:
    columns = state._columns
    declared = columns.declared.aggregates
    names = [name for name in aggregates_of(columns, state._row) if name in declared]
    found = [_aggregate(name, declared[name].metadata) for name in names]
    # In Nova, a host's zone is metadata of one of its aggregates.
    zone = columns.zones.text(state._row)
    return [*found, _aggregate(zone, {"availability_zone": zone})] if zone else found


def _aggregate(name: str, metadata: Mapping[str, str]) -> LazyObject:
    return make_object("Aggregate", id=name, uuid=name, name=name, metadata=dict(metadata))


def _instances(state: HostState) -> dict[str, LazyObject]:
    """Return the host's claims, with artificial ids.

    Claims in server groups have the ids that `member_ids` returns for the groups' members.
    """
    ids = [one for group in state._columns.declared.groups for one in member_ids(state._columns, group, state.host)]
    ids += [f"{state.host}.{number}" for number in range(state.num_instances - len(ids))]
    return {one: make_object("Instance", uuid=one, host=state.host) for one in ids}


def member_ids(columns: Columns, group: str, host: str) -> list[str]:
    """Return artificial ids for a group's members on a host, as the columns have their number but not their ids."""
    return [f"{group}.{host}.{number}" for number in range(columns.declared.groups[group].count("host", host))]


def _metrics(state: HostState) -> list[LazyObject]:
    values = {name: state._columns.metrics[name].item(state._row) for name in state._columns.metrics}
    return [
        make_object("MonitorMetric", name=name, value=value) for name, value in values.items() if np.isfinite(value)
    ]


def _cpu_info(state: HostState) -> CpuInfo:
    traits = state._columns.traits
    features = sorted(
        one.removeprefix(_CPU_FEATURE).lower()
        for one in traits
        if one.startswith(_CPU_FEATURE) and traits[one][state._row]
    )
    return CpuInfo(json.dumps({"arch": label_of(state, *_ARCHITECTURE), "features": features}))


def _supported_instances(state: HostState) -> list[list[str | None]]:
    """Return architecture, type and mode of the guests that a host runs; labels may list several, in any case."""
    labels = label_of(state, *_ARCHITECTURE), label_of(state, "hypervisor_type"), label_of(state, "vm_mode")
    words: list[list[str | None]] = [[*sorted(listed((text or "").lower()))] or [None] for text in labels]
    return [list(one) for one in product(*words)] if any(labels) else []


def _service(state: HostState) -> dict[str, Any]:
    now = datetime.now(UTC)
    return {
        "host": state.host,
        "binary": "nova-compute",
        "disabled": bool(state._columns.status[state._row] != ENABLED),
        "disabled_reason": None,
        # The store decides by leases whether a host is alive; Nova would by the age of its last heartbeat.
        "forced_down": not state._columns.alive[state._row],
        "last_seen_up": now,
        "created_at": now,
        "updated_at": now,
    }


def _stats(state: HostState) -> dict[str, Any]:
    labels = {key: text for key in state._columns.labels if (text := label_of(state, key)) is not None}
    counts = {
        "num_instances": state.num_instances,
        "io_workload": state.num_io_ops,
        "failed_builds": state.failed_builds,
    }
    return {**labels, **counts}


def pci_classes(state: HostState) -> list[str]:
    """Return the classes that count PCI devices, sorted: those that hosts have, and those that the request names."""
    requested = {one.resource_class for one in state._request.pci} if state._request else set()
    return sorted(requested | device_classes(state._columns))


def _pci_stats(state: HostState) -> LazyObject:
    pools = [{"resource_class": one, "count": max(0, free_of(state, one))} for one in pci_classes(state)]
    return make_object("PciDeviceStats", pools=pools)


_READERS: Mapping[str, Callable[[HostState], Any]] = {
    "host": lambda state: state._columns.name(state._row),
    "nodename": lambda state: state.host,
    "uuid": _uuid,
    "cell_uuid": constant(None),
    "total_usable_ram_mb": lambda state: total_of(state, "MEMORY_MB"),
    "free_ram_mb": lambda state: free_of(state, "MEMORY_MB"),
    "total_usable_disk_gb": lambda state: total_of(state, "DISK_GB"),
    "free_disk_mb": lambda state: free_of(state, "DISK_GB") * 1024,
    "disk_mb_used": lambda state: used_of(state, "DISK_GB") * 1024,
    "vcpus_total": lambda state: total_of(state, "VCPU"),
    "vcpus_used": lambda state: used_of(state, "VCPU"),
    "cpu_allocation_ratio": lambda state: ratio_of(state, "VCPU"),
    "ram_allocation_ratio": lambda state: ratio_of(state, "MEMORY_MB"),
    "disk_allocation_ratio": lambda state: ratio_of(state, "DISK_GB"),
    "num_instances": lambda state: state._columns.claims.item(state._row),
    "num_io_ops": lambda state: state._columns.starting.item(state._row),
    "failed_builds": lambda state: state._columns.failures.item(state._row),
    "host_ip": lambda state: label_of(state, "ip"),
    "hypervisor_type": lambda state: label_of(state, "hypervisor_type"),
    "hypervisor_version": lambda state: int(version_number(label_of(state, HYPERVISOR_VERSION) or "")) or None,
    "hypervisor_hostname": lambda state: label_of(state, "hypervisor_hostname") or state.host,
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
HostState._readers = _READERS
