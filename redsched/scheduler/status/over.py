"""Hosts and shared pools whose claims hold more than their capacity: it shrank, or the claims run all the same."""

from collections.abc import Iterator, Mapping, Sequence

from redsched.model.validation import MAX_AMOUNT, parse_int
from redsched.store.cell import CellStore
from redsched.store.codec.keys import Kind
from redsched.store.commands.base import chunks
from redsched.store.commands.status import HostHead

MAX_READ = 500
"""How many hosts are read that were over their capacity when they last reported: claims may have ended since."""


async def read_over(store: CellStore, hosts: Sequence[HostHead]) -> dict[str, Sequence[str]]:
    """Return what claims hold beyond a capacity, by the key of the host or pool: `host:h1`, `pool:lic`.

    Nothing is said of hosts that were written off. Raises StoreUnavailable.
    """
    names = [one.name for one in hosts if one.over_slots and not one.is_written_off]
    found: dict[str, Sequence[str]] = {}
    for some in chunks(names[:MAX_READ]) if names else ():
        found |= {f"{Kind.HOST}:{one.name}": list(excess(one.fields)) for one in await store.hosts.read(some)}
    found |= {f"{Kind.HOST}:{name}": ["more than were looked at"] for name in names[MAX_READ:]}
    pools = await store.declared.read(Kind.POOL, await store.declared.names(Kind.POOL))
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
