"""Deciding as a plain loop over hosts: the same rules, the same scores and the same choice, without redsched's code.

For every host a few tests, the cheap ones first, with an exit at the first failure; a score for the remaining hosts;
then the best of them whose pools can satisfy the request.
"""

import heapq
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

from benchmarks.fleet_of_pools import GROUPS, PAGES, PlainFleet, PlainHost, PlainPool
from benchmarks.plain_nova import nova_scores
from redsched.model import Group, NumaAffinity, Request

Amounts = dict[str, int]
Scored = tuple[float, str, PlainHost]
"""(-score, name, host), in the order in which hosts are chosen."""
CANDIDATES = 8


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request, with values that a loop over hosts would compute once: `totals` by class, `cells` by class each."""

    request: Request
    totals: Sequence[tuple[str, int]]
    cells: Sequence[Mapping[str, int]]


def wanted(request: Request) -> Wanted:
    """Read a request. Its cells are of the measured kind: dedicated CPUs, memory in huge pages of 2 MB."""
    cells = [{"PCPU": cell.cpus, PAGES: cell.memory_mb // 2} for cell in (request.numa.cells if request.numa else ())]
    totals = Counter(request.resources)
    for part in (*cells, *(group.resources for group in request.groups)):
        totals.update(part)
    totals.update({one.resource_class: one.count for one in request.pci})
    return Wanted(request, sorted(totals.items()), cells)


def decide(fleet: PlainFleet, request: Request) -> list[tuple[str, Amounts]]:
    """Return the best hosts for a request with its amounts there: as many as redsched gives the claim script."""
    asked, found = wanted(request), list[tuple[str, Amounts]]()
    ranked = scored(fleet, asked)
    heapq.heapify(ranked)
    while ranked:
        _, _, host = heapq.heappop(ranked)
        amounts = assign(host, asked)
        if amounts is not None:
            found.append((host.name, amounts))
            if len(found) == CANDIDATES:
                break
    return found


def scored(fleet: PlainFleet, asked: Wanted) -> list[Scored]:
    """Return the hosts that pass all tests except the assignment of pools, unordered."""
    fitting = passing(fleet, asked)
    if asked.request.policy == "nova":
        scores = nova_scores(fleet, asked.request, fitting)
    else:
        scores = [spread_score(host, asked) for host in fitting]
    return [(-score, host.name, host) for score, host in zip(scores, fitting, strict=True)]


def passing(fleet: PlainFleet, asked: Wanted) -> list[PlainHost]:
    """Return the hosts that pass every test, including those of groups and spreading."""
    request, found, zones = asked.request, [], set()
    held = fleet.counts[request.server_group] if request.server_group else {}
    most = GROUPS[request.server_group][1] if request.server_group else 0
    is_apart = bool(request.server_group) and GROUPS[request.server_group][0] == "anti-affinity"
    for host in fleet.hosts.values():
        if not (host.is_up and request.required <= host.traits) or host.name in request.exclude_hosts:
            continue
        zones.add(host.zone)
        if has_room(host, asked) and not (is_apart and held["host"].get(host.name, 0) >= most):
            found.append(host)
    for spread in request.spread:
        least = min((held["zone"].get(zone, 0) for zone in zones), default=0)
        found = [host for host in found if held["zone"].get(host.zone, 0) + 1 - least <= spread.max_skew]
    return found


def has_room(host: PlainHost, asked: Wanted) -> bool:
    """Return whether each part of a request would fit alone: a cheap, necessary condition."""
    request = asked.request
    for resource_class, amount in request.resources.items():
        if host.root.get(resource_class, 0) < amount:
            return False
    for devices in request.pci:
        if host.left.get(devices.resource_class, 0) < devices.count:
            return False
    for group in request.groups:
        if not any(gives(pool, group) for pool in host.pools.values()):
            return False
    return all(any(pool.is_node and gives_all(pool, cell) for pool in host.pools.values()) for cell in asked.cells)


def gives(pool: PlainPool, group: Group) -> bool:
    """Return whether a pool has what a group needs."""
    return group.required <= pool.traits and gives_all(pool, group.resources)


def gives_all(pool: PlainPool, amounts: Mapping[str, int]) -> bool:
    """Return whether a pool has all of some amounts."""
    left = pool.left
    return all(left.get(name, 0) >= amount for name, amount in amounts.items())


def spread_score(host: PlainHost, asked: Wanted) -> float:
    """Return the mean free fraction of the requested classes after placing; less if the host's hooks failed lately."""
    total = 0.0
    for resource_class, amount in asked.totals:
        total += (host.left[resource_class] - amount) / host.capacity[resource_class]
    return total / len(asked.totals) - host.failures / (host.failures + 1)


def assign(host: PlainHost, asked: Wanted) -> Amounts | None:
    """Return a place for each part of a request on one host, trying every assignment of the cells."""
    nodes = [pool for pool in host.pools.values() if pool.is_node]
    nodes.sort(key=lambda node: node.left["PCPU"])
    for chosen in permutations(nodes, len(asked.cells)):
        if not all(gives_all(node, cell) for node, cell in zip(chosen, asked.cells, strict=True)):
            continue
        amounts = dict(asked.request.resources)
        for node, cell in zip(chosen, asked.cells, strict=True):
            amounts |= {f"{node.name}/{name}": amount for name, amount in cell.items()}
        if _devices(host, asked.request, {node.name for node in chosen}, amounts):
            groups = sorted(asked.request.groups, key=lambda group: -sum(group.resources.values()))
            if _groups(host, groups, frozenset(), amounts):
                return amounts
    return None


def _devices(host: PlainHost, request: Request, near: set[str], amounts: Amounts) -> bool:
    for devices in request.pci:
        missing, required = devices.count, devices.numa_policy is NumaAffinity.REQUIRED
        for pool in sorted(host.pools.values(), key=lambda one: one.left.get(devices.resource_class, 0)):
            count = min(missing, pool.left.get(devices.resource_class, 0))
            if count and not (required and near and pool.node not in near):
                amounts[f"{pool.name}/{devices.resource_class}"] = count
                missing -= count
        if missing:
            return False
    return True


def _groups(host: PlainHost, groups: Sequence[Group], used: frozenset[str], amounts: Amounts) -> bool:
    """Return a pool of its own for each group, the fullest suitable one first, with backtracking."""
    if not groups:
        return True
    group = groups[0]
    fitting = [pool for pool in host.pools.values() if pool.name not in used and gives(pool, group)]
    for pool in sorted(fitting, key=lambda one: sum(one.left.values())):
        if _groups(host, groups[1:], used | {pool.name}, amounts):
            amounts |= {f"{pool.name}/{name}": amount for name, amount in group.resources.items()}
            return True
    return False
