"""A large fleet in the store within minutes, for benchmarks: one host of each cell reports, and the others are copies.

Copies are written by a script of the benchmark, so the feed has no entries about them; all keys and fields are those
that reports would have made. Most hosts are full with external usage, and the others have random amounts free.
"""

from collections.abc import Iterator
from random import Random
from typing import Any

from redsched.model import HostReport, Inventory
from redsched.store.cell import CellStore

TOTALS = {"VCPU": 64, "MEMORY_MB": 262_144}
LEASE_S = 24 * 3600
AT_ONCE = 500

COPY = """
local fields = redis.call('HGETALL', KEYS[1])
for i = 5, #ARGV, 3 do
  local name = ARGV[i]
  local key = ARGV[1] .. name
  redis.call('HSET', key, unpack(fields))
  redis.call('HSET', key, 'external.VCPU', ARGV[i + 1], 'external.MEMORY_MB', ARGV[i + 2], 'zone', ARGV[4])
  redis.call('HSET', ARGV[2] .. name, 'label.rack', 'r1')
  redis.call('ZADD', KEYS[2], ARGV[3], name)
end
"""


async def fill(cell: CellStore, hosts: int, room_vcpu: int, rng: Random) -> int:
    """Put hosts into a new cell, with about this much VCPU free in total. Returns how much is free."""
    await cell.init()
    inventories = {name: Inventory(total) for name, total in TOTALS.items()}
    template = f"{cell.name}-template"
    answer = await cell.hosts.report(HostReport(template, inventories, external=dict(TOTALS), lease_s=LEASE_S))
    await cell.hosts.attest(template, answer.epoch)
    free, usages = 0, list[tuple[int, int]]()
    for _ in range(hosts - 1):
        vcpu, memory = _free(rng) if free < room_vcpu else (0, 0)
        free += vcpu
        usages.append((TOTALS["VCPU"] - vcpu, TOTALS["MEMORY_MB"] - memory))
    rng.shuffle(usages)
    await _copy(cell, template, usages)
    return free


def _free(rng: Random) -> tuple[int, int]:
    """Return what is free on a host that is not full: 1 to 16 VCPU, with 1 to 8 GiB for each."""
    vcpu = rng.randint(1, 16)
    return vcpu, vcpu * 1024 * rng.randint(1, 8)


async def _copy(cell: CellStore, template: str, usages: list[tuple[int, int]]) -> None:
    keys, client = cell.keys, cell.hosts._cell.reader
    alive_until_ms = int(await client.zscore(keys.hosts, template))
    head = (keys.host(""), keys.attributes(""), alive_until_ms)
    for first in range(0, len(usages), AT_ONCE):
        zone = f"az{first // AT_ONCE % 3}"
        names = _names(cell.name, first, usages[first : first + AT_ONCE])
        await client.eval(COPY, 2, keys.host(template), keys.hosts, *head, zone, *names)


def _names(cell: str, first: int, usages: list[tuple[int, int]]) -> Iterator[Any]:
    for number, (vcpu, memory) in enumerate(usages, first):
        yield from (f"{cell}-{number:06d}", vcpu, memory)
