"""On small hosts, pool assignments are found exactly if brute force finds one, and each satisfies every rule."""

from hypothesis import assume, given

from redsched.decide.filters.pools import groups, numa, pci
from redsched.decide.filters.resources import resources
from redsched.decide.pools import assignments, is_plain, needs_of
from redsched.decide.rules import ALL_ROWS
from redsched.model import Request
from tests.support.fleets.pool_fleets import planted, pool_hosts, pool_requests, seeds
from tests.support.models.plain_pools import PlainHost, ways

MOST = 20_000
"""The maximum number of combinations that brute force tries; examples with more are skipped."""


PLANTED = 20


def every_way(host: PlainHost, request: Request) -> set[frozenset[tuple[str, int]]]:
    found = ways(host, request, MOST)
    assume(found is not None)
    return found or set()


@given(pool_hosts, pool_requests)
def test_assignments_are_found_if_and_only_if_brute_force_finds_one(host: PlainHost, request: Request) -> None:
    expected = every_way(host, request)
    columns, needs = host.columns(), needs_of(request)
    found = assignments(columns, columns.row("h1") or 0, needs, 3)
    assert bool(found) == bool(expected)
    as_sets = [frozenset(amounts.items()) for amounts in found]
    assert len(set(as_sets)) == len(found) <= 3
    assert set(as_sets) <= expected
    assert needs.given_up == 0


@given(pool_hosts, pool_requests)
def test_cheap_rules_refuse_no_host_that_has_an_assignment(host: PlainHost, request: Request) -> None:
    expected = every_way(host, request)
    columns = host.columns()
    row = columns.row("h1") or 0
    for rule in (rule for one in (resources, groups, numa, pci) for rule in one(request)):
        passes = bool(rule.passes(columns, row))
        assert passes or not expected, rule.detail(columns, row)
        assert passes == bool(rule.passes(columns, ALL_ROWS)[row])
        assert rule.detail(columns, row)


@given(pool_hosts, pool_requests)
def test_a_plain_request_needs_no_search(host: PlainHost, request: Request) -> None:
    """If only the root matters, passing the rules suffices: the amounts are taken from the root as requested."""
    columns, needs = host.columns(), needs_of(request)
    if is_plain(columns, request):
        row = columns.row("h1") or 0
        passes = all(rule.passes(columns, row) for rule in resources(request))
        own = host.places[""].traits
        passes &= request.required <= own and not request.forbidden & own and all(one & own for one in request.any_of)
        assert assignments(columns, row, needs, 2) == ([request.resources] if passes else [])


@given(seeds)
def test_a_way_that_just_fits_is_found_among_many(seed: int) -> None:
    """Hosts are too large for brute force, and some so full that the search has to look ahead and to backtrack."""
    for one in range(seed, seed + PLANTED):
        found = planted(one)
        if found is not None:
            host, request = found
            columns, needs = host.columns(), needs_of(request)
            assert assignments(columns, columns.row("h1") or 0, needs, 1), one
