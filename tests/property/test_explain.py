"""What an explanation tells to change really makes the host take the request, and less of it would not."""

from dataclasses import replace
from random import Random

from hypothesis import given

from redsched.decide import Decider
from redsched.decide.explain.changes import smallest_change
from redsched.decide.shape import Shape
from redsched.decide.tools import tools
from redsched.decide.weighers import multipliers
from redsched.model import Request
from redsched.settings import Settings
from tests.support.fleets import fleets, requests
from tests.support.plain_reading import Fleet, columns_from, reason_of

SETTINGS = Settings(pick_from=1)
TOOLS = tools(SETTINGS)


def takes(fleet: Fleet, request: Request, host: str) -> bool:
    """Whether a host takes a request, by a decision of its own over columns of its own."""
    alone = replace(request, hosts=request.hosts | {host} if request.hosts else frozenset({host}), count=1)
    only = {host: fleet[host]}
    return bool(Decider(columns_from(only), SETTINGS, TOOLS).decide(alone, Random(0)).places)


@given(fleets, requests())
def test_the_changes_of_a_miss_make_it_take_the_request(fleet: Fleet, request: Request) -> None:
    columns = columns_from(fleet)
    shape = Shape(columns, request, multipliers(request, TOOLS), TOOLS.filters)
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
        cut = [change.split() for change in miss.changes if change.endswith(" less")]
        for amount, name, _ in cut:
            left = {**request.resources, name: request.resources[name] - int(amount) + _step(fleet[miss.host], name)}
            more = replace(request, resources=left)
            assert reason_of(miss.host, fleet[miss.host], more) is not None


def _step(fields: dict[str, str], slot: str) -> int:
    return int(fields.get(f"step.{slot}") or 1)
