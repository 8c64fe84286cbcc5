"""The store, read raw at one instant: one read-only script reads every key of its cells. Uses nothing of redsched."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import redis

from tests.support.store_clock import FIELD

_READ = """
local function value_of(key, kind)
  if kind == 'hash' and redis.call('HGET', key, 'state') == 'ended' then
    local kept = redis.call('PTTL', key) < 0 and '1' or '0'
    local fields = redis.call('HGETALL', key)
    fields[#fields + 1] = 'kept'
    fields[#fields + 1] = kept
    return fields
  elseif kind == 'hash' then
    return redis.call('HGETALL', key)
  elseif kind == 'set' then
    return redis.call('SMEMBERS', key)
  elseif kind == 'zset' then
    return redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  elseif kind == 'stream' then
    return {redis.call('XLEN', key)}
  end
  return {}
end
local found = {}
for _, prefix in ipairs(ARGV) do
  found[#found + 1] = {prefix .. 'time', 'time', redis.call('TIME')}
  for _, key in ipairs(redis.call('KEYS', prefix .. '*')) do
    local kind = redis.call('TYPE', key).ok
    found[#found + 1] = {key, kind, value_of(key, kind)}
  end
end
return found
"""

Hash = dict[str, str]
TRIED, DEVICE = "tried.", "device."
PLACEMENT = "placement."
_OTHER = re.compile(re.escape(PLACEMENT) + r"(?P<placed>\d+-\w+\.\d+)\.(?P<word>.+)")


@dataclass(slots=True)
class Claims:
    """The claims of a cell, or of all cells together."""

    claims: dict[str, Hash] = field(default_factory=dict)
    """The hashes of claims that have not ended."""
    ended: dict[str, str] = field(default_factory=dict)
    """The end_reason of claims that have ended and are remembered."""
    tried: dict[str, set[str]] = field(default_factory=dict)
    """The hosts on which ended claims had failed before."""
    shelved: set[str] = field(default_factory=set)

    def placements(self) -> Iterator[Hash]:
        """Each placement as if it were the whole claim, with the claim's `id`; its name is `placed`."""
        for claim_id, claim in self.claims.items():
            yield from _placements(claim_id, claim)


@dataclass(slots=True)
class View(Claims):
    """A cell at one instant, by kind and name."""

    now_ms: int = 0
    """The store's time."""
    meta: Hash = field(default_factory=dict)
    hosts: dict[str, Hash] = field(default_factory=dict)
    devices: dict[tuple[str, str], str] = field(default_factory=dict)
    """The devices of hosts, by host and pool."""
    kept: set[str] = field(default_factory=set)
    """The ended claims that are remembered without end."""
    groups: dict[str, Hash] = field(default_factory=dict)
    pools: dict[str, Hash] = field(default_factory=dict)
    held: dict[str, set[str]] = field(default_factory=dict)
    """The set of claim ids of each host."""
    inboxes: dict[str, int] = field(default_factory=dict)
    """The number of notifications in each host's inbox."""
    deadlines: dict[str, float] = field(default_factory=dict)
    others: dict[str, Any] = field(default_factory=dict)
    """All other keys, without the cell's prefix."""

    @property
    def epoch(self) -> str:
        """The epoch of the cell; '' for none."""
        return self.meta.get("epoch", "")

    @property
    def seq(self) -> int:
        """The number of the last change."""
        return int(self.meta.get("seq", "0"))

    def is_attested(self, host: str) -> bool:
        """Return whether a host has attested to the present epoch."""
        return self.hosts[host].get("epoch") == self.epoch != ""

    def has_heard_all(self) -> bool:
        """Return whether all hosts that could restore claims have done so."""
        return all(map(self.is_attested, self.hosts)) and self.meta.get("settled") == "1"


Look = Mapping[str, View]
"""The views of the cells; those of cells on one server are of one instant."""


def together(look: Look) -> Claims:
    """Return the claims of all cells."""
    all_claims = Claims()
    for view in look.values():
        # An id that moved on to another cell is closed in the former one: that is not the end of its claim.
        all_claims.ended = {**view.ended, **all_claims.ended} | _without_void(view.ended)
        all_claims.claims |= view.claims
        all_claims.tried |= view.tried
        all_claims.shelved |= view.shelved
    return all_claims


def _without_void(ended: Mapping[str, str]) -> dict[str, str]:
    return {claim_id: why for claim_id, why in ended.items() if why != "void"}


def read_views(client: "redis.Redis", cells: Sequence[str]) -> dict[str, View]:
    """Read these cells, which are on one server, now. Raises what redis raises while the store is away."""
    objects = client.eval_ro(_READ, 0, *map(_prefix, cells))
    return {cell: view_of(cell, (one for one in objects if one[0].startswith(_prefix(cell)))) for cell in cells}


def _prefix(cell: str) -> str:
    return f"rs:{{{cell}}}:"


def view_of(cell: str, objects: Iterable[tuple[str, str, list[Any]]]) -> View:
    """Build a view from a cell's raw keys."""
    view = View()
    hashes: Mapping[str, dict[str, Hash]] = {
        "host": view.hosts, "claim": view.claims, "server-group": view.groups, "pool": view.pools,
    }  # fmt: skip
    for key, kind, value in objects:
        named = key.removeprefix(_prefix(cell))
        what, _, name = named.partition(":")
        fields = dict(zip(value[::2], value[1::2], strict=True)) if kind in ("hash", "zset") else {}
        if kind == "time":
            view.now_ms = int(value[0]) * 1000 + int(value[1]) // 1000
        elif what == "meta":
            view.meta = fields
        elif what == "claim" and fields.get("state") == "ended":
            view.ended[name] = fields.get("end_reason", "")
            view.tried[name] = {word.removeprefix(TRIED) for word in fields if word.startswith(TRIED)}
            view.kept |= {name} if fields["kept"] == "1" else set()
            view.shelved |= {name} if fields.get("end_reason") == "shelved" else set()
        elif what in hashes:
            hashes[what][name] = fields
        elif what == "claims":
            view.held[name] = set(value)
        elif what == "inbox":
            view.inboxes[name] = int(value[0])
        elif what == "deadlines":
            view.deadlines = {one: float(at) for one, at in fields.items()}
        elif what == "attributes":
            devices = (word for word in fields if word.startswith(DEVICE))
            view.devices |= {(name, word.removeprefix(DEVICE)): fields[word] for word in devices}
        elif what not in ("changes", "hosts"):
            view.others[named] = fields or value
    view.now_ms += int(view.meta.get(FIELD, "0")) * 1000
    return view


def _placements(claim_id: str, claim: Hash) -> Iterator[Hash]:
    """Yield placements: the main one from plain fields, the others from their own. A pending claim has none."""
    others: defaultdict[str, Hash] = defaultdict(dict)
    common = {"id": claim_id} | {word: claim[word] for word in ("group", "project") if word in claim}
    main = dict(common)
    for word, value in claim.items():
        if word.startswith(PLACEMENT) and (other := _OTHER.match(word)):
            others[other["placed"]][other["word"]] = value
        else:
            main[word] = value
    if claim.get("state") != "pending":
        yield {"placed": main.get("token", ""), **main}
    for placed, fields in others.items():
        yield {**common, "token": placed, **fields, "placed": placed}


def amounts_of(placement: Hash) -> dict[str, int]:
    """Return the amounts of a placement, by slot."""
    return {name.removeprefix("amount."): int(value) for name, value in placement.items() if name.startswith("amount.")}


def used_by(claim_id: str, claim: Hash) -> Counter[str]:
    """Return what a claim uses of a quota: for each class, the largest amount among its placements."""
    used: Counter[str] = Counter()
    for placement in _placements(claim_id, claim):
        held: Counter[str] = Counter({"claims": 1})
        for slot, amount in amounts_of(placement).items():
            held[slot.rpartition("/")[2]] += amount
        used |= held
    return used
