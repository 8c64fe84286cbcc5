"""Every filter rule decides by array as it does from each host's plain fields, for any fleet and request."""

from functools import cache

import numpy as np
from hypothesis import given, strategies as st

from redsched.cache.columns import Columns
from redsched.decide.filters import rules_of
from redsched.decide.filters.aggregates import aggregate_metadata, member_of
from redsched.decide.filters.demands import demands
from redsched.decide.filters.hints import network
from redsched.decide.filters.labels import labels
from redsched.decide.filters.limits import host_limits, limits_filter
from redsched.decide.filters.query import query
from redsched.decide.filters.traits import traits
from redsched.decide.rules import ALL_ROWS, Rule
from redsched.model import Request
from redsched.settings import Settings
from tests.support.fleets.filter_fleets import (
    World,
    declare,
    filtered_request,
    random_around,
    random_limits,
    random_world,
)
from tests.support.fleets.random_fleets import NAMES, seeds
from tests.support.models.plain_filters import Around, Limits, aggregates_of, limit, verdicts

worlds = st.builds(random_world, st.integers(1, len(NAMES)), seeds)
requests = seeds.map(filtered_request)
limits = seeds.map(random_limits)
arounds = seeds.map(random_around)

ABOUT = (network, member_of, demands, aggregate_metadata, traits, labels, query)


@cache  # constructing settings reads the environment, which would dominate the test's duration
def settings_of(one: Limits) -> Settings:
    return Settings(max_claims_per_host=one.claims, max_starting_per_host=one.starting)


def rules_by_reason(request: Request, settings: Settings) -> dict[str, Rule]:
    return {rule.reason: rule for rule in rules_of(request, (*ABOUT, limits_filter(settings)))}


def found(rules: dict[str, Rule], columns: Columns, name: str) -> dict[str, bool]:
    row = columns.row(name)
    assert row is not None
    return {reason: bool(rule.passes(columns, row)) for reason, rule in rules.items()}


@given(worlds, requests, limits)
def test_every_rule_says_of_a_host_what_its_fields_say(world: World, request: Request, most: Limits) -> None:
    columns, rules = world.columns(), rules_by_reason(request, settings_of(most))
    for name, fields in world.fleet.items():
        assert found(rules, columns, name) == verdicts(name, fields, world.around, request, most)


@given(worlds, requests, limits)
def test_a_row_passes_alone_as_it_does_among_others(world: World, request: Request, most: Limits) -> None:
    columns = world.columns()
    rows = np.flatnonzero(columns.present)[::2]
    for rule in rules_by_reason(request, settings_of(most)).values():
        everywhere = rule.passes(columns, ALL_ROWS)
        assert everywhere.dtype == np.bool_
        assert everywhere.shape == (columns.size,)
        assert rule.passes(columns, rows).tolist() == everywhere[rows].tolist()
        for row in np.flatnonzero(columns.present).tolist():
            alone = rule.passes(columns, row)
            assert isinstance(alone, np.bool_), rule.reason
            assert alone == everywhere[row], rule.reason


@given(worlds, requests, limits)
def test_every_rule_finds_words_for_every_host(world: World, request: Request, most: Limits) -> None:
    columns = world.columns()
    for rule in rules_by_reason(request, settings_of(most)).values():
        for name in world.fleet:
            row = columns.row(name)
            assert row is not None
            assert rule.detail(columns, row).strip()


@given(worlds, requests, limits, arounds)
def test_a_rule_that_is_kept_follows_what_is_declared_and_owns_up_to_it(
    world: World, request: Request, most: Limits, later: Around
) -> None:
    columns, rules = world.columns(), rules_by_reason(request, settings_of(most))
    before = {name: found(rules, columns, name) for name in world.fleet}
    depended = {reason: rule.depends(columns) for reason, rule in rules.items()}
    declare(columns, later)
    for name, fields in world.fleet.items():
        after = found(rules, columns, name)
        assert after == verdicts(name, fields, later, request, most)
        for reason in rules:
            assert after[reason] == before[name][reason] or rules[reason].depends(columns) != depended[reason]


@given(worlds, limits)
def test_the_limits_for_the_claim_are_those_that_the_rules_hold_to(world: World, most: Limits) -> None:
    columns = world.columns()
    for name, fields in world.fleet.items():
        row = columns.row(name)
        assert row is not None
        mine = {one: world.around.aggregates.get(one, {}) for one in aggregates_of(fields)}
        claims = limit(mine, ("max_claims", "max_instances"), most.claims)
        starting = limit(mine, ("max_starting", "max_io_ops"), most.starting)
        told = host_limits(columns, row, settings_of(most))
        assert (told.claims if told.claims is not None else float("inf")) == claims
        assert (told.starting if told.starting is not None else float("inf")) == starting
