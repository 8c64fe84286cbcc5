"""Look-ahead: cheap tests of whether the remaining units can still be placed. Only `False` is certain."""

from collections.abc import Iterable

from redsched.decide.pools.demand import Sort
from redsched.decide.pools.options import bits
from redsched.decide.pools.plan import NO_NODE
from redsched.decide.pools.state import SearchState
from redsched.model import NumaAffinity


def may_succeed(state: SearchState) -> bool:
    """Return whether each remaining part fits alone, cells and isolated groups can be apart, and wants can be met."""
    left = [index for index, units in enumerate(state.left) if units]
    if not all(state.has_room(index) and may_be_near(state, index) for index in left):
        return False
    if not classes_suffice(state, left):
        return False
    apart = [index for index in left if state.needs.parts[index].apart]
    by_sort = ([index for index in apart if state.needs.parts[index].sort is sort] for sort in (Sort.CELL, Sort.GROUP))
    return all(len(one) < 2 or can_be_apart(state, one) for one in by_sort) and _wants_may_be_met(state, left)


def may_be_near(state: SearchState, index: int) -> bool:
    """Return whether there are enough devices, if the remaining cells are placed where most of the devices are."""
    affinity = state.needs.parts[index].affinity
    if affinity in (None, NumaAffinity.PREFERRED, NumaAffinity.SOCKET) or not state.cells_left:
        return True
    by_node: dict[int, int] = {}
    for option in state.options[index]:
        by_node[option.node] = by_node.get(option.node, 0) + state.units(state.needs.parts[index], option)
    anywhere = by_node.pop(NO_NODE, 0)
    near = sum(units for node, units in by_node.items() if state.cells >> node & 1)
    others = sorted((units for node, units in by_node.items() if not state.cells >> node & 1), reverse=True)
    near += sum(others[: state.cells_left])
    return state.left[index] <= (near + anywhere if affinity is NumaAffinity.LEGACY else near)


def classes_suffice(state: SearchState, left: Iterable[int]) -> bool:
    """Return whether there is enough of each class: in amount, and in places for that many units of the smallest size.

    Room for less than the smallest unit is wasted, and not counted.
    """
    wanted: dict[str, list[int]] = {}
    for index in left:
        for name, amount in state.needs.parts[index].demands:
            total = wanted.setdefault(name, [0, 0, amount])
            total[0] += amount * state.left[index]
            total[1] += state.left[index]
            total[2] = min(total[2], amount)
    for name, most, taken in zip(state.plan.class_of, state.most, state.taken, strict=True):
        if name in wanted and most - taken >= wanted[name][2]:
            wanted[name][0] -= most - taken
            wanted[name][1] -= (most - taken) // wanted[name][2]
    return all(amount <= 0 and units <= 0 for amount, units, _ in wanted.values())


def can_be_apart(state: SearchState, indexes: Iterable[int]) -> bool:
    """Return whether all units of these parts can have a place each: a matching, by augmenting paths (Kuhn)."""
    held: dict[int, int] = {}
    places = {
        index: [option.place for option in state.options[index] if state.allows(state.needs.parts[index], option)]
        for index in indexes
    }

    def settle(index: int, seen: set[int]) -> bool:
        for place in places[index]:
            if place not in seen:
                seen.add(place)
                if place not in held or settle(held[place], seen):
                    held[place] = index
                    return True
        return False

    return all(settle(index, set()) for index in places for _ in range(state.left[index]))


def subtrees_may_hold(state: SearchState, index: int) -> bool:
    """Return whether each same_subtree set of this group can still have a member whose pool contains all others."""
    return all(_may_hold(state, group) for group in state.needs.subtrees if index in group)


def _may_hold(state: SearchState, group: frozenset[int]) -> bool:
    above = state.plan.above
    placed = [state.chosen[one] for one in group if one in state.chosen]
    common = -1
    for place in placed:
        common &= above[place]
    if common & bits(placed):
        return True
    return any(common >> option.place & 1 for one in group if one not in state.chosen for option in state.options[one])


def _wants_may_be_met(state: SearchState, left: Iterable[int]) -> bool:
    covered = state.covered
    for index in left:
        for option in state.options[index]:
            covered |= option.covers
    return covered == (1 << len(state.needs.wants)) - 1
