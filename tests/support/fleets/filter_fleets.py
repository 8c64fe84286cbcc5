"""Random aggregates, labels, pools and metrics around random hosts, and requests that refer to all of them.

As in `fleets`, Hypothesis draws only seeds, and the vocabulary is so small that hosts and requests often match.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from redsched.cache.columns import Columns
from redsched.model import Group, Hints, PciDevices, Request
from tests.support.fleets.random_fleets import NAMES, TRAITS, ZONES, random_host
from tests.support.models.plain_filters import Around, Limits
from tests.support.models.plain_reading import Fleet, columns_from

AGGREGATES = ("a1", "a2", "a3", "a4")
PROJECTS = ("web", "db", "")
LABELS = {
    "rack": ("r1", "r2", ""),
    "kernel": ("5", "5.15", "6.0", "nan", "inf", "new", ""),
    "flags": ("aes,mmx", "['aes', 'sse']", "aes", "mmx , sse", ""),
    "ip": ("10.0.0.7", "10.0.1.7", "192.168.0.1", "fe80::7", "ten", ""),
}
CONDITIONS = (
    *("r1", "r2", "5", "= 5", ">=5.15", "== 5", "!= 5", "> 5", "< 5.15", "<= 5.15", "s== r1", "s!= r1", "s<r2"),
    *("s<= r1", "s> 5", "s>=r1", "<in> r", "<in> 5.", "<or> r1 <or> 5", "<or> aes", "<all-in> aes", "<all-in> aes mmx"),
    *("<like> m*x", "<like> *5*", "<like> r1", "<all-in> r1 6", "<all-in> 6"),
    *("<range-in> [ 5 6 ]", "<range-in> ( 5 6 ]", "<range-in> [ 5 6.0 )"),
)
METADATA = {
    "filter_tenant_id": ("web", "db", "web, db"),
    "filter_tenant_id2": ("db", "nobody"),
    **{f"trait:{trait}": ("required", "forbidden", "perhaps") for trait in TRAITS[:2]},
    **{f"label:{key}": ("required", "forbidden", "perhaps") for key in ("rack", "kernel")},
    "property:os": ("linux", "linux,windows"),
    "property-required:os": ("windows", "linux , windows"),
    "property-forbidden:os": ("bsd, linux",),
    "property-confined:os": ("windows",),
    "instance_type": ("small,large", "large"),
    "property-required:instance_type": ("small",),
    "max_claims_per_host": ("2", "5", "0", "many"),
    "max_instances_per_host": ("1", "3"),
    "max_starting_per_host": ("1", "0"),
    "max_io_ops_per_host": ("2", "none"),
    "tier": ("5", "r1, 6", "gold"),
}


@dataclass(frozen=True)
class World:
    """A fleet and its declared objects. Its repr shows the seeds, because thousands of fields would explain less."""

    size: int
    seed: int
    fleet: Fleet = field(repr=False)
    around: Around = field(repr=False)

    def columns(self) -> Columns:
        """Return columns that hold all of it."""
        columns = columns_from(self.fleet)
        declare(columns, self.around)
        return columns


def declare(columns: Columns, around: Around) -> None:
    """Replace the declared objects of columns."""
    for kind, known in (("aggregate", columns.declared.aggregates), ("pool", columns.declared.pools)):
        for name in list(known):
            columns.declared.remove(kind, name)
    for name, metadata in around.aggregates.items():
        columns.declared.put("aggregate", name, {"version": "1"} | {f"meta.{key}": v for key, v in metadata.items()})
    for name, (traits, aggregates) in around.pools.items():
        fields = {f"trait.{one}": "1" for one in traits} | {f"aggregate.{one}": "1" for one in aggregates}
        columns.declared.put("pool", name, {"version": "1", "capacity.CUSTOM_A": "5"} | fields)


def random_world(size: int, seed: int) -> World:
    """Return hosts by name, and aggregates and shared pools."""
    rng = Random(seed)
    fleet = {name: _host(rng) for name in rng.sample(NAMES, size)}
    return World(size, seed, fleet, random_around(rng.getrandbits(32)))


def random_around(seed: int) -> Around:
    """Return declared objects; sometimes an aggregate with hosts is not declared (yet)."""
    rng = Random(seed)
    few = rng.choice((0, 2, 9))
    return Around(
        {name: _metadata(rng, few) for name in AGGREGATES if rng.random() < 0.9},
        {name: (_some(rng, TRAITS, 0.5), _some(rng, AGGREGATES, 0.5)) for name in ("p1", "p2") if rng.random() < 0.3},
    )


def _host(rng: Random) -> dict[str, str]:
    fields = random_host(rng.getrandbits(32))
    fields |= {f"label.{key}": rng.choice(values) for key, values in LABELS.items()}
    fields |= {f"aggregate.{name}": "1" for name in AGGREGATES if rng.random() < 0.3}
    fields |= {"metric.load": rng.choice(("0.5", "12", "2", "")), "claims": str(rng.randrange(6))}
    fields |= {"starting": str(rng.randrange(3))}
    if rng.random() < 0.5:
        fields |= {"pool.gpu0": "/", "capacity.gpu0/CUSTOM_A": str(rng.randrange(5))}
        fields |= {f"trait.gpu0/{trait}": "1" for trait in TRAITS if rng.random() < 0.3}
    return {field: value for field, value in fields.items() if value}


def _metadata(rng: Random, most: int) -> dict[str, str]:
    return {key: rng.choice(METADATA[key]) for key in rng.sample(sorted(METADATA), rng.randint(0, most))}


def _some(rng: Random, values: tuple[str, ...], chance: float) -> frozenset[str]:
    return frozenset(one for one in values if rng.random() < chance)


def filtered_request(seed: int) -> Request:
    """Return a request that uses each kind of condition at times."""
    rng = Random(seed)

    def sets(values: tuple[str, ...]) -> tuple[frozenset[str], ...]:
        return tuple({one for one in (_some(rng, values, 0.3) for _ in range(rng.choice((0, 0, 1, 2)))) if one})

    return Request(
        resources={"VCPU": 1},
        groups=(Group("g", {"VCPU": 1}, required=_some(rng, TRAITS, 0.1)),),
        pci=(PciDevices("CUSTOM_A", required=_some(rng, TRAITS, 0.1)),),
        required=_some(rng, TRAITS, 0.1),
        forbidden=_some(rng, TRAITS, 0.2),
        any_of=sets(TRAITS),
        root_required=_some(rng, TRAITS, 0.3),
        root_forbidden=_some(rng, TRAITS, 0.1),
        member_of=sets((*AGGREGATES, "unknown")),
        not_member_of=_some(rng, (*AGGREGATES, "unknown"), 0.1),
        aggregate_metadata={"tier": rng.choice(CONDITIONS)} if rng.random() < 0.3 else {},
        labels={
            key: "" if rng.random() < 0.2 else rng.choice(CONDITIONS)
            for key in (*LABELS, "unknown")
            if rng.random() < 0.3
        },
        properties={
            key: rng.choice(values)
            for key, values in (("os", ("linux", "windows", "bsd")), ("instance_type", ("small", "large")))
            if rng.random() < 0.6
        },
        query=random_query(rng, 3) if rng.random() < 0.8 else (),
        hints=rng.choice((Hints(), Hints(build_near_host_ip="10.0.0.1", cidr=rng.choice(("", "/16", "20"))))),
        project=rng.choice(PROJECTS),
    )


def random_limits(seed: int) -> Limits:
    """Return settings of limits."""
    rng = Random(seed)
    return Limits(rng.choice((0, 2, 4)), rng.choice((0, 1, 2)))


# Queries

_NUMBERS: tuple[Callable[[Random], Any], ...] = (
    lambda rng: rng.choice((-1, 0, 1, 2, 5, 5.15, 12.0)),
    lambda rng: f"${rng.choice(('free', 'capacity', 'claimed', 'external'))}.{rng.choice(('VCPU', 'CUSTOM_A'))}",
    lambda rng: rng.choice(("$free.gpu0/CUSTOM_A", "$capacity.DISK_GB", "$claims", "$starting")),
    lambda rng: rng.choice(("$metric.load", "$metric.unknown")),
)
_LABELS: tuple[Callable[[Random], Any], ...] = (lambda rng: f"$label.{rng.choice((*LABELS, 'unknown'))}",)
_TEXTS: tuple[Callable[[Random], Any], ...] = (
    lambda rng: rng.choice(("r1", "r2", "5", "", "h3", "h31", "enabled", *ZONES)),
    lambda rng: rng.choice(("$zone", "$host", "$status")),
)


def random_query(rng: Random, depth: int) -> tuple[Any, ...]:
    """Return a meaningful query: numbers with numbers or labels, strings with strings or labels."""
    if depth and rng.random() < 0.5:
        arguments = (rng.random() < 0.5 if rng.random() < 0.1 else random_query(rng, depth - 1) for _ in range(3))
        return (rng.choice(("and", "or", "not")), *tuple(arguments)[: rng.randint(1, 3)])
    kinds = (*_LABELS, *rng.choice((_NUMBERS, _TEXTS)))
    return (rng.choice(("=", "<", ">", "<=", ">=", "in")), *(rng.choice(kinds)(rng) for _ in range(rng.randint(2, 4))))
