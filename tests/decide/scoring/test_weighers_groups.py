"""Soft affinity, soft anti-affinity and soft spreading: by host, zone and label, and only if they are requested."""

from dataclasses import replace

import pytest

from redsched.cache.columns import Columns
from redsched.decide.scoring import score
from redsched.decide.scoring.weigher import is_absolute
from redsched.model import Request, Spread
from tests.support.builders.columns import columns_of
from tests.support.builders.weighed import raw_of, value_of, weigher


def columns_with(policy: str, by: str = "host") -> Columns:
    columns = columns_of(a={"zone": "z1", "label.rack": "r1"}, b={"zone": "z1", "label.rack": "r2"}, c={"zone": "z2"})
    counts = {"count.host=a": "2", "count.host=c": "1", "count.zone=z1": "2", "count.zone=z2": "1"}
    fields = {"version": "1", "policy": policy, "by": by, "members": "3", "count.label:rack=r1": "2"}
    columns.declared.put("server-group", "g", fields | counts)
    return columns


REQUEST = Request({"VCPU": 1}, server_group="g")


@pytest.mark.parametrize(
    ("by", "members"),
    [
        ("host", {"a": 2.0, "b": 0.0, "c": 1.0}),
        ("zone", {"a": 2.0, "b": 2.0, "c": 1.0}),
        ("label:rack", {"a": 2.0, "b": 0.0, "c": 0.0}),
    ],
)
def test_members_in_the_same_domain_count_for_or_against_a_host(by: str, members: dict[str, float]) -> None:
    assert raw_of(weigher("soft_affinity"), columns_with("soft-affinity", by), REQUEST) == members
    against = raw_of(weigher("soft_anti_affinity"), columns_with("soft-anti-affinity", by), REQUEST)
    assert against == {host: -count for host, count in members.items()}


def test_the_host_with_the_fewest_members_is_the_best_under_soft_anti_affinity() -> None:
    columns = columns_with("soft-anti-affinity")
    assert value_of(weigher("soft_anti_affinity"), columns, REQUEST) == {"a": 0.0, "b": 1.0, "c": 0.5}


@pytest.mark.parametrize("policy", ["affinity", "anti-affinity", "soft-anti-affinity"])
def test_soft_affinity_is_nothing_to_a_group_of_another_policy(policy: str) -> None:
    assert raw_of(weigher("soft_affinity"), columns_with(policy), REQUEST) == {"a": 0.0, "b": 0.0, "c": 0.0}


def test_a_request_without_a_group_or_with_an_unknown_one_is_not_drawn_anywhere() -> None:
    columns = columns_with("soft-affinity")
    for request in (Request({"VCPU": 1}), Request({"VCPU": 1}, server_group="other")):
        assert set(raw_of(weigher("soft_affinity"), columns, request).values()) == {0.0}


@pytest.mark.parametrize("policy", ["soft-affinity", "soft-anti-affinity", "anti-affinity"])
@pytest.mark.parametrize("name", ["soft_affinity", "soft_anti_affinity"])
def test_a_weigher_of_members_is_idle_exactly_under_another_policy_than_its_own(policy: str, name: str) -> None:
    """An idle weigher is not evaluated, so a group with a hard policy does not cause all hosts to be weighed again."""
    columns, one = columns_with(policy), weigher(name)
    assert one.idle(columns, REQUEST) == (name != policy.replace("-", "_"))
    assert is_absolute(columns, REQUEST, {one: 1.0}) == one.idle(columns, REQUEST)
    if one.idle(columns, REQUEST):
        assert not any(raw_of(one, columns, REQUEST).values())


def test_an_idle_weigher_is_not_asked() -> None:
    def never(*_: object) -> float:
        raise AssertionError

    one = replace(weigher("soft_affinity"), raw=never)
    assert score(columns_with("anti-affinity"), REQUEST, {one: 1.0}, slice(None)) == 0.0
    with pytest.raises(AssertionError):
        score(columns_with("soft-affinity"), REQUEST, {one: 1.0}, slice(None))


def test_soft_spreading_counts_the_places_in_each_domain_against_a_host() -> None:
    columns, one = columns_with("soft-affinity"), weigher("soft_spread")
    by_zone = Request({"VCPU": 1}, server_group="g", spread=(Spread("zone", hard=False),))
    assert raw_of(one, columns, by_zone) == {"a": -2.0, "b": -2.0, "c": -1.0}
    assert value_of(one, columns, by_zone) == {"a": 0.0, "b": 0.0, "c": 1.0}
    # c has no rack, and counts as being in the fullest one.
    over_both = Request({"VCPU": 1}, server_group="g", spread=(*by_zone.spread, Spread("label:rack", hard=False)))
    assert raw_of(one, columns, over_both) == {"a": -4.0, "b": -2.0, "c": -3.0}


def test_hard_spreading_is_for_rules_and_not_for_weighing() -> None:
    request = Request({"VCPU": 1}, server_group="g", spread=(Spread("zone"),))
    assert set(raw_of(weigher("soft_spread"), columns_with("soft-affinity"), request).values()) == {0.0}


def test_members_change_with_every_claim_so_nothing_is_kept() -> None:
    assert weigher("soft_affinity").dynamic
    assert weigher("soft_anti_affinity").dynamic
    assert weigher("soft_spread").dynamic
