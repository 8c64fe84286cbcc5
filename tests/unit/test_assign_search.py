"""The search: it ends soon where hosts are large, and says when it gave up."""

from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from redsched.decide.assign import assignments, needs_of, search
from redsched.model import CpuPolicy, Group, Numa, NumaAffinity, NumaCell, PciDevices, Request
from tests.support.plain_pools import NODE, PlainHost, PlainPlace, PlainSlot

FEW = 200
"""Steps that are far from being given up."""


def host(pools: dict[str, dict[str, int]], inside: dict[str, str] | None = None, **units: Any) -> PlainHost:
    def place(name: str, amounts: dict[str, int]) -> PlainPlace:
        slots = {one: PlainSlot(amount, **units) for one, amount in amounts.items()}
        return PlainPlace(slots, frozenset({NODE} if name.startswith("numa") else ()), (inside or {}).get(name, ""))

    return PlainHost({"": PlainPlace()} | {name: place(name, amounts) for name, amounts in pools.items()})


def groups(*sizes: int) -> tuple[Group, ...]:
    return tuple(Group(f"g{number}", {"VCPU": size}) for number, size in enumerate(sizes))


def like(count: int, *sizes: int) -> dict[str, dict[str, int]]:
    return {f"p{number}": {"VCPU": sizes[number % len(sizes)]} for number in range(count)}


LARGE_AND_SMALL = groups(331, 332, 333, *range(100, 113))
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
        # Three groups that only two pools have room for; what they ask for all together is not too much.
        (host(like(16, *range(200, 360, 10))), Request(groups=LARGE_AND_SMALL, group_policy="isolate"), False),
        (host(NODES | GPUS, NEAR), guest(8), True),
        (host(NODES | GPUS, NEAR), guest(9), False),
        (host(like(16, 4)), Request(pci=(PciDevices("VCPU", 64),)), True),
        (host(like(16, 4), least=3), Request(pci=(PciDevices("VCPU", 64),)), True),
        (host(like(16, 8), step=3), Request(pci=(PciDevices("VCPU", 63),)), True),
    ],
)
def test_large_hosts_take_few_steps(of: PlainHost, request_: Request, fits: bool) -> None:
    columns, needs = of.columns(), needs_of(request_)
    with patch("redsched.decide.assign.assign.STEPS", FEW):
        found = assignments(columns, columns.row("h1") or 0, needs, 1)
    assert (bool(found), needs.given_up) == (fits, 0)


def test_thousands_of_devices_are_placed() -> None:
    """Deeper than Python may call functions."""
    classes = [f"CUSTOM_C{number}" for number in range(64)]
    of = host({f"nic{number}": dict.fromkeys(classes, 2) for number in range(32)})
    columns, needs = of.columns(), needs_of(Request(pci=tuple(PciDevices(name, 64) for name in classes)))
    (found,) = assignments(columns, columns.row("h1") or 0, needs, 1)
    assert sum(found.values()) == 64 * 64


def puzzle() -> tuple[PlainHost, Request]:
    """15 unequal groups that fill 5 pools to the last unit, but in 2 ways of very many."""
    rng = Random(0)
    bins = [[rng.randint(5, 40) for _ in range(3)] for _ in range(5)]
    return host(like(5, *map(sum, bins))), Request(groups=groups(*(size for one in bins for size in one)))


def test_a_search_that_takes_too_long_is_given_up_and_counted() -> None:
    of, request = puzzle()
    columns, needs = of.columns(), needs_of(request)
    with patch("redsched.decide.assign.assign.STEPS", FEW):
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
    with patch("redsched.decide.assign.assign.STEPS", FEW):
        assignments(columns, row, needs, 1)
    smaller = needs_of(Request(groups=request.groups[:5]))
    assert assignments(columns, row, smaller, 2)
