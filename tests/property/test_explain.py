"""Explanations agree with decisions; the changes that they suggest make a host fit, and smaller ones would not."""

from dataclasses import replace
from random import Random
from unittest.mock import patch

from hypothesis import given

from redsched.cache.columns import Columns
from redsched.decide.decider import Decider
from redsched.decide.plugins.registry import multipliers, plugin_registry
from redsched.decide.profile import RequestProfile
from redsched.model import Request, Spread
from redsched.settings import Settings
from redsched.store.codec.keys import Kind
from tests.support.builders.columns import columns_of
from tests.support.builders.decisions import smallest_change
from tests.support.fleets import pool_fleets
from tests.support.fleets.filter_fleets import filtered_request, random_world
from tests.support.fleets.random_fleets import NAMES, ZONES, fleets, requests, seeds
from tests.support.models.plain_reading import Fleet, columns_from, reason_of

SETTINGS = Settings(pick_from=1)
TOOLS = plugin_registry(SETTINGS)


def takes(fleet: Fleet, request: Request, host: str) -> bool:
    """Return whether a host takes a request, by a new decision over columns with this host alone."""
    alone = replace(request, hosts=request.hosts | {host} if request.hosts else frozenset({host}), count=1)
    only = {host: fleet[host]}
    return bool(Decider(columns_from(only), SETTINGS, TOOLS).decide(alone, Random(0)).places)


@given(fleets, requests())
def test_the_changes_of_a_miss_make_it_take_the_request(fleet: Fleet, request: Request) -> None:
    columns = columns_from(fleet)
    shape = RequestProfile(columns, request, multipliers(request, TOOLS), TOOLS.filters)
    for miss in Decider(columns, SETTINGS, TOOLS).explain(request).nearest:
        row = columns.row(miss.host)
        assert row is not None
        edits = smallest_change(shape, row)
        assert miss.changes == tuple(edit.says for edit in edits)
        assert reason_of(miss.host, fleet[miss.host], request) is not None
        if edits:
            assert takes(fleet, edits[-1].request, miss.host)
        for edit in edits[:-1]:
            assert not takes(fleet, edit.request, miss.host)


@given(fleets, requests())
def test_an_amount_is_not_cut_by_more_than_it_must_be(fleet: Fleet, request: Request) -> None:
    columns = columns_from(fleet)
    for miss in Decider(columns, SETTINGS, TOOLS).explain(request).nearest:
        cut = [change.split() for change in miss.changes if " less" in change]
        for amount, name, *_ in cut:
            left = {**request.resources, name: request.resources[name] - int(amount) + _step(fleet[miss.host], name)}
            more = replace(request, resources=left)
            assert reason_of(miss.host, fleet[miss.host], more) is not None


def _step(fields: dict[str, str], slot: str) -> int:
    return int(fields.get(f"step.{slot}") or 1)


# The same for fleets and requests with pools, aggregates and affinity


def pools_and_request(seed: int) -> tuple[Columns, Request]:
    """Return up to five hosts with their own and shared pools, and a request for pools."""
    rng = Random(seed)
    hosts = [pool_fleets.random_host(rng.getrandbits(32)) for _ in range(rng.randint(1, 5))]
    columns = columns_of(**{f"h{number}": host.fields() for number, host in enumerate(hosts)})
    for name, place in hosts[0].shared.items():
        fields = {"version": "1"} | {f"aggregate.{one}": "1" for one in place.aggregates}
        for resource_class, slot in place.slots.items():
            fields |= slot.fields(resource_class)
        columns.declared.put(Kind.POOL, name, fields)
    return columns, pool_fleets.random_request(rng.getrandbits(32))


def affinity_and_request(seed: int) -> tuple[Columns, Request]:
    """Return hosts, aggregates and a server group with members, and a request that may use the group and spread."""
    rng = Random(seed)
    columns = random_world(rng.randint(1, 8), rng.getrandbits(32)).columns()
    fields = {"version": "1", "policy": rng.choice(("affinity", "anti-affinity")), "max_per_host": "1"}
    fields |= {"by": rng.choice(("host", "zone"))}
    fields |= {f"count.host={name}": "1" for name in rng.sample(NAMES, 2)}
    columns.declared.put(Kind.SERVER_GROUP, "web", fields | {f"count.zone={ZONES[0]}": "2", "members": "2"})
    request = filtered_request(rng.getrandbits(32))
    if rng.random() < 0.7:
        request = replace(request, labels={}, query=(), aggregate_metadata={}, member_of=(), properties={})
    if rng.random() < 0.5:
        request = replace(request, zones=frozenset(rng.sample(ZONES, 1)))
    spread = (Spread("zone", 1),) if rng.random() < 0.5 else ()
    return columns, replace(request, server_group=rng.choice(("web", "web", "")), spread=spread)


def fits_on(columns: Columns, request: Request, host: str) -> bool:
    """Return whether a host takes a request, by a new explanation over all columns."""
    (check,) = Decider(columns, SETTINGS, TOOLS).explain(request, host).checks
    return check.reason is None


def less_by_one(before: Request, after: Request) -> Request | None:
    """Return `after` with one unit more of the first amount that is less than in `before`; None if there is none."""
    for name, amount in after.resources.items():
        if amount < before.resources[name]:
            return replace(after, resources={**after.resources, name: amount + 1})
    for at, (group, was) in enumerate(zip(after.groups, before.groups, strict=False)):
        for name, amount in group.resources.items():
            if amount < was.resources.get(name, 0):
                more = replace(group, resources={**group.resources, name: amount + 1})
                return replace(after, groups=(*after.groups[:at], more, *after.groups[at + 1 :]))
    return None


def check_explanation(columns: Columns, request: Request) -> None:
    decider = Decider(columns, SETTINGS, TOOLS)
    decision, told = decider.decide(request, Random(0)), decider.explain(request, *columns.names())
    taking = [check.host for check in told.checks if check.reason is None]
    assert told.unsearched == 0
    assert (bool(decision.places), decision.reasons) == (bool(taking), () if taking else told.reasons)
    assert told.fits == len(taking) == told.hosts - sum(one.hosts for one in told.reasons)
    shape = RequestProfile(columns, request, multipliers(request, TOOLS), TOOLS.filters)
    for miss in told.nearest:
        row = columns.row(miss.host)
        assert row is not None
        assert miss.host not in taking
        check_changes(columns, request, shape, row)


def check_changes(columns: Columns, request: Request, shape: RequestProfile, row: int) -> None:
    host, before = columns.name(row), request
    edits = smallest_change(shape, row)
    for edit in edits:
        assert fits_on(columns, edit.request, host) == (edit is edits[-1]), edit.says
        more = less_by_one(before, edit.request) if " less" in edit.says else None
        assert more is None or more == before or not fits_on(columns, more, host), edit.says
        before = edit.request


@given(seeds)
def test_with_pools_an_explanation_is_the_decision_and_its_changes_help_and_are_small(seed: int) -> None:
    check_explanation(*pools_and_request(seed))


@given(seeds)
def test_with_affinity_an_explanation_matches_the_decision_and_its_changes_are_small(seed: int) -> None:
    check_explanation(*affinity_and_request(seed))


@given(seeds)
def test_where_not_all_pools_are_searched_the_counts_are_bounds(seed: int) -> None:
    columns, request = pools_and_request(seed)
    exact = Decider(columns, SETTINGS, TOOLS).explain(request)
    with patch("redsched.decide.pool_assignments.SEARCHED", 1):
        told = Decider(columns, SETTINGS, TOOLS).explain(request)
    assert told.fits - told.unsearched <= exact.fits <= told.fits
    assert told.hosts == exact.hosts == told.fits + sum(one.hosts for one in told.reasons)
