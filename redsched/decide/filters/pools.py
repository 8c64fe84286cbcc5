"""Cheap tests of groups, guest NUMA cells and devices: whether each would fit alone.

They are necessary, not sufficient. They reject hopeless hosts before the exact assignment, and give the numbers of what
a host lacks.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from redsched.cache.columns import Columns
from redsched.decide.filters.places import (
    PlaceTraits,
    amounts_text,
    amounts_with_gpus,
    class_has_units,
    gives_all,
    has_traits,
    largest,
    most,
    nearest_place,
    places_giving,
    pools_having,
    pools_with,
    slot_free,
    slot_of,
)
from redsched.decide.filters.units import unit_causes
from redsched.decide.fit import free_on, unscaled_free_on
from redsched.decide.pools import Demands, cell_demands
from redsched.decide.rules import Cause, Mask, Rows, Rule
from redsched.decide.text_match import everywhere, nowhere
from redsched.model import NUMA_NODE, Amounts, Group, Numa, PciDevices, Request
from redsched.model.gpus import gpus_of

Wanted = TypeVar("Wanted")

GROUP = "group"
NUMA = "numa"
PCI = "pci"
TRAITS = "traits"
"""The reason of hosts that have what a group needs only in places without its traits, with its name."""
POOLS = "pools"
"""The reason of hosts whose pools can give each part of the request, and not all parts together."""

Tests = tuple[Callable[[Columns, Rows], Mask], Callable[[Columns, int], str]]
"""What a rule tests, and its detail."""

NODE = PlaceTraits(frozenset((NUMA_NODE,)))
Kind = tuple[Demands, int]
"""The demands of a guest's cell, and the number of cells that need at least as much: that many nodes need room."""


def groups(request: Request) -> Iterator[Rule]:
    """Require a single place, the root or a pool, with room for each group."""
    if not request.groups:
        return
    known: dict[Hashable, Tests] = {}
    gpus = gpus_of(request)
    for group in request.groups:
        if group.resources or group.required or group.any_of:
            # Groups that differ only in their names have one test, which need not be repeated.
            alike = tuple(sorted(group.resources.items())), _traits_of(group)
            if alike not in known:
                known[alike] = _group(group, amounts_with_gpus if group in gpus else amounts_text)
            causes = partial(_causes_of_group, group)
            yield Rule(f"{GROUP}:{group.name}", *known[alike], room=bool(group.resources), causes=causes)
    if request.group_policy == "isolate":
        yield from _isolated(request.groups)


def _causes_of_group(group: Group) -> Sequence[Cause]:
    wanted = _traits_of(group)
    units = unit_causes(tuple(sorted(group.resources.items())), wanted, wanted)
    if wanted == PlaceTraits():
        return units
    return (Cause.alone(f"{TRAITS}:{group.name}", partial(_is_nowhere, group)), *units)


def _is_nowhere(group: Group, columns: Columns, rows: Rows) -> Mask:
    """Return whether no place of a host that has the classes of a group, used or not, has its traits."""
    demands, wanted = tuple(sorted(group.resources.items())), _traits_of(group)
    there = suits = nowhere(columns, rows)
    for place in ("", *pools_with(columns, demands, rows)):
        has = everywhere(columns, rows)
        for name, _ in demands:
            has = has & (columns.capacity[slot_of(place, name)][rows] > 0)
        there, suits = there | has, suits | (has & wanted.suits(columns, place, rows))
    return there & ~np.bool_(suits)


def _isolated(groups: Sequence[Group]) -> Iterator[Rule]:
    """Require a place of its own for each group, of those that have one class and the same traits."""
    kinds: dict[tuple[str, PlaceTraits], list[int]] = {}
    for group in groups:
        if len(group.resources) == 1:
            ((name, amount),) = group.resources.items()
            kinds.setdefault((name, _traits_of(group)), []).append(amount)
    for (name, traits), amounts in kinds.items():
        if len(amounts) > 1:
            yield _places_apart(name, traits, sorted(amounts, reverse=True))


def _places_apart(resource_class: str, traits: PlaceTraits, amounts: Sequence[int]) -> Rule:
    """Require places for the largest amounts, by number: as many with room for the second largest as two, and so on."""
    numbers = {amount: number for number, amount in enumerate(amounts, 1)}

    def passes(columns: Columns, rows: Rows) -> Mask:
        found = everywhere(columns, rows)
        for amount, number in numbers.items():
            found = found & (places_giving(columns, resource_class, amount, traits, rows) >= number)
        return found

    def detail(columns: Columns, row: int) -> str:
        have = {one: int(places_giving(columns, resource_class, one, traits, row)) for one in numbers}
        amount = next((one for one, number in numbers.items() if have[one] < number), amounts[-1])
        return f"needs {numbers[amount]} pools with {amount} {resource_class} each, {have[amount]} have it"

    return Rule(POOLS, passes, detail, room=True)


def _traits_of(group: Group) -> PlaceTraits:
    return PlaceTraits(group.required, group.forbidden, group.any_of)


def numa(request: Request) -> Iterator[Rule]:
    """Require, for each cell, as many NUMA nodes with room for it as there are cells that need at least as much."""
    if request.numa is None:
        return
    yield _cells(_kinds(request.numa), request.numa.is_memory_real)


def _kinds(numa: Numa) -> tuple[Kind, ...]:
    cells = [dict(cell_demands(numa, cell)) for cell in numa.cells]
    return tuple({tuple(cell.items()): sum(_needs_as_much(other, cell) for other in cells) for cell in cells}.items())


def pci(request: Request) -> Iterator[Rule]:
    """Require as many devices of a class, in any places, as all parts need together, also with each part's traits."""
    for resource_class in sorted({one.resource_class for one in request.pci}):
        yield _devices(resource_class, [one for one in request.pci if one.resource_class == resource_class])


def _group(group: Group, text_of: Callable[[Demands], str]) -> Tests:
    demands = tuple(sorted(group.resources.items()))
    wanted = _traits_of(group)
    requirements = text_of(demands) if demands else "a pool"
    traits = "".join(f" with {one}" for one in sorted(group.required))
    traits += "".join(f" with {' or '.join(sorted(one))}" for one in group.any_of)
    traits += "".join(f" without {one}" for one in sorted(group.forbidden))

    def passes(columns: Columns, rows: Rows) -> Mask:
        if len(demands) == 1:
            name, amount = demands[0]
            if not class_has_units(columns, name):
                return largest(columns, name, wanted, wanted, rows) >= amount
        found = nowhere(columns, rows)
        for place in ("", *_pools_for(columns, group, demands, rows)):
            found = found | gives_all(columns, place, demands, rows) & wanted.suits(columns, place, rows)
        return found

    def detail(columns: Columns, row: int) -> str:
        places = [place for place in ("", *columns.layout(row).pools) if wanted.suits(columns, place, row)]
        if not demands:
            return f"needs {requirements}{traits}, has {', '.join(one or 'itself' for one in places) or 'none'}"
        return f"needs {requirements} in one pool{traits}, {nearest_place(columns, row, demands, places, text_of)}"

    return passes, detail


def _pools_for(columns: Columns, group: Group, demands: Demands, rows: Rows) -> Iterable[str]:
    """Return the pools that may give a group, as far as one of its classes or traits narrows them down."""
    if demands:
        return pools_with(columns, demands, rows)
    traits = (min(group.required),) if group.required else sorted(group.any_of[0])
    return dict.fromkeys(pool for trait in traits for pool in pools_having(columns, trait, rows))


def _needs_as_much(cell: dict[str, int], other: dict[str, int]) -> bool:
    return all(cell.get(name, 0) >= amount for name, amount in other.items())


@dataclass(frozen=True, slots=True)
class NodeLack:
    """What one guest cell needs of the classes that the best NUMA node of a host lacks, and what is free of them there.

    `demands`: all that the cell needs. `node`: '' if the host has no NUMA node.
    """

    node: str
    demands: Demands
    needs: Amounts
    free: Amounts


def node_lack(columns: Columns, numa: Numa, row: int) -> NodeLack:
    """Return what a host lacks for the first cells that it has too few NUMA nodes for."""
    with_room = _nodes_with_room(numa.is_memory_real)
    demands, _ = _first_short(_kinds(numa), with_room, columns, row)
    node = _best_node(columns, numa.is_memory_real, demands, row)
    if not node:
        return NodeLack("", demands, dict(demands), dict.fromkeys(dict(demands), 0))
    free = {name: _node_free(columns, numa.is_memory_real, node, name, row) for name, _ in demands}
    lacking = {name: amount for name, amount in demands if free[name] < amount} or dict(demands)
    return NodeLack(node, demands, lacking, {name: free[name] for name in lacking})


def _best_node(columns: Columns, is_memory_real: bool, demands: Demands, row: int) -> str:
    """Return the NUMA node that lacks least of a cell's demands, of those that lack any; '' for none."""
    nodes = pools_having(columns, NUMA_NODE, row)

    def lack(node: str) -> float:
        left = ((amount, _node_free(columns, is_memory_real, node, name, row)) for name, amount in demands)
        return sum(max(0, amount - free) / amount for amount, free in left)

    lacks = {node: lack(node) for node in nodes}
    return min([node for node in nodes if lacks[node]] or nodes, key=lambda node: lacks[node], default="")


def _node_free(columns: Columns, is_memory_real: bool, node: str, name: str, row: int) -> int:
    """Return what is free of a class in a NUMA node for a cell, with what is kept for another request."""
    slot = slot_of(node, name)
    kept = columns.reserved.amount(row, slot)
    if is_memory_real and name == "MEMORY_MB":
        return int(min(unscaled_free_on(columns, slot, row), slot_free(columns, slot, row))) + kept
    return slot_free(columns, slot, row) + kept


def _nodes_with_room(is_memory_real: bool) -> Callable[[Columns, Demands, Rows], Mask]:
    """Make the count of the NUMA nodes that have room for a cell."""

    def nodes_with_room(columns: Columns, demands: Demands, rows: Rows) -> Mask:
        found = nowhere(columns, rows) * 0
        memory_mb = dict(demands).get("MEMORY_MB")
        for pool in pools_having(columns, NUMA_NODE, rows):
            room = gives_all(columns, pool, demands, rows)
            slot = slot_of(pool, "MEMORY_MB")
            if is_memory_real and slot in columns.ratios and memory_mb is not None:
                room = room & (unscaled_free_on(columns, slot, rows) >= memory_mb)
            found = found + (columns.traits[slot_of(pool, NUMA_NODE)][rows] & room)
        return found

    return nodes_with_room


def _cells(kinds: Sequence[Kind], is_memory_real: bool) -> Rule:
    nodes_with_room = _nodes_with_room(is_memory_real)

    def detail(columns: Columns, row: int) -> str:
        demands, nodes = _first_short(kinds, nodes_with_room, columns, row)
        have = int(nodes_with_room(columns, demands, row))
        node = _best_node(columns, is_memory_real, demands, row)
        best = nearest_place(
            columns, row, demands, [node] if node and have < nodes else pools_having(columns, NUMA_NODE, row)
        )
        if is_memory_real and node and columns.ratios[slot_of(node, "MEMORY_MB")][row] > 1:
            left = _node_free(columns, is_memory_real, node, "MEMORY_MB", row)
            best += f", of which this guest takes only memory that is not overcommitted: {max(0, left)} MEMORY_MB"
        if nodes == 1:
            return f"needs {amounts_text(demands)} in one NUMA node, {best}"
        best = f"next {best}" if have else best
        return f"needs {nodes} NUMA nodes with {amounts_text(demands)} each, {have} have it, {best}"

    def lacks(name: str, columns: Columns, rows: Rows) -> Mask:
        own = [(tuple(one for one in demands if one[0] == name), nodes) for demands, nodes in kinds]
        return ~np.bool_(_enough([one for one in own if one[0]], nodes_with_room)(columns, rows))

    def causes() -> Sequence[Cause]:
        """Blame a class if its amounts alone have no room."""
        demands = tuple(dict.fromkeys(one for cell, _ in kinds for one in cell))
        names = sorted({name for name, _ in demands})
        return (
            *unit_causes(demands, NODE, NODE),
            *(Cause.alone(f"{NUMA}:{one}", partial(lacks, one)) for one in names),
        )

    return Rule(NUMA, _enough(kinds, nodes_with_room), detail, room=True, causes=causes)


def _devices(resource_class: str, parts: Sequence[PciDevices]) -> Rule:
    # Without traits, all parts compete; with a part's traits, those that require at least these.
    traits = dict.fromkeys((frozenset[str](), *(one.required for one in parts)))
    requirements = [(of, sum(one.count for one in parts if of <= one.required)) for of in traits]

    def left(columns: Columns, required: frozenset[str], rows: Rows) -> Mask:
        return columns.derived(("left", resource_class, required), lambda some: _left(columns, required, some), rows)

    def _left(columns: Columns, required: frozenset[str], rows: Rows) -> Mask:
        found = nowhere(columns, rows) * 0
        for place in ("", *pools_with(columns, ((resource_class, 1),), rows)):
            having = has_traits(columns, place, required, (), rows)
            found = found + having * most(columns, slot_of(place, resource_class), rows)
        return found

    def detail(columns: Columns, row: int) -> str:
        required, count = _first_short(requirements, left, columns, row)
        having = "".join(f" with {trait}" for trait in sorted(required))
        text = f"needs {count} {resource_class}{having}, free {int(free(columns, required, row))}"
        given = int(left(columns, required, row))
        return text if given == int(free(columns, required, row)) else f"{text}; by max_unit one claim gets {given}"

    def free(columns: Columns, required: frozenset[str], rows: Rows) -> Mask:
        found = nowhere(columns, rows) * 0
        for place in ("", *pools_with(columns, ((resource_class, 1),), rows)):
            having = has_traits(columns, place, required, (), rows)
            found = found + having * np.maximum(free_on(columns, slot_of(place, resource_class), rows), 0)
        return found

    def causes() -> Sequence[Cause]:
        return (Cause.alone(f"max_unit:{resource_class}", _enough(requirements, free)),)

    return Rule(f"{PCI}:{resource_class}", _enough(requirements, left), detail, room=True, causes=causes)


def _enough(
    requirements: Sequence[tuple[Wanted, int]], have: Callable[[Columns, Wanted, Rows], Mask]
) -> Callable[[Columns, Rows], Mask]:
    """Make the test whether a host has enough of each requirement."""

    def passes(columns: Columns, rows: Rows) -> Mask:
        found = everywhere(columns, rows)
        for what, count in requirements:
            found = found & (have(columns, what, rows) >= count)
        return found

    return passes


def _first_short(
    requirements: Sequence[tuple[Wanted, int]],
    have: Callable[[Columns, Wanted, Rows], Mask],
    columns: Columns,
    row: int,
) -> tuple[Wanted, int]:
    """Return the first requirement of which a host has too few; the first of all if it has enough of each."""
    return next((one for one in requirements if have(columns, one[0], row) < one[1]), requirements[0])
