"""Hosts and shared pools whose claims hold more than their capacity, or of which nothing can ever be claimed."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from redsched.errors import InvalidRequest
from redsched.model import Inventory
from redsched.model.hosts import warnings_of
from redsched.model.validation import MAX_AMOUNT, parse_int
from redsched.store.cell import CellStore
from redsched.store.codec.keys import Kind
from redsched.store.commands.base import chunks
from redsched.store.commands.status import HostHead

_DEFAULTS = {"total": "0", "reserved": "0", "min": "1", "step": "1"}
MAX_READ = 500
"""How many hosts are read that were over their capacity when they last reported: claims may have ended since."""


Pools = Mapping[str, Mapping[str, str]]
"""The fields of the hashes of shared pools, by name."""


async def read_pools(store: CellStore) -> Pools:
    """Return the shared pools of a cell. Raises StoreUnavailable."""
    return await store.declared.read(Kind.POOL, await store.declared.names(Kind.POOL))


def unusable_of(hosts: Sequence[HostHead], pools: Pools) -> dict[str, Sequence[str]]:
    """Return of which slots nothing can ever be claimed, and why, by key as `read_over`."""
    found: dict[str, Sequence[str]] = {
        f"{Kind.HOST}:{one.name}": [one.warnings] for one in hosts if one.warnings and not one.is_written_off
    }
    found |= {f"{Kind.POOL}:{name}": warnings_of(inventories_in(fields)) for name, fields in pools.items()}
    return {key: slots for key, slots in found.items() if slots}


def inventories_in(fields: Mapping[str, str]) -> dict[str, Inventory]:
    """Return the inventories in the fields of a hash, without those that a manual edit made unreadable."""
    found: dict[str, Inventory] = {}
    for slot in (name.partition(".")[2] for name in fields if name.startswith("total.")):
        of = {kind: fields.get(f"{kind}.{slot}", "") for kind in ("total", "reserved", "ratio", "min", "max", "step")}
        with suppress(ValueError, InvalidRequest):
            total, reserved, least, step = (int(of[kind] or default) for kind, default in _DEFAULTS.items())
            largest = None if of["max"] in ("", of["total"]) else int(of["max"])
            found[slot] = Inventory(total, reserved, float(of["ratio"] or 1), least, largest, step)
    return found


async def read_over(store: CellStore, hosts: Sequence[HostHead], pools: Pools) -> dict[str, Sequence[str]]:
    """Return what claims hold beyond a capacity, by the key of the host or pool: `host:h1`, `pool:lic`.

    Nothing is said of hosts that were written off. Raises StoreUnavailable.
    """
    names = [one.name for one in hosts if one.over_slots and not one.is_written_off]
    found: dict[str, Sequence[str]] = {}
    for some in chunks(names[:MAX_READ]) if names else ():
        found |= {f"{Kind.HOST}:{one.name}": list(excess(one.fields)) for one in await store.hosts.read(some)}
    found |= {f"{Kind.HOST}:{name}": ["more than were looked at"] for name in names[MAX_READ:]}
    found |= {f"{Kind.POOL}:{name}": list(excess(fields)) for name, fields in pools.items()}
    return {key: slots for key, slots in found.items() if slots}


def excess(fields: Mapping[str, str]) -> Iterator[str]:
    """Yield each slot of which more is claimed than there is: `VCPU: 6 claimed of 4`."""
    for name in sorted(fields):
        family, _, slot = name.partition(".")
        if family == "claimed":
            claimed = parse_int(fields[name], MAX_AMOUNT)
            capacity = parse_int(fields.get(f"capacity.{slot}", ""), 0)
            if claimed > capacity:
                yield f"{slot}: {claimed} claimed of {capacity}"
