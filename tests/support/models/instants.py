"""A cell at single instants, read raw from the store while others race for it.

One read-only script call reads every host, claim, server group and shared pool, so an instant is never a mixture. What
must hold at each instant is in tests/support/models/instant_rules.py.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import redis

PREFIX = "rs:{c1}:"
MAX_INSTANTS = 2000

_READ = """
local seq = redis.call('HGET', ARGV[1] .. 'meta', 'seq')
if seq == ARGV[2] then
  return {seq}
end
local function told(key)
  local fields, found = redis.call('HGETALL', key), {}
  for i = 1, #fields, 2 do
    if not string.find(fields[i], '_ms$') and fields[i] ~= 'token' and fields[i] ~= 'digest' then
      found[#found + 1] = fields[i]
      found[#found + 1] = fields[i + 1]
    end
  end
  return found
end
local found = {seq}
for _, key in ipairs(redis.call('KEYS', ARGV[1] .. '*')) do
  local kind = string.match(string.sub(key, #ARGV[1] + 1), '^([^:]+):')
  if kind == 'claims' then
    found[#found + 1] = {key, redis.call('SMEMBERS', key)}
  elseif kind == 'claim' and redis.call('HGET', key, 'state') == 'ended' then
    found[#found + 1] = {key, {'state', 'ended'}}
  elseif kind == 'host' or kind == 'claim' or kind == 'server-group' or kind == 'pool' then
    found[#found + 1] = {key, told(key)}
  end
end
return found
"""

Hash = dict[str, str]
Raw = tuple[str, list[tuple[str, list[str]]]]
"""A cell as it was read: its `seq`, and each key with its content. Kept raw during a race, for speed."""


@dataclass(slots=True)
class Instant:
    """All hashes of the cell c1 at one instant, by name."""

    seq: int
    hosts: dict[str, Hash] = field(default_factory=dict)
    claims: dict[str, Hash] = field(default_factory=dict)
    """The claims that have not ended."""
    ended: set[str] = field(default_factory=set)
    groups: dict[str, Hash] = field(default_factory=dict)
    pools: dict[str, Hash] = field(default_factory=dict)
    held: dict[str, set[str]] = field(default_factory=dict)
    """The set of claim ids of each host."""

    def domain(self, claim: Hash, by: str) -> str:
        """Return the host or zone of a claim, by its host's fields."""
        return claim["host"] if by == "host" else self.hosts[claim["host"]]["zone"]

    def free(self, slot: str) -> dict[str, int]:
        """Return what is left of a slot, by the hosts that have it."""
        return {
            name: int(host[f"capacity.{slot}"]) - int(host.get(f"claimed.{slot}", "0"))
            for name, host in self.hosts.items()
            if f"capacity.{slot}" in host
        }

    def seats_left(self, pool: str, resource_class: str) -> int:
        """Return what is left of a shared pool."""
        slots = self.pools[pool]
        return int(slots[f"capacity.{resource_class}"]) - int(slots.get(f"claimed.{resource_class}", "0"))


Rule = Callable[[Instant], Iterator[str]]
"""A check that yields the errors at an instant, as text."""


def read_instant(client: "redis.Redis") -> Instant:
    """Read the cell now."""
    return _instant(*_read(client, ""))


def _read(client: "redis.Redis", last: str) -> Raw:
    """Return the `seq` and every hash and set; none of these if the `seq` has not changed."""
    seq, *objects = client.eval_ro(_READ, 0, PREFIX, last)
    return seq, objects


def _instant(seq: str, objects: Sequence[tuple[str, list[str]]]) -> Instant:
    now = Instant(int(seq))
    folders: dict[str, dict[str, Hash]] = {
        "host": now.hosts, "claim": now.claims, "server-group": now.groups, "pool": now.pools,
    }  # fmt: skip
    for key, values in objects:
        kind, _, name = key.removeprefix(PREFIX).partition(":")
        if kind == "claims":
            now.held[name] = set(values)
        elif kind == "claim" and values == ["state", "ended"]:
            now.ended.add(name)
        else:
            folders[kind][name] = dict(zip(values[::2], values[1::2], strict=True))
    return now


def connected(url: str) -> "redis.Redis":
    """A separate client for instants."""
    return redis.Redis.from_url(url, protocol=2, decode_responses=True)


@dataclass(slots=True)
class Watched:
    """The observations: the number of distinct instants within the race, and the rules that were broken at any."""

    instants: int = 0
    broken: list[str] = field(default_factory=list)


@contextmanager
def observed(url: str, rules: Sequence[Rule]) -> Iterator[Watched]:
    """Read the cell as often as it changes and this machine allows; after the block check all reads.

    The instants before the first change and after the last are also checked, but not counted.
    """
    watched, end, seen = Watched(), threading.Event(), list[Raw]()

    def watch() -> None:
        with connected(url) as client:
            while not end.is_set():
                _see(client, seen)
            _see(client, seen)

    with ThreadPoolExecutor(1) as threads:
        watching = threads.submit(watch)
        try:
            yield watched
        finally:
            end.set()
            watching.result()
    watched.instants = len(seen) - 2
    for now in (_instant(*one) for one in seen):
        watched.broken += [f"at {now.seq}: {problem}" for rule in rules for problem in rule(now)]


def _see(client: "redis.Redis", seen: list[Raw]) -> None:
    now = _read(client, seen[-1][0] if seen else "")
    if now[1] and len(seen) < MAX_INSTANTS:
        seen.append(now)
