"""Audit this scheduler's replica against the store: by invariant 10 the replica may be older, but not otherwise differ.

An object is compared if replica and store have it at the same version. A difference counts if the next comparison finds
both still at that version, because then it was not caused by a reply that ran ahead of the feed.
"""

from collections.abc import Mapping, Sequence

from redsched.cache.columns import Columns
from redsched.cache.declared import Declared
from redsched.cache.diff import describe
from redsched.cache.reading import names_of, read_into
from redsched.cache.updater import ReplicaUpdater
from redsched.model.records.audit import Problem, RepairKind
from redsched.pacing import in_order, paced
from redsched.store.codec.keys import Kind

CHUNK = 10
"""Hosts or declared objects read at once: writing them into columns blocks the event loop for one turn."""

Different = dict[tuple[str, str], tuple[object, str, str]]
"""By object and field: the version, the value in the replica, and the value in the store."""


async def cache_problems(updater: ReplicaUpdater) -> list[Problem]:
    """Return the differences between replica and store. Raises StoreUnavailable."""
    first = await _differences_found(updater)
    if not first:
        return []
    # After a failover in which the store lost what a reply had said, this starts a new epoch, unless another write has
    # already done so.
    await updater.cell.tick()
    again = await _differences_found(updater)
    return [
        Problem(10, updater.cell.name, f"cache {subject}", field, found[1][:80], found[2][:80], RepairKind.CACHE)
        for (subject, field), found in again.items()
        if first.get((subject, field)) == found
    ]


async def _differences_found(updater: ReplicaUpdater) -> Different:
    await updater.catch_up()
    shown = set(updater.columns.names())
    names = await in_order(shown.union(await names_of(updater.cell, Kind.HOST)))
    found: Different = {}
    for start in range(0, len(names), CHUNK):
        found |= await _host_differences(updater, names[start : start + CHUNK])
    return found | await _declared_differences(updater)


async def _host_differences(updater: ReplicaUpdater, names: Sequence[str]) -> Different:
    stored = await _read(updater, names)
    found: Different = {}
    # Each host is compared with the replica at that moment: if the replica has advanced, the version differs.
    async for name in paced(names):
        cached = describe(updater.columns, name) if name in updater.columns else {}
        in_store = describe(stored, name) if name in stored else {}
        found |= _differences(name, cached, in_store)
    return found


async def _declared_differences(updater: ReplicaUpdater) -> Different:
    found: Different = {}
    for kind in set(Kind) - {Kind.HOST}:
        names = await in_order({*updater.columns.declared.names(kind), *await names_of(updater.cell, kind)})
        for start in range(0, len(names), CHUNK):
            found |= await _object_differences(updater, kind, names[start : start + CHUNK])
    return found


async def _object_differences(updater: ReplicaUpdater, kind: Kind, names: Sequence[str]) -> Different:
    hashes, stored, found = await updater.cell.declared.read(kind, names), Declared(), Different()
    async for name in paced(names):
        if name in hashes:
            stored.put(kind, name, hashes[name])
        cached, in_store = (one.describe_one(kind, name) for one in (updater.columns.declared, stored))
        found |= _differences(f"{kind} {name}", cached, in_store)
    return found


async def _read(updater: ReplicaUpdater, names: Sequence[str]) -> Columns:
    columns = Columns(len(names))
    columns.set_epoch(updater.epoch)
    await read_into(updater.cell, columns, Kind.HOST, names)
    return columns


def _differences(subject: str, cached: Mapping[str, object], in_store: Mapping[str, object]) -> Different:
    """Return the differences of an object; only its versions, if these differ or only one side has the object.

    Different versions mean that one side is older. That is a problem only if neither version changes.
    """
    if not cached or not in_store or cached["version"] != in_store["version"]:
        versions = cached.get("version", "none"), in_store.get("version", "none")
        return (
            {} if versions[0] == versions[1] else {(subject, "version"): (versions, str(versions[0]), str(versions[1]))}
        )
    return {
        (subject, field): (cached["version"], repr(cached.get(field)), repr(in_store.get(field)))
        for field in cached.keys() | in_store.keys()
        if cached.get(field) != in_store.get(field)
    }
