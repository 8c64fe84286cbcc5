"""Decisions by array and from cached rows equal those from each host's plain fields, for any fleet and request."""

from collections import Counter
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given, strategies as st

from redsched.cache.diff import difference
from redsched.cache.dirty import DirtyRows
from redsched.decide.decider import Decider
from redsched.decide.explain.nearest import NEAREST
from redsched.model import Request
from redsched.settings import Settings
from tests.support.builders.decisions import hosts_of
from tests.support.fleets.random_fleets import NAMES, fleets, hosts, patches, random_request, requests, seeds
from tests.support.models.plain_reading import (
    Fleet,
    amount_of,
    columns_from,
    lack_of,
    places_in,
    reason_of,
    reasons_besides_amounts,
    score_of,
    take,
    to_next_valid,
)

BEST_ONLY = Settings(pick_from=1, candidates=3)


def plain_order(fleet: Fleet, request: Request) -> list[str]:
    """Return the hosts that fit, best first, computed from plain fields."""
    weights = {"spread": 0.0, "pack": 1.0} if request.policy == "pack" else {}
    fitting = [name for name, fields in fleet.items() if reason_of(name, fields, request) is None]
    return sorted(fitting, key=lambda name: (-score_of(fleet[name], request, **weights), name))


@given(fleets, requests(alternates=50))
def test_candidates_and_alternates_are_the_best_hosts_that_fit(fleet: Fleet, request: Request) -> None:
    decision = Decider(columns_from(fleet), BEST_ONLY).decide(request, Random(0))
    order = plain_order(fleet, request)
    assert [name for place in hosts_of(decision) for name in place] == order[:3]
    assert list(decision.alternates) == order[1:52]
    assert (decision.hosts, decision.fits) == (len(fleet), len(order))


@given(fleets, requests())
def test_every_host_counts_once_under_the_first_reason_against_it(fleet: Fleet, request: Request) -> None:
    explanation = Decider(columns_from(fleet), BEST_ONLY).explain(request)
    expected = Counter(reason_of(name, fields, request) for name, fields in fleet.items())
    fitting = expected.pop(None, 0)
    assert {count.reason: count.hosts for count in explanation.reasons} == expected
    assert (explanation.fits, explanation.hosts) == (fitting, len(fleet))
    assert explanation.fits + sum(count.hosts for count in explanation.reasons) == len(fleet)


@given(fleets, requests())
def test_a_host_is_explained_as_it_is_decided(fleet: Fleet, request: Request) -> None:
    decider = Decider(columns_from(fleet), Settings(pick_from=1, candidates=len(NAMES)))
    decision = decider.decide(request, Random(0))
    candidates = {name for place in hosts_of(decision) for name in place}
    for name in fleet:
        (check,) = decider.explain(request, name).checks
        assert check.host == name
        assert (check.reason is None) == (name in candidates) == all(one.ok for one in check.checks)
        assert check.reason == reason_of(name, fleet[name], request)


@given(fleets, requests())
def test_the_nearest_misses_are_those_that_lack_amounts_alone_and_the_least(fleet: Fleet, request: Request) -> None:
    """Of the hosts that have some of each class, used or not, and whose units leave some amount of it to claim."""
    lacking = {
        name: lack_of(fields, request)
        for name, fields in fleet.items()
        if not reasons_besides_amounts(name, fields, request)
        and all(amount_of(fields, "capacity", slot) for slot in request.resources)
        and all(to_next_valid(fields, slot, amount) is not None for slot, amount in request.resources.items())
        and lack_of(fields, request) > 0
    }
    nearest = Decider(columns_from(fleet), BEST_ONLY).explain(request).nearest
    amounts_alone = [miss for miss in nearest if miss.host in lacking]
    assert list(nearest[: len(amounts_alone)]) == amounts_alone
    # Approximately: near 2^53-1 two shortages may differ by less than the rounding error, and either order is right.
    found = [float(lacking[miss.host]) for miss in amounts_alone]
    assert found == pytest.approx(sorted(map(float, lacking.values()))[:NEAREST], rel=1e-12)


@given(fleets, seeds, st.integers(2, 60), st.integers(1, 4))
def test_all_places_are_found_exactly_when_there_are_enough(
    fleet: Fleet, seed: int, count: int, pick_from: int
) -> None:
    request = random_request(seed, count, alternates=3)
    settings = Settings(pick_from=pick_from, candidates=3)
    decider = Decider(columns_from(fleet), settings)
    decision = decider.decide(request, Random(seed))
    fitting = [name for name in fleet if reason_of(name, fleet[name], request) is None]
    enough = sum(places_in(fleet[name], request) for name in fitting) >= count
    assert (len(decision.places) == count) == enough
    assert bool(decision.places) == enough
    assert (decider.explain(request).fits > 0) == enough
    if not enough:
        assert sum(reason.hosts for reason in decision.reasons) == len(fleet)
    for member in hosts_of(decision):
        assert all(reason_of(name, fleet[name], request) is None for name in member)
        assert len(set(member)) == len(member) <= 3
        take(fleet[member[0]], request)
    assert not {member[0] for member in hosts_of(decision)} & set(decision.alternates)


changes: st.SearchStrategy[tuple[str, str, dict[str, str]]] = st.one_of(
    st.tuples(st.just("put"), st.sampled_from(NAMES), hosts),
    st.tuples(st.just("patch"), st.sampled_from(NAMES), patches),
    st.tuples(st.just("patch"), st.sampled_from(NAMES), patches),
    st.tuples(st.just("remove"), st.sampled_from(NAMES), st.just({})),
)


def change_plainly(fleet: Fleet, what: str, name: str, fields: dict[str, str]) -> None:
    if what == "remove":
        fleet.pop(name, None)
    elif what == "put":
        fleet[name] = dict(fields)
    elif name in fleet:
        fleet[name] = {field: value for field, value in {**fleet[name], **fields}.items() if value}


@given(fleets, st.lists(requests(), min_size=1, max_size=3), st.lists(st.lists(changes, max_size=10), max_size=8))
def test_a_cached_decision_is_what_a_fresh_one_would_be(
    fleet: Fleet, asked: list[Request], rounds: list[list[tuple[str, str, dict[str, str]]]]
) -> None:
    columns = columns_from(fleet)
    columns.dirty = DirtyRows(remembered=16)  # so few that some are forgotten within a test
    with patch("redsched.decide.ranked_rows.FRONT", 2):  # so few that the front runs out
        cached = Decider(columns, Settings(pick_from=2, candidates=2), remembered=2)
        for number, together in enumerate(rounds):
            for what, name, fields in together:
                change_plainly(fleet, what, name, fields)
                if what == "put":
                    columns.put(name, fields)
                elif what == "remove":
                    columns.remove(name)
                elif name in columns:
                    columns.patch(name, fields)
            fresh_columns = columns_from(fleet)
            assert difference(columns, fresh_columns) == []
            fresh = Decider(fresh_columns, Settings(pick_from=2, candidates=2))
            for request in asked:
                assert cached.decide(request, Random(number)) == fresh.decide(request, Random(number))
                assert cached.explain(request) == fresh.explain(request)
