"""How many places of a request each host has room for, where the places on one host do not change those on others.

Each host is filled in turn with the assignments to pools that decisions would choose, and emptied again. Hosts whose
pools are equal, and equally used, are filled once. Without pools, the number follows from the amounts.
"""

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass

import numpy as np

from redsched.cache.columns import Columns
from redsched.decide.filters.limits import host_limits
from redsched.decide.gang.order import places_on
from redsched.decide.overlay import Overlay
from redsched.decide.profile import RequestProfile
from redsched.decide.scoring.demand import demand
from redsched.decide.work_limit import check_work
from redsched.model import Amounts, Candidate, Request
from redsched.model.validation import split_slot
from redsched.settings import Settings


@dataclass(frozen=True, slots=True)
class HostRoom:
    """The places that fit on a row, at least one, and the amounts that they take together."""

    row: int
    places: int
    amounts: Amounts


def counts_by_host(profile: RequestProfile) -> bool:
    """Return whether each host has its own room: neither a group, a spread nor a shared pool relates it to others."""
    request, pools = profile.request, profile.columns.declared.pools.values()
    if request.members or request.count > 1 or request.server_group or request.spread:
        return False
    asked = _classes(request)
    if any(asked & one.slots.keys() for one in pools):
        return False
    return all(rule.local for rule in profile.fitting.dynamic_rules())


def rooms(profile: RequestProfile, most: int, settings: Settings) -> Iterator[HostRoom]:
    """Yield the hosts that take at least one place, each with all places that fit there, up to `most` in all.

    Only for a request for which `counts_by_host`. The columns are as before at each yield. Raises TooMuchWork.
    """
    known: dict[Hashable, tuple[int, Amounts]] = {}
    rows = profile.fitting.open_rows()
    for row, by_amounts in zip(rows.tolist(), places_on(profile, rows).tolist(), strict=True):
        check_work("counting the places on hosts")
        if profile.pools.is_plain:
            places = _plain(profile, row, min(by_amounts, most))
            amounts: Amounts = {slot: amount * places for slot, amount in profile.request.resources.items()}
        else:
            key = _state(profile.columns, row, settings)
            if key not in known:
                known[key] = _filled(profile, row, most)
            places, amounts = known[key]
        if places:
            yield HostRoom(row, places, amounts)
            most -= places
        if most <= 0:
            return


def _plain(profile: RequestProfile, row: int, most: int) -> int:
    """Return the places on a host without pools: as many as the amounts allow, unless another rule stops earlier."""
    if most <= 1 or _takes_one_beside(profile, row, most - 1):
        return most
    low, high = 1, most - 1  # with `low - 1` beside it the next one passes, with `high` it does not
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if _takes_one_beside(profile, row, middle) else (low, middle)
    return low


def _takes_one_beside(profile: RequestProfile, row: int, places: int) -> bool:
    """Return whether a host takes one more place beside so many."""
    columns, request = profile.columns, profile.request
    whole = Candidate(columns.name(row), {slot: amount * places for slot, amount in request.resources.items()})
    with Overlay(columns) as overlay:
        overlay.take(row, whole)
        columns.claims[row] += places - 1
        columns.starting[row] -= 1
        try:
            return profile.fitting.passes_all_now(row)
        finally:
            columns.claims[row] -= places - 1
            columns.starting[row] += 1


def _filled(profile: RequestProfile, row: int, most: int) -> tuple[int, Amounts]:
    """Return the places on a host with pools, and their amounts together."""
    columns, starting = profile.columns, profile.columns.starting.item(row)
    taken, places = Counter[str](), 0
    try:
        with Overlay(columns) as overlay:
            while places < most and profile.fitting.passes_all_now(row) and (ways := profile.pools.now(row)):
                check_work("filling the pools of hosts")
                overlay.take(row, Candidate(columns.name(row), ways[0]))
                columns.starting[row] = starting  # a limit on claims that are starting says nothing about room
                taken.update(ways[0])
                places += 1
    finally:
        columns.starting[row] = starting
    return places, taken


def _state(columns: Columns, row: int, settings: Settings) -> Hashable:
    """Return a key that is equal for rows that take the same: all numbers, the tree of pools, traits, and limits."""
    slots = [slot for slot in columns.capacity if columns.capacity[slot][row]]
    amounts = np.array([family.at(row, slots) for family in columns.amounts.values()], np.int64).tobytes()
    ratios = tuple(columns.ratios.at(row, slots))
    traits = tuple(columns.traits.at(row, columns.traits))
    counts = columns.claims.item(row), columns.starting.item(row), host_limits(columns, row, settings)
    return columns.trees.text(row), tuple(slots), amounts, ratios, traits, counts


def _classes(request: Request) -> frozenset[str]:
    return frozenset(split_slot(slot)[1] for slot in demand(request))
