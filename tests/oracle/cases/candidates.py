"""Cases for Placement's allocation candidates: worlds of hosts with pools and shared pools, and queries about them.

An inventory is [total, reserved, ratio, min_unit, max_unit, step_size]. A query has the fields of a request of
redsched, except for `in_tree`, the name of a host. Every query asks for VCPU, which shared pools do not have, so that
each candidate belongs to one host.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

WORLDS, HOSTS, QUERIES = 40, 3, 25
TRAITS = ("CUSTOM_T1", "CUSTOM_T2", "CUSTOM_T3")
NODE = "HW_NUMA_ROOT"
AGGREGATES = ("a1", "a2", "a3")

Place = dict[str, Any]
"""`inventories` by class, `traits`, and `parent` ('' for the host) or `aggregates`."""
Query = dict[str, Any]


@dataclass(frozen=True)
class World:
    """Hosts, each with its places by name ('' is the host itself) and its aggregates; shared pools; and queries."""

    hosts: list[dict[str, Any]]
    shared: dict[str, Place]
    queries: list[Query]


def worlds(salt: str = "") -> Iterator[World]:
    """Yield all worlds, each from a seed of its own. Another salt gives others."""
    for number in range(WORLDS):
        rng = Random(f"{salt}world {number}")
        hosts = [_host(rng) for _ in range(HOSTS)]
        shared = {f"s{one}": _shared(rng) for one in range(rng.choice((0, 1, 1, 2)))}
        yield World(hosts, shared, _distinct(rng))


def _distinct(rng: Random) -> list[Query]:
    found = {repr(query): query for query in (_query(rng) for _ in range(QUERIES))}
    return list(found.values())


def _inventory(rng: Random) -> list[Any]:
    total = rng.randint(3, 10)
    step = rng.choice((1, 1, 1, 1, 1, 1, 2))
    least = rng.choice((1, 1, 1, 1, 1, 1, 2))
    most = rng.choice((total, total, total, total, 2))
    return [total, rng.choice((0, 0, 1)), rng.choice((1.0, 1.0, 1.5)), least, most, step]


def _traits(rng: Random, chance: float) -> list[str]:
    return [trait for trait in TRAITS if rng.random() < chance]


def _host(rng: Random) -> dict[str, Any]:
    own = {"VCPU": _inventory(rng), "MEMORY_MB": _inventory(rng)}
    if rng.random() < 0.5:
        own["DISK_GB"] = _inventory(rng)
    places: dict[str, Place] = {"": {"inventories": own, "traits": _traits(rng, 0.3)}}
    nodes = [f"numa{number}" for number in range(rng.choice((0, 1, 2)))]
    for name in nodes:
        inventories = {one: _inventory(rng) for one in ("PCPU", "VCPU") if rng.random() < 0.6}
        places[name] = {"inventories": inventories, "traits": [NODE, *_traits(rng, 0.3)], "parent": ""}
    for number in range(rng.choice((0, 1, 2, 2, 3))):
        inventories = {"VGPU": _inventory(rng)} | ({"CUSTOM_MEM": _inventory(rng)} if rng.random() < 0.4 else {})
        parent = rng.choice(("", *nodes))
        places[f"gpu{number}"] = {"inventories": inventories, "traits": _traits(rng, 0.4), "parent": parent}
    return {"places": places, "aggregates": [one for one in AGGREGATES if rng.random() < 0.4]}


def _shared(rng: Random) -> Place:
    inventories = {"DISK_GB": _inventory(rng)} | ({"CUSTOM_SEAT": _inventory(rng)} if rng.random() < 0.4 else {})
    return {"inventories": inventories, "traits": _traits(rng, 0.4), "aggregates": rng.sample(AGGREGATES, 1)}


def _query(rng: Random) -> Query:
    query: Query = {"resources": {"VCPU": rng.randint(1, 3)}}
    for name, chance in (("MEMORY_MB", 0.3), ("DISK_GB", 0.3), ("CUSTOM_SEAT", 0.08), ("VGPU", 0.2)):
        if rng.random() < chance:
            query["resources"][name] = rng.randint(1, 3)
    _add_traits(rng, query, 0.12)
    if rng.random() < 0.55:
        _add_groups(rng, query)
    if rng.random() < 0.15:
        query["member_of"] = [rng.sample(AGGREGATES, rng.choice((1, 2))) for _ in range(rng.choice((1, 1, 2)))]
    if rng.random() < 0.1:
        query["not_member_of"] = rng.sample(AGGREGATES, rng.choice((1, 2)))
    if rng.random() < 0.1:
        query["in_tree"] = f"h{rng.randrange(HOSTS)}"
    if rng.random() < 0.1:
        query[rng.choice(("root_required", "root_forbidden"))] = [rng.choice(TRAITS)]
    return query


def _add_traits(rng: Random, wanted: dict[str, Any], chance: float) -> None:
    for key in ("required", "forbidden"):
        if rng.random() < chance:
            wanted[key] = [rng.choice(TRAITS)]
    if rng.random() < chance / 2:
        wanted["any_of"] = [sorted(rng.sample(TRAITS, 2))]


def _add_groups(rng: Random, query: Query) -> None:
    groups = []
    for number in range(rng.choice((1, 1, 2, 2, 3))):
        classes = rng.choice((("VGPU",), ("VGPU",), ("PCPU",), ("VCPU",), ("VGPU", "CUSTOM_MEM"), ("MEMORY_MB",)))
        group: dict[str, Any] = {"name": f"g{number}", "resources": {one: rng.randint(1, 2) for one in classes}}
        _add_traits(rng, group, 0.12)
        groups.append(group)
    query["groups"] = groups
    query["group_policy"] = rng.choice(("none", "none", "isolate"))
    if len(groups) > 1 and rng.random() < 0.4:
        if rng.random() < 0.4:
            groups.append({"name": "bare", "resources": {}, "required": [NODE]})
        query["same_subtree"] = [[group["name"] for group in groups]]
