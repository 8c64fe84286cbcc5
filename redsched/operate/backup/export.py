"""Export a cell: read all of it into an Archive, and again if something changed during the read."""

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace

from redsched.errors import StoreUnavailable
from redsched.model import (
    Aggregate,
    GroupPolicy,
    HostReport,
    Inventory,
    Pool,
    ServerGroup,
    SharedPool,
)
from redsched.model.records.hosts import SlotView
from redsched.model.validation import parse_int
from redsched.operate.audit.snapshot import AuditSnapshot, read_cell
from redsched.operate.backup.archive import FORMAT, Archive, Head, Packed
from redsched.pacing import Spread, in_order, paced
from redsched.scheduler.hosts.fields import keyed, number, quota_from, slot_views, status_from
from redsched.store.cell import CellStore
from redsched.store.codec.claim_fields import ALTERNATES, DECISION
from redsched.store.codec.fields import ROOT, placement_fields
from redsched.store.codec.keys import Kind
from redsched.store.codec.replies import HostHashes
from redsched.store.commands.schema import SCHEMA

TRIES = 3
HOSTS_AT_ONCE = 100
TEXTS_AT_ONCE = 100

Fields = Mapping[str, str]


async def export_cell(store: CellStore) -> Archive:
    """Read a whole cell, and again, up to TRIES times in all, if it changed during the read.

    The head of the archive tells whether it is consistent, which a busy cell may prevent. Raises StoreUnavailable, also
    if new epochs began during each read: what was read may be of two histories, in which the same seq is not the same.
    """
    for _ in range(TRIES):
        before = await store.tick()
        archive = await _read(store)
        after = await store.tick()
        head = Head(FORMAT, str(SCHEMA.number), store.name, before.epoch, before.seq, after.seq, before.now_ms, 0)
        archive = replace(archive, head=head)
        if before.epoch == after.epoch and head.consistent:
            break
    if before.epoch != after.epoch:
        raise StoreUnavailable(
            f"cell {store.name} began the epoch {after.epoch} while it was read: export it again once the store is "
            "stable"
        )
    return archive


async def _read(store: CellStore) -> Archive:
    objects = {
        kind: await store.declared.read(kind, await store.declared.names(kind)) for kind in Kind if kind != "host"
    }
    claims = Packed()

    def at_claim(claim_id: str, fields: Fields) -> None:
        # Inbox entries are written again when the host attests.
        claims.put(claim_id, {name: value for name, value in fields.items() if not name.endswith("inbox_id")})

    seen = await read_cell(store, on_claim=at_claim)
    await _leave_out(claims, seen)
    hashes = await _hosts(store, await in_order(seen.present))
    hosts = tuple([report_from(store.name, one) async for one in paced(hashes)])
    alternates, requests = await _texts(store, seen)
    await seen.free_in_slices()
    return Archive(
        head=_NO_HEAD,
        aggregates=tuple([_aggregate(*one, hashes) async for one in paced(objects[Kind.AGGREGATE].items())]),
        groups=tuple([_group(*one) async for one in paced(objects[Kind.SERVER_GROUP].items())]),
        pools=tuple(_pool(name, fields) for name, fields in objects[Kind.POOL].items()),
        quotas=tuple(
            quota for name, fields in objects[Kind.QUOTA].items() if (quota := quota_from(name, fields)) is not None
        ),
        hosts=hosts,
        statuses={one.name: status_from(one.fields) for one in hashes},
        claims=claims,
        alternates=alternates,
        requests=requests,
    )


_NO_HEAD = Head(FORMAT, "", "", "", 0, 0, 0, 0)


async def _leave_out(claims: Packed, seen: AuditSnapshot) -> None:
    """Drop all claims except live ones on existing hosts and ended ones without an expiry."""
    over = Spread[bool]()
    async for claim_id in paced(claims):
        if claim_id in seen.without_expiry:
            continue
        if not seen.has_not_ended(claim_id) or not _hosts_of(claims[claim_id]) <= seen.present:
            over[claim_id] = True
    async for claim_id in paced(over):
        claims.drop(claim_id)


def _hosts_of(fields: Fields) -> set[str]:
    return {one["host"] for one in placement_fields(fields)}


async def _hosts(store: CellStore, names: Sequence[str]) -> list[HostHashes]:
    found: list[HostHashes] = []
    for first in range(0, len(names), HOSTS_AT_ONCE):
        found += await store.hosts.read(names[first : first + HOSTS_AT_ONCE])
    return [one for one in found if one.fields]


async def _texts(store: CellStore, seen: AuditSnapshot) -> tuple[Spread[str], Spread[str]]:
    """Return the lists of alternates by claim id, and the requests by digest, as stored."""
    alternates, requests = Spread[str](), Spread[str]()
    async for page in _exported(seen.texts):
        for name, text in (await store.texts.read(page)).items():
            kind, _, own_name = name.partition(":")
            (alternates if kind == ALTERNATES else requests)[own_name] = text
    return alternates, requests


async def _exported(names: Iterable[str]) -> AsyncIterator[list[str]]:
    """Yield the names of texts that are exported, in pages. Kept decisions, about hosts as they were, are not."""
    page = list[str]()
    async for name in paced(names):
        if name.startswith(f"{DECISION}:"):
            continue
        page.append(name)
        if len(page) == TEXTS_AT_ONCE:
            yield page
            page = []
    if page:
        yield page


def report_from(cell: str, host: HostHashes) -> HostReport:
    """Rebuild a host's last report from its hashes. A field that a manual edit made unreadable is left out."""
    fields = host.fields
    slots, traits, parents = slot_views(fields), keyed("trait.", fields), keyed("pool.", fields)
    inventories = {slot: _inventory(one) for slot, one in slots.items() if f"total.{slot}" in fields}
    pools = {
        name: Pool(
            {slot.rpartition("/")[2]: one for slot, one in inventories.items() if slot.rpartition("/")[0] == name},
            "" if parent == ROOT else parent,
            frozenset(trait.partition("/")[2] for trait in traits if trait.startswith(f"{name}/")),
        )
        for name, parent in parents.items()
    }
    return HostReport(
        host.name,
        {slot: one for slot, one in inventories.items() if "/" not in slot},
        cell,
        fields.get("zone", "default"),
        keyed("label.", fields),
        frozenset(trait for trait in traits if "/" not in trait),
        {name: number(text) for name, text in keyed("metric.", fields).items()},
        {slot: slots[slot].external for slot in inventories if slots[slot].external},
        max(1, parse_int(fields.get("lease_ms", ""), 30_000) // 1000),
        pools,
    )


def _inventory(one: SlotView) -> Inventory:
    largest = None if one.max_unit == one.total else one.max_unit
    return Inventory(one.total, one.reserved, one.allocation_ratio, one.min_unit, largest, one.step_size)


def _aggregate(name: str, fields: Fields, hosts: Sequence[HostHashes]) -> Aggregate:
    members = frozenset(host.name for host in hosts if host.fields.get(f"aggregate.{name}") == "1")
    return Aggregate(name, keyed("meta.", fields), members)


def _group(name: str, fields: Fields) -> ServerGroup:
    count_by = tuple(sorted(keyed("count_by.", fields).values()))
    policy = GroupPolicy(fields["policy"])
    return ServerGroup(name, policy, fields.get("by", "host"), parse_int(fields.get("max_per_host", "1"), 1), count_by)


def _pool(name: str, fields: Fields) -> SharedPool:
    inventories = {one: _inventory(slot) for one, slot in slot_views(fields).items() if f"total.{one}" in fields}
    return SharedPool(name, inventories, frozenset(keyed("trait.", fields)), frozenset(keyed("aggregate.", fields)))
