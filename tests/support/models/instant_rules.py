"""What must hold at every instant of a cell, by plain counting over the hashes of the claims.

Nothing here is shared with redsched: amounts are summed, members counted and relations checked claim by claim.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from redsched.model import RelationType, Request
from tests.support.models.instants import Hash, Instant, Rule


def books(now: Instant) -> Iterator[str]:
    """Check that counters of hosts, groups and pools equal their claims, and that nothing is over capacity."""
    yield from _lists(now)
    taken: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for claim in now.claims.values():
        for name, value in claim.items():
            if name.startswith("amount."):
                pool, _, resource_class = name.removeprefix("amount.").rpartition("/")
                owner = pool if pool.startswith("pool:") else f"host {claim['host']}"
                slot = resource_class if pool.startswith("pool:") else name.removeprefix("amount.")
                taken[owner][slot] += int(value)
    owners = {f"host {name}": one for name, one in now.hosts.items()}
    owners |= {f"pool:{name}": one for name, one in now.pools.items()}
    for owner, slots in owners.items():
        yield from _amounts(owner, slots, taken.pop(owner, Counter()))
    if taken:
        yield f"claims hold something of what is not there: {dict(taken)}"
    for name, group in now.groups.items():
        yield from _members(now, name, group)


def _amounts(owner: str, slots: Hash, taken: Counter[str]) -> Iterator[str]:
    for slot in {name.removeprefix("capacity.") for name in slots if name.startswith("capacity.")} | taken.keys():
        capacity, claimed = int(slots.get(f"capacity.{slot}", "0")), int(slots.get(f"claimed.{slot}", "0"))
        if taken[slot] != claimed:
            yield f"{owner} says {claimed} {slot} are claimed, its claims hold {taken[slot]}"
        if taken[slot] > capacity:
            yield f"{owner} has {capacity} {slot}, its claims hold {taken[slot]}"


def _lists(now: Instant) -> Iterator[str]:
    for name, host in now.hosts.items():
        own = {claim_id for claim_id, claim in now.claims.items() if claim["host"] == name}
        starting = {one for one in own if now.claims[one]["state"] in ("claimed", "starting")}
        if own != now.held.get(name, set()):
            yield f"host {name} lists {now.held.get(name)}, the claims on it are {own}"
        if (len(own), len(starting)) != (int(host.get("claims", "0")), int(host.get("starting", "0"))):
            yield f"host {name} counts {host.get('claims')} claims, {host.get('starting')} starting: {own}, {starting}"
    lost = {claim["host"] for claim in now.claims.values()} - now.hosts.keys()
    if lost:
        yield f"claims on hosts that are not there: {lost}"


def _members(now: Instant, name: str, group: Hash) -> Iterator[str]:
    members = [claim for claim in now.claims.values() if claim.get("group") == name]
    counted = {field: int(value) for field, value in group.items() if field.startswith("count.")}
    really = Counter(f"count.{by}={now.domain(claim, by)}" for claim in members for by in ("host", "zone"))
    if counted != dict(really) or int(group.get("members", "0")) != len(members):
        yield f"group {name} counts {group.get('members')}, {counted}; its members are {len(members)}, {dict(really)}"


def members_in(now: Instant, group: str, by: str) -> Counter[str]:
    """Return the number of members of a group in each host or zone that has any."""
    return Counter(now.domain(claim, by) for claim in now.claims.values() if claim.get("group") == group)


def at_most(group: str, by: str, most: int) -> Rule:
    """Check that no host or zone has more members of the group."""

    def rule(now: Instant) -> Iterator[str]:
        found = members_in(now, group, by)
        if any(count > most for count in found.values()):
            yield f"{group} may have {most} in one {by}: {dict(found)}"

    return rule


def in_one(group: str, by: str) -> Rule:
    """Check that all members are in the same host or zone."""

    def rule(now: Instant) -> Iterator[str]:
        found = members_in(now, group, by)
        if len(found) > 1:
            yield f"{group} must be in one {by}: {dict(found)}"

    return rule


def level(group: str, by: str, skew: int) -> Rule:
    """Check the maximum difference of members between hosts or zones, until some are released: that levels nothing."""

    def rule(now: Instant) -> Iterator[str]:
        if now.ended:
            return
        found = members_in(now, group, by)
        everywhere = {name if by == "host" else host["zone"] for name, host in now.hosts.items()}
        counts = {domain: found[domain] for domain in everywhere}
        if max(counts.values()) - min(counts.values()) > skew:
            yield f"{group} may differ by {skew} between two of {by}: {counts}"

    return rule


def claims_at_most(most: int, states: Sequence[str]) -> Rule:
    """Check that no host has more claims in these states."""

    def rule(now: Instant) -> Iterator[str]:
        found = Counter(claim["host"] for claim in now.claims.values() if claim["state"] in states)
        if any(count > most for count in found.values()):
            yield f"a host may have {most} claims that are {' or '.join(states)}: {dict(found)}"

    return rule


def gangs_hold(kinds: Mapping[str, Request]) -> Rule:
    """Check that every gang exists whole or not at all, and that its relations hold between the remaining places.

    A gang's consumer is `<kind>.<further>` and its claims are `<consumer>.<number of the place>`. A gang that is being
    released claim by claim still has all its claims, some of them ended.
    """

    def rule(now: Instant) -> Iterator[str]:
        ids: defaultdict[str, set[str]] = defaultdict(set)
        for claim_id in (*now.claims, *now.ended):
            ids[claim_id.rpartition(".")[0]].add(claim_id)
        for gang, known in ids.items():
            request = kinds[gang.partition(".")[0]]
            if len(known) != request.places:
                yield f"of gang {gang} there are {sorted(known)}, it has {request.places} places"
            yield from _related(now, gang, request)

    return rule


def member_of_place(request: Request) -> list[str]:
    """Return the member's name of each place of a gang."""
    return [one.name for one in request.members for _ in range(one.count)]


def _related(now: Instant, gang: str, request: Request) -> Iterator[str]:
    for relation in request.relations:
        places = [number for number, name in enumerate(member_of_place(request)) if name in relation.members]
        claims = [now.claims[one] for number in places if (one := f"{gang}.{number}") in now.claims]
        hosts = [claim["host"] for claim in claims]
        if not are_related(relation.type, hosts, [now.hosts[host]["zone"] for host in hosts]):
            yield f"gang {gang} wants {relation}, and lies on {hosts}"


def are_related(relation: RelationType, hosts: Sequence[str], zones: Sequence[str]) -> bool:
    """Return whether places on these hosts, in these zones, satisfy a relation."""
    match relation:
        case RelationType.TOGETHER:
            return len(set(hosts)) <= 1
        case RelationType.APART:
            return len(set(hosts)) == len(hosts)
        case RelationType.SAME_ZONE:
            return len(set(zones)) <= 1
    raise NotImplementedError(relation)
