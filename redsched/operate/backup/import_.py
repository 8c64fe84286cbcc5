"""Import an Archive into an empty cell, or only its declarations into a live cell.

Imported hosts have not attested, and the cell starts a new epoch when the import is complete. Agents then attest to
what they hold, as after any data loss, and the cell has the claims of both sources. If a host attests during the
import, its attestation is kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from redsched import aio, progress
from redsched.errors import ClaimState, RedschedError, StoreUnavailable
from redsched.model import HostStatus, Token
from redsched.operate.backup.archive import Archive
from redsched.store.cell import CellStore
from redsched.store.codec.claim_fields import alternates_name, request_name
from redsched.store.codec.keys import Kind
from redsched.store.codec.outcomes import Outcome
from redsched.store.commands.base import chunks

AT_ONCE = 100
"""The most hosts or texts that are written at the same time."""
CLAIMS_AT_ONCE = 200
MAX_NAMED = 10
"""The most hosts or pools of other cells that are named."""


@dataclass(frozen=True, slots=True)
class Imported:
    """The number of imported objects of each kind, and notes on what was not imported."""

    counts: Mapping[str, int]
    notes: tuple[str, ...] = ()


async def import_cell(store: CellStore, archive: Archive) -> Imported:
    """Import a whole archive into an empty cell. Raises ClaimState if it is not, or another cell has its hosts."""
    await _refuse_used(store)
    if elsewhere := await store.homes.elsewhere([report.name for report in archive.hosts]):
        raise ClaimState(
            f"hosts of the file are in other cells: {_in_cells(elsewhere)}; a name is in one cell at a time: remove "
            "them there, or from the file"
        )
    if pools := await store.homes.pools_elsewhere(pool.name for pool in archive.pools):
        raise ClaimState(
            f"shared pools of the file are in other cells: {_in_cells(pools)}; a pool is in one cell: delete it there, "
            "or from the file"
        )
    # The archive lists the hosts, so the next epoch waits for these, and not just for a timeout as after a wipe.
    await store.init()
    notes: list[str] = []
    for some in chunks(archive.hosts, AT_ONCE):
        await aio.gather(store.hosts.report(report) for report in some)
    counts = await _import_declared(store, archive, notes)
    counts["hosts"] = len(archive.hosts)
    counts["claims"] = await _import_claims(store, archive, notes)
    await _import_texts(store, archive)
    counts["requests"] = len(archive.requests)
    # The new epoch is above the exported one, so that new placements are newer than any token in the file.
    present = (await store.tick()).epoch
    await store.raise_epoch(max(present, archive.head.epoch, key=lambda epoch: Token.parse(f"{epoch}.0")))
    return Imported(counts, tuple(notes))


async def import_declared(store: CellStore, archive: Archive) -> Imported:
    """Import only the declarations into a live cell: aggregates, groups, pools, quotas, and host statuses."""
    notes: list[str] = []
    return Imported(await _import_declared(store, archive, notes), tuple(notes))


def _in_cells(found: Mapping[str, str]) -> str:
    """Return the first of some names, each with its cell."""
    more = f" and {len(found) - MAX_NAMED} more" if len(found) > MAX_NAMED else ""
    return ", ".join(f"{name} ({cell})" for name, cell in sorted(found.items())[:MAX_NAMED]) + more


async def _refuse_used(store: CellStore) -> None:
    found = {"hosts": await store.hosts.names(), "claims": list((await store.audit.key_names()).get("claim", ()))}
    for kind in (Kind.AGGREGATE, Kind.SERVER_GROUP, Kind.POOL, Kind.QUOTA):
        found[f"{kind}s"] = await store.declared.names(kind)
    there = [f"{len(names)} {what} ({', '.join(sorted(names)[:3])}...)" for what, names in found.items() if names]
    if there:
        raise ClaimState(
            f"cell {store.name} is not empty, it has {'; '.join(there)}: import into an empty cell, or import only "
            "declared objects, with --declared"
        )


async def _import_declared(store: CellStore, archive: Archive, notes: list[str]) -> dict[str, int]:
    existing = set(await store.hosts.names())
    notes += [
        f"server group {group.name} is not changed: its members are not counted by the topologies in the file"
        for group in archive.groups
        if (await store.declared.put_group(group)).outcome is Outcome.IN_USE
    ]
    pools_elsewhere = await store.homes.pools_elsewhere(pool.name for pool in archive.pools)
    if pools_elsewhere:
        notes.append(f"shared pools in other cells, and so left alone: {_in_cells(pools_elsewhere)}")
    pools = [pool for pool in archive.pools if pool.name not in pools_elsewhere]
    for pool in pools:
        await store.declared.put_pool(pool)
    for quota in archive.quotas:
        await store.declared.put_quota(quota)
    for aggregate in archive.aggregates:
        answer = await store.declared.put_aggregate(aggregate)
        if answer.facts:
            notes.append(f"aggregate {aggregate.name}: {', '.join(answer.facts)} not known yet: import again later")
    closed = {host for host, status in archive.statuses.items() if status is not HostStatus.ENABLED}
    elsewhere = await store.homes.elsewhere(sorted(closed - existing))
    if elsewhere:
        notes.append(f"hosts in other cells, and so left alone: {_in_cells(elsewhere)}")
    closed -= elsewhere.keys()
    statuses = {host: status for host, status in archive.statuses.items() if host in existing | closed}
    for some in chunks(list(statuses.items()), AT_ONCE):
        await aio.gather(store.hosts.set_status(host, status, ahead=host not in existing) for host, status in some)
    if waiting := sorted(closed - existing):
        notes.append(f"not known yet, and closed to claims from their first report on: {', '.join(waiting)}")
    kinds = (("aggregates", archive.aggregates), ("server_groups", archive.groups), ("pools", pools))
    return {**{name: len(objects) for name, objects in kinds}, "quotas": len(archive.quotas), "statuses": len(statuses)}


async def _import_claims(store: CellStore, archive: Archive, notes: list[str]) -> int:
    of_host: dict[str, dict[str, Mapping[str, str]]] = {}
    for claim_id, fields in archive.claims.items():
        of_host.setdefault(fields["host"], {})[claim_id] = fields
    imported = 0
    for hosts in chunks(list(of_host), AT_ONCE) if of_host else ():
        progress.report("claims", imported, len(archive.claims))
        for number, note in await aio.gather(_import_of_host(store, host, of_host[host]) for host in hosts):
            imported += number
            notes += [note] if note else []
    return imported


async def _import_of_host(store: CellStore, host: str, claims: Mapping[str, Mapping[str, str]]) -> tuple[int, str]:
    """Restore the claims of a host; return how many were restored, and why the others were not ('': all were)."""
    imported = 0
    for some in chunks(list(claims), CLAIMS_AT_ONCE):
        answer = await store.repair.restore({claim_id: claims[claim_id] for claim_id in some})
        if answer.outcome is Outcome.IN_USE:
            return imported, f"host {host} has attested in the meantime: its own report of its claims prevails"
        if answer.outcome is Outcome.RETRY:
            raise RedschedError(f"the keys {', '.join(answer.facts)} of claims on {host} were not passed")
        if answer.outcome is not Outcome.OK:
            raise StoreUnavailable(
                f"the claims of host {host} could not be restored ({answer.outcome}): empty the cell, import again"
            )
        imported += len(some) - len(answer.facts)
    return imported, ""


async def _import_texts(store: CellStore, archive: Archive) -> None:
    texts = {request_name(digest): text for digest, text in archive.requests.items()}
    texts |= {alternates_name(claim_id): hosts for claim_id, hosts in archive.alternates.items()}
    for batch in chunks(list(texts), AT_ONCE):
        await aio.gather(store.texts.restore(name, texts[name]) for name in batch)
