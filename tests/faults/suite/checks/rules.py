"""What must hold of the store at every instant, and from one instant to the next.

A host or shared pool may hold more than it has only if a new epoch restored that, or it has shrunk: its hosts reported
what runs on them, or what they have, which is a fact. From then on the excess may only shrink. So an excess is compared
with the previous instant, and not with redsched's own record of it.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from tests.faults.suite.callers.traffic import QUOTA
from tests.faults.suite.checks.view import Hash, Look, View, amounts_of, together, used_by

LEASED = ("claimed", "starting")
POOL = "pool:"


def books(view: View) -> Iterator[str]:
    """Check that counters of hosts, groups and pools equal their claims, and every claim is where its host lists it."""
    placements = [*view.placements()]
    taken, on = taken_by(placements), _by_host(placements)
    for name, host in view.hosts.items():
        yield from _amounts(f"host {name}", host, taken.pop(f"host {name}", Counter()))
        yield from _lists(name, host, view.held.get(name, set()), on.get(name, []))
    for name, pool in view.pools.items():
        yield from _amounts(POOL + name, pool, taken.pop(POOL + name, Counter()))
    for owner, amounts in taken.items():
        yield f"{owner} is not there, and claims hold {dict(amounts)} of it"
    for name, group in view.groups.items():
        yield from _members(name, group, [one for one in placements if one.get("group") == name])
    yield from _zones(view, placements)
    for name, ids in view.held.items():
        if name not in view.hosts:
            yield f"host {name} is not there, and lists {sorted(ids)}"


def taken_by(placements: Iterable[Hash]) -> dict[str, Counter[str]]:
    """Return the amounts that placements hold of each host and shared pool."""
    taken: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for placement in placements:
        for slot, amount in amounts_of(placement).items():
            taken[_holder(placement, slot)][_within(slot)] += amount
    return dict(taken)


def _by_host(placements: Iterable[Hash]) -> dict[str, list[Hash]]:
    by_host = defaultdict[str, list[Hash]](list)
    for placement in placements:
        by_host[placement.get("host", "")].append(placement)
    return by_host


def _holder(placement: Hash, slot: str) -> str:
    """Return the owner of a slot of a placement: a shared pool, or the host."""
    return slot.rpartition("/")[0] if slot.startswith(POOL) else f"host {placement.get('host')}"


def _within(slot: str) -> str:
    """Return the name of the slot within its owner."""
    return slot.rpartition("/")[2] if slot.startswith(POOL) else slot


def _amounts(owner: str, fields: Hash, taken: Counter[str]) -> Iterator[str]:
    counted = {name.removeprefix("claimed."): int(n) for name, n in fields.items() if name.startswith("claimed.")}
    for slot in sorted(counted.keys() | taken.keys()):
        if counted.get(slot, 0) != taken[slot]:
            yield f"{owner} says {counted.get(slot, 0)} {slot} are claimed, its claims hold {taken[slot]}"


def _lists(name: str, host: Hash, held: Set[str], on: Sequence[Hash]) -> Iterator[str]:
    """Compare the claims that a host lists and counts with the placements on it."""
    starting = sum(placement["state"] in LEASED for placement in on)
    ids = {placement["id"] for placement in on}
    if held != ids:
        yield f"host {name} lists {sorted(held)}, and the claims on it are {sorted(ids)}"
    if (int(host.get("claims", "0")), int(host.get("starting", "0"))) != (len(on), starting):
        yield f"host {name} counts {host.get('claims')} and {host.get('starting')}: there are {len(on)} and {starting}"


def _members(name: str, group: Hash, members: Sequence[Hash]) -> Iterator[str]:
    really = Counter(f"count.host={one['host']}" for one in members)
    really.update(f"count.{key[8:]}={value}" for one in members for key, value in one.items() if key[:8] == "counted.")
    counted = {field: int(value) for field, value in group.items() if field.startswith("count.")}
    if counted != dict(really) or int(group.get("members", "0")) != len(members):
        yield f"group {name} counts {group.get('members')}, {counted}; its members are {len(members)}, {dict(really)}"


def _zones(view: View, placements: Iterable[Hash]) -> Iterator[str]:
    """Check that members are counted in the zones that their hosts have now."""
    for one in placements:
        zone = view.hosts.get(one.get("host", ""), {}).get("zone", "")
        if one.get("group") and zone and one.get("counted.zone") != zone:
            yield f"claim {one['id']} is counted in {one.get('counted.zone')}, and its host {one['host']} is in {zone}"


Over = Mapping[tuple[str, str], frozenset[tuple[str, str]]]
"""Slots above capacity, by owner and slot, with the placements that hold them: claim id and name."""


def over(view: View) -> Over:
    """Return everything that holds more than it has, and each host with more members of a group than may share one."""
    holders: defaultdict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    amounts: Counter[tuple[str, str]] = Counter()
    for one in view.placements():
        takes = {(_holder(one, slot), _within(slot)): amount for slot, amount in amounts_of(one).items()}
        if one.get("group"):
            takes[f"host {one.get('host')}", f"group:{one['group']}"] = 1
        for key, amount in takes.items():
            holders[key].add((one["id"], one["placed"]))
            amounts[key] += amount
    return {key: frozenset(holders[key]) for key, amount in amounts.items() if amount > _room(view, *key)}


def _room(view: View, owner: str, slot: str) -> int:
    if slot.startswith("group:"):
        group = view.groups.get(slot.removeprefix("group:"), {})
        return int(group.get("max_per_host", "1")) if group.get("policy") == "anti-affinity" else 1 << 53
    fields = view.pools.get(owner.removeprefix(POOL), {}) if owner.startswith(POOL) else view.hosts.get(owner[5:], {})
    return int(fields.get(f"capacity.{slot}", "0")) - int(fields.get(f"external.{slot}", "0"))


def succession(former: View, now: View) -> Iterator[str]:
    """Check changes between two instants.

    No excess grows, no claim appears on a host that has not attested, and no name of a pool passes to another device.
    """
    # A primary that took over with fewer writes says the former epoch until something is written to it.
    is_same_epoch = former.epoch == now.epoch and former.seq <= now.seq
    before = over(former)
    for (owner, slot), held in over(now).items():
        if not is_same_epoch or not _had_spoken(former, owner):
            continue  # restored: facts
        if _room(now, owner, slot) < _room(former, owner, slot):
            continue  # it shrank under its claims
        if (owner, slot) not in before:
            yield f"{owner} came to hold more {slot} than it has, without a new epoch: {_ids(held)}"
        elif more := held - before[owner, slot]:
            yield f"{owner} holds more {slot} than it has, and got still more: {_ids(more)}"
    if is_same_epoch:
        yield from _unspoken(former, now)
    for (host, pool), device in now.devices.items():
        if (was := former.devices.get((host, pool), device)) != device:
            yield f"{pool} of {host} was device {was}, and is {device}"


def _ids(held: Iterable[tuple[str, str]]) -> list[str]:
    return sorted({claim_id for claim_id, _ in held})


def _had_spoken(view: View, owner: str) -> bool:
    """Return whether all hosts that could restore claims to it had done so at that instant."""
    if owner.startswith(POOL):
        return view.has_heard_all()
    return owner[5:] in view.hosts and view.is_attested(owner[5:])


def _unspoken(former: View, now: View) -> Iterator[str]:
    for host in former.hosts.keys() & now.hosts.keys():
        if not former.is_attested(host) and not now.is_attested(host):
            came = now.held.get(host, set()) - former.held.get(host, set())
            if came:
                yield f"host {host} has not attested to {now.epoch} and got {sorted(came)}"


def homes(look: Look) -> Iterator[str]:
    """Check that no host is in two cells: its machine would be given out twice."""
    cells_of = defaultdict[str, list[str]](list)
    for cell, view in look.items():
        for host in view.hosts:
            cells_of[host].append(cell)
    for host, cells in cells_of.items():
        if len(cells) > 1:
            yield f"host {host} is in {' and in '.join(cells)}"


def quota(first: Look, before: Look, *both: Look) -> Iterator[str]:
    """Check that no project exceeds its quota over all cells, except by claims that hosts restored.

    Cells on different servers are read one after the other. So only claims that were seen in each of `both` count:
    between these two reads all of them existed together. Claims that did not exist `before` were made after it, the
    last of them beside all others. Hosts must have restored their claims by the `first` read. For cells on one server
    a read is an instant: there `first` is `before`, and `both` are one.
    """
    epochs = {tuple(view.epoch for view in look.values()) for look in (first, before, *both)}
    if len(epochs) > 1 or not _is_limited(first):
        return
    held = set.intersection(*map(_metered, both))
    more = held - _metered(before)
    if len(held) > QUOTA.limits["claims"] and more:
        yield f"project {QUOTA.project} has {len(held)} claims, more than its quota, and got still more: {sorted(more)}"


def _metered(look: Look) -> set[str]:
    claims = together(look).claims
    return {one for one, claim in claims.items() if claim.get("project") == QUOTA.project and used_by(one, claim)}


def _is_limited(look: Look) -> bool:
    """Return whether the quota is declared (the first cell has it), and all claims that it counts are known."""
    first = next(iter(look.values()))
    return f"quota:{QUOTA.project}" in first.others and all(view.has_heard_all() for view in look.values())
