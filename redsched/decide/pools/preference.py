"""The order in which places are tried for a part: the better the assignment, the earlier."""

from collections.abc import Set as AbstractSet

from redsched.decide.pools.demand import Sort
from redsched.decide.pools.plan import NO_NODE, ROOT, Option
from redsched.decide.pools.state import SearchState
from redsched.model import NumaAffinity
from redsched.model.validation import SHARED_POOL

Rank = tuple[float, float, float]


def preferred(state: SearchState, index: int, avoid: AbstractSet[int]) -> list[Option]:
    """Return the places that a unit of a part may be placed in now, best first.

    Unnumbered resources come from the root, then from pools, then from shared pools, emptiest first. Cells prefer nodes
    with the devices that must be near them, and devices prefer nodes with cells. Then the place that keeps the least
    is best (best fit), so that whole devices and nodes stay whole. Places with slots in `avoid` come after equal ones.
    """
    part = state.needs.parts[index]
    found = [option for option in state.options[index] if state.allows(part, option)]
    if len(found) > 1:
        rank = _RANKS[part.sort]
        found.sort(key=lambda option: rank(state, option, bool(avoid) and _touches(option, avoid)))
    return found


def _touches(option: Option, avoid: AbstractSet[int]) -> bool:
    return any(slot in avoid for slot, _ in option.takes)


def _left(state: SearchState, option: Option) -> float:
    """Return what is left of the slots after a unit, in units."""
    left = 0.0
    for slot, amount in option.takes:
        left += (state.most[slot] - state.taken[slot] - amount) / amount
    return left


def _cell(state: SearchState, option: Option, avoided: bool) -> Rank:
    return -_devices_near(state, option.place), avoided, _left(state, option)


def _devices_near(state: SearchState, node: int) -> int:
    """Return the number of devices with NUMA affinity that are available on this node."""
    near = 0
    for index, part in enumerate(state.needs.parts):
        if part.affinity is not None:
            found = 0
            for option in state.options[index]:
                if _is_near(state, part.affinity, option.node, node) and found < state.left[index]:
                    found += state.units(part, option)
            near += min(found, state.left[index])
    return near


def _is_near(state: SearchState, affinity: NumaAffinity, device_node: int, node: int) -> bool:
    if affinity is NumaAffinity.SOCKET:
        return device_node != NO_NODE and bool(state.plan.sockets[device_node] >> node & 1)
    return device_node == node


def _group(state: SearchState, option: Option, avoided: bool) -> Rank:
    return 0, avoided, _left(state, option)


def _device(state: SearchState, option: Option, avoided: bool) -> Rank:
    if option.node == NO_NODE:
        return 1, avoided, _left(state, option)
    return 0 if state.cells >> option.node & 1 else 2, avoided, _left(state, option)


def _spread(state: SearchState, option: Option, avoided: bool) -> Rank:
    if option.place == ROOT:
        return 0, 0, 0
    if state.plan.places[option.place].startswith(SHARED_POOL):
        return 2, avoided, -_left(state, option)
    return 1, avoided, _left(state, option)


_RANKS = {Sort.CELL: _cell, Sort.GROUP: _group, Sort.DEVICE: _device, Sort.SPREAD: _spread}
