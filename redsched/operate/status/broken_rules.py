"""Server groups whose members are where their hard policy does not allow them.

No claim breaks a hard policy. It breaks when the zone or a label of a host with members changes, when hosts restore
members that the store had lost, and by a declaration. The scripts mark such groups; claims may have ended since.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from redsched.cache.entries import GroupState
from redsched.model import GroupPolicy, ServerGroup
from redsched.pacing import paced
from redsched.store.cell import CellStore
from redsched.store.codec.keys import Kind
from redsched.store.commands.status import HostHead

MAX_GROUPS = 20
"""The members of how many groups are looked at."""
MAX_CLAIMS = 2000
"""How many claims are looked at to find the members of one."""


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """A server group whose hard policy is broken: how, and the members that are where they may not be."""

    group: ServerGroup
    how: str
    members: tuple[str, ...] = ()


async def read_broken(store: CellStore, hosts: Sequence[HostHead]) -> list[BrokenRule]:
    """Return the groups whose policy is broken by claims that are not about to leave. Raises StoreUnavailable."""
    lost = {one.name for one in hosts if one.is_written_off}
    found = [await _broken(store, state, lost) for state in (await _marked(store))[:MAX_GROUPS]]
    return [one for one in found if one is not None]


async def _marked(store: CellStore) -> list[GroupState]:
    """Return the marked groups that are broken by their counts, which also have members that are about to leave.

    A mark stays when members end, so many groups may have one whose rule has held again for long.
    """
    found = list[GroupState]()
    marked = await store.declared.read(Kind.SERVER_GROUP, await store.declared.broken_groups())
    async for name, fields in paced(marked.items()):
        state = GroupState(name)
        state.apply(fields)
        if state.declared and state.group.breach(state.members, state.counts(state.group.by)):
            found.append(state)
    return found


async def _broken(store: CellStore, state: GroupState, lost: set[str]) -> BrokenRule | None:
    group = state.group
    on = [host for host in state.counts("host") if host not in lost]
    where = await store.claims.members_on(on, group.name, group.by, MAX_CLAIMS)
    if where is None:
        how = group.breach(state.members, state.counts(group.by))
        return BrokenRule(group, how) if how else None
    counts = Counter(domain for domain in where.values() if domain)
    how = group.breach(len(where), counts)
    return BrokenRule(group, how, tuple(_at_fault(group, where, counts))) if how else None


def _at_fault(group: ServerGroup, where: Mapping[str, str], counts: Counter[str]) -> Iterator[str]:
    """Yield the members in domains that have too many, or of affinity those that are not where most are."""
    [(most, _)] = counts.most_common(1) or [("", 0)]
    for claim, domain in where.items():
        if group.policy is GroupPolicy.AFFINITY:
            if domain != most:
                yield claim
        elif not domain or counts[domain] > group.max_per_host:
            yield claim
