"""Which pools a request's amounts are taken from, and which of several assignments comes first."""

from typing import Any

import pytest

from redsched.decide.filters.pools import numa as numa_rules
from redsched.decide.pools import assignments, is_plain, needs_of
from redsched.model import CpuPolicy, Group, Numa, NumaAffinity, NumaCell, PciDevices, Request
from tests.support.models.plain_pools import NODE, SOCKETS, PlainHost, PlainPlace, PlainSlot

T = frozenset({"CUSTOM_T"})


def place(parent: str = "", traits: frozenset[str] = frozenset(), **amounts: int) -> PlainPlace:
    """Return a pool or root with this much free of each class."""
    return PlainPlace({name: PlainSlot(amount) for name, amount in amounts.items()}, traits, parent)


def node(socket: int | None = None, **amounts: int) -> PlainPlace:
    return place("", frozenset({NODE} if socket is None else {NODE, SOCKETS[socket]}), **amounts)


def host(**places: PlainPlace) -> PlainHost:
    """Return a host with these pools; `root` is its root."""
    return PlainHost({"": place()} | {"" if name == "root" else name: one for name, one in places.items()})


def ways(of: PlainHost, request: Request, most: int = 1) -> list[dict[str, int]]:
    columns = of.columns()
    return [dict(one) for one in assignments(columns, columns.row("h1") or 0, needs_of(request), most)]


# Unnumbered resources


def test_resources_come_from_the_root_then_from_the_fullest_pool_then_from_the_emptiest_shared_pool() -> None:
    pools = host(root=place(VCPU=4), p0=place(VCPU=9, DISK_GB=9), p1=place(VCPU=8, DISK_GB=5))
    pools.shared = {"s0": place(MEMORY_MB=5, DISK_GB=99), "s1": place(MEMORY_MB=7)}
    request = Request({"VCPU": 4, "DISK_GB": 5, "MEMORY_MB": 3})
    assert ways(pools, request) == [{"VCPU": 4, "p1/DISK_GB": 5, "pool:s1/MEMORY_MB": 3}]


def test_a_class_is_never_taken_from_two_places() -> None:
    assert ways(host(root=place(VCPU=2), p0=place(VCPU=2)), Request({"VCPU": 3})) == []


def test_a_shared_pool_serves_the_hosts_of_its_aggregates() -> None:
    pools = host()
    pools.shared = {"s0": place(DISK_GB=5)}
    pools.shared["s0"].aggregates = frozenset({"a1", "a2"})
    assert ways(pools, Request({"DISK_GB": 5})) == []
    pools.aggregates = frozenset({"a2", "a3"})
    assert ways(pools, Request({"DISK_GB": 5})) == [{"pool:s0/DISK_GB": 5}]


def test_a_required_trait_may_be_had_from_a_place_that_something_is_taken_from() -> None:
    pools = host(root=place(VCPU=9, DISK_GB=9), p0=place(DISK_GB=9, traits=T))
    assert ways(pools, Request({"VCPU": 1, "DISK_GB": 1}, required=T)) == [{"VCPU": 1, "p0/DISK_GB": 1}]
    assert ways(pools, Request({"VCPU": 1}, required=T)) == []
    assert ways(pools, Request(groups=(Group("g", {"DISK_GB": 1}, T),), required=T)) == []


def test_places_with_a_forbidden_trait_are_not_taken_from() -> None:
    pools = host(p0=place(VCPU=4, traits=T), p1=place(VCPU=9))
    assert ways(pools, Request({"VCPU": 4}, forbidden=T)) == [{"p1/VCPU": 4}]
    pools.places[""].traits = T
    assert ways(pools, Request({"VCPU": 4}, forbidden=T)) == []


def test_where_only_roots_matter_the_amounts_are_those_of_the_request() -> None:
    columns, request = host(root=place(VCPU=4)).columns(), Request({"VCPU": 4})
    assert is_plain(columns, request)
    needs = needs_of(request)
    assert assignments(columns, columns.row("h1") or 0, needs, 2) == [needs.resources]
    assert assignments(columns, columns.row("h1") or 0, needs, 2)[0] is needs.resources


@pytest.mark.parametrize(
    ("pools", "conditions"),
    [
        (host(p0=place(VCPU=1)), {}),
        (host(p0=place(traits=T)), {"required": T}),
        (host(p0=place(traits=T)), {"any_of": (T,)}),
        (PlainHost({"": place()}, {"s0": place(VCPU=1)}), {}),
        (PlainHost({"": place()}, {"s0": place(DISK_GB=1, traits=T)}), {"required": T}),
        (host(), {"pci": (PciDevices("CUSTOM_VF"),)}),
    ],
)
def test_it_is_not_plain_where_another_place_could_matter(pools: PlainHost, conditions: dict[str, Any]) -> None:
    assert not is_plain(pools.columns(), Request({"VCPU": 4}, **conditions))


# Groups


def test_a_group_takes_all_from_one_place_with_its_traits() -> None:
    pools = host(root=place(VCPU=9), p0=place(VCPU=9, DISK_GB=1), p1=place(VCPU=2, DISK_GB=2, traits=T))
    assert ways(pools, Request(groups=(Group("g", {"VCPU": 2, "DISK_GB": 2}),))) == [{"p1/VCPU": 2, "p1/DISK_GB": 2}]
    assert ways(pools, Request(groups=(Group("g", {"VCPU": 2}, forbidden=T),), hosts=frozenset())) == [{"VCPU": 2}]
    assert ways(pools, Request(groups=(Group("g", {"VCPU": 3}, T),))) == []


def test_a_group_takes_from_a_place_with_one_trait_of_each_list() -> None:
    other = frozenset({"CUSTOM_U"})
    pools = host(root=place(VCPU=9), p0=place(VCPU=2, traits=T), p1=place(VCPU=4, traits=T | other))
    assert ways(pools, Request(groups=(Group("g", {"VCPU": 2}, any_of=(T | other,)),))) == [{"p0/VCPU": 2}]
    assert ways(pools, Request(groups=(Group("g", {"VCPU": 2}, any_of=(T, other)),))) == [{"p1/VCPU": 2}]
    assert ways(pools, Request(groups=(Group("g", {"VCPU": 5}, any_of=(T | other,)),))) == []
    pools.places[""].traits = other
    assert ways(pools, Request(groups=(Group("g", {"VCPU": 5}, any_of=(T | other,)),))) == [{"VCPU": 5}]


def test_groups_share_a_pool_unless_they_are_isolated() -> None:
    groups = (Group("a", {"VCPU": 2}), Group("b", {"VCPU": 2}))
    pools = host(p0=place(VCPU=4), p1=place(VCPU=5))
    assert ways(pools, Request(groups=groups)) == [{"p0/VCPU": 4}]
    assert ways(pools, Request(groups=groups, group_policy="isolate")) == [{"p0/VCPU": 2, "p1/VCPU": 2}]
    assert ways(host(p0=place(VCPU=4)), Request(groups=groups, group_policy="isolate")) == []


def test_a_bare_group_holds_the_others_in_one_subtree() -> None:
    pools = host(n0=node(), n1=node(), a0=place("n0", VCPU=1), a1=place("n1", VCPU=1), b1=place("n1", DISK_GB=1))
    groups = (Group("cpu", {"VCPU": 1}), Group("disk", {"DISK_GB": 1}), Group("node", {}, frozenset({NODE})))
    together = Request(groups=groups, same_subtree=(frozenset({"cpu", "disk", "node"}),))
    assert ways(pools, together) == [{"a1/VCPU": 1, "b1/DISK_GB": 1}]
    pools.places["a1"].slots["VCPU"].claimed = 1
    assert ways(pools, together) == []


# Units


def test_each_part_is_in_units_and_the_sum_is_at_most_max_unit() -> None:
    pools = host(p0=place(VCPU=9))
    pools.places["p0"].slots["VCPU"] = PlainSlot(9, least=2, step=2)

    def of(*amounts: int) -> Request:
        return Request(groups=tuple(Group(f"g{number}", {"VCPU": one}) for number, one in enumerate(amounts)))

    assert ways(pools, of(2, 4)) == [{"p0/VCPU": 6}]
    assert ways(pools, of(1, 1)) == ways(pools, of(1, 3)) == []
    assert ways(pools, Request({"VCPU": 2}, groups=(Group("g", {"VCPU": 2}),))) == [{"p0/VCPU": 4}]
    assert ways(pools, Request(pci=(PciDevices("VCPU", 2),))) == []
    pools.places["p0"].slots["VCPU"].most = 4
    assert ways(pools, of(2, 4)) == []
    pools.places["p0"].slots["VCPU"] = PlainSlot(9, least=3)
    assert ways(pools, of(3, 4)) == [{"p0/VCPU": 7}]
    assert ways(pools, of(2, 4)) == []


# NUMA and devices


def numa(*cells: tuple[int, int]) -> Numa:
    return Numa(tuple(NumaCell(*cell) for cell in cells), CpuPolicy.DEDICATED)


def test_each_cell_has_a_node_of_its_own_and_the_fullest_that_fits() -> None:
    nodes = host(n0=node(PCPU=8, MEMORY_MB=8), n1=node(PCPU=4, MEMORY_MB=8), p0=place(PCPU=99, MEMORY_MB=99))
    assert ways(nodes, Request(numa=numa((4, 8)))) == [{"n1/PCPU": 4, "n1/MEMORY_MB": 8}]
    both = {"n0/PCPU": 5, "n0/MEMORY_MB": 2, "n1/PCPU": 4, "n1/MEMORY_MB": 8}
    assert ways(nodes, Request(numa=numa((4, 8), (5, 2)))) == [both]
    assert ways(nodes, Request(numa=numa((1, 1), (1, 1), (1, 1)))) == []


def test_a_cell_lies_in_no_pool_inside_of_a_node() -> None:
    inside = host(n0=node(PCPU=1, MEMORY_MB=1), p0=place("n0", PCPU=9, MEMORY_MB=9))
    assert ways(inside, Request(numa=numa((4, 4)))) == []


NEAR, NOWHERE, FAR = place("n0", CUSTOM_VF=1), place(CUSTOM_VF=1), place("n1", CUSTOM_VF=1)


@pytest.mark.parametrize(
    ("policy", "devices", "taken"),
    [
        (NumaAffinity.REQUIRED, {"p0": FAR, "p1": NOWHERE, "p2": NEAR}, "p2"),
        (NumaAffinity.REQUIRED, {"p0": FAR, "p1": NOWHERE}, None),
        (NumaAffinity.LEGACY, {"p0": FAR, "p1": NOWHERE, "p2": NEAR}, "p2"),
        (NumaAffinity.LEGACY, {"p0": FAR, "p1": NOWHERE}, "p1"),
        (NumaAffinity.LEGACY, {"p0": FAR}, None),
        (NumaAffinity.PREFERRED, {"p0": FAR, "p1": NOWHERE, "p2": NEAR}, "p2"),
        (NumaAffinity.PREFERRED, {"p0": FAR, "p1": NOWHERE}, "p1"),
        (NumaAffinity.PREFERRED, {"p0": FAR}, "p0"),
    ],
)
def test_devices_are_as_near_to_the_cells_as_their_policy_says(
    policy: NumaAffinity, devices: dict[str, PlainPlace], taken: str | None
) -> None:
    pools = host(n0=node(PCPU=4, MEMORY_MB=4), n1=node(PCPU=1, MEMORY_MB=1), **devices)
    found = ways(pools, Request(numa=numa((4, 4)), pci=(PciDevices("CUSTOM_VF", numa_policy=policy),)))
    expected = {"n0/PCPU": 4, "n0/MEMORY_MB": 4, f"{taken}/CUSTOM_VF": 1}
    assert found == ([expected] if taken else [])


@pytest.mark.parametrize("policy", list(NumaAffinity))
def test_cells_lie_where_the_devices_are_that_they_want_near(policy: NumaAffinity) -> None:
    """This holds although the other node would be left with less."""
    pools = host(n0=node(0, PCPU=4, MEMORY_MB=4), n1=node(1, PCPU=9, MEMORY_MB=9), p1=place("n1", CUSTOM_VF=2))
    found = ways(pools, Request(numa=numa((4, 4)), pci=(PciDevices("CUSTOM_VF", 2, policy),)))
    assert found == [{"n1/PCPU": 4, "n1/MEMORY_MB": 4, "p1/CUSTOM_VF": 2}]


def on_socket(*nodes: PlainPlace) -> list[dict[str, int]]:
    """Return the assignment of a guest that fits on n0 only, and of a device of n1 that has to be on its socket."""
    pools = host(n0=nodes[0], n1=nodes[1], p1=place("n1", CUSTOM_VF=1), p=place(CUSTOM_VF=1))
    return ways(pools, Request(numa=numa((4, 4)), pci=(PciDevices("CUSTOM_VF", 1, NumaAffinity.SOCKET),)))


def test_a_device_may_be_in_any_node_of_the_socket_of_a_cell() -> None:
    fitting, small = {"PCPU": 4, "MEMORY_MB": 4}, {"PCPU": 1, "MEMORY_MB": 1}
    expected = {"n0/PCPU": 4, "n0/MEMORY_MB": 4, "p1/CUSTOM_VF": 1}
    assert on_socket(node(0, **fitting), node(0, **small)) == [expected]
    assert on_socket(node(0, **fitting), node(1, **small)) == []
    assert on_socket(node(0, **fitting), node(None, **small)) == []


@pytest.mark.parametrize(
    ("asked", "taken"),
    [
        (Numa((NumaCell(1, 3),)), "n1"),
        (Numa((NumaCell(1, 3),), page_size_kb=4), "n0"),
        (Numa((NumaCell(1, 3),), CpuPolicy.DEDICATED), "n0"),
        (Numa((NumaCell(2, 3, 1),), CpuPolicy.MIXED), "n0"),
        (Numa((NumaCell(1, 5),), CpuPolicy.DEDICATED), None),
    ],
)
def test_pinned_guests_and_those_with_a_page_size_do_not_overcommit_memory(asked: Numa, taken: str | None) -> None:
    """Node n1 is left with less, and has room only by its allocation ratio."""
    pools = host(n0=node(PCPU=9, VCPU=9, MEMORY_MB=9), n1=node(PCPU=2, VCPU=2))
    pools.places["n1"].slots["MEMORY_MB"] = PlainSlot(12, claimed=4, ratio=2)
    pools.places["n0"].slots["MEMORY_MB"] = PlainSlot(20, claimed=6, ratio=2)
    columns = pools.columns()
    [request] = [Request(numa=asked)]
    found = ways(pools, request)
    assert [{slot.partition("/")[0] for slot in one} for one in found] == ([{taken}] if taken else [])
    [rule] = numa_rules(request)
    assert bool(rule.passes(columns, 0)) is bool(taken)


def test_a_refused_guest_is_told_that_it_does_not_overcommit_memory() -> None:
    pools = host(n0=node(PCPU=2, VCPU=2))
    pools.places["n0"].slots["MEMORY_MB"] = PlainSlot(12, claimed=4, ratio=2)
    columns = pools.columns()
    [pinned] = numa_rules(Request(numa=Numa((NumaCell(1, 3),), CpuPolicy.DEDICATED)))
    best = "needs 3 MEMORY_MB and 1 PCPU in one NUMA node, best is n0 with 8 MEMORY_MB and 2 PCPU free"
    real = "of which this guest takes only memory that is not overcommitted: 2 MEMORY_MB"
    assert pinned.detail(columns, 0) == f"{best}, {real}"
    [shared] = numa_rules(Request(numa=Numa((NumaCell(3, 3),))))
    assert "overcommitted" not in shared.detail(columns, 0)


def test_without_cells_every_device_is_near_enough() -> None:
    request = Request(pci=(PciDevices("CUSTOM_VF", numa_policy=NumaAffinity.REQUIRED),))
    assert ways(host(n1=node(), p0=FAR), request) == [{"p0/CUSTOM_VF": 1}]


def test_devices_come_from_the_fullest_pools_with_their_traits() -> None:
    pools = host(p0=place(CUSTOM_VF=4), p1=place(CUSTOM_VF=1), p2=place(CUSTOM_VF=2), p3=place(CUSTOM_VF=1, traits=T))
    assert ways(pools, Request(pci=(PciDevices("CUSTOM_VF", 3),))) == [
        {"p1/CUSTOM_VF": 1, "p2/CUSTOM_VF": 1, "p3/CUSTOM_VF": 1}
    ]
    assert ways(pools, Request(pci=(PciDevices("CUSTOM_VF", 1, required=T),))) == [{"p3/CUSTOM_VF": 1}]
    assert ways(pools, Request(pci=(PciDevices("CUSTOM_VF", 2, required=T),))) == []


# Further assignments


def test_a_second_way_takes_from_other_pools() -> None:
    pools = host(
        n0=node(PCPU=4, MEMORY_MB=4),
        n1=node(PCPU=9, MEMORY_MB=9),
        p0=place("n0", CUSTOM_VF=1),
        p1=place("n1", CUSTOM_VF=1),
    )
    request = Request(numa=numa((4, 4)), pci=(PciDevices("CUSTOM_VF", 1, NumaAffinity.REQUIRED),))
    assert ways(pools, request, 3) == [
        {"n0/PCPU": 4, "n0/MEMORY_MB": 4, "p0/CUSTOM_VF": 1},
        {"n1/PCPU": 4, "n1/MEMORY_MB": 4, "p1/CUSTOM_VF": 1},
    ]


def test_a_second_way_changes_every_pool_that_it_can() -> None:
    groups = (Group("a", {"VCPU": 1}), Group("b", {"DISK_GB": 1}))
    pools = host(p0=place(VCPU=1), p1=place(VCPU=1), q0=place(DISK_GB=1), q1=place(DISK_GB=1))
    assert ways(pools, Request(groups=groups), 2) == [
        {"p0/VCPU": 1, "q0/DISK_GB": 1},
        {"p1/VCPU": 1, "q1/DISK_GB": 1},
    ]


def test_unnumbered_resources_have_a_second_way_where_a_pool_has_them_too() -> None:
    pools = host(root=place(VCPU=4), p0=place(VCPU=4))
    assert ways(pools, Request({"VCPU": 4}), 3) == [{"VCPU": 4}, {"p0/VCPU": 4}]


def test_ways_that_differ_only_by_who_is_who_are_one() -> None:
    request = Request(groups=(Group("a", {"VCPU": 1}), Group("b", {"VCPU": 1})), group_policy="isolate")
    assert ways(host(p0=place(VCPU=1), p1=place(VCPU=1)), request, 5) == [{"p0/VCPU": 1, "p1/VCPU": 1}]


def test_what_lies_on_a_host_now_counts() -> None:
    """No amounts of a host or of a shared pool are cached between calls."""
    pools = host(p0=place(VCPU=4))
    pools.shared = {"s0": place(VCPU=4)}
    columns, needs = pools.columns(), needs_of(Request({"VCPU": 4}))
    row = columns.row("h1") or 0
    assert assignments(columns, row, needs, 1) == [{"p0/VCPU": 4}]
    columns.claimed.set("p0/VCPU", row, 1)
    assert assignments(columns, row, needs, 1) == [{"pool:s0/VCPU": 4}]
    columns.declared.take("s0", "VCPU", 1)
    assert assignments(columns, row, needs, 1) == []


def test_what_a_shared_pool_gains_counts() -> None:
    """Plans that were cached for a pool tree are computed again once operators change a shared pool."""
    pools = host()
    pools.shared = {"s0": place(VCPU=4)}
    columns, needs = pools.columns(), needs_of(Request({"VCPU": 4}, required=T))
    row = columns.row("h1") or 0
    assert assignments(columns, row, needs, 1) == []
    columns.declared.patch("pool", "s0", {"trait.CUSTOM_T": "1"})
    assert assignments(columns, row, needs, 1) == [{"pool:s0/VCPU": 4}]
