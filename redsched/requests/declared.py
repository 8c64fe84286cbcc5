"""What is declared, as bodies: that of a shared pool, and those of what the store has, for partial changes of it.

Reports are changed in part by PATCH, and declared objects by the command line. The bodies of aggregates, server groups
and quotas are the dataclasses of `redsched.model`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import Field

from redsched.model import SharedPool
from redsched.model.records.declared import AggregateView, ServerGroupView, SharedPoolView
from redsched.model.records.hosts import HostView, SlotView
from redsched.model.types import GivenName


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedPoolBody(SharedPool):
    """A pool that several hosts of a cell may use."""

    cell: Annotated[GivenName, Field(description="The cell whose hosts may use the pool.")] = "c1"


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
