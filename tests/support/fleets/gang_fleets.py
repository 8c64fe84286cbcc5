"""Random tiny fleets and calls for several places, over a vocabulary so small that constraints often apply."""

from random import Random

from redsched.cache.columns import Columns
from redsched.model import GangMember, GroupPolicy, Relation, RelationType, Request, ServerGroup, Spread
from tests.support.models.brute_force import TinyFleet

ZONES = ("az1", "az2", "")
RACKS = ("r1", "r2", "r3", "")
TOPOLOGIES = ("host", "zone", "label:rack")


def random_tiny(rng: Random) -> TinyFleet:
    """Return two to five hosts with a little room, sometimes aggregates, and a server group with a few members."""
    hosts = [f"h{number}" for number in range(rng.randint(2, 5))]
    policy = rng.choice(list(GroupPolicy))
    most = rng.choice((1, 2)) if policy is GroupPolicy.ANTI_AFFINITY else 1
    members = [rng.choice(hosts) for _ in range(rng.choice((0, 0, 1, 2)))]
    return TinyFleet(
        free={host: {"VCPU": rng.randint(0, 5), "MEMORY_MB": rng.randint(1, 6)} for host in hosts},
        zones={host: rng.choices(ZONES, (4, 4, 1))[0] for host in hosts},
        racks={host: rng.choices(RACKS, (3, 3, 3, 1))[0] for host in hosts},
        aggregates={
            name: set(rng.sample(hosts, rng.randint(1, len(hosts)))) for name in ("net1", "net2")[: rng.randint(0, 2)]
        },
        groups={"g1": ServerGroup("g1", policy, rng.choice(TOPOLOGIES), most, ("label:rack",))},
        members={"g1": members},
    )


def random_call(rng: Random, fleet: TinyFleet, mode: str = "all") -> Request:
    """Return a call for two to four places: different members, or one kind of place."""
    if rng.random() < 0.2:
        return _random_request(rng, fleet, rng.randint(2, 4), mode)
    counts = rng.choice(((1, 1), (2, 1), (1, 1, 1), (2, 2), (3, 1), (1, 1, 2), (1, 1, 1, 1), (4,), (3,)))
    members = tuple(GangMember(f"m{at}", _random_request(rng, fleet, count)) for at, count in enumerate(counts))
    relations = tuple(_random_relation(rng, members) for _ in range(rng.choice((0, 1, 1, 2))))
    return Request(members=members, relations=relations, mode=mode)  # type: ignore[arg-type]


def _random_request(rng: Random, fleet: TinyFleet, count: int, mode: str = "all") -> Request:
    hosts = sorted(fleet.free)
    spread = [Spread(by, rng.choice((1, 1, 2)), rng.random() < 0.8) for by in TOPOLOGIES if rng.random() < 0.1]
    return Request(
        {"VCPU": rng.randint(1, 3)} | ({"MEMORY_MB": rng.randint(1, 3)} if rng.random() < 0.5 else {}),
        zones=frozenset(("az1",)) if rng.random() < 0.1 else frozenset(),
        hosts=frozenset(rng.sample(hosts, rng.randint(1, len(hosts)))) if rng.random() < 0.2 else frozenset(),
        server_group="g1" if rng.random() < 0.25 else "",
        spread=tuple(spread),
        policy=rng.choice(("", "spread", "pack")),
        count=count,
        mode=mode,  # type: ignore[arg-type]
    )


def _random_relation(rng: Random, members: tuple[GangMember, ...]) -> Relation:
    names = [one.name for one in members]
    return Relation(rng.choice(list(RelationType)), tuple(rng.sample(names, rng.randint(1, len(names)))))


def columns_of_tiny(fleet: TinyFleet) -> Columns:
    """Return columns of a tiny fleet. Half of each capacity is taken already."""
    columns = Columns(4)
    columns.set_epoch("1-a")
    for host, free in fleet.free.items():
        fields = {"version": "1", "epoch": "1-a", "status": "enabled", "alive": "1"}
        fields |= {f"capacity.{slot}": str(2 * amount + 1) for slot, amount in free.items()}
        fields |= {f"claimed.{slot}": str(amount + 1) for slot, amount in free.items()}
        fields |= {"zone": fleet.zones[host]} if fleet.zones[host] else {}
        fields |= {"label.rack": fleet.racks[host]} if fleet.racks[host] else {}
        fields |= {f"aggregate.{name}": "1" for name, inside in fleet.aggregates.items() if host in inside}
        columns.put(host, fields)
    for name in fleet.aggregates:
        columns.declared.put("aggregate", name, {"version": "1"})
    for name in fleet.groups:
        columns.declared.put("server-group", name, _fields_of_group(fleet, name))
    return columns


def _fields_of_group(fleet: TinyFleet, name: str) -> dict[str, str]:
    group, members = fleet.groups[name], fleet.members[name]
    fields = {"version": "1", "policy": group.policy, "by": group.by, "max_per_host": str(group.max_per_host)}
    fields |= {f"count_by.{number}": by for number, by in enumerate(group.count_by, 1)}
    fields |= {"members": str(len(members))}
    for by in group.topologies():
        for host in members:
            domain = fleet.domain(by, host)
            count = sum(fleet.domain(by, other) == domain for other in members)
            fields |= {f"count.{by}={domain}": str(count)} if domain else {}
    return fields
