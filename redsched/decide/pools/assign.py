"""From needs to amounts by slot, for one host, with a fast path if the root can give everything."""

from collections.abc import Hashable

from redsched.cache.columns import Columns
from redsched.decide.fit import fits, unscaled_free_on
from redsched.decide.pools.demand import PoolDemand, alone, needs_of, shared_caches
from redsched.decide.pools.inventory import FreeSlots, read_free_slots, read_key
from redsched.decide.pools.look_ahead import classes_suffice
from redsched.decide.pools.options import bits, plan_of
from redsched.decide.pools.plan import ROOT, Plan
from redsched.decide.pools.search import STEPS, GivenUp, Search
from redsched.decide.pools.shared import shared_with, usable
from redsched.decide.pools.state import SearchState
from redsched.decide.work_limit import check_work
from redsched.model import Amounts, Request

MAX_FOUND = 1024
"""The most hosts with different amounts whose assignments are kept, for one demand and layout."""
NO_PARTS = frozenset[int]()
NOTHING_SHORT = frozenset[tuple[int, int]]()
LEAST_STEPS = 2
"""The steps per unit that every host gets: one descent, and about as many steps back."""
FURTHER_STEPS = 8
"""The steps per unit of the search for another assignment, which is optional."""


def is_plain(columns: Columns, request: Request) -> bool:
    """Return whether only the roots of hosts matter, so that a host that passes the rules takes `request.resources`."""
    if request.groups or request.numa or request.pci:
        return False
    if any(columns.pool_slots(name) or shared_with(columns, name) for name in request.resources):
        return False
    traits = request.required.union(*request.any_of)
    in_pools = any(columns.pools_with_trait(trait) for trait in traits)
    return not in_pools and not any(traits & pool.traits for pool in columns.declared.pools.values())


def demand_on(columns: Columns, request: Request) -> PoolDemand:
    """Return the demand of a request on these hosts: what only roots can give is no part of the search for pools.

    It is out of date once `given_by_roots` changes.
    """
    needs = needs_of(request, given_by_roots(columns, request))
    return needs if needs.is_simple or columns.declared.pools else shared_caches(needs)


def given_by_roots(columns: Columns, request: Request) -> tuple[str, ...]:
    """Return the classes that no pool has, and that one part of the request asks for beside others."""
    if not (request.groups or request.numa or request.pci):
        return ()
    of_one_part = alone(request)
    own = (name for name in request.resources if not (columns.pool_slots(name) or shared_with(columns, name)))
    return tuple(name for name in own if name in of_one_part)


def assignments(columns: Columns, row: int, needs: PoolDemand, most: int) -> list[Amounts]:
    """Return up to `most` different assignments of the request to one host, best first; empty if it does not fit.

    The search is exact: it finds an assignment if one exists, unless it is abandoned (`search.STEPS`). Such a host
    counts as not fitting and in `needs.given_up`, and each later host of the request gets half the steps of the one
    before, so that a hard request cannot block a scheduler for 10,000 hosts. Each part is in its slot's units, and each
    sum fits its slot as the claim script checks it. Further assignments are searched only briefly; they use other pools
    if possible.
    """
    check_work("searching the pools of hosts")
    if any(columns.traits[trait][row] for trait in needs.forbidden):
        return []
    covered = _covered_by_root(columns, row, needs)
    if needs.is_simple:
        return _of_unnumbered(columns, row, needs, covered, most)
    plan = plan_of(columns, row, needs, usable(columns, row, needs))
    roots = _roots(columns, row, needs, plan)
    short = _short_of_memory(columns, row, needs, plan)
    key = (most, covered, roots, short, read_key(columns, row, plan))
    found = plan.found.get(key)
    if found is None:
        before = needs.given_up
        state = _search_state(needs, plan, read_free_slots(columns, row, plan), roots, covered, short)
        found = _searched(state, [], most) if state is not None else []
        if needs.given_up == before:
            _keep(plan, key, found)
    return [{**amounts, **needs.own} for amounts in found]


def _keep(plan: Plan, key: Hashable, found: list[Amounts]) -> None:
    if len(plan.found) >= MAX_FOUND:
        plan.found.clear()
    plan.found[key] = found


def _of_unnumbered(columns: Columns, row: int, needs: PoolDemand, covered: int, most: int) -> list[Amounts]:
    """Return the assignments of unnumbered resources alone: those of the root first, and no other if it gives all."""
    found: list[Amounts] = []
    if covered == (1 << len(needs.wants)) - 1 and _root_gives(columns, row, needs.resources):
        found.append(needs.resources)
        if most == 1:
            return found
    plan = plan_of(columns, row, needs, usable(columns, row, needs))
    roots = _roots(columns, row, needs, plan)
    state = _search_state(needs, plan, read_free_slots(columns, row, plan), roots, covered)
    if state is None or (found and all(len(options) == 1 for options in state.options)):
        return found
    return found + _searched(state, found, most - len(found))


def _searched(state: SearchState, found: list[Amounts], most: int) -> list[Amounts]:
    further: list[Amounts] = []
    few = FURTHER_STEPS * sum(state.left)
    while len(further) < most:
        is_first = not (found or further)
        steps = max(STEPS >> state.needs.given_up, LEAST_STEPS * sum(state.left)) if is_first else few
        try:
            amounts = Search(state, [*found, *further], steps).run()
        except GivenUp:
            state.needs.given_up += is_first
            break
        if amounts is None:
            break
        further.append(amounts)
    return further


def _covered_by_root(columns: Columns, row: int, needs: PoolDemand) -> int:
    traits = columns.traits
    return bits(index for index, names in enumerate(needs.wants) if any(traits[trait][row] for trait in names))


def _root_gives(columns: Columns, row: int, resources: Amounts) -> bool:
    return all(
        fits(
            amount,
            columns.capacity[slot].item(row),
            columns.claimed[slot].item(row),
            columns.external[slot].item(row),
            columns.minimum[slot].item(row),
            columns.maximum[slot].item(row),
            columns.step[slot].item(row),
        )
        for slot, amount in resources.items()
    )


def _roots(columns: Columns, row: int, needs: PoolDemand, plan: Plan) -> frozenset[int]:
    """Return the parts with traits that the host's own traits suit."""
    if not plan.of_root:
        return NO_PARTS
    return frozenset(index for index in plan.of_root if _root_has_traits(columns, row, needs, index))


def _short_of_memory(columns: Columns, row: int, needs: PoolDemand, plan: Plan) -> frozenset[tuple[int, int]]:
    """Return the parts and places of which the place has less memory than the part's `real_mb`."""
    if not columns.ratios or not any(part.real_mb for part in needs.parts):
        return NOTHING_SHORT
    return frozenset(
        (index, option.place)
        for index, part in enumerate(needs.parts)
        if part.real_mb
        for option in plan.options[index]
        if unscaled_free_on(columns, f"{plan.places[option.place]}/MEMORY_MB", row) < part.real_mb
    )


def _search_state(
    needs: PoolDemand,
    plan: Plan,
    free_slots: FreeSlots,
    roots: frozenset[int],
    covered: int,
    short: frozenset[tuple[int, int]] = NOTHING_SHORT,
) -> SearchState | None:
    """Return the empty state of a host; None if a part has no room even by itself, or all parts together have none."""
    state = SearchState(needs, plan, free_slots, covered)
    for index, (part, options) in enumerate(zip(needs.parts, plan.options, strict=True)):
        allowed = (one for one in options if state.allows(part, one) and (index, one.place) not in short)
        if free_slots.has_units:
            allowed = (one for one in allowed if free_slots.allows(one.takes))
        has_root = index not in plan.of_root or index in roots
        state.options.append([one for one in allowed if has_root or one.place != ROOT])
        if not state.has_room(index):
            return None
    # Most hosts that a search would reject are rejected here, before its first step.
    return state if classes_suffice(state, range(len(needs.parts))) else None


def _root_has_traits(columns: Columns, row: int, needs: PoolDemand, index: int) -> bool:
    part = needs.parts[index]
    return part.suits({trait for trait in part.traits() if columns.traits[trait][row]})
