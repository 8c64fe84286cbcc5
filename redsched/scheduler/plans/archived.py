"""A copy of an exported cell: its hosts and claims in columns, without a store.

The file does not say which hosts are up, nor what requests have asked for lately: all hosts count as up, and the
weighers of GPUs go by the settings.
"""

from collections import Counter
from collections.abc import Iterable, Mapping

from redsched.cache.columns import Columns
from redsched.decide.plugins.registry import PluginRegistry
from redsched.model import LEASED, Claim, HostReport, HostStatus, Placement
from redsched.model.validation import SHARED_POOL, split_slot
from redsched.scheduler.backup.archive import Archive
from redsched.scheduler.plans.cell_copy import CellCopy
from redsched.settings import Settings
from redsched.store.codec.fields import (
    aggregate_fields,
    attribute_fields,
    claim_from,
    group_fields,
    host_fields,
    pool_fields,
    quota_fields,
)
from redsched.store.codec.keys import Kind


def copy_of(archive: Archive, settings: Settings, plugins: PluginRegistry) -> CellCopy:
    """Return a new copy of an exported cell."""
    cell = archive.head.cell
    claims = {claim_id: claim_from(cell, claim_id, fields) for claim_id, fields in archive.claims.items()}
    columns = _columns(archive, [(one, place) for one in claims.values() for place in one.placements])
    unready = {one.gang for one in claims.values() if one.gang and one.state in LEASED}
    return CellCopy(cell, columns, settings, plugins, claims, archive.requests, unready)


def new_host_fields(report: HostReport, epoch: str, status: HostStatus = HostStatus.ENABLED) -> dict[str, str]:
    """Return all fields of a host that is up, and has attested in this epoch, without claims."""
    fields = {"version": "1", "epoch": epoch, "status": status.value, "alive": "1"}
    return {**host_fields(report), **attribute_fields(report), **fields}


def _columns(archive: Archive, placements: Iterable[tuple[Claim, Placement]]) -> Columns:
    claimed: dict[str, Counter[str]] = {}
    counts: dict[str, Counter[str]] = {}
    shared: dict[str, Counter[str]] = {}
    for claim, place in placements:
        of_host = claimed.setdefault(place.host, Counter())
        of_host.update({"claims": 1, "starting": int(place.state in LEASED)})
        for slot, amount in place.slots.items():
            pool, resource_class = split_slot(slot)
            if pool.startswith(SHARED_POOL):
                shared.setdefault(pool.removeprefix(SHARED_POOL), Counter())[f"claimed.{resource_class}"] += amount
            else:
                of_host[f"claimed.{slot}"] += amount
        if claim.server_group:
            domains = {"host": place.host, **place.counted}
            of_group = counts.setdefault(claim.server_group, Counter())
            of_group.update({"members": 1, **{f"count.{by}={value}": 1 for by, value in domains.items()}})
    columns = Columns(len(archive.hosts))
    columns.set_epoch(archive.head.epoch)
    for report in archive.hosts:
        status = archive.statuses.get(report.name, HostStatus.ENABLED)
        fields = new_host_fields(report, archive.head.epoch, status)
        columns.put(report.name, {**fields, **_membership(archive, report.name), **_texts(claimed.get(report.name))})
    _declare(columns, archive, counts, shared)
    return columns


def _declare(
    columns: Columns, archive: Archive, counts: Mapping[str, Counter[str]], shared: Mapping[str, Counter[str]]
) -> None:
    declared = columns.declared
    for aggregate in archive.aggregates:
        declared.put(Kind.AGGREGATE, aggregate.name, aggregate_fields(aggregate))
    for group in archive.groups:
        declared.put(Kind.SERVER_GROUP, group.name, {**group_fields(group), **_texts(counts.get(group.name))})
    for pool in archive.pools:
        declared.put(Kind.POOL, pool.name, {**pool_fields(pool), **_texts(shared.get(pool.name))})
    for quota in archive.quotas:
        declared.put(Kind.QUOTA, quota.project, quota_fields(quota))


def _membership(archive: Archive, host: str) -> dict[str, str]:
    return {f"aggregate.{one.name}": "1" for one in archive.aggregates if host in one.hosts}


def _texts(counts: Counter[str] | None) -> dict[str, str]:
    return {name: str(number) for name, number in (counts or {}).items()}
