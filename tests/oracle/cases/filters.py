"""Cases for Nova's filters: for each filter, hosts and requests, every one of which is tried on every host.

A host has the keys `aggregates` (names), `num_instances`, `num_io_ops`, `stats`, `supported`, `hypervisor_version`,
`host_ip`, `ram`, `metrics`, `enabled`, `up`, `members` (of the request's group), `numa` and `pci`; a request `extra`
(extra specs), `image` (properties), `image_id`, `project`, `flavor`, `hints`, `group`, `numa` and `pci`. All are
optional.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from tests.oracle.cases.numa import numa_blocks

Host = dict[str, Any]
Spec = dict[str, Any]

HOSTS, SPECS = 12, 60


@dataclass(frozen=True)
class Block:
    """Hosts and requests for one filter, under one configuration of Nova: `conf` has options by group and name."""

    filter: str
    hosts: list[Host]
    specs: list[Spec]
    aggregates: dict[str, dict[str, str]] = field(default_factory=dict)
    conf: dict[str, Any] = field(default_factory=dict)


def blocks(salt: str = "") -> Iterator[Block]:
    """Yield all blocks, each from a seed of its own, so that a change of one leaves the others as they are.

    Another salt gives other cases.
    """
    for make in MAKERS:
        yield from make(Random(salt + make.__name__))
    for hosts, specs in numa_blocks(salt):
        yield Block("NUMATopologyFilter", hosts, specs)


def distinct(make: Callable[[], dict[str, Any]], count: int) -> list[dict[str, Any]]:
    """Return up to `count` different results, in the order in which they were made first."""
    found: dict[str, dict[str, Any]] = {}
    for _ in range(20 * count):
        one = make()
        found.setdefault(repr(one), one)
        if len(found) == count:
            break
    return list(found.values())


# Conditions

TEXTS = (
    *("5", "5.0", "5.15", "6", "-1", "1e3", "r1", "r2", "Intel Xeon", "Intel", "aes", "vaes", "aes mmx", "vaes mmx"),
    *("['aes', 'mmx']", "true", "gcc12", ">= 5"),
)
LISTS = ("aes,mmx", "r1, 6", "5,r2", "mmx , sse")
WORDS = ("5", "5.0", "6", "r1", "r2", "Intel", "Intel Xeon", "aes", "gcc", "true", "five", "aes mmx", "mmx aes sse")
OPERATORS = (
    *("", "", "= ", "== ", "!= ", ">= ", "<= ", "> ", "< ", "s== ", "s!= ", "s>= ", "s<= ", "s> ", "s< "),
    *("<in> ", "<all-in> ", "<all-in> ", "<or> ", ">=", "s=="),
)
RARE = (
    *("<all-in> aes mmx", "<all-in> aes", "<all-in> mmx sse", "<all-in> aes mmx"),
    *("<or> r1 <or> 5", "<or> Intel Xeon <or> aes", ">=", "s==", "<or>", "<range-in> [ 5 6 ]", "== nan", "<= inf"),
)


def condition(rng: Random) -> str:
    """Return an extra spec's value."""
    if rng.random() < 0.15:
        return rng.choice(RARE)
    return rng.choice(OPERATORS) + rng.choice(WORDS)


def capabilities(rng: Random) -> Iterator[Block]:
    keys = ("kernel", "flags")

    def host() -> Host:
        return {"stats": {key: rng.choice((*TEXTS, *LISTS)) for key in keys if rng.random() < 0.8}}

    def spec() -> Spec:
        chosen = rng.sample(keys, rng.choice((1, 1, 1, 2)))
        return {"extra": {f"capabilities:{key}": condition(rng) for key in chosen}}

    yield Block("ComputeCapabilitiesFilter", distinct(host, 24), distinct(spec, 120))


def aggregate_extra_specs(rng: Random) -> Iterator[Block]:
    names, keys = [f"a{number}" for number in range(8)], ("tier", "flags")
    aggregates = {
        name: {key: rng.choice((*TEXTS, *LISTS, *LISTS)) for key in keys if rng.random() < 0.7} for name in names
    }

    def spec() -> Spec:
        chosen = rng.sample(keys, rng.choice((1, 1, 1, 2)))
        return {"extra": {f"aggregate_instance_extra_specs:{key}": condition(rng) for key in chosen}}

    yield Block("AggregateInstanceExtraSpecsFilter", in_aggregates(rng, names, 20), distinct(spec, 120), aggregates)


def in_aggregates(rng: Random, names: list[str], count: int = HOSTS, **more: Callable[[], Any]) -> list[Host]:
    """Return hosts in up to three of the aggregates."""

    def host() -> Host:
        mine = sorted(rng.sample(names, rng.choice((0, 1, 1, 2, 3))))
        return {"aggregates": mine} | {key: make() for key, make in more.items()}

    return distinct(host, count)


# Aggregates

IMAGES = {
    "os_type": ("linux", "windows"),
    "hw_machine_type": ("q35", "pc"),
    "hw_cpu_sockets": ("1", "2"),
    "hw_boot_menu": ("True", "False"),
}


def aggregate_images(rng: Random) -> Iterator[Block]:
    names = [f"a{number}" for number in range(6)]

    def lists() -> dict[str, str]:
        chosen = [key for key in IMAGES if rng.random() < 0.5]
        return {key: ", ".join(rng.sample(IMAGES[key], rng.choice((1, 1, 2)))) for key in chosen}

    def spec() -> Spec:
        return {"image": {key: rng.choice(values) for key, values in IMAGES.items() if rng.random() < 0.6}}

    aggregates = {name: lists() | ({"ssd": "true"} if rng.random() < 0.3 else {}) for name in names}
    yield Block("AggregateImagePropertiesIsolation", in_aggregates(rng, names), distinct(spec, SPECS), aggregates)


def tenants(rng: Random) -> Iterator[Block]:
    values = ("blue", "red", "blue, red", "green,blue")
    aggregates: dict[str, dict[str, str]] = {
        "a0": {"filter_tenant_id": "blue"},
        "a1": {"filter_tenant_id": "red, green", "filter_tenant_id2": "yellow"},
        "a2": {"filter_tenant_id_more": rng.choice(values)},
        "a3": {"ssd": "true"},
        "a4": {},
    }
    specs = [{"project": one} for one in ("blue", "red", "green", "yellow", "other")]
    yield Block("AggregateMultiTenancyIsolation", in_aggregates(rng, list(aggregates), 16), specs, aggregates)


def flavors(rng: Random) -> Iterator[Block]:
    aggregates = {
        "a0": {"instance_type": "m1.small"},
        "a1": {"instance_type": "m1.large, m1.huge"},
        "a2": {"instance_type": "m1.huge,m1.tiny"},
        "a3": {"ssd": "true"},
    }
    specs = [{"flavor": one} for one in ("m1.small", "m1.large", "m1.huge", "m1.tiny", "m1.other")]
    yield Block("AggregateTypeAffinityFilter", in_aggregates(rng, list(aggregates), 16), specs, aggregates)


def isolated(rng: Random) -> Iterator[Block]:
    hosts: list[Host] = [{"aggregates": ["isolated"]}, {}, {"aggregates": ["other"]}]
    specs: list[Spec] = [{"image_id": one} for one in ("i1", "i2", "i3")] + [{}]
    for restricts in (True, False):
        conf = {"isolated_images": ["i1", "i2"], "restrict_isolated_hosts_to_isolated_images": restricts}
        rng.shuffle(hosts)
        yield Block("IsolatedHostsFilter", list(hosts), specs, {"isolated": {}, "other": {}}, conf)


# Numbers

NUMBERS = ("3", "5", "5", "8", "0", "-1", "many", "1.5", " 4 ")


def counts(rng: Random) -> Iterator[Block]:
    for name, key, option in (
        ("NumInstancesFilter", "num_instances", "max_instances_per_host"),
        ("IoOpsFilter", "num_io_ops", "max_io_ops_per_host"),
    ):
        plain: list[Host] = [{key: number} for number in (*range(13), 19, 20, 21, 50)]
        for setting in (1, 2, 5, 10, 20):
            yield Block(name, plain, [{}], conf={option: setting})
        names = [f"a{number}" for number in range(len(NUMBERS) + 1)]
        aggregates = {name: {option: number} for name, number in zip(names, NUMBERS, strict=False)}
        aggregates[names[-1]] = {"ssd": "true"}
        hosts = in_aggregates(rng, names, 120, **{key: lambda: rng.choice((0, 2, 3, 4, 5, 7, 9))})
        yield Block(f"Aggregate{name}", hosts, [{}], aggregates, {option: 6})


def metrics(rng: Random) -> Iterator[Block]:
    names = ("cpu.frequency", "cpu.user.time", "cpu.idle.time")
    hosts = distinct(lambda: {"metrics": {one: rng.randrange(9) for one in names if rng.random() < 0.6}}, 24)
    for setting in (["cpu.frequency=1.0"], ["cpu.frequency=1.0", "cpu.user.time=-2.0"], ["cpu.idle.time=0.0"], []):
        yield Block("MetricsFilter", hosts, [{}], conf={"weight_setting": setting})


# Images

SUPPORTED = (
    *(["x86_64", "kvm", "hvm"], ["i686", "kvm", "hvm"], ["i686", "lxc", "exe"], ["aarch64", "kvm", "hvm"]),
    *(["x86_64", "qemu", "hvm"], ["x86_64", "xen", "xen"]),
)
IMAGE = {
    "hw_architecture": ("x86_64", "i686", "aarch64"),
    "img_hv_type": ("kvm", "lxc", "qemu", "xen"),
    "hw_vm_mode": ("hvm", "exe", "xen"),
    "img_hv_requested_version": (">=6.0", "<8.0", "==6.2.0", "!=6.2.0", ">6.2", "<=8.0.0"),
}


def images(rng: Random) -> Iterator[Block]:
    def host() -> Host:
        chosen = rng.sample(SUPPORTED, rng.choice((0, 1, 2, 2, 3)))
        return {"supported": chosen, "hypervisor_version": rng.choice((6002000, 6000000, 8000000, 8002000, 0))}

    def spec() -> Spec:
        return {"image": {key: rng.choice(values) for key, values in IMAGE.items() if rng.random() < 0.5}}

    yield Block("ImagePropertiesFilter", distinct(host, 20), distinct(spec, 90))


# Groups, hints, queries


def groups(rng: Random) -> Iterator[Block]:
    hosts: list[Host] = [{"members": number} for number in (0, 1, 2, 3, 0)]
    alone: list[Host] = [{"members": 0}, {"members": 0}]
    together: list[Host] = [{"members": 0}, {"members": 2}, {"members": 0}]
    anti: list[Spec] = [{"group": {"policy": "anti-affinity", "max": one}} for one in (1, 2, 3, 4)]
    others: list[Spec] = [{}, {"group": {"policy": "affinity", "max": 1}}]
    soft: list[Spec] = [{"group": {"policy": f"soft-{one}", "max": 1}} for one in ("affinity", "anti-affinity")]
    rng.shuffle(hosts)
    for some in (hosts, alone, together):
        yield Block("ServerGroupAntiAffinityFilter", some, [*anti, {}, *soft])
        yield Block("ServerGroupAffinityFilter", some, [*others, *soft])


def networks(rng: Random) -> Iterator[Block]:
    addresses = ("10.0.0.7", "10.0.0.200", "10.0.1.7", "10.1.0.1", "192.168.0.1", "fd00::7", "fd00::1:7")
    hosts: list[Host] = [{"host_ip": one} for one in addresses]
    near = [{"build_near_host_ip": one} for one in ("10.0.0.9", "10.0.1.1", "fd00::9")]
    sized = [
        {"build_near_host_ip": one, "cidr": size}
        for one in ("10.0.0.9", "192.168.0.77")
        for size in ("/8", "/16", "/25", "/32", "24")
    ]
    v6 = [{"build_near_host_ip": "fd00::9", "cidr": size} for size in ("/64", "/112", "/128")]
    specs: list[Spec] = [{"hints": one} for one in (*near, *sized, *v6)] + [{}]
    rng.shuffle(specs)
    yield Block("SimpleCIDRAffinityFilter", hosts, specs)


VARIABLES = {"$free_ram_mb": (0, 512, 1024, 2048), "$num_instances": (0, 2, 5), "$num_io_ops": (0, 1)}
TEXT_VARIABLES = {"$stats.rack": ("r1", "r2", "r3")}


def query(rng: Random, depth: int = 2) -> list[Any]:
    """Return a JsonFilter query; comparisons only at depth 0."""
    if depth and rng.random() < 0.6:
        operator = rng.choice(("and", "or", "not"))
        parts = rng.choice((1, 1, 2)) if operator == "not" else rng.choice((1, 2, 3))
        return [operator, *(query(rng, depth - 1) for _ in range(parts))]
    if rng.random() < 0.3:
        variable, texts = "$stats.rack", TEXT_VARIABLES["$stats.rack"]
        return [rng.choice(("=", "in", "<", ">=")), variable, *rng.sample(texts, rng.choice((1, 1, 2)))]
    variable = rng.choice(list(VARIABLES))
    operator = rng.choice(("=", "<", ">", "<=", ">=", "in"))
    return [operator, variable, *rng.sample(VARIABLES[variable], rng.choice((1, 1, 2)))]


def queries(rng: Random) -> Iterator[Block]:
    def host() -> Host:
        return {
            "ram": [4096, 4096 - rng.choice(VARIABLES["$free_ram_mb"]), 1.0],
            "num_instances": rng.choice(VARIABLES["$num_instances"]),
            "num_io_ops": rng.choice(VARIABLES["$num_io_ops"]),
        } | ({"stats": {"rack": rng.choice(("r1", "r2"))}} if rng.random() < 0.8 else {})

    yield Block("JsonFilter", distinct(host, 16), distinct(lambda: {"hints": {"query": query(rng)}}, 150))


def services(_rng: Random) -> Iterator[Block]:
    hosts: list[Host] = [{"enabled": enabled, "up": up} for enabled in (True, False) for up in (True, False)]
    yield Block("ComputeFilter", hosts, [{}])


def devices(rng: Random) -> Iterator[Block]:
    products = ("1572", "10ed")

    def host() -> Host:
        return {"pci": [[rng.choice(products), rng.randrange(4), None] for _ in range(rng.randrange(4))]}

    def spec() -> Spec:
        chosen = rng.sample(products, rng.choice((1, 1, 2)))
        return {"pci": [[one, rng.randrange(1, 5), "legacy"] for one in chosen]}

    yield Block("PciPassthroughFilter", distinct(host, 20), distinct(spec, 20))


MAKERS: tuple[Callable[[Random], Iterator[Block]], ...] = (
    *(capabilities, aggregate_extra_specs, aggregate_images, tenants, flavors, isolated, counts, metrics, images),
    *(groups, networks, queries, services, devices),
)
