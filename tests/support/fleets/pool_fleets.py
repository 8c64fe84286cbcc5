"""Random hosts with pools, and random requests for their pools, over a vocabulary so small that they often just fit."""

from random import Random
from typing import Any

from hypothesis import strategies as st

from redsched.model import CpuPolicy, Group, Numa, NumaAffinity, NumaCell, PciDevices, Request
from tests.support.models.plain_pools import NODE, SOCKETS, PlainHost, PlainPlace, PlainSlot, Unit, is_way, units_of

CLASSES = ("CUSTOM_GPU", "CUSTOM_VF", "MEMORY_MB", "PCPU", "VCPU")
TRAITS = ("CUSTOM_T1", "CUSTOM_T2")
AGGREGATES = ("agg1", "agg2")

seeds = st.integers(0, 2**32 - 1)


def random_slot(rng: Random) -> PlainSlot:
    return PlainSlot(
        capacity := rng.randint(1, 8),
        rng.choice((0, 0, 0, 1, 2)),
        rng.choice((0, 0, 0, 0, 1)),
        rng.choice((1, 1, 1, 1, 2)),
        rng.choice((None, None, None, 2, 4)),
        rng.choice((1, 1, 1, 1, 1, 2)),
        2 if capacity % 3 == 0 else 1,
    )


def random_place(rng: Random, chance: float = 0.5) -> PlainPlace:
    return PlainPlace(
        {name: random_slot(rng) for name in CLASSES if rng.random() < chance},
        frozenset(trait for trait in TRAITS if rng.random() < 0.4),
    )


def random_host(seed: int) -> PlainHost:
    """Return a tree of up to 8 pools, some of them NUMA nodes, often two of them equal, and up to two shared pools."""
    rng = Random(seed)
    places = {"": random_place(rng)}
    for number in range(rng.randint(0, 8)):
        name = rng.choice(("numa", "gpu", "nic")) + str(number)
        above = [one for one in places if not one.startswith("gpu")]
        place = random_place(rng, 0.8 if name.startswith("numa") else 0.5)
        if number and rng.random() < 0.3:
            twin = places[rng.choice(list(places))]
            place = PlainPlace(dict(twin.slots), twin.traits - {NODE, *SOCKETS})
        place.parent = rng.choice(above)
        if name.startswith("numa"):
            place.traits |= {NODE, *socket_of(number)}
        places[name] = place
    shared = {f"s{number}": random_place(rng) for number in range(rng.choice((0, 0, 1, 2)))}
    for place in shared.values():
        place.aggregates = frozenset(one for one in AGGREGATES if rng.random() < 0.3)
        place.slots = place.slots or {"VCPU": random_slot(rng)}
    return PlainHost(places, shared, frozenset(one for one in AGGREGATES if rng.random() < 0.5))


def random_request(seed: int) -> Request:
    """Return a request of some kinds of parts, up to about five units, which covers all of its fields."""
    rng = Random(seed)

    def some(chance: float) -> frozenset[str]:
        return frozenset(trait for trait in TRAITS if rng.random() < chance)

    def amounts(most: int) -> dict[str, int]:
        return {name: rng.randint(1, 3) for name in rng.sample(CLASSES, rng.randint(1, most))}

    kinds = rng.sample(("resources", "groups", "numa", "pci"), rng.randint(1, 3))
    asked: dict[str, Any] = {}
    if "resources" in kinds:
        asked |= {
            "resources": amounts(2),
            "required": some(0.15),
            "forbidden": some(0.1),
            "any_of": (frozenset(TRAITS),) if rng.random() < 0.4 else (),
        }
    if "groups" in kinds:
        asked |= random_groups(rng, some, amounts)
    if "numa" in kinds:
        asked["numa"] = random_numa(rng)
    if "pci" in kinds:
        asked["pci"] = tuple(
            PciDevices(name, rng.choice((1, 1, 2)), random_policy(rng), some(0.2))
            for name in rng.sample(("CUSTOM_GPU", "CUSTOM_VF"), rng.choice((1, 1, 2)))
        )
    return Request(**asked)


def random_groups(rng: Random, some: Any, amounts: Any) -> dict[str, Any]:
    count = rng.randint(1, 3)
    bare = count > 1 and rng.random() < 0.3
    like = amounts(2)
    groups = tuple(
        Group(
            f"g{number}",
            {} if bare and number == 0 else like if rng.random() < 0.4 else amounts(2),
            frozenset({NODE}) if bare and number == 0 and rng.random() < 0.5 else some(0.15),
            some(0.1),
            (frozenset(TRAITS),) if rng.random() < 0.4 else (),
        )
        for number in range(count)
    )
    related = bare or rng.random() < 0.3
    return {
        "groups": groups,
        "group_policy": rng.choice(("none", "isolate")),
        "same_subtree": (frozenset(group.name for group in groups),) if related else (),
    }


def random_numa(rng: Random) -> Numa:
    cells = rng.choice((1, 1, 2, 2, 3))
    policy = rng.choice(list(CpuPolicy))
    sizes = [(rng.randint(1, 3), rng.randint(1, 2)) for _ in range(cells)]
    if rng.random() < 0.5:
        sizes = sizes[:1] * cells
    dedicated = [rng.randint(0, cpus) if policy is CpuPolicy.MIXED else 0 for cpus, _ in sizes]
    return Numa(
        tuple(NumaCell(cpus, memory, some) for (cpus, memory), some in zip(sizes, dedicated, strict=True)),
        policy,
        4 if sum(memory for _, memory in sizes) == 3 else None,
    )


def random_policy(rng: Random) -> NumaAffinity:
    policy = rng.choice((NumaAffinity.REQUIRED, NumaAffinity.PREFERRED, NumaAffinity.LEGACY))
    return NumaAffinity.SOCKET if Random(repr(rng.getstate())).random() < 0.25 else policy


def socket_of(number: int) -> frozenset[str]:
    """Return the socket's trait of a node; none for the seventh."""
    return frozenset(SOCKETS[number % 2 : number % 2 + 1] if number < 6 else ())


pool_hosts = seeds.map(random_host)
pool_requests = seeds.map(random_request)


def planted(seed: int) -> tuple[PlainHost, Request] | None:
    """Return a host that one assignment of a request just fits, with decoys beside it; too large for brute force.

    None if no assignment was found.
    """
    rng = Random(seed)
    request = large_request(rng)
    units = units_of(request)
    for _ in range(60):
        host = bare_host(rng)
        places = tuple(_planted_place(rng, host, unit) for unit in units)
        for unit, place in zip(units, places, strict=True):
            for name, amount in unit.takes:
                host.places[place].slots.setdefault(name, PlainSlot(0)).capacity += amount
        sums = {
            f"{place}/{name}" if place else name: slot.capacity
            for place, one in host.places.items()
            for name, slot in one.slots.items()
        }
        if is_way(host, request, units, places, sums):
            _add_decoys(rng, host)
            return host, request
    return None


def bare_host(rng: Random) -> PlainHost:
    """Return NUMA nodes with pools in and beside them, without amounts; some are nested deeper."""
    places = {"": PlainPlace(traits=frozenset(TRAITS[:1]) if rng.random() < 0.3 else frozenset())}
    nodes = [f"numa{number}" for number in range(rng.randint(2, 5))]
    places |= {name: PlainPlace(traits=frozenset({NODE, *socket_of(number)})) for number, name in enumerate(nodes)}
    for number in range(rng.randint(2, 8)):
        traits = frozenset(trait for trait in TRAITS if rng.random() < 0.3)
        places[f"gpu{number}"] = PlainPlace(traits=traits, parent=rng.choice(("", *nodes, *nodes, *list(places)[-1:])))
    return PlainHost(places)


def large_request(rng: Random) -> Request:
    """Return several groups, cells and devices that compete for few classes."""
    kinds = rng.choice((("groups",), ("groups",), ("numa",), ("groups", "numa"), ("resources", "groups", "numa")))
    names, asked = CLASSES[: rng.randint(1, 3)], dict[str, Any]()
    if "groups" in kinds:
        groups = [Group(f"g{n}", {rng.choice(names): rng.randint(1, 5)}) for n in range(rng.randint(2, 6))]
        if related := rng.random() < 0.4:
            groups.append(Group("bare", {}, frozenset({NODE}) if rng.random() < 0.5 else frozenset()))
        asked["groups"] = tuple(groups)
        asked["group_policy"] = rng.choice(("none", "isolate"))
        asked["same_subtree"] = (frozenset({"g0", "g1", "bare"}),) if related else ()
    if "numa" in kinds:
        asked["numa"] = random_numa(rng)
        policy = random_policy(rng)
        asked["pci"] = tuple(PciDevices(name, rng.randint(1, 3), policy) for name in names[:2])
    if "resources" in kinds:
        asked["resources"] = {name: rng.randint(1, 4) for name in CLASSES if rng.random() < 0.6} or {"VCPU": 1}
        asked["required"] = frozenset(TRAITS[:1])
    return Request(**asked)


def _planted_place(rng: Random, host: PlainHost, unit: Unit) -> str:
    nodes = [name for name in host.places if name.startswith("numa")]
    return rng.choice(nodes if unit.kind == "cell" else list(host.places))


def _add_decoys(rng: Random, host: PlainHost) -> None:
    """Return capacity that hardly helps, and equal capacities."""
    used = [slot for place in host.places.values() for slot in place.slots.values()]
    for place in host.places.values():
        for name in CLASSES[:3]:
            if name not in place.slots and rng.random() < 0.3:
                place.slots[name] = PlainSlot(rng.choice((0, 1, rng.choice(used).capacity)))
