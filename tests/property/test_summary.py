"""A summary never rules out a cell in which a host fits: for any fleet, declared objects and request."""

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redsched.cache import summarize
from redsched.cache.columns import Columns
from redsched.cache.summarize import summarized
from redsched.decide.decider import Decider
from redsched.decide.summary import hosts_that_may_fit, ruled_out_by
from redsched.model import GangMember, Request
from redsched.settings import Settings
from redsched.store.codec.summary import CellSummary
from tests.support.fleets.filter_fleets import filtered_request, random_world
from tests.support.fleets.pool_fleets import pool_hosts, pool_requests
from tests.support.fleets.random_fleets import NAMES, fleets, requests, seeds
from tests.support.models.plain_pools import PlainHost
from tests.support.models.plain_reading import Fleet, columns_from
from tests.support.profiles import is_long

SETTINGS = Settings()
SEEDS = 400 if is_long() else 80
TAKERS = st.sampled_from((lambda one: one, lambda one: Request({}, members=(GangMember("m", one),))))


def check(columns: Columns, request: Request) -> None:
    """Fail if the summary, as it is read back from its hash, rules out a request that has a place."""
    summary = CellSummary.parse(summarized(columns).fields())
    assert summary is not None
    decider = Decider(columns, SETTINGS)
    if decider.decide(request, Random(1)).places:
        assert ruled_out_by([summary], request) == ""
        assert hosts_that_may_fit(summary, request) >= (1 if request.members else decider.explain(request).fits)
    if hosts_that_may_fit(summary, request) == 0:
        assert ruled_out_by([summary], request)


@given(fleets, requests(), TAKERS)
def test_no_fleet_is_ruled_out_wrongly(fleet: Fleet, request: Request, taker: Callable[[Request], Request]) -> None:
    check(columns_from(fleet), taker(request))


@given(st.builds(random_world, st.integers(1, len(NAMES)), seeds).map(lambda world: world.columns()), seeds)
def test_traits_and_aggregates_are_not_ruled_out_wrongly(columns: Columns, seed: int) -> None:
    check(columns, filtered_request(seed))


@given(pool_hosts, pool_requests, TAKERS)
def test_pools_are_not_ruled_out_wrongly(
    host: PlainHost, request: Request, taker: Callable[[Request], Request]
) -> None:
    check(host.columns(), taker(request))


@pytest.mark.parametrize(("rooms", "names"), [(1, 1), (3, 2), (8, 128)])
def test_a_summary_that_is_cut_for_its_size_rules_out_less(
    rooms: int, names: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summarize, "MAX_ROOMS", rooms)
    monkeypatch.setattr(summarize, "MAX_NAMES", names)
    for seed in range(SEEDS):
        columns = random_world(1 + seed % len(NAMES), seed).columns()
        check(columns, filtered_request(seed))
        check(columns, Request({"VCPU": seed % 24 + 1, "MEMORY_MB": seed % 7 + 1, "CUSTOM_A": 1}))
