"""The store, read raw at one instant: every key of the cell by one read-only script. Nothing of redsched is used."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import redis

PREFIX = "rs:{c1}:"

_READ = """
local found = {}
for _, key in ipairs(redis.call('KEYS', ARGV[1] .. '*')) do
  local kind = redis.call('TYPE', key).ok
  local value
  if kind == 'hash' and redis.call('HGET', key, 'state') == 'ended' then
    local kept = redis.call('PTTL', key) < 0 and '1' or '0'
    local said = redis.call('HMGET', key, 'why', 'origin')
    value = {'state', 'ended', 'why', said[1] or '', 'kept', kept, 'origin', said[2] or ''}
  elseif kind == 'hash' then
    value = redis.call('HGETALL', key)
  elseif kind == 'set' then
    value = redis.call('SMEMBERS', key)
  elseif kind == 'zset' then
    value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif kind == 'stream' then
    value = {redis.call('XLEN', key)}
  else
    value = {}
  end
  found[#found + 1] = {key, kind, value}
end
return found
"""

Hash = dict[str, str]


@dataclass(slots=True)
class View:
    """The cell at one instant, by kind and name."""

    meta: Hash = field(default_factory=dict)
    hosts: dict[str, Hash] = field(default_factory=dict)
    claims: dict[str, Hash] = field(default_factory=dict)
    """Those that have not ended."""
    ended: dict[str, str] = field(default_factory=dict)
    """Those that have and are remembered: why."""
    kept: set[str] = field(default_factory=set)
    """Those of them that are remembered without end, because they point to what became of them."""
    shelved: set[str] = field(default_factory=set)
    """The shelved ones, by the ids that their owners know."""
    groups: dict[str, Hash] = field(default_factory=dict)
    pools: dict[str, Hash] = field(default_factory=dict)
    held: dict[str, set[str]] = field(default_factory=dict)
    """The set of claim ids that each host has."""
    inboxes: dict[str, int] = field(default_factory=dict)
    """How many hints lie in each host's inbox."""
    deadlines: dict[str, float] = field(default_factory=dict)
    others: dict[str, Any] = field(default_factory=dict)
    """What else there is, by key without the cell."""

    @property
    def epoch(self) -> str:
        """The incarnation of the data; '' for none."""
        return self.meta.get("epoch", "")

    def is_attested(self, host: str) -> bool:
        """Whether a host has attested to the present epoch."""
        return self.hosts[host].get("epoch") == self.epoch != ""

    def by_owner(self) -> dict[str, Hash]:
        """The claims by the ids that their owners know: one that was placed anew has another of its own.

        While one is being moved there are two of them; then it is the later one.
        """
        known = sorted(self.claims.items(), key=lambda one: "former" in one[1])
        return {claim.get("origin", claim_id): claim for claim_id, claim in known}

    def on(self, host: str) -> dict[str, Hash]:
        """The claims on a host."""
        return {claim_id: claim for claim_id, claim in self.claims.items() if claim.get("host") == host}


def read_view(client: "redis.Redis") -> View:
    """The cell now. Raises what redis raises while the store is away."""
    return view_of(client.eval_ro(_READ, 0, PREFIX))


def view_of(things: Iterable[tuple[str, str, list[Any]]]) -> View:
    """Sort raw keys into a view."""
    view = View()
    hashes: Mapping[str, dict[str, Hash]] = {
        "host": view.hosts, "claim": view.claims, "server-group": view.groups, "pool": view.pools,
    }  # fmt: skip
    for key, kind, value in things:
        what, _, name = key.removeprefix(PREFIX).partition(":")
        fields = dict(zip(value[::2], value[1::2], strict=True)) if kind in ("hash", "zset") else {}
        if what == "meta":
            view.meta = fields
        elif what == "claim" and fields.get("state") == "ended":
            view.ended[name] = fields["why"]
            view.kept |= {name} if fields["kept"] == "1" else set()
            view.shelved |= {fields["origin"] or name} if fields["why"] == "shelved" else set()
        elif what in hashes:
            hashes[what][name] = fields
        elif what == "claims":
            view.held[name] = set(value)
        elif what == "inbox":
            view.inboxes[name] = int(value[0])
        elif what == "deadlines":
            view.deadlines = {one: float(at) for one, at in fields.items()}
        elif what not in ("facts", "changes", "hosts"):
            view.others[key.removeprefix(PREFIX)] = fields or value
    return view


def amounts_of(claim: Hash) -> dict[str, int]:
    """What a claim holds, by slot."""
    return {name.removeprefix("amount."): int(value) for name, value in claim.items() if name.startswith("amount.")}
