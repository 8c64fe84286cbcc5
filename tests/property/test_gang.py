"""Gangs on tiny fleets against brute force: found exactly if a placement exists, and satisfying every rule."""

from contextlib import suppress
from random import Random
from typing import Any

import pytest
from hypothesis import given

from redsched.cache.columns import Columns
from redsched.decide.decider import Decider
from redsched.decide.gang.queue import Queue
from redsched.decide.result import Decision
from redsched.model import Request
from redsched.settings import Settings
from tests.support.fleets.gang_fleets import columns_of_tiny, random_call, random_tiny
from tests.support.fleets.random_fleets import seeds
from tests.support.models.brute_force import TinyFleet, broken, broken_but_for_spread, placings, seats_of


def decided(seed: int, mode: str = "all") -> tuple[TinyFleet, Request, Decision]:
    rng = Random(seed)
    fleet = random_tiny(rng)
    call = random_call(rng, fleet, mode)
    settings = Settings(pick_from=rng.choice((1, 4)), candidates=rng.choice((1, 3, 8)))
    return fleet, call, Decider(columns_of_tiny(fleet), settings).decide(call, rng)


@given(seeds)
def test_a_gang_is_found_exactly_where_there_is_one_and_breaks_no_rule(seed: int) -> None:
    fleet, call, decision = decided(seed)
    if not decision.places:
        assert next(placings(fleet, call), None) is None
        assert decision.reasons
        return
    seats = seats_of(call)
    assert [place.member for place in decision.places] == [seat.member for seat in seats]
    hosts = [place.chosen.host for place in decision.places]
    assert broken(fleet, call, list(zip(seats, hosts, strict=True))) == ""


@given(seeds)
def test_every_candidate_fits_beside_the_first_of_all_other_places(seed: int) -> None:
    fleet, call, decision = decided(seed)
    seats, hosts = seats_of(call), [place.chosen.host for place in decision.places]
    for at, place in enumerate(decision.places):
        for candidate in place.candidates:
            assert candidate.amounts == seats[at].request.resources
            others = [*hosts[:at], candidate.host, *hosts[at + 1 :]]
            assert broken_but_for_spread(fleet, call, list(zip(seats, others, strict=True))) == ""


@given(seeds)
def test_what_an_incremental_gang_gets_breaks_no_rule(seed: int) -> None:
    fleet, call, decision = decided(seed, "incremental")
    seats = seats_of(call)
    placed = []
    for place in decision.places:
        at = next(at for at, seat in enumerate(seats) if seat.member == place.member)
        placed.append((seats.pop(at), place.chosen.host))
    assert broken(fleet, call, placed) == ""
    whole = decided(seed)[2]
    assert (
        len(decision.places) == len(whole.places) if whole.places else bool(decision.places) != bool(decision.reasons)
    )


def replica_of(columns: Columns) -> list[object]:
    """Return a copy of everything that an overlay may change."""
    families = [sorted((slot, family[slot].tolist()) for slot in family) for family in columns.amounts.values()]
    groups = [(name, state.describe()) for name, state in columns.declared.groups.items()]
    return [families, columns.claims.tolist(), columns.starting.tolist(), groups]


@given(seeds)
def test_the_columns_are_as_they_were_when_it_is_over(seed: int) -> None:
    rng = Random(seed)
    fleet = random_tiny(rng)
    columns = columns_of_tiny(fleet)
    before = replica_of(columns)
    Decider(columns, Settings()).decide(random_call(rng, fleet, rng.choice(("all", "incremental"))), rng)
    assert replica_of(columns) == before


@given(seeds)
def test_the_columns_are_as_they_were_when_something_breaks(seed: int) -> None:
    rng = Random(seed)
    fleet = random_tiny(rng)
    columns = columns_of_tiny(fleet)
    before = replica_of(columns)
    call, left = random_call(rng, fleet), [rng.randint(0, 12)]
    whole = Queue._option

    def breaking(self: Queue, *arguments: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise ZeroDivisionError
        return whole(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Queue, "_option", breaking)
        with suppress(ZeroDivisionError):
            Decider(columns, Settings()).decide(call, rng)
    assert replica_of(columns) == before
