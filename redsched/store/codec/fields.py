"""Conversion of hashes: reports and declarations to fields, fields to claims. docs/keys.md lists all fields."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from redsched.model import (
    NUMA_NODE,
    STOP_FAILED,
    Aggregate,
    AtDeadline,
    Claim,
    ClaimStatus,
    EndReason,
    FromWhy,
    HostReport,
    Inventory,
    Placement,
    Pool,
    Quota,
    Reason,
    ServerGroup,
    SharedPool,
)
from redsched.model.hosts import warnings_of
from redsched.model.validation import parse_int
from redsched.store.codec.claim_fields import attributes_in, is_of_placement

AMOUNT = "amount."
RESIZING_TO = "resizing_to."
HELD_AMOUNT = "held."
"""A prefix of fields in an entry of the feed: the amounts that an ended placement held."""
COUNTED = "counted."
LIMIT = "limit."
TRIED = "tried."
WRITTEN_OFF = "lost"
"""The epoch of a host that was written off and has not returned."""
DRAINING_FIELDS = ("draining", "drain_deadline_ms", "drain_then", "epoch")
DEVICE = "device."
HOSTS_DIGEST = "hosts_digest"
MAX_WARNINGS = 500
"""The most characters kept of what can never be claimed on a host."""
ROOT = "/"
"""The value of the field `pool.<name>` of a pool directly in the host."""

_BESIDE = "placement."
_PLACEMENT = re.compile(r"placement\.([0-9]+-\w+\.[0-9]+)\.(.+)\Z")
_LIVING = ("claimed", "starting", "active", "ending")
_NUMA_NAME = re.compile(r"numa[0-9]+\Z")


def host_fields(report: HostReport) -> dict[str, str]:
    """Return the fields of a host's hash that its agent owns."""
    values = {"zone": report.zone}
    for slot, inventory in report.slots().items():
        values.update((f"{name}.{slot}", value) for name, value in _inventory_fields(inventory))
    values.update((f"external.{slot}", str(amount)) for slot, amount in report.external.items())
    if warnings := warnings_of(report.slots()):
        values["warnings"] = ", ".join(warnings)[:MAX_WARNINGS]
    return values


@lru_cache(maxsize=1024)
def _inventory_fields(inventory: Inventory) -> tuple[tuple[str, str], ...]:
    """Return an inventory's fields; min and step only if they differ from 1, because every field costs reading time."""
    fields = {
        "capacity": str(inventory.capacity),
        "total": str(inventory.total),
        "max": str(inventory.largest),
        "reserved": str(inventory.reserved),
        "ratio": repr(inventory.allocation_ratio),
    }
    if inventory.min_unit != 1:
        fields["min"] = str(inventory.min_unit)
    if inventory.step_size != 1:
        fields["step"] = str(inventory.step_size)
    return tuple(fields.items())


def digest(text: str) -> str:
    """Return the SHA-1 of a text, which scripts can also compute."""
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def draining_of(fields: Mapping[str, str | None], now_ms: int, epoch: str) -> str:
    """Return how claims leave a host: `move` or `evacuate` (they are placed elsewhere), `stop`, or '' (they stay).

    After its deadline a drain with moves becomes `stop` or ''. The deadline of a host that has not attested to the
    epoch may be of another clock: attest.lua moves it to the present one.
    """
    how, by_ms = fields.get("draining") or "", parse_int(fields.get("drain_deadline_ms") or "", 0)
    if how != "move" or not 0 < by_ms <= now_ms or fields.get("epoch") != epoch:
        return how
    return "stop" if fields.get("drain_then") == AtDeadline.STOP else ""


def attribute_fields(report: HostReport) -> dict[str, str]:
    """Return the fields of a host's attributes: its traits and its pools', the tree of pools, labels and metrics."""
    values = {f"trait.{trait}": "1" for trait in sorted(report.traits)}
    for name, pool in report.pools.items():
        values[f"pool.{name}"] = pool.parent or ROOT
        if pool.device:
            values[f"{DEVICE}{name}"] = pool.device
        values.update((f"trait.{name}/{trait}", "1") for trait in sorted(_pool_traits(name, pool)))
    values.update((f"label.{key}", value) for key, value in report.labels.items())
    values.update((f"metric.{key}", repr(float(value))) for key, value in report.metrics.items())
    return values


def _pool_traits(name: str, pool: Pool) -> frozenset[str]:
    return pool.traits | {NUMA_NODE} if _NUMA_NAME.match(name) else pool.traits


def aggregate_fields(aggregate: Aggregate) -> dict[str, str]:
    """Return the fields of an aggregate's hash. Membership is stored on the host records."""
    values = {f"meta.{key}": value for key, value in aggregate.metadata.items()}
    return values | {HOSTS_DIGEST: digest(" ".join(sorted(aggregate.hosts)))}


def group_fields(group: ServerGroup) -> dict[str, str]:
    """Return the fields of a server group's hash that operators own."""
    values = {"policy": group.policy.value, "by": group.by, "max_per_host": str(group.max_per_host)}
    # The fields are numbered, so that the claim script can read them without the group's counts.
    return values | {f"count_by.{number}": one for number, one in enumerate(sorted(set(group.count_by)), 1)}


def pool_fields(pool: SharedPool) -> dict[str, str]:
    """Return the fields of a shared pool's hash that operators own."""
    values: dict[str, str] = {}
    for resource_class, inventory in pool.inventories.items():
        values.update((f"{name}.{resource_class}", value) for name, value in _inventory_fields(inventory))
    values.update((f"trait.{trait}", "1") for trait in sorted(pool.traits))
    return values | {f"aggregate.{name}": "1" for name in sorted(pool.aggregates)}


def quota_fields(quota: Quota, cells: Sequence[str] = ()) -> dict[str, str]:
    """Return the fields of a quota's hash that operators own; `cells`: those that share it, if there are several."""
    fields = {f"{LIMIT}{name}": str(limit) for name, limit in quota.limits.items()}
    return fields | ({"cells": ",".join(cells)} if len(cells) > 1 else {})


def placement_fields(fields: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the placements in a claim's hash that have not ended, the main one first, each as fields by plain names.

    Each also has the fields of the claim itself.
    """
    if not [name for name in fields if name.startswith(_BESIDE)]:
        return [dict(fields)] if fields.get("state") in _LIVING else []
    beside: dict[str, dict[str, str]] = {}
    main: dict[str, str] = {}
    for name, value in fields.items():
        found = _PLACEMENT.match(name)
        if found:
            beside.setdefault(found[1], {"placed": found[1]})[found[2]] = value
        else:
            main[name] = value
    common = {name: value for name, value in main.items() if not is_of_placement(name)}
    return [common | one for one in (main, *beside.values()) if one.get("state") in _LIVING]


def claim_from(cell: str, claim_id: str, fields: Mapping[str, str]) -> Claim:
    """Return a claim from its hash, at its main placement. An unreadable amount is shown as 0."""
    main, *others = placement_fields(fields) or ({},)
    placements = [_placement(one) for one in (main, *others) if one]
    claim = Claim(
        claim_id=claim_id,
        cell=cell,
        host=fields["host"],
        state=ClaimStatus(fields["state"]),
        token=fields["token"],
        slots=_amounts(main, AMOUNT),
        counted=_counted(main),
        resizing_to=_amounts(main, RESIZING_TO),
        placements=tuple(placements),
        tried=frozenset(name[len(TRIED) :] for name in fields if name.startswith(TRIED)),
        raw=fields,
        **attributes_in(fields),
    )
    is_pending = "retry_root" in fields and not claim.wanted
    return replace(claim, state=ClaimStatus.PENDING) if is_pending else claim


def _placement(fields: Mapping[str, str]) -> Placement:
    placed = fields.get("placed", fields["token"])
    return Placement(
        placed=placed,
        token=fields["token"],
        root=fields.get("root", placed),
        host=fields["host"],
        state=ClaimStatus(fields["state"]),
        slots=_amounts(fields, AMOUNT),
        end_reason=_why(fields, "end_reason"),
        expires_at_ms=_whole(fields.get("expires_at_ms")),
        counted=_counted(fields),
        resizing_to=_amounts(fields, RESIZING_TO),
        based_on=fields.get("from", ""),
        from_host=fields.get("from_host", ""),
        from_why=_from_why(fields.get("from_why", "")),
        placed_at_ms=_whole(fields.get("placed_at_ms")),
        move_deadline_ms=_whole(fields.get("move_deadline_ms")),
        work_ended_at_ms=_whole(fields.get("work_ended_at_ms")),
    )


def _counted(fields: Mapping[str, str]) -> dict[str, str]:
    return {name[len(COUNTED) :]: value for name, value in fields.items() if name.startswith(COUNTED)}


def _why(fields: Mapping[str, str], name: str) -> EndReason | None:
    return EndReason(fields[name]) if fields.get(name) else None


def _from_why(text: str) -> FromWhy | None:
    return FromWhy(text) if text in set(FromWhy) else None


def failure_from(fields: Mapping[str, str]) -> Reason | None:
    """Return why a claim failed, expired or lost its work from its reason's hash."""
    if "text" not in fields:
        return None
    return Reason(int(fields["at_ms"]), fields["host"], fields["token"], fields["text"], fields.get("op", ""))


def stop_failure_from(fields: Mapping[str, str]) -> Reason | None:
    """Return why a claim's work could not be stopped from its reason's hash."""
    if "stop_text" not in fields:
        return None
    at_ms, host, token = int(fields["stop_at_ms"]), fields["stop_host"], fields["stop_token"]
    return Reason(at_ms, host, token, fields["stop_text"], STOP_FAILED)


def _amounts(fields: Mapping[str, str], prefix: str) -> dict[str, int]:
    return {name[len(prefix) :]: parse_int(value, 0) for name, value in fields.items() if name.startswith(prefix)}


def _whole(value: str | None) -> int | None:
    return parse_int(value, 0) if value else None
