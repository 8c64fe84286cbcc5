"""What a host has of the parts of a request that each come from one place: groups, guest NUMA cells and devices."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from redsched.cache.columns import Columns
from redsched.decide.filters.places import PlaceTraits, given_in_units, most, slot_of
from redsched.decide.filters.pools import GROUP, NUMA, PCI, POOLS
from redsched.decide.pools import cell_demands, may_use, shared_with
from redsched.decide.rules import ALL_ROWS, Rows, Rule
from redsched.decide.scoring.demand import demand, room
from redsched.decide.work_limit import check_work
from redsched.model import NUMA_NODE, Request
from redsched.model.gpus import gpus_of, lack_text as gpus_lack_text, share_a_node
from redsched.model.workload import GPU_SHARES


@dataclass(frozen=True, slots=True)
class Kind:
    """The parts that take a class from places of one kind: `amount` in all, each a multiple of `unit`."""

    resource_class: str
    traits: PlaceTraits
    amount: int
    unit: int

    def left(self, columns: Columns, rows: Rows) -> NDArray[np.int64]:
        """Return how much of the amount hosts have left for whole parts, at most all of it: int64, by row."""
        left = given_in_units(columns, self.resource_class, self.unit, self.traits, rows)
        found: NDArray[np.int64] = np.minimum(left, self.amount)
        return found

    def in_all(self, columns: Columns, row: int) -> tuple[int, int]:
        """Return how much of the class a host has free in suitable places, too small ones too, and its capacity."""
        total_free = given_in_units(columns, self.resource_class, 1, self.traits, row)
        return int(total_free), int(room(columns, self.resource_class, row)[0])


def in_best_node(columns: Columns, kind: Kind, row: int) -> tuple[int, str]:
    """Return how much of an amount the NUMA node with the most has left for whole parts, at most all of it; and it.

    0 and '' if a host has none with the class.
    """
    tree, left = columns.layout(row), Counter[str]()
    for pool in tree.pools:
        node = tree.numa_node(pool)
        if node and kind.resource_class in tree.classes[pool] and kind.traits.suit(tree.traits[pool]):
            left[node] += int(most(columns, slot_of(pool, kind.resource_class), row)) // kind.unit * kind.unit
    node = max(left, key=lambda one: left[one], default="")
    return min(left[node], kind.amount), node


def left_for(columns: Columns, request: Request, kind: Kind, row: int) -> tuple[int, str]:
    """Return how much of an amount a host has left for whole parts; and the NUMA node, if they must come from one."""
    gpus = gpus_of(request)
    if kind.resource_class == GPU_SHARES and gpus and share_a_node(request, gpus):
        left, node = in_best_node(columns, kind, row)
        if node:
            return left, node
    return int(kind.left(columns, row)), ""


def is_about_parts(rule: Rule) -> bool:
    """Return whether a rule is about such parts."""
    return rule.reason.partition(":")[0] in (GROUP, NUMA, PCI, POOLS)


def kinds_of(request: Request) -> list[Kind]:
    """Return the kinds of parts of one place of a request."""
    sizes: dict[tuple[str, PlaceTraits], list[int]] = {}
    for name, traits, amount in _amounts(request):
        sizes.setdefault((name, traits), []).append(amount)
    return [
        Kind(name, traits, sum(amounts), amounts[0] if len(set(amounts)) == 1 else 1)
        for (name, traits), amounts in sizes.items()
    ]


def lack_of_parts(columns: Columns, request: Request) -> NDArray[np.float64]:
    """Return the part of its groups, cells and devices that each host lacks, summed over the classes: (size,)."""
    lack = np.zeros(columns.size)
    for kind in kinds_of(request):
        check_work("comparing the hosts that are nearest to fit")
        lack += (kind.amount - kind.left(columns, ALL_ROWS)) / kind.amount
    return lack


def lack_text(columns: Columns, request: Request, row: int) -> str:
    """Return which parts a host lacks room for: "needs 4 SRIOV_NET_VF in all, has room for 3"; '' for none."""
    texts, gpus = list[str](), gpus_of(request)
    for kind in kinds_of(request):
        left, node = left_for(columns, request, kind, row)
        if left >= kind.amount:
            continue
        if gpus and kind.resource_class == GPU_SHARES:
            texts.append(gpus_lack_text(kind.amount, left, *kind.in_all(columns, row), node))
        else:
            texts.append(f"needs {kind.amount} {kind.resource_class} in all, has room for {left}")
    return ", ".join(texts)


def has_classes(columns: Columns, request: Request) -> NDArray[np.bool_]:
    """Return which hosts have some of each class that a request needs, free or not, or may use a shared pool of it."""
    found = np.ones(columns.size, np.bool_)
    for name in demand(request):
        has: NDArray[np.bool_] = np.broadcast_to(room(columns, name, ALL_ROWS)[0] > 0, (columns.size,))
        for pool in shared_with(columns, name) if name in request.resources else ():
            has = has | may_use(columns, pool, ALL_ROWS)
        found &= has
    return found


def _amounts(request: Request) -> Iterator[tuple[str, PlaceTraits, int]]:
    for group in request.groups:
        traits = PlaceTraits(group.required, group.forbidden, group.any_of)
        for name, amount in group.resources.items():
            yield name, traits, amount
    for cell in request.numa.cells if request.numa else ():
        for name, amount in cell_demands(request.numa, cell):  # type: ignore[arg-type]  # no cells without
            yield name, PlaceTraits(frozenset((NUMA_NODE,))), amount
    for devices in request.pci:
        for _ in range(devices.count):
            yield devices.resource_class, PlaceTraits(devices.required), 1
