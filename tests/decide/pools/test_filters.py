"""The cheap checks of what pools could provide: the hosts that they reject, with which reason and details."""

from collections.abc import Iterator
from typing import Any

import pytest

from redsched.cache.columns import Columns
from redsched.decide.filters.pools import groups, numa, pci
from redsched.decide.filters.resources import resources
from redsched.decide.rules import ALL_ROWS, Rule
from redsched.model import CpuPolicy, Group, Numa, NumaCell, PciDevices, Request
from tests.support.models.plain_pools import NODE, PlainHost, PlainPlace, PlainSlot

T = frozenset({"CUSTOM_T"})


def place(parent: str = "", traits: frozenset[str] = frozenset(), **amounts: int) -> PlainPlace:
    return PlainPlace({name: PlainSlot(amount) for name, amount in amounts.items()}, traits, parent)


HOST = PlainHost(
    {
        "": place(VCPU=2, traits=T),
        "numa0": place(traits=frozenset({NODE}), PCPU=2, MEMORY_MB=9000),
        "numa1": place(traits=frozenset({NODE}), PCPU=3, MEMORY_MB=4096),
        "gpu0": place("numa0", T, CUSTOM_GPU=2, VCPU=5),
        "gpu1": place("numa1", CUSTOM_GPU=1),
    },
    {"s0": place(CUSTOM_SEAT=4)},
)


def rules(request: Request) -> Iterator[Rule]:
    for one in (resources, groups, numa, pci):
        yield from one(request)


def cells(*sizes: tuple[int, int]) -> Numa:
    return Numa(tuple(NumaCell(*size) for size in sizes), CpuPolicy.DEDICATED)


@pytest.mark.parametrize(
    ("asked", "reason", "detail"),
    [
        ({"resources": {"VCPU": 6}}, "VCPU", "needs 6 VCPU, free 2; elsewhere best is gpu0 with 5 VCPU free"),
        (
            {"resources": {"VCPU": 3}, "forbidden": T},
            "VCPU",
            "needs 3 VCPU, free 2; elsewhere best is gpu0 with 5 VCPU free",
        ),
        (
            {"resources": {"CUSTOM_SEAT": 5}},
            "CUSTOM_SEAT",
            "needs 5 CUSTOM_SEAT, free 0; elsewhere best is pool:s0 with 4 CUSTOM_SEAT free",
        ),
        ({"resources": {"DISK_GB": 5}}, "DISK_GB", "needs 5 DISK_GB, free 0"),
        (
            {"groups": (Group("g", {"VCPU": 6}, T),)},
            "group:g",
            "needs 6 VCPU in one pool with CUSTOM_T, best is gpu0 with 5 VCPU free",
        ),
        (
            {"groups": (Group("g", {"CUSTOM_GPU": 2}, forbidden=T),)},
            "group:g",
            "needs 2 CUSTOM_GPU in one pool without CUSTOM_T, best is gpu1 with 1 CUSTOM_GPU free",
        ),
        (
            {
                "groups": (Group("g", {}, frozenset({"CUSTOM_U"})), Group("h", {"VCPU": 1})),
                "same_subtree": ({"g", "h"},),
            },
            "group:g",
            "needs a pool with CUSTOM_U, has none",
        ),
        (
            {
                "groups": (Group("g", any_of=(frozenset({"CUSTOM_U", "CUSTOM_V"}),)), Group("h", {"VCPU": 1})),
                "same_subtree": ({"g", "h"},),
            },
            "group:g",
            "needs a pool with CUSTOM_U or CUSTOM_V, has none",
        ),
        (
            {"numa": cells((4, 8192))},
            "numa",
            "needs 8192 MEMORY_MB and 4 PCPU in one NUMA node, best is numa0 with 9000 MEMORY_MB and 2 PCPU free",
        ),
        (
            {"numa": cells((3, 1024), (1, 1024), (3, 1024))},
            "numa",
            "needs 2 NUMA nodes with 1024 MEMORY_MB and 3 PCPU each, 1 have it, "
            "next best is numa0 with 9000 MEMORY_MB and 2 PCPU free",
        ),
        (
            {"numa": Numa((NumaCell(1, 1),))},
            "numa",
            "needs 1 MEMORY_MB and 1 VCPU in one NUMA node, best is numa0 with 9000 MEMORY_MB and 0 VCPU free",
        ),
        (
            {"pci": (PciDevices("CUSTOM_GPU", 2), PciDevices("CUSTOM_GPU", 2))},
            "pci:CUSTOM_GPU",
            "needs 4 CUSTOM_GPU, free 3",
        ),
        (
            {"pci": (PciDevices("CUSTOM_GPU", 3, required=T),)},
            "pci:CUSTOM_GPU",
            "needs 3 CUSTOM_GPU with CUSTOM_T, free 2",
        ),
    ],
)
def test_a_host_with_too_little_is_refused_with_what_there_is(asked: dict[str, Any], reason: str, detail: str) -> None:
    columns = HOST.columns()
    row = columns.row("h1") or 0
    failed = [rule for rule in rules(Request(**asked)) if not rule.passes(columns, row)]
    assert [(rule.reason, rule.detail(columns, row), rule.room) for rule in failed] == [
        (reason, detail, "CUSTOM_U" not in detail)
    ]
    assert not failed[0].passes(columns, ALL_ROWS)[row]


def test_a_host_with_enough_passes_all() -> None:
    request = Request(
        {"VCPU": 5, "CUSTOM_SEAT": 4},
        groups=(Group("g", {"VCPU": 5}, T), Group("h", {}, T)),
        same_subtree=(frozenset({"g", "h"}),),
        numa=cells((2, 4096), (2, 4096)),
        pci=(PciDevices("CUSTOM_GPU", 2, required=T), PciDevices("CUSTOM_GPU")),
    )
    columns = HOST.columns()
    found = list(rules(request))
    assert [rule.reason for rule in found] == ["CUSTOM_SEAT", "VCPU", "group:g", "group:h", "numa", "pci:CUSTOM_GPU"]
    assert all(rule.passes(columns, columns.row("h1") or 0) for rule in found)


def test_units_are_tested_of_each_part() -> None:
    of = PlainHost({"": PlainPlace({"VCPU": PlainSlot(9, step=4)})})
    columns, group = of.columns(), Group("g", {"VCPU": 2})

    def passes(request: Request) -> list[bool]:
        return [bool(rule.passes(columns, columns.row("h1") or 0)) for rule in rules(request)]

    assert passes(Request({"VCPU": 2})) == [False]
    assert passes(Request(groups=(group,))) == [False]
    assert passes(Request({"VCPU": 2}, groups=(group,))) == [False, False]
    assert passes(Request({"VCPU": 4}, groups=(group, Group("h", {"VCPU": 4})))) == [True, False, True]


def seats(columns: Columns) -> bool:
    (rule,) = resources(Request({"CUSTOM_SEAT": 3}))
    return bool(rule.passes(columns, columns.row("h1") or 0))


def test_an_amount_depends_on_whether_shared_pools_have_room_and_on_nothing_smaller() -> None:
    columns = HOST.columns()
    (rule,) = resources(Request({"CUSTOM_SEAT": 3}))
    (other,) = resources(Request({"VCPU": 3}))
    assert other.depends(columns) is None
    assert seats(columns)
    before = rule.depends(columns)
    columns.declared.take("s0", "CUSTOM_SEAT", 1)
    assert rule.depends(columns) == before
    columns.declared.take("s0", "CUSTOM_SEAT", 1)
    assert rule.depends(columns) != before
    assert not seats(columns)


def test_a_shared_pool_helps_only_hosts_that_may_use_it() -> None:
    columns = HOST.columns()
    columns.declared.patch("pool", "s0", {"aggregate.a1": "1"})
    assert not seats(columns)
    columns.patch("h1", {"aggregate.a1": "1"})
    assert seats(columns)
