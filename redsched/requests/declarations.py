"""Convert the store's views back to the bodies that declare them, for partial changes by PATCH and by the CLI."""

from collections.abc import Mapping
from typing import Any

from redsched.scheduler import AggregateView, HostView, ServerGroupView, SharedPoolView, SlotView


def report_of(host: HostView) -> dict[str, Any]:
    """Return the body of a host's last report."""
    return {
        "cell": host.cell,
        "zone": host.zone,
        "labels": host.labels,
        "traits": sorted(host.traits),
        "metrics": host.metrics,
        "lease_s": host.lease_s,
        "inventories": _inventories("", host.slots),
        "external": {name: slot.external for name, slot in host.slots.items() if slot.external},
        "pools": {
            name: {
                "parent": pool.parent,
                "traits": sorted(pool.traits),
                "inventories": _inventories(f"{name}/", host.slots),
                **({"device": pool.device} if pool.device else {}),
            }
            for name, pool in host.pools.items()
        },
    }


def _inventories(prefix: str, slots: Mapping[str, SlotView]) -> dict[str, Any]:
    """Return the inventories of the slots `<prefix><class>`, by class."""
    found = ((slot.removeprefix(prefix), one) for slot, one in slots.items() if slot.startswith(prefix))
    return {resource_class: _inventory(one) for resource_class, one in found if "/" not in resource_class}


def _inventory(slot: SlotView) -> dict[str, Any]:
    shown = {
        "total": slot.total,
        "reserved": slot.reserved,
        "allocation_ratio": slot.allocation_ratio,
        "min_unit": slot.min_unit,
        "step_size": slot.step_size,
    }
    # The store has max_unit = total if none was reported: it is omitted then, so that it follows a patched total.
    return shown if slot.max_unit == slot.total else {**shown, "max_unit": slot.max_unit}


def aggregate_of(found: AggregateView) -> dict[str, Any]:
    """Return the body of an aggregate."""
    return {"metadata": found.metadata, "hosts": found.hosts}


def server_group_of(found: ServerGroupView) -> dict[str, Any]:
    """Return the body of a server group."""
    group = found.group
    return {
        "policy": group.policy,
        "by": group.by,
        "max_per_host": group.max_per_host,
        "count_by": group.count_by,
    }


def shared_pool_of(found: SharedPoolView) -> dict[str, Any]:
    """Return the body of a shared pool."""
    return {
        "cell": found.cell,
        "inventories": _inventories("", found.slots),
        "traits": sorted(found.traits),
        "aggregates": sorted(found.aggregates),
    }
