"""Members of a server group to ignore when a claim is placed again: those moving with it, and those on lost hosts.

Under hard affinity, all members that move in one call leave together, so their current domains do not constrain any of
them. Thus a whole group can leave a working host, and a single member can be moved to where all others are.

On a host that was written off, the work is lost for good. So the claim itself does not count against its next
placement. Under hard affinity neither does any member on a written-off host, because it would block a group that can
only be reunited elsewhere: the first member may be placed anywhere, and the others must follow it. The claim script
applies the same rules (lua/include/placing/claim_left.lua).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

from redsched.cache.columns import Columns
from redsched.cache.entries import GroupState
from redsched.model import HELD, Claim, GroupPolicy
from redsched.model.validation import MAX_AMOUNT
from redsched.store.codec.keys import Kind

Domain = tuple[str, str]
"""The topology, and the domain in it: ("zone", "az1")."""


@contextmanager
def ignoring_lost_members(columns: Columns, claim: Claim, *beside: Claim) -> Iterator[None]:
    """Make decisions inside the context count only the group members that constrain a claim's next placement.

    `beside` are other members of its group that move in the same call; none of them is on a written-off host. The
    context changes the columns themselves, and restores them at its end: nothing else may read them in between.
    """
    members, left, state = 0, Counter[Domain](), _group_left(columns, claim)
    if state is not None:
        members, left = _lost_members(columns, claim, state)
    elif (state := _affinity_group(columns, claim)) is not None:
        members, left = 1 + len(beside), _leaving_by_domain((claim, *beside))
    if state is None:
        yield
        return
    before, stored = state.members, {domain: state.count(*domain) for domain in left}
    holding = {domain: max(0, stored[domain] - left[domain]) for domain in left}
    _set(columns, state.name, max(0, before - members), holding)
    try:
        yield
    finally:
        _set(columns, state.name, before, stored)


def written_off_with(columns: Columns, claim: Claim) -> tuple[str, ...]:
    """Return the hosts, sorted by name, whose members of the group are ignored when a claim is placed again.

    Empty if the claim's host was not written off, or its group has no hard affinity.
    """
    state = _group_left(columns, claim)
    return () if state is None else _written_off(columns, state)


def followers_on(columns: Columns, claim: Claim) -> tuple[str, ...]:
    """Return the hosts of the members that must follow a claim placed again: of all members, if none constrains it."""
    hosts, state = written_off_with(columns, claim), columns.declared.groups.get(claim.server_group)
    is_first = state is not None and state.members == sum(state.count("host", host) for host in hosts) > 1
    return hosts if is_first else ()


def _group_left(columns: Columns, claim: Claim) -> GroupState | None:
    """Return the group that counts a claim on a written-off host. Ended claims count in none."""
    return columns.declared.groups.get(claim.server_group) if columns.is_written_off(claim.host) else None


def _affinity_group(columns: Columns, claim: Claim) -> GroupState | None:
    """Return the group with hard affinity that counts a claim where it is."""
    state = columns.declared.groups.get(claim.server_group) if claim.state in HELD else None
    return state if state is not None and state.group.policy is GroupPolicy.AFFINITY else None


def _leaving_by_domain(claims: Iterable[Claim]) -> Counter[Domain]:
    """Return how many of these claims are counted in each domain."""
    return Counter(domain for one in claims for domain in (("host", one.host), *one.counted.items()))


def _written_off(columns: Columns, state: GroupState) -> tuple[str, ...]:
    if state.group.policy is not GroupPolicy.AFFINITY:
        return ()
    return tuple(sorted(host for host in state.counts("host") if columns.is_written_off(host)))


def _lost_members(columns: Columns, claim: Claim, state: GroupState) -> tuple[int, Counter[Domain]]:
    """Return the number of members to ignore, in total and by domain; members with invalid counts are not ignored."""
    if state.group.policy is not GroupPolicy.AFFINITY:
        return 0, Counter([("host", claim.host), *claim.counted.items()])
    left: Counter[Domain] = Counter()
    for host in _written_off(columns, state):
        number = state.count("host", host)
        for by in state.group.topologies():
            left[by, _domain(columns, claim, host, by)] += number if number != MAX_AMOUNT else 0
    return sum(number for (by, _), number in left.items() if by == "host"), left


def _domain(columns: Columns, claim: Claim, host: str, by: str) -> str:
    """Return the domain of a host; for the claim's own host the one that counts it: the zone may have changed since."""
    if by != "host" and host == claim.host:
        return claim.counted.get(by, "")
    row = columns.row(host)
    return "" if row is None else columns.domain(by, row)


def _set(columns: Columns, group: str, members: int, counts: Mapping[Domain, int]) -> None:
    fields = {f"count.{by}={domain}": str(number) for (by, domain), number in counts.items() if domain}
    columns.declared.patch(Kind.SERVER_GROUP, group, {"members": str(members), **fields})
