"""Limits: how many claims a host may have and start at once, by setting and by aggregate."""

import pytest

from redsched.cache.columns import Columns
from redsched.decide.decider import Decider
from redsched.decide.filters.limits import host_limits
from redsched.model import HostLimit, Request
from redsched.settings import Settings
from tests.support.builders.columns import FIELDS, columns_of

HOST = FIELDS | {"min.VCPU": "", "max.VCPU": "", "step.VCPU": "", "claims": "3", "starting": "1"}
MEMBER = HOST | {"aggregate.a": "1", "aggregate.b": "1"}


def fleet(a: dict[str, str] | None = None, b: dict[str, str] | None = None) -> Columns:
    """Return h1 in the aggregates a and b, h2 in none; each has 3 claims, one of them starting."""
    columns = columns_of(h1=MEMBER, h2=HOST)
    for name, metadata in (("a", a or {}), ("b", b or {})):
        columns.declared.put("aggregate", name, {f"meta.{key}": value for key, value in metadata.items()})
    return columns


def reasons(columns: Columns, settings: Settings) -> dict[str, str | None]:
    """Return why each host does not accept another claim."""
    explained = (Decider(columns, settings).explain(Request({"VCPU": 4}), name) for name in columns.names())
    return {one.checks[0].host: one.checks[0].reason for one in explained}


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (Settings(), None),
        (Settings(max_claims_per_host=4), None),
        (Settings(max_claims_per_host=3), "max_claims_per_host"),
        (Settings(max_starting_per_host=2), None),
        (Settings(max_starting_per_host=1), "max_starting_per_host"),
    ],
)
def test_a_host_with_as_many_claims_as_the_setting_says_takes_no_more(settings: Settings, reason: str | None) -> None:
    assert reasons(fleet(), settings) == {"h1": reason, "h2": reason}


@pytest.mark.parametrize(
    ("a", "b", "full"),
    [
        ({"max_claims_per_host": "3"}, {}, True),
        ({"max_claims_per_host": "4"}, {}, False),
        ({"max_claims_per_host": "9"}, {"max_claims_per_host": "3"}, True),
        ({"max_claims_per_host": "3"}, {"max_claims_per_host": "9"}, True),
        ({"max_instances_per_host": "3"}, {}, True),
        ({"max_claims_per_host": "9", "max_instances_per_host": "3"}, {}, True),
        ({"max_claims_per_host": "0"}, {}, False),
        ({"max_claims_per_host": "0"}, {"max_claims_per_host": "3"}, True),
        ({"max_claims_per_host": "many"}, {}, True),
        ({"max_starting_per_host": "1"}, {}, True),
        ({"max_io_ops_per_host": "1"}, {}, True),
        ({"max_io_ops_per_host": "2"}, {}, False),
    ],
)
def test_the_lowest_number_of_a_hosts_aggregates_counts(a: dict[str, str], b: dict[str, str], full: bool) -> None:
    found = reasons(fleet(a, b), Settings())
    assert (found["h1"] is not None) == full
    assert found["h2"] is None


def test_an_aggregate_goes_before_the_setting_up_and_down() -> None:
    columns = fleet({"max_claims_per_host": "9"})
    assert reasons(columns, Settings(max_claims_per_host=2)) == {"h1": None, "h2": "max_claims_per_host"}
    columns = fleet({"max_claims_per_host": "0"})
    assert reasons(columns, Settings(max_claims_per_host=2)) == {"h1": None, "h2": "max_claims_per_host"}
    columns = fleet({"max_claims_per_host": "1"})
    assert reasons(columns, Settings(max_claims_per_host=9)) == {"h1": "max_claims_per_host", "h2": None}


def test_the_numbers_are_reported() -> None:
    columns = fleet({"max_starting_per_host": "1"})
    checks = Decider(columns, Settings()).explain(Request({"VCPU": 4}), "h1").checks[0].checks
    details = {one.name: one.detail for one in checks}
    assert details["max_claims_per_host"] == "has 3 claims, no limit"
    assert details["max_starting_per_host"] == "has 1 claims that are starting, may have 1"


def test_a_claim_gets_the_limits_of_its_host() -> None:
    columns = fleet({"max_claims_per_host": "7", "max_io_ops_per_host": "0"})
    settings = Settings(max_claims_per_host=5, max_starting_per_host=2)
    assert host_limits(columns, columns.row("h1") or 0, settings) == HostLimit(claims=7, starting=None)
    assert host_limits(columns, columns.row("h2") or 0, settings) == HostLimit(claims=5, starting=2)
    assert host_limits(columns, columns.row("h2") or 0, Settings()) == HostLimit()
