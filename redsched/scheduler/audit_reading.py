"""Reading a cell for an audit: its hosts with their claims, and all that lies beside them."""

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from redsched.model import Claim, ClaimStatus, Placement, Token
from redsched.store import AuditedHost, CellStore
from redsched.store.reads import MEMBER

HOSTS_AT_ONCE = 200

Fields = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Seen:
    """What was read of a cell, one after the other. `keys`: the names of all keys by what they begin with.

    `hosts` are all that have a key or are in the set of hosts (`listed`), and those that only a set of claims names:
    without fields where they are not there. `held` are the claims in the sets of hosts, `unheld` all others.
    """

    keys: Mapping[str, Collection[str]]
    listed: Collection[str]
    hosts: Sequence[AuditedHost]
    held: Mapping[str, Fields]
    unheld: Mapping[str, Fields]
    lasting: Collection[str]
    """Those of `unheld` that have ended and are remembered without end."""
    shelved: Collection[str]
    gangs: Mapping[str, Fields]
    """Those that did not change while claims were read."""
    deadlines: Mapping[str, int]
    chores: Mapping[str, int]

    @property
    def present(self) -> set[str]:
        """The names of the hosts that are there."""
        return {host.name for host in self.hosts if host.fields}

    @property
    def ids_on(self) -> Mapping[str, frozenset[str]]:
        """The ids in the set of each host."""
        return {host.name: host.ids for host in self.hosts}

    def claims(self) -> Iterator[tuple[str, Fields]]:
        """All claims, ended ones too."""
        yield from self.held.items()
        yield from self.unheld.items()

    def claim(self, claim_id: str) -> Fields:
        """A claim's hash; empty for one that is not there."""
        return self.held.get(claim_id) or self.unheld.get(claim_id) or {}

    def lives(self, claim_id: str) -> bool:
        """Whether the claim is there and has not ended."""
        return self.claim(claim_id).get("state", ClaimStatus.ENDED) != ClaimStatus.ENDED

    def digests(self) -> set[str]:
        """Of the requests that living and shelved claims name."""
        named = (fields for claim_id, fields in self.claims() if self.lives(claim_id) or claim_id in self.shelved)
        return {fields["digest"] for fields in named if fields.get("digest")}

    def living(self) -> list[Fields]:
        """The claims that have not ended."""
        return [fields for claim_id, fields in self.claims() if self.lives(claim_id)]


def is_unfinished(claim: Claim) -> bool:
    """Whether only a scheduler can finish something about a claim, as include/due.lua has it."""
    if claim.state is ClaimStatus.PENDING:
        return True
    return any(one.state is not ClaimStatus.ENDING and _is_doomed(claim, one) for one in claim.placements)


def _is_doomed(claim: Claim, placement: Placement) -> bool:
    if claim.closed and Token.parse(placement.root) <= Token.parse(claim.closed):
        return True
    ranks = [_rank(one.root, one.placed) for one in claim.placements if one.state is ClaimStatus.ACTIVE]
    if current := claim.raw.get("current"):
        ranks.append(_rank(claim.raw.get("current_root", current), current))
    return bool(ranks) and _rank(placement.root, placement.placed) < max(ranks)


def _rank(root: str, placed: str) -> tuple[Token, Token]:
    return Token.parse(root), Token.parse(placed)


async def read_cell(store: CellStore) -> Seen:
    """Read it. What is named by something else (deadlines, chores, gangs) is read before what names it."""
    deadlines, chores, shelved = await store.deadlines(), await store.chores(), await store.shelved_ids()
    keys = await store.key_names()
    gangs = await store.gang_hashes(keys.get("gang", []))
    listed = await store.host_names()
    hosts = await _read_hosts(store, sorted({*listed, *keys.get("host", ()), *keys.get("claims", ())}))
    held = {claim_id: fields for host in hosts for claim_id, fields in host.claims.items() if fields}
    named = {*keys.get("claim", ()), *(one for gang in gangs.values() for one in members_of(gang)), *chores}
    unheld = await store.claim_hashes(sorted(named.difference(held)))
    ended = [claim_id for claim_id, fields in unheld.items() if fields.get("state") == ClaimStatus.ENDED]
    lasting = await store.lasting(ended)
    after = await store.gang_hashes(list(gangs))
    steady = {gang: fields for gang, fields in gangs.items() if after.get(gang) == fields}
    return Seen(keys, listed, hosts, held, unheld, lasting, shelved, steady, deadlines, chores)


def members_of(gang: Fields) -> list[str]:
    """The ids of the claims in a gang's hash."""
    return sorted(name.removeprefix(MEMBER) for name in gang if name.startswith(MEMBER))


async def _read_hosts(store: CellStore, names: Sequence[str]) -> list[AuditedHost]:
    found: list[AuditedHost] = []
    for first in range(0, len(names), HOSTS_AT_ONCE):
        found += await asyncio.gather(*(store.audited(name) for name in names[first : first + HOSTS_AT_ONCE]))
    return found
