"""The search for pool assignments: it takes few steps on large hosts, and counts the searches that it gave up."""

from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from redsched.decide.pools import assignments, needs_of, search
from redsched.decide.pools.inventory import read_free_slots
from redsched.decide.pools.look_ahead import can_be_apart, may_be_near
from redsched.decide.pools.options import plan_of
from redsched.decide.pools.state import SearchState
from redsched.model import CpuPolicy, Group, Numa, NumaAffinity, NumaCell, PciDevices, Request
from tests.support.models.plain_pools import NODE, PlainHost, PlainPlace, PlainSlot

FEW = 200
"""A limit of steps far below the usual one."""


def host(pools: dict[str, dict[str, int]], inside: dict[str, str] | None = None, **units: Any) -> PlainHost:
    def place(name: str, amounts: dict[str, int]) -> PlainPlace:
        slots = {one: PlainSlot(amount, **units) for one, amount in amounts.items()}
        return PlainPlace(slots, frozenset({NODE} if name.startswith("numa") else ()), (inside or {}).get(name, ""))

    return PlainHost({"": PlainPlace()} | {name: place(name, amounts) for name, amounts in pools.items()})


def groups(*sizes: int) -> tuple[Group, ...]:
    return tuple(Group(f"g{number}", {"VCPU": size}) for number, size in enumerate(sizes))


def like(count: int, *sizes: int) -> dict[str, dict[str, int]]:
    return {f"p{number}": {"VCPU": sizes[number % len(sizes)]} for number in range(count)}


LARGE_AND_SMALL = groups(*range(331, 341), *range(100, 106))
NODES = {f"numa{number}": {"PCPU": 8 + number, "MEMORY_MB": 8} for number in range(16)}
GPUS = {f"gpu{number}": {"CUSTOM_GPU": 1} for number in range(16)}
NEAR = {f"gpu{number}": f"numa{number}" for number in range(16)}


def guest(devices: int) -> Request:
    cells = tuple(NumaCell(4, 1 + number) for number in range(8))
    gpus = PciDevices("CUSTOM_GPU", devices, NumaAffinity.REQUIRED)
    return Request(numa=Numa(cells, CpuPolicy.DEDICATED), pci=(gpus,))


@pytest.mark.parametrize(
    ("of", "request_", "fits"),
    [
        (host(like(16, 10)), Request(groups=groups(*range(4, 12)[:7], 10)), True),
        (host(like(16, 1000)), Request(groups=groups(*range(600, 617))), False),
        (host(like(16, *range(1000, 1016))), Request(groups=groups(*range(600, 617))), False),
        (host(like(16, *range(20, 36))), Request(groups=groups(*range(20, 36)), group_policy="isolate"), True),
        # Only nine pools have room for the ten groups, though their sum would fit.
        (host(like(16, *range(270, 430, 10))), Request(groups=LARGE_AND_SMALL, group_policy="isolate"), False),
        (host(NODES | GPUS, NEAR), guest(8), True),
        (host(NODES | GPUS, NEAR), guest(9), False),
        (host(like(16, 4)), Request(pci=(PciDevices("VCPU", 64),)), True),
        (host(like(16, 4), least=2), Request(pci=(PciDevices("VCPU", 64),)), False),
        (host(like(16, 9), step=3), Request(groups=groups(*[3] * 48)), True),
        (host(like(16, 8), step=3), Request(groups=groups(*[3] * 33)), False),
    ],
)
def test_large_hosts_take_few_steps(of: PlainHost, request_: Request, fits: bool) -> None:
    columns, needs = of.columns(), needs_of(request_)
    with patch("redsched.decide.pools.assign.STEPS", FEW):
        found = assignments(columns, columns.row("h1") or 0, needs, 1)
    assert (bool(found), needs.given_up) == (fits, 0)


@pytest.mark.parametrize(
    ("sizes", "rooms"),
    [
        ((6, 9, 11, 3), (17, 13)),
        ((5, 11, 6, 3, 10), (13, 11, 12)),
        ((2, 2, 1, 7, 1, 2, 7, 2), (12, 12)),
        ((3, 5, 6, 6, 3, 7, 4), (17, 17)),
        ((3, 5, 2, 5, 2, 2, 7), (9, 9, 9)),
    ],
)
def test_a_choice_that_turns_out_wrong_is_taken_back(sizes: tuple[int, ...], rooms: tuple[int, ...]) -> None:
    """This holds although the other pools look, or looked before, like the chosen one."""
    columns, needs = host(like(len(rooms), *rooms)).columns(), needs_of(Request(groups=groups(*sizes)))
    (found,) = assignments(columns, columns.row("h1") or 0, needs, 1)
    assert sum(found.values()) == sum(sizes)


def test_units_that_lie_apart_make_way_for_each_other() -> None:
    """The first group fits in either pool, the second only in the one that the first was put in."""
    of = host({"p0": {"VCPU": 5, "MEMORY_MB": 5}, "p1": {"VCPU": 5}})
    pair = (Group("a", {"VCPU": 1}), Group("b", {"VCPU": 1, "MEMORY_MB": 1}))
    columns, needs = of.columns(), needs_of(Request(groups=pair, group_policy="isolate"))
    row = columns.row("h1") or 0
    plan = plan_of(columns, row, needs, ())
    state = SearchState(needs, plan, read_free_slots(columns, row, plan), 0)
    state.options = [
        [one for one in options if state.allows(part, one)]
        for part, options in zip(needs.parts, plan.options, strict=True)
    ]
    assert can_be_apart(state, (0, 1))
    state.take(0, state.options[0][0])
    assert not can_be_apart(state, (1,))


@pytest.mark.parametrize(("devices", "may"), [(3, True), (4, False)])
def test_devices_may_be_near_as_long_as_the_cells_left_can_lie_where_most_are(devices: int, may: bool) -> None:
    of = host(
        {f"numa{n}": {"VCPU": 8, "MEMORY_MB": 8} for n in range(3)} | {f"gpu{n}": {"CUSTOM_GPU": n} for n in range(3)}
    )
    for number in range(3):
        of.places[f"gpu{number}"].parent = f"numa{number}"
    gpus = PciDevices("CUSTOM_GPU", devices, NumaAffinity.REQUIRED)
    columns, needs = of.columns(), needs_of(Request(numa=Numa((NumaCell(1, 1),) * 2), pci=(gpus,)))
    row = columns.row("h1") or 0
    plan = plan_of(columns, row, needs, ())
    state = SearchState(needs, plan, read_free_slots(columns, row, plan), 0)
    state.options = [list(options) for options in plan.options]
    assert may_be_near(state, 1) == may


@pytest.mark.parametrize(
    "request_",
    [
        Request(groups=(Group("g", {"VCPU": 1, "MEMORY_MB": 1}),), numa=Numa((NumaCell(1, 1),))),
        Request(groups=groups(1), group_policy="isolate", pci=(PciDevices("VCPU"),)),
        Request({"VCPU": 1}, required=frozenset({"CUSTOM_T"}), pci=(PciDevices("VCPU"),)),
        Request(groups=groups(1, 1), same_subtree=(frozenset({"g0", "g1"}),)),
    ],
)
def test_a_dead_end_is_known_by_who_lies_where_and_not_by_what_is_taken_alone(request_: Request) -> None:
    of = host({name: {"VCPU": 4, "MEMORY_MB": 4} for name in ("numa0", "numa1")})
    of.places["numa0"].traits |= {"CUSTOM_T"}
    columns, needs = of.columns(), needs_of(request_)
    row = columns.row("h1") or 0
    plan = plan_of(columns, row, needs, ())

    def state(first: str, second: str) -> tuple[object, ...]:
        board = SearchState(needs, plan, read_free_slots(columns, row, plan), 0)
        for index, place in enumerate((first, second)):
            board.take(index, next(one for one in plan.options[index] if plan.places[one.place] == place))
        return board.snapshot()

    one, other = state("numa0", "numa1"), state("numa1", "numa0")
    assert one[0] == other[0]
    assert one != other


def test_thousands_of_devices_are_placed() -> None:
    """The search goes deeper than Python's recursion limit."""
    classes = [f"CUSTOM_C{number}" for number in range(64)]
    of = host({f"nic{number}": dict.fromkeys(classes, 2) for number in range(32)})
    columns, needs = of.columns(), needs_of(Request(pci=tuple(PciDevices(name, 64) for name in classes)))
    (found,) = assignments(columns, columns.row("h1") or 0, needs, 1)
    assert sum(found.values()) == 64 * 64


def puzzle() -> tuple[PlainHost, Request]:
    """Return 15 unequal groups that fill 5 pools completely, in only 2 of very many assignments."""
    rng = Random(0)
    bins = [[rng.randint(5, 40) for _ in range(3)] for _ in range(5)]
    return host(like(5, *map(sum, bins))), Request(groups=groups(*(size for one in bins for size in one)))


def test_a_search_that_takes_too_long_is_given_up_and_counted() -> None:
    of, request = puzzle()
    columns, needs = of.columns(), needs_of(request)
    with patch("redsched.decide.pools.assign.STEPS", FEW):
        assert assignments(columns, columns.row("h1") or 0, needs, 2) == []
    assert needs.given_up == 1


def test_after_hosts_that_were_given_up_others_get_fewer_steps_but_always_a_descent() -> None:
    of, request = puzzle()
    columns, needs = of.columns(), needs_of(request)
    needs.given_up = 1000
    with patch.object(search.Search, "_count_step", autospec=True, side_effect=search.Search._count_step) as counted:
        assert assignments(columns, columns.row("h1") or 0, needs, 1) == []
    assert 15 < counted.call_count <= 15 * 8 + 1


def test_the_board_is_as_before_after_a_search_that_was_given_up() -> None:
    of, request = puzzle()
    columns, needs = of.columns(), needs_of(request)
    row = columns.row("h1") or 0
    with patch("redsched.decide.pools.assign.STEPS", FEW):
        assignments(columns, row, needs, 1)
    smaller = needs_of(Request(groups=request.groups[:5]))
    assert assignments(columns, row, smaller, 2)
