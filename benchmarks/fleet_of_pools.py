"""A made-up fleet of large hosts, two NUMA nodes and eight GPUs each, as fields of the store and as plain objects.

Each node has dedicated CPUs, huge pages and a network card with virtual functions, and four of the GPUs. The usage is
random, so that for each kind of request many hosts have no room. Server groups have members on some hosts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random

from benchmarks.decide import EPOCH, Fleet, make_columns
from redsched.cache.columns import Columns
from redsched.model.validation import split_slot
from redsched.store.codec.keys import Kind

NODES, GPUS = 2, 8
ZONES, RACK = 20, 40
AVX = "HW_CPU_X86_AVX2"
PAGES, SHARES, FUNCTIONS = "CUSTOM_HUGE_PAGES_2048KB", "CUSTOM_GPU_MILLI", "SRIOV_NET_VF"
MODELS = ("CUSTOM_GPU_MODEL_A10", "CUSTOM_GPU_MODEL_T4", "CUSTOM_GPU_MODEL_V100")
APART, SOFT, WIDE = "apart", "soft", "wide"
GROUPS: Mapping[str, tuple[str, int, tuple[str, ...]]] = {
    APART: ("anti-affinity", 1, ("host",)),
    SOFT: ("soft-anti-affinity", 1, ("host",)),
    WIDE: ("anti-affinity", 8, ("host", "zone")),
}
"""Each server group's policy (over hosts), its maximum per host, and the topology by which it is counted."""

Counts = dict[str, dict[str, int]]


def make_fleet(hosts: int, rng: Random) -> Fleet:
    """Return hosts as fields of the store."""
    return {f"h{number:06d}": _host(number, rng) for number in range(hosts)}


def _host(number: int, rng: Random) -> dict[str, str]:
    fields = {"version": "1", "epoch": EPOCH, "status": "enabled", "alive": "1", "zone": f"az{number % ZONES}"}
    fields |= {"label.rack": f"r{number // RACK}", "label.os_type": rng.choice(("linux", "windows"))}
    fields |= {"label.hypervisor_version": f"8.{number % 4}.0", "metric.cpu.percent": str(rng.randrange(100))}
    fields |= {"claims": str(rng.randrange(20)), "starting": str(rng.randrange(3))}
    fields["failures"] = "1" if rng.random() < 0.02 else ""
    if rng.random() < 0.8:
        fields[f"trait.{AVX}"] = "1"
    for slot, capacity in (("VCPU", 512), ("MEMORY_MB", 2_097_152), ("DISK_GB", 16_000)):
        fields |= _slot(slot, capacity, min(rng.randrange(capacity * 10 // 9), capacity - 1), rng.randrange(2))
    model = rng.choice(MODELS)
    for node in range(NODES):
        fields |= _node(node, model, rng)
    return {field: text for field, text in fields.items() if text}


def _node(node: int, model: str, rng: Random) -> dict[str, str]:
    name, card = f"numa{node}", f"nic{node}"
    fields = {f"pool.{name}": "/", f"trait.{name}/HW_NUMA_ROOT": "1", f"pool.{card}": name}
    fields |= _slot(f"{name}/PCPU", 64, rng.choice((0, 16, 32, 48, 60, 64)))
    fields |= _slot(f"{name}/{PAGES}", 65_536, rng.choice((0, 16_384, 49_152, 65_536)))
    fields |= _slot(f"{card}/{FUNCTIONS}", 16, rng.choice((0, 8, 15, 16, 16)))
    for gpu in range(node * GPUS // NODES, (node + 1) * GPUS // NODES):
        fields |= {f"pool.gpu{gpu}": name, f"trait.gpu{gpu}/{model}": "1"}
        fields |= _slot(f"gpu{gpu}/{SHARES}", 1000, rng.choice((0, 300, 700, 1000, 1000)))
    return fields


def _slot(slot: str, capacity: int, claimed: int, external: int = 0) -> dict[str, str]:
    return {f"capacity.{slot}": str(capacity), f"claimed.{slot}": str(claimed), f"external.{slot}": str(external)}


def make_counts(fleet: Fleet, rng: Random) -> dict[str, Counts]:
    """Return the existing members of the groups: by group, by topology, by domain."""
    names = list(fleet)
    apart = {name: 1 for name in names if rng.random() < 0.3}
    soft = {name: rng.randrange(1, 4) for name in names if rng.random() < 0.3}
    # One member in each zone, and another one in half of them, which a spread of at most one then excludes.
    wide = {names[number]: 1 for number in range(min(len(names), ZONES * 3 // 2))}
    zones: dict[str, int] = {}
    for name in wide:
        zones[fleet[name]["zone"]] = zones.get(fleet[name]["zone"], 0) + 1
    return {APART: {"host": apart}, SOFT: {"host": soft}, WIDE: {"host": wide, "zone": zones}}


def make_cell(fleet: Fleet, counts: Mapping[str, Counts]) -> Columns:
    """Return the fleet and its groups as the scheduler has them."""
    columns = make_columns(fleet)
    for name, (policy, most, topologies) in GROUPS.items():
        fields = {"version": "1", "policy": policy, "by": "host", "max_per_host": str(most)}
        fields |= {f"count_by.{number}": by for number, by in enumerate(topologies, 1)}
        for by, held in counts[name].items():
            fields |= {f"count.{by}={domain}": str(count) for domain, count in held.items()}
        columns.declared.put(Kind.SERVER_GROUP, name, fields | {"members": str(sum(counts[name]["host"].values()))})
    return columns


@dataclass(slots=True)
class PlainPool:
    """A pool of a host, with its free amounts; `node` is the NUMA node that it lies in, or is itself."""

    name: str
    node: str
    is_node: bool
    traits: frozenset[str]
    left: dict[str, int]


@dataclass(slots=True)
class PlainHost:
    """The loop's view of a host: parsed numbers, so that it spends its time on deciding and not on parsing.

    `capacity` and `left` are by class, of the host and its pools together; `root` is the free amount of its own.
    """

    name: str
    is_up: bool
    zone: str
    traits: frozenset[str]
    labels: dict[str, str]
    cpu_percent: float
    claims: int
    starting: int
    failures: int
    capacity: dict[str, int]
    left: dict[str, int]
    root: dict[str, int]
    pools: dict[str, PlainPool]

    def take(self, slot: str, amount: int) -> None:
        """Take an amount from a slot; a negative one is returned."""
        pool, resource_class = split_slot(slot)
        (self.pools[pool].left if pool else self.root)[resource_class] -= amount
        self.left[resource_class] -= amount


@dataclass(slots=True)
class PlainFleet:
    """All hosts by name, and the members of groups: by group, topology and domain."""

    hosts: dict[str, PlainHost]
    counts: dict[str, Counts] = field(default_factory=dict)


def make_plain(fleet: Fleet, counts: Mapping[str, Counts]) -> PlainFleet:
    """Return the same fleet as plain objects."""
    copied = {name: {by: dict(held) for by, held in one.items()} for name, one in counts.items()}
    return PlainFleet({name: _plain(name, fields) for name, fields in fleet.items()}, copied)


def _plain(name: str, fields: Mapping[str, str]) -> PlainHost:
    capacity: dict[str, int] = {}
    left: dict[str, int] = {}
    by_pool: dict[str, dict[str, int]] = {"": {}}
    for slot, total in _keyed(fields, "capacity."):
        pool, resource_class = split_slot(slot)
        rest = int(total) - int(fields[f"claimed.{slot}"]) - int(fields[f"external.{slot}"])
        by_pool.setdefault(pool, {})[resource_class] = rest
        capacity[resource_class] = capacity.get(resource_class, 0) + int(total)
        left[resource_class] = left.get(resource_class, 0) + rest
    parents = dict(_keyed(fields, "pool."))
    traits = [split_slot(key) for key, _ in _keyed(fields, "trait.")]
    pools = {pool: _plain_pool(pool, parents, traits, by_pool[pool]) for pool in sorted(parents)}
    return PlainHost(
        name,
        fields["alive"] == "1" and fields["epoch"] == EPOCH and fields["status"] == "enabled",
        fields["zone"],
        frozenset(trait for pool, trait in traits if not pool),
        dict(_keyed(fields, "label.")),
        float(fields["metric.cpu.percent"]),
        int(fields.get("claims", "0")),
        int(fields.get("starting", "0")),
        int(fields.get("failures", "0")),
        capacity,
        left,
        by_pool[""],
        pools,
    )


def _plain_pool(
    pool: str, parents: Mapping[str, str], traits: list[tuple[str, str]], left: dict[str, int]
) -> PlainPool:
    is_node = (pool, "HW_NUMA_ROOT") in traits
    node = pool if is_node else parents[pool]
    return PlainPool(pool, node, is_node, frozenset(trait for of, trait in traits if of == pool), left)


def _keyed(fields: Mapping[str, str], kind: str) -> Iterator[tuple[str, str]]:
    return ((key.removeprefix(kind), text) for key, text in fields.items() if key.startswith(kind))
