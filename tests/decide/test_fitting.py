"""The hosts that a request fits on now: those for which the explanation finds no failing check."""

from random import Random
from typing import Any

from hypothesis import given, strategies as st

from redsched.cache.columns import Columns
from redsched.decide.decider import Decider
from redsched.decide.steps import finished
from redsched.model import Request
from redsched.settings import Settings
from tests.decide.test_note_text import CHANGES, SHAPES, fleet


def expected(columns: Columns, request: Request) -> set[str]:
    names = columns.names_where()
    checked = Decider(columns, Settings()).explain(request, *names).checks
    return {one.host for one in checked if all(check.ok for check in one.checks)}


@given(st.lists(st.tuples(CHANGES, st.sampled_from(SHAPES)), min_size=1, max_size=6))
def test_they_are_those_that_pass_every_check(steps: list[Any]) -> None:
    columns = fleet(20)
    decider = Decider(columns, Settings())
    for changes, request in steps:
        for number, fields in changes:
            columns.put(f"h{number:03}", fields)
        found = finished(decider.fitting_steps(request))
        assert found == expected(columns, request)
        assert bool(found) == bool(decider.decide(request, Random(0)).places)


def test_hosts_that_change_between_two_steps_are_looked_at_as_they_are() -> None:
    columns = fleet(200)
    request = SHAPES[3]
    steps = Decider(columns, Settings()).fitting_steps(request)
    next(steps)
    for number in range(100, 200):
        columns.remove(f"h{number:03}")
    assert finished(steps) <= set(columns.names_where())
