"""Which host is tried first at the default settings: one of those that are as good as the best."""

from collections import Counter
from random import Random

import pytest

from redsched.cache.columns import Columns
from redsched.decide.decider import Decider
from redsched.model import Request, Spread
from redsched.settings import Settings
from tests.support.builders.columns import columns_of

UP = {"version": "1", "epoch": "1-a", "status": "enabled", "alive": "1"}
MANY = range(100)
"""Seeds: with four hosts to choose from, all of these would hardly choose the same by chance."""


def fleet(*claimed: int, capacity: int = 50) -> dict[str, dict[str, str]]:
    """Return hosts h0, h1, ... with this much VCPU claimed."""
    return {
        f"h{number}": UP | {"capacity.VCPU": str(capacity), "claimed.VCPU": str(taken)}
        for number, taken in enumerate(claimed)
    }


def firsts(columns: Columns, request: Request, settings: Settings | None = None) -> Counter[str]:
    """Return how often each host is the first one."""
    decider = Decider(columns, settings or Settings())
    return Counter(decider.decide(request, Random(seed)).places[0].chosen.host for seed in MANY)


def place_one_by_one(columns: Columns, request: Request, count: int, seed: int) -> Counter[str]:
    """Decide on requests of a server group one after the other, and return how many members each host gets."""
    decider, rng, members = Decider(columns, Settings()), Random(seed), Counter[str]()
    for placed in range(1, count + 1):
        host = decider.decide(request, rng).places[0].chosen.host
        members[host] += 1
        row = columns.row(host)
        assert row is not None
        claimed = request.resources["VCPU"] + columns.claimed["VCPU"].item(row)
        columns.patch(host, {"version": str(placed + 1), "claimed.VCPU": str(claimed), "claims": str(members[host])})
        fields = {"version": str(placed + 1), "members": str(placed), f"count.host={host}": str(members[host])}
        columns.declared.patch("server-group", request.server_group, fields)
    return members


def with_group(policy: str, count: int) -> Columns:
    """Return equal hosts, and a server group of this policy without members."""
    columns = columns_of(**fleet(*[0] * count))
    fields = {"version": "1", "policy": policy, "by": "host", "max_per_host": "1", "members": "0"}
    columns.declared.put("server-group", "g", fields)
    return columns


@pytest.mark.parametrize("policy", ["spread", "pack", "nova"])
def test_a_host_with_the_property_that_is_asked_for_comes_first(policy: str) -> None:
    hosts = fleet(*[0] * 6)
    hosts["h4"] |= {"label.os_distro": "debian"}
    request = Request({"VCPU": 1}, policy=policy, properties={"os_distro": "debian"}, weights={"image_props": 100.0})
    assert firsts(columns_of(**hosts), request) == {"h4": len(MANY)}


def test_a_weight_of_the_settings_holds_as_one_of_the_request_does() -> None:
    hosts = fleet(*[0] * 6)
    hosts["h4"] |= {"label.os_distro": "debian"}
    settings = Settings(weights={"image_props": 0.01})
    assert firsts(columns_of(**hosts), Request({"VCPU": 1}, properties={"os_distro": "debian"}), settings) == {
        "h4": len(MANY)
    }


@pytest.mark.parametrize("seed", range(10))
def test_members_of_a_soft_affinity_group_share_a_host(seed: int) -> None:
    request = Request({"VCPU": 2}, server_group="g")
    assert len(place_one_by_one(with_group("soft-affinity", 12), request, 12, seed)) == 1


@pytest.mark.parametrize("seed", range(10))
def test_members_of_a_soft_anti_affinity_group_have_a_host_each(seed: int) -> None:
    request = Request({"VCPU": 2}, server_group="g")
    assert len(place_one_by_one(with_group("soft-anti-affinity", 12), request, 12, seed)) == 12


@pytest.mark.parametrize(("policy", "hosts"), [("soft-affinity", 1), ("soft-anti-affinity", 12)])
def test_so_it_is_with_all_members_in_one_call(policy: str, hosts: int) -> None:
    for seed in range(10):
        decision = Decider(with_group(policy, 12), Settings()).decide(
            Request({"VCPU": 2}, server_group="g", count=12), Random(seed)
        )
        assert len({one.chosen.host for one in decision.places}) == hosts


@pytest.mark.parametrize("seed", range(10))
def test_a_soft_spread_over_zones_is_even(seed: int) -> None:
    hosts = fleet(*[0] * 9)
    for number, one in enumerate(hosts.values()):
        one["zone"] = f"az{number % 3}"
    request = Request({"VCPU": 2}, count=6, spread=(Spread("zone", hard=False),))
    columns = columns_of(**hosts)
    decision = Decider(columns, Settings()).decide(request, Random(seed))
    zones = Counter(columns.domain("zone", columns.row(one.chosen.host) or 0) for one in decision.places)
    assert set(zones.values()) == {2}


@pytest.mark.parametrize("policy", ["pack", "best_fit", "dot_product"])
def test_packing_takes_the_clearly_fullest_host(policy: str) -> None:
    settings = Settings(policies={"best_fit": {"best_fit": 1.0}, "dot_product": {"dot_product": 1.0}})
    columns = columns_of(**fleet(9, 13, 17, 21, 25))
    assert set(firsts(columns, Request({"VCPU": 1}, policy=policy), settings)) == (
        {"h0"} if "dot" in policy else {"h4"}
    )


def test_spreading_takes_the_clearly_emptiest_host() -> None:
    assert set(firsts(columns_of(**fleet(9, 13, 17, 21, 25)), Request({"VCPU": 1}))) == {"h0"}


def test_hosts_that_differ_little_are_chosen_at_random() -> None:
    """So that schedulers that decide at the same time do not all try the same host."""
    columns = columns_of(**fleet(25, 26, 25, 26, 25, 26))
    for policy in ("spread", "pack"):
        assert len(firsts(columns, Request({"VCPU": 1}, policy=policy))) == 4


def test_an_aggregate_may_weigh_a_preference_more() -> None:
    hosts = fleet(*[0] * 5)
    for number, one in enumerate(hosts.values()):
        one["label.os_distro"] = "debian" if number else "alpine"
    hosts["h2"] |= {"aggregate.fast": "1"}
    columns = columns_of(**hosts)
    columns.declared.put("aggregate", "fast", {"version": "1", "meta.image_props_weight_multiplier": "1.01"})
    request = Request({"VCPU": 1}, properties={"os_distro": "debian"})
    settings = Settings(weights={"image_props": 1.0})
    assert firsts(columns, request, settings) == {"h2": len(MANY)}
