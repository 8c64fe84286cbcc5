"""What the store's hashes hold: reports and declarations as fields, fields as claims. docs/keys.md names them all."""

import re
from collections.abc import Iterator, Mapping, Sequence

from redsched.model import (
    NUMA_NODE,
    Aggregate,
    Claim,
    ClaimStatus,
    HostReport,
    Inventory,
    Pool,
    Quota,
    ServerGroup,
    SharedPool,
    Why,
)
from redsched.names import whole

AMOUNT = "amount."
WANTED = "wanted."
COUNTED = "in."
LIMIT = "limit."
WITH_FORMER = "with_former."
WRITTEN_OFF = "lost"
"""The epoch of a host that was written off and has not come back."""
ROOT = "/"
"""What `pool.<name>` holds where the pool lies in the host itself."""

_NUMA_NAME = re.compile(r"numa[0-9]+\Z")


def host_fields(report: HostReport) -> dict[str, str]:
    """The fields of a host's hash that its agent owns."""
    values = {"zone": report.zone}
    for slot, inventory in report.slots().items():
        values.update((f"{name}.{slot}", value) for name, value in _inventory_fields(inventory))
    values.update((f"external.{slot}", str(amount)) for slot, amount in report.external.items())
    return values


def _inventory_fields(inventory: Inventory) -> Iterator[tuple[str, str]]:
    """Defaults of min, max and step are left out: a host has few that differ, and every field costs each reader."""
    yield "capacity", str(inventory.capacity)
    yield "total", str(inventory.total)
    yield "max", str(inventory.largest)
    yield "reserved", str(inventory.reserved)
    yield "ratio", repr(inventory.allocation_ratio)
    if inventory.min_unit != 1:
        yield "min", str(inventory.min_unit)
    if inventory.step_size != 1:
        yield "step", str(inventory.step_size)


def facts_fields(report: HostReport) -> dict[str, str]:
    """The fields of a host's facts: traits, its own and its pools', the tree of pools, labels and metrics."""
    values = {f"trait.{trait}": "1" for trait in sorted(report.traits)}
    for name, pool in report.pools.items():
        values[f"pool.{name}"] = pool.parent or ROOT
        values.update((f"trait.{name}/{trait}", "1") for trait in sorted(_pool_traits(name, pool)))
    values.update((f"label.{key}", value) for key, value in report.labels.items())
    values.update((f"metric.{key}", repr(float(value))) for key, value in report.metrics.items())
    return values


def _pool_traits(name: str, pool: Pool) -> frozenset[str]:
    return pool.traits | {NUMA_NODE} if _NUMA_NAME.match(name) else pool.traits


def aggregate_fields(aggregate: Aggregate) -> dict[str, str]:
    """The fields of an aggregate's hash. Which hosts are in it stands with the hosts."""
    return {f"meta.{key}": value for key, value in aggregate.metadata.items()}


def group_fields(group: ServerGroup) -> dict[str, str]:
    """The fields of a server group's hash that operators own."""
    values = {"policy": group.policy.value, "by": group.by, "max_per_host": str(group.max_per_host)}
    # Numbered, so that the claim script can ask for them without reading the group's counts.
    return values | {f"count_by.{number}": one for number, one in enumerate(sorted(set(group.count_by)), 1)}


def pool_fields(pool: SharedPool) -> dict[str, str]:
    """The fields of a shared pool's hash that operators own."""
    values: dict[str, str] = {}
    for resource_class, inventory in pool.inventories.items():
        values.update((f"{name}.{resource_class}", value) for name, value in _inventory_fields(inventory))
    values.update((f"trait.{trait}", "1") for trait in sorted(pool.traits))
    return values | {f"aggregate.{name}": "1" for name in sorted(pool.aggregates)}


def quota_fields(quota: Quota, cells: Sequence[str] = ()) -> dict[str, str]:
    """The fields of a quota's hash that operators own; `cells`: over which it is shared, where there are several."""
    fields = {f"{LIMIT}{name}": str(limit) for name, limit in quota.limits.items()}
    return fields | ({"cells": ",".join(cells)} if len(cells) > 1 else {})


def claim_from(cell: str, claim_id: str, fields: Mapping[str, str]) -> Claim:
    """A claim from its hash. An amount that somebody has made unreadable is shown as 0; `audit` tells of it."""
    return Claim(
        id=claim_id,
        cell=cell,
        host=fields["host"],
        state=ClaimStatus(fields["state"]),
        token=fields["token"],
        amounts=_amounts(fields, AMOUNT),
        project=fields.get("project", ""),
        consumer=fields.get("consumer", ""),
        digest=fields.get("digest", ""),
        why=Why(fields["why"]) if fields.get("why") else None,
        claimed_at_ms=_whole(fields.get("claimed_at_ms")),
        expires_at_ms=_whole(fields.get("expires_at_ms")),
        group=fields.get("group", ""),
        counted={name[len(COUNTED) :]: value for name, value in fields.items() if name.startswith(COUNTED)},
        origin=fields.get("origin", ""),
        former=fields.get("former", ""),
        former_host=fields.get("former_host", ""),
        former_token=fields.get("former_token", ""),
        former_why=Why(fields["former_why"]) if fields.get("former_why") else None,
        by_ms=_whole(fields.get("by_ms")),
        came_from=fields.get("came_from", ""),
        next=fields.get("next", ""),
        gang=fields.get("gang", ""),
        wanted=_amounts(fields, WANTED),
    )


def _amounts(fields: Mapping[str, str], prefix: str) -> dict[str, int]:
    return {name[len(prefix) :]: whole(value, 0) for name, value in fields.items() if name.startswith(prefix)}


def _whole(value: str | None) -> int | None:
    return whole(value, 0) if value else None
