"""Equivalents of the parameters of Placement's GET /allocation_candidates: rows of docs/comparison.md."""

from random import Random
from typing import Any

from redsched.cache.columns import Columns
from redsched.decide.decider import Decider
from redsched.model import Group, Request
from redsched.settings import Settings
from tests.support.builders.columns import columns_of

ROOT = {"version": "1", "epoch": "1-a", "status": "enabled", "alive": "1", "zone": "az1", "capacity.VCPU": "8"}
SSD, FAST, NODE = "CUSTOM_SSD", "CUSTOM_FAST", "HW_NUMA_ROOT"


def pool(name: str, parent: str = "/", traits: str = "", **amounts: int) -> dict[str, str]:
    """Return the fields of one pool of a host."""
    fields = {f"pool.{name}": parent} | {f"trait.{name}/{trait}": "1" for trait in traits.split()}
    return fields | {f"capacity.{name}/{resource_class}": str(amount) for resource_class, amount in amounts.items()}


def answers(columns: Columns, **asked: Any) -> dict[str, dict[str, int]]:
    """Return each host on which a request may be placed, with the amounts of its first candidate there."""
    places = Decider(columns, Settings()).decide(Request(**asked), Random(0)).places
    found: dict[str, dict[str, int]] = {}
    for one in (one for place in places for one in place.candidates):
        found.setdefault(one.host, dict(one.amounts))
    return found


def traits(*names: str) -> frozenset[str]:
    return frozenset(names)


def test_resources_may_come_from_different_places_of_one_host_and_each_class_from_one() -> None:
    columns = columns_of(
        split=ROOT | pool("disk0", DISK_GB=40) | pool("disk1", DISK_GB=40),
        whole=ROOT | pool("disk0", DISK_GB=60),
        diskless=ROOT,
    )
    assert answers(columns, resources={"VCPU": 2, "DISK_GB": 40}).keys() == {"split", "whole"}
    assert answers(columns, resources={"VCPU": 2, "DISK_GB": 50}) == {"whole": {"VCPU": 2, "disk0/DISK_GB": 50}}


def test_required_traits_are_had_by_the_places_that_give_something_together() -> None:
    columns = columns_of(
        giving=ROOT | {f"trait.{FAST}": "1"} | pool("disk0", traits=SSD, DISK_GB=40),
        beside=ROOT | {f"trait.{FAST}": "1"} | pool("disk0", DISK_GB=40) | pool("spare", traits=SSD),
    )
    found = answers(columns, resources={"VCPU": 1, "DISK_GB": 9}, required=traits(SSD, FAST))
    assert found == {"giving": {"VCPU": 1, "disk0/DISK_GB": 9}}


def test_places_with_a_forbidden_trait_give_nothing() -> None:
    columns = columns_of(
        both=ROOT | pool("disk0", traits=SSD, DISK_GB=40) | pool("disk1", DISK_GB=60),
        ssd=ROOT | pool("disk0", traits=SSD, DISK_GB=40),
        itself=ROOT | {f"trait.{SSD}": "1"} | pool("disk0", DISK_GB=40),
    )
    assert answers(columns, resources={"DISK_GB": 9}, forbidden=traits(SSD)) == {"both": {"disk1/DISK_GB": 9}}


def test_one_trait_of_each_list_is_enough() -> None:
    columns = columns_of(
        a=ROOT | {"trait.CUSTOM_A": "1", "trait.CUSTOM_C": "1"},
        b=ROOT | {"trait.CUSTOM_B": "1"},
        c=ROOT | {"trait.CUSTOM_C": "1"},
    )
    either = traits("CUSTOM_A", "CUSTOM_B")
    assert answers(columns, resources={"VCPU": 1}, any_of=(either,)).keys() == {"a", "b"}
    assert answers(columns, resources={"VCPU": 1}, any_of=(either, traits("CUSTOM_C"))).keys() == {"a"}
    columns.put("giving", ROOT | pool("disk0", traits="CUSTOM_B", DISK_GB=9))
    columns.put("beside", ROOT | pool("disk0", DISK_GB=9) | pool("spare", traits="CUSTOM_B"))
    assert answers(columns, resources={"DISK_GB": 1}, any_of=(either,)).keys() == {"giving"}


GPUS = columns_of(
    h=ROOT
    | pool("gpu0", traits="CUSTOM_A", VGPU=2, CUSTOM_MEM=10)
    | pool("gpu1", traits="CUSTOM_B CUSTOM_OLD", VGPU=2, CUSTOM_MEM=20)
    | pool("gpu2", traits="CUSTOM_C", VGPU=2, CUSTOM_MEM=5)
)


def test_all_amounts_of_a_group_come_from_one_pool() -> None:
    both = Group("g", {"VGPU": 1, "CUSTOM_MEM": 15})
    assert answers(GPUS, groups=(both,)) == {"h": {"gpu1/VGPU": 1, "gpu1/CUSTOM_MEM": 15}}
    assert answers(GPUS, groups=(Group("g", {"VGPU": 1, "CUSTOM_MEM": 25}),)) == {}


def test_traits_of_a_group_are_those_of_its_pool() -> None:
    def pools(**conditions: Any) -> set[str]:
        found = answers(GPUS, groups=(Group("g", {"VGPU": 2}, **conditions),)).values()
        return {slot for amounts in found for slot in amounts}

    assert pools(required=traits("CUSTOM_B")) == {"gpu1/VGPU"}
    assert pools(forbidden=traits("CUSTOM_A", "CUSTOM_OLD")) == {"gpu2/VGPU"}
    assert pools(any_of=(traits("CUSTOM_B", "CUSTOM_C"),), forbidden=traits("CUSTOM_OLD")) == {"gpu2/VGPU"}
    assert pools(required=traits("CUSTOM_A", "CUSTOM_B")) == set()


def test_a_trait_stands_for_the_aggregate_of_a_pool() -> None:
    """A pool of a host is in no aggregate: a trait stands for that, and `any_of` accepts any of several."""
    columns = columns_of(h=ROOT | pool("pf0", SRIOV_NET_VF=2) | pool("pf1", traits="CUSTOM_PHYSNET_A", SRIOV_NET_VF=4))
    group = Group("net", {"SRIOV_NET_VF": 1}, any_of=(traits("CUSTOM_PHYSNET_A", "CUSTOM_PHYSNET_B"),))
    assert answers(columns, groups=(group,)) == {"h": {"pf1/SRIOV_NET_VF": 1}}


def test_groups_are_isolated_where_that_is_asked_for() -> None:
    columns = columns_of(h=ROOT | pool("gpu0", VGPU=4) | pool("gpu1", VGPU=4))
    pair = (Group("a", {"VGPU": 1}), Group("b", {"VGPU": 1}))
    [shared] = answers(columns, groups=pair, group_policy="none").values()
    [apart] = answers(columns, groups=pair, group_policy="isolate").values()
    assert (list(shared.values()), list(apart.values())) == ([2], [1, 1])
    three = (*pair, Group("c", {"VGPU": 1}))
    assert answers(columns, groups=three, group_policy="isolate") == {}


def test_one_tree_is_one_host() -> None:
    """All groups and resource classes of a request are taken from one host, here the one that it names."""
    columns = columns_of(a=ROOT | pool("gpu0", VGPU=1), b=ROOT | pool("gpu0", VGPU=1))
    asked = {"resources": {"VCPU": 1}, "groups": (Group("g", {"VGPU": 1}),)}
    assert answers(columns, **asked, hosts=frozenset({"b"})) == {"b": {"VCPU": 1, "gpu0/VGPU": 1}}


TREE = (
    ROOT
    | {"trait.CUSTOM_ROOT": "1"}
    | pool("numa0", traits=NODE, PCPU=4)
    | pool("numa1", traits=NODE, PCPU=4)
    | pool("gpu0", "numa1", VGPU=1)
)


def test_groups_lie_in_one_subtree() -> None:
    pair = (Group("cpu", {"PCPU": 2}), Group("gpu", {"VGPU": 1}))
    together = (frozenset({"cpu", "gpu"}),)
    found = answers(columns_of(h=TREE), groups=pair, same_subtree=together)
    assert found == {"h": {"numa1/PCPU": 2, "gpu0/VGPU": 1}}
    full = columns_of(h=TREE | {"claimed.numa1/PCPU": "3"})
    assert answers(full, groups=pair).keys() == {"h"}
    assert answers(full, groups=pair, same_subtree=together) == {}


def test_a_group_without_resources_chooses_what_the_others_lie_in() -> None:
    """It requires two GPUs in one NUMA node, although nothing is taken from the node itself."""
    columns = columns_of(
        near=TREE | pool("gpu1", "numa1", VGPU=1),
        far=TREE | pool("gpu1", "numa0", VGPU=1),
    )
    groups = (Group("a", {"VGPU": 1}), Group("b", {"VGPU": 1}), Group("node", required=traits(NODE)))
    asked = {"groups": groups, "group_policy": "isolate"}
    assert answers(columns, **asked, same_subtree=(frozenset({"a", "b", "node"}),)).keys() == {"near"}
    # With only the node in same_subtree, the GPUs are not restricted to one subtree.
    assert answers(columns, **asked, same_subtree=(frozenset({"node"}),)).keys() == {"near", "far"}


def test_traits_of_the_root_are_asked_for_whatever_gives_the_resources() -> None:
    columns = columns_of(a=TREE, b=TREE | {"trait.CUSTOM_ROOT": ""} | pool("numa0", traits="CUSTOM_ROOT", PCPU=4))
    asked = {"groups": (Group("g", {"PCPU": 1}),)}
    assert answers(columns, **asked, root_required=traits("CUSTOM_ROOT")).keys() == {"a"}
    assert answers(columns, **asked, root_forbidden=traits("CUSTOM_ROOT")).keys() == {"b"}


def test_what_several_hosts_share_is_taken_with_the_host() -> None:
    columns = columns_of(a=ROOT | {"aggregate.san": "1"}, b=ROOT)
    columns.declared.put("pool", "nfs", {"version": "1", "capacity.DISK_GB": "50", "aggregate.san": "1"})
    found = answers(columns, resources={"VCPU": 1, "DISK_GB": 30})
    assert found == {"a": {"VCPU": 1, "pool:nfs/DISK_GB": 30}}
    columns.declared.take("nfs", "DISK_GB", 30)
    assert answers(columns, resources={"VCPU": 1, "DISK_GB": 30}) == {}
