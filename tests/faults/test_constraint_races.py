"""Schedulers in separate processes race under constraints, and no rule is broken at any instant.

During the race the test reads the whole cell as often as it can, in one script call each time, and checks every
instant by plain counting (tests/support/models/instant_rules.py). In the rush nothing is released, so amounts that are
free afterwards were free all the time, and a refusal of a request that still fits was false.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, product

import pytest

from redsched.model import (
    CpuPolicy,
    GangMember,
    Group,
    GroupPolicy,
    HostReport,
    Inventory,
    Numa,
    NumaCell,
    Pool,
    Relation,
    RelationType,
    Request,
    ServerGroup,
    SharedPool,
    Spread,
)
from redsched.settings import Settings
from tests.support.models.instant_rules import (
    are_related,
    at_most,
    claims_at_most,
    gangs_hold,
    in_one,
    level,
    member_of_place,
    members_in,
)
from tests.support.models.instants import Instant
from tests.support.processes.constraint_racers import Declared, Plan, raced
from tests.support.processes.racers import Racers
from tests.support.profiles import is_long

ROUNDS = 5 if is_long() else 1
TURNS = 8 if is_long() else 4
HUGE = "CUSTOM_HUGE_PAGES_2048KB"
PAGE_MB = 2

pytestmark = [pytest.mark.usefixtures("clean_store"), pytest.mark.parametrize("round_", range(ROUNDS))]


def in_zones(zones: str, vcpu: int, pools: dict[str, Pool] | None = None) -> list[HostReport]:
    """Return hosts h0, h1 ...; each letter of `zones` is the zone of one host."""
    return [
        HostReport(f"h{number}", {"VCPU": Inventory(vcpu)}, zone=zone, lease_s=3600, pools=pools or {})
        for number, zone in enumerate(zones)
    ]


def in_group(name: str, spread: tuple[Spread, ...] = ()) -> dict[str, Request]:
    return {"one": Request({"VCPU": 1}, server_group=name, spread=spread)}


@pytest.mark.parametrize("most", [1, 2])
async def test_members_of_an_anti_affinity_group_keep_apart(url: str, race: Racers, most: int, round_: int) -> None:
    """Eight hosts get exactly this many members each, all other requests are refused, and none needs a second call.

    A call names all eight hosts, so even a process that is behind lists a host with room, if there is one.
    """
    group = ServerGroup("web", GroupPolicy.ANTI_AFFINITY, max_per_host=most)
    plan = Plan(url, in_group("web"), each=4, turns=TURNS)
    total, still = await raced(race, plan, in_zones("ab" * 4, 8), [at_most("web", "host", most)], [group])
    assert set(members_in(still, "web", "host").values()) == {most}
    assert len(total.placed) == 8 * most
    assert sum(effort.retries for effort in total.efforts) == 0
    assert sum(effort.calls for effort in total.efforts) <= len(total.efforts)


async def test_members_find_the_last_hosts_of_more_than_a_call_can_name(url: str, race: Racers, round_: int) -> None:
    """A call names eight of 24 hosts; if other requests have taken all eight, the scheduler decides again.

    The next call names none of these eight, so a request makes at most three calls.
    """
    hosts, named = 24, Settings().candidates
    group = ServerGroup("web", GroupPolicy.ANTI_AFFINITY)
    plan = Plan(url, in_group("web"), each=5, turns=TURNS)
    total, still = await raced(race, plan, in_zones("abc" * (hosts // 3), 8), [at_most("web", "host", 1)], [group])
    assert len(total.placed) == len(members_in(still, "web", "host")) == hosts
    assert max(effort.calls for effort in total.efforts) <= hosts // named


async def test_members_of_an_anti_affinity_group_keep_apart_by_zone(url: str, race: Racers, round_: int) -> None:
    group = ServerGroup("web", GroupPolicy.ANTI_AFFINITY, by="zone", max_per_host=3)
    plan = Plan(url, in_group("web"), each=3, turns=TURNS)
    _, still = await raced(race, plan, in_zones("abcd" * 2, 8), [at_most("web", "zone", 3)], [group])
    assert members_in(still, "web", "zone") == dict.fromkeys("abcd", 3)


@pytest.mark.parametrize(("by", "room"), [("host", 4), ("zone", 12)])
async def test_members_of_an_affinity_group_stay_together(
    url: str, race: Racers, by: str, room: int, round_: int
) -> None:
    """The first member determines the host or zone, which is filled completely; no member is placed elsewhere."""
    group = ServerGroup("db", GroupPolicy.AFFINITY, by=by)
    plan = Plan(url, in_group("db"), each=3, turns=TURNS)
    _, still = await raced(race, plan, in_zones("abc" * 3, 4), [in_one("db", by)], [group])
    assert list(members_in(still, "db", by).values()) == [room]


async def test_members_spread_over_zones_stay_level(url: str, race: Racers, round_: int) -> None:
    """No zone exceeds the smallest by more than one member, so once the smallest is full: 17, 17 and 16."""
    group = ServerGroup("cache", GroupPolicy.SOFT_ANTI_AFFINITY)
    plan = Plan(url, in_group("cache", (Spread("zone"),)), each=8)
    _, still = await raced(race, plan, in_zones("aabbc", 16), [level("cache", "zone", 1)], [group])
    assert members_in(still, "cache", "zone") == {"a": 17, "b": 17, "c": 16}


def share(milli: int) -> Request:
    return Request(groups=(Group("gpu", {"CUSTOM_GPU_MILLI": milli}),))


def gpus(count: int) -> dict[str, Pool]:
    return {f"gpu{number}": Pool({"CUSTOM_GPU_MILLI": Inventory(1000)}) for number in range(count)}


def free_of_pools(now: Instant, resource_class: str) -> list[dict[str, int]]:
    """Return the free amount of a class on each host, by pool."""
    prefix, suffix = "capacity.", f"/{resource_class}"
    return [
        {
            name.removeprefix(prefix).removesuffix(suffix): int(capacity) - int(host.get(f"claimed.{name[9:]}", "0"))
            for name, capacity in host.items()
            if name.startswith(prefix) and name.endswith(suffix)
        }
        for host in now.hosts.values()
    ]


async def test_the_last_shares_of_gpus(url: str, race: Racers, round_: int) -> None:
    """Uneven shares of twice the capacity of six GPUs of 1000: no refused share would still fit on a GPU."""
    kinds = {f"s{milli}": share(milli) for milli in (300, 500, 700)}
    plan = Plan(url, kinds, each=1, turns=TURNS)
    total, still = await raced(race, plan, in_zones("ab", 8, gpus(3)))
    largest = max(chain.from_iterable(pools.values() for pools in free_of_pools(still, "CUSTOM_GPU_MILLI")))
    assert total.refused_kinds()
    assert all(int(kind[1:]) > largest for kind in total.refused_kinds())


async def test_no_share_is_refused_while_a_gpu_has_room_for_certain(url: str, race: Racers, round_: int) -> None:
    """16 workers hold at most one half of eight GPUs each: at every request at most 15 of 16 halves are taken."""
    plan = Plan(url, {"half": share(500)}, each=2, turns=2 * TURNS)
    total, _ = await raced(race, plan, in_zones("ab", 8, gpus(4)))
    assert (total.refused, total.later["refused"]) == ([], 0)


def paged(*pages: int) -> Request:
    cells = tuple(NumaCell(1, PAGE_MB * count) for count in pages)
    return Request(numa=Numa(cells, CpuPolicy.DEDICATED, PAGE_MB * 1024))


def pages_as_asked(now: Instant) -> Iterator[str]:
    """Check that each NUMA cell of a claim has all its pages in one node, which no other cell of the claim uses."""
    for claim in now.claims.values():
        pages = sorted(value for name, value in claim.items() if name.endswith(HUGE))
        asked = list(claim["consumer"].partition(".")[0].removeprefix("n").replace("-", ""))
        if pages != asked:
            yield f"{claim['consumer']} holds {claim}"


async def test_the_last_huge_pages(url: str, race: Racers, round_: int) -> None:
    """Nodes of eight pages are not exceeded, and no request is refused whose NUMA cells would still fit."""
    nodes = {f"numa{number}": Pool({"PCPU": Inventory(99), HUGE: Inventory(8)}) for number in range(2)}
    plan = Plan(url, {"n3": paged(3), "n5": paged(5), "n2-2": paged(2, 2)}, each=1, turns=TURNS)
    total, still = await raced(race, plan, in_zones("aab", 8, nodes), [pages_as_asked])
    left = [sorted(pools.values()) for pools in free_of_pools(still, HUGE)]
    fit = {"n3": any(high >= 3 for _, high in left), "n5": any(high >= 5 for _, high in left),
           "n2-2": any(low >= 2 for low, _ in left)}  # fmt: skip
    assert total.refused_kinds()
    assert not [kind for kind in total.refused_kinds() if fit[kind]]


async def test_the_last_of_a_shared_pool(url: str, race: Racers, round_: int) -> None:
    """Licences run out long before the hosts are full: never too many are claimed, and no refusal is false."""
    seats = SharedPool("licences", {"CUSTOM_SEAT": Inventory(30)})
    kinds = {f"l{number}": Request({"VCPU": 1, "CUSTOM_SEAT": number}) for number in (1, 2, 3)}
    plan = Plan(url, kinds, each=2, turns=TURNS)
    total, still = await raced(race, plan, in_zones("abcab", 99), [], [seats])
    left = still.seats_left("licences", "CUSTOM_SEAT")
    assert all(number > left for number in map(int, (kind[1:] for kind in total.refused_kinds())))
    assert total.refused
    assert sum(still.free("VCPU").values()) == 5 * 99 - len(total.placed)


THREE = GangMember("of", Request({"VCPU": 1}, count=3))
SEATED = {"VCPU": 1, "CUSTOM_SEAT": 1}
GANGS = {
    "apart": Request(
        members=(GangMember("db", Request({"VCPU": 3}, count=3)),),
        relations=(Relation(RelationType.APART, ("db",)),),
    ),
    "near": Request(
        members=(GangMember("app", Request(SEATED, count=2)), GangMember("web", Request({"VCPU": 2}, count=2))),
        relations=(
            Relation(RelationType.TOGETHER, ("app",)),
            Relation(RelationType.APART, ("web",)),
            Relation(RelationType.SAME_ZONE, ("app", "web")),
        ),
    ),
    "grouped": Request(
        members=(
            GangMember("of", Request({"VCPU": 1}, count=3, server_group="of")),
            GangMember("db", Request(SEATED, count=2)),
        ),
        relations=(Relation(RelationType.TOGETHER, ("db",)),),
    ),
}


async def test_gangs_that_compete_are_there_whole_or_not_at_all(url: str, race: Racers, round_: int) -> None:
    """Gangs of three to five places, kept apart or together, which compete for seats and for places in a group."""
    declared: list[Declared] = [
        ServerGroup("of", GroupPolicy.ANTI_AFFINITY, max_per_host=2),
        SharedPool("seats", {"CUSTOM_SEAT": Inventory(9)}),
    ]
    plan = Plan(url, GANGS, each=1, turns=TURNS)
    rules = [gangs_hold(GANGS), at_most("of", "host", 2)]
    total, still = await raced(race, plan, in_zones("aabb", 9), rules, declared)
    assert total.refused
    assert not [kind for kind in total.refused_kinds() if has_room(still, GANGS[kind])]


def has_room(now: Instant, request: Request) -> bool:
    """Return whether a gang could be placed somewhere, by trying every assignment."""
    members = {one.name: one.request for one in request.members}
    places = [(members[name], name) for name in member_of_place(request)]
    return any(_fits(now, request, places, hosts) for hosts in product(sorted(now.hosts), repeat=len(places)))


def _fits(now: Instant, request: Request, places: Sequence[tuple[Request, str]], hosts: Sequence[str]) -> bool:
    taken, grouped = dict.fromkeys(hosts, 0), members_in(now, "of", "host")
    for (asked, _), host in zip(places, hosts, strict=True):
        taken[host] += asked.resources["VCPU"]
        grouped[host] += bool(asked.server_group)
    if any(amount > now.free("VCPU")[host] for host, amount in taken.items()) or max(grouped.values()) > 2:
        return False
    if sum(asked.resources.get("CUSTOM_SEAT", 0) for asked, _ in places) > now.seats_left("seats", "CUSTOM_SEAT"):
        return False
    zones = [now.hosts[host]["zone"] for host in hosts]
    return all(
        are_related(
            one.type,
            [host for host, (_, name) in zip(hosts, places, strict=True) if name in one.members],
            [zone for zone, (_, name) in zip(zones, places, strict=True) if name in one.members],
        )
        for one in request.relations
    )


async def test_gangs_that_lose_their_first_hosts_keep_their_relations(url: str, race: Racers, round_: int) -> None:
    """Places that fall back to another candidate still do not share a host, and do not leave the gang's zone."""
    kinds = {
        "apart": Request(members=(THREE,), relations=(Relation(RelationType.APART, ("of",)),)),
        "near": Request(members=(THREE,), relations=(Relation(RelationType.SAME_ZONE, ("of",)),)),
    }
    total, still = await raced(race, Plan(url, kinds, 3, TURNS), in_zones("aabbcc", 5), [gangs_hold(kinds)])
    free = still.free("VCPU")
    by_zone = [sum(left for host, left in free.items() if still.hosts[host]["zone"] == zone) for zone in "abc"]
    assert "apart" not in total.refused_kinds() or sum(left > 0 for left in free.values()) < 3
    assert "near" not in total.refused_kinds() or max(by_zone) < 3


@pytest.mark.parametrize("confirms", [False, True])
async def test_a_host_starts_so_many_at_once(url: str, race: Racers, confirms: bool, round_: int) -> None:
    """A host accepts another claim only after one of its two starting claims is confirmed or released."""
    plan = Plan(url, {"one": Request({"VCPU": 1})}, each=3, turns=TURNS, confirms=confirms)
    rule = claims_at_most(2, ("claimed", "starting"))
    total, _ = await raced(race, plan, in_zones("aabbc", 99), [rule], max_starting_per_host=2)
    assert len(total.placed) == 2 * 5
    assert total.later["placed"]


async def test_a_host_takes_so_many_claims(url: str, race: Racers, round_: int) -> None:
    plan = Plan(url, {"one": Request({"VCPU": 1})}, each=3, turns=TURNS)
    rule = claims_at_most(3, ("claimed", "starting", "active", "ending"))
    total, _ = await raced(race, plan, in_zones("aabbc", 99), [rule], max_claims_per_host=3)
    assert len(total.placed) == 3 * 5
