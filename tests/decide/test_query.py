"""Queries: the meaning of each operator and variable, and the errors that are found before any host is evaluated."""

import json
from typing import Any

import numpy as np
import pytest

from redsched.cache.columns import Columns
from redsched.decide.expression import compile_expression
from redsched.decide.rules import ALL_ROWS
from redsched.errors import InvalidRequest
from redsched.model import Request
from redsched.requests.parsing import parse
from tests.support.builders.columns import FIELDS, columns_of

H1 = FIELDS | {
    "label.kernel": "5.15",
    "claims": "3",
    "starting": "1",
    "capacity.gpu0/CUSTOM_GPU_MILLI": "1000",
    "claimed.gpu0/CUSTOM_GPU_MILLI": "250",
    "pool.gpu0": "/",
}
H2 = {"version": "1", "status": "draining", "capacity.VCPU": "8"}


def columns() -> Columns:
    """Return h1 with nearly all fields, and h2 with nearly none."""
    return columns_of(h1=H1, h2=H2)


def hosts(query: Any) -> list[str]:
    """Return the hosts for which a query is true, evaluated by array and one by one."""
    replica = columns()
    passes = compile_expression(query).passes
    among = passes(replica, ALL_ROWS)
    names = [name for name in replica.names() if among[replica.row(name)]]
    for name in replica.names():
        row = replica.row(name)
        assert row is not None
        alone = passes(replica, row)
        assert isinstance(alone, np.bool_)
        assert alone == (name in names)
    return names


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ('[">=", "$free.VCPU", 60]', ["h1"]),
        ('["=", "$free.VCPU", 60]', ["h1"]),
        ('["<", "$capacity.VCPU", 9]', ["h2"]),
        ('["=", "$claimed.VCPU", 3]', ["h1"]),
        ('["=", "$external.VCPU", 1]', ["h1"]),
        ('["=", "$free.gpu0/CUSTOM_GPU_MILLI", 750]', ["h1"]),
        ('["<", "$free.CUSTOM_NOWHERE", 1]', ["h1", "h2"]),
        ('["=", "$claims", 3]', ["h1"]),
        ('[">", "$starting", 0]', ["h1"]),
        ('["=", "$host", "h2"]', ["h2"]),
        ('["=", "$status", "draining"]', ["h2"]),
        ('["=", "$zone", "az1"]', ["h1"]),
        ('[">", "$metric.cpu.percent", 12]', ["h1"]),
        ('["<", "$metric.cpu.percent", 1e6]', ["h1"]),
        ('["=", "$label.rack.row", "r4"]', ["h1"]),
        ('[">=", "$label.kernel", 5.2]', []),
        ('[">=", "$label.kernel", 5.1]', ["h1"]),
        ('["<=", "$label.rack.row", 1000000]', []),
        ('["<", "$label.kernel", "6"]', ["h1"]),
        ('["<", "$metric.cpu.percent", "$free.VCPU"]', ["h1"]),
        ('["<", "$label.kernel", "$metric.cpu.percent"]', ["h1"]),
        ('["<", "$host", "$label.rack.row"]', ["h1"]),
        # The first operand is compared with each of the others.
        ('["<", 1, "$claims", "$free.VCPU"]', ["h1"]),
        ('["<", 1, "$claims", "$starting"]', []),
        ('["in", "$zone", "az2", "az1"]', ["h1"]),
        ('["in", "$zone", "az2", "az3"]', []),
        ('["in", 3, "$claims", "$starting"]', ["h1"]),
        ('["in", "$label.kernel", "6", 5.15]', ["h1"]),
        # A variable that a host lacks makes a comparison false; in `in`, only the comparison with that operand.
        ('["=", "$label.nope", "$label.nope"]', []),
        ('["not", ["=", "$label.rack.row", "r4"]]', ["h2"]),
        ('["not", [">=", "$label.rack.row", ""]]', ["h2"]),
        ('["in", "h2", "$label.rack.row", "$host"]', ["h2"]),
        ('["and", [">", "$free.VCPU", 9], ["=", "$zone", "az1"]]', ["h1"]),
        ('["or", [">", "$free.VCPU", 9], ["=", "$host", "h2"]]', ["h1", "h2"]),
        ('["and", ["not", ["=", "$host", "h1"]], [">", "$free.VCPU", 1]]', ["h2"]),
        ('["not", ["=", "$host", "h1"], [">", "$free.VCPU", 1]]', ["h2"]),
        ('["not", ["=", "$host", "h1"], ["=", "$host", "h2"]]', ["h1", "h2"]),
        ('["and", true, ["=", "$host", "h2"]]', ["h2"]),
        ('["or", false, ["=", "$host", "h2"]]', ["h2"]),
        ('["=", 1, 1.0]', ["h1", "h2"]),
        ('["<", "b", "a"]', []),
    ],
)
def test_a_query_is_true_of(query: str, expected: list[str]) -> None:
    assert hosts(json.loads(query)) == expected


@pytest.mark.parametrize(
    ("query", "message"),
    [
        (["~", 1, 2], "query[0] is '~', which is not an operator: use = < > <= >= in and or not"),
        ([5], "query[0] is 5, which is not an operator"),
        (["and", ["or", ["=", 1, 1], "x"]], "query[1][2] is 'x': use a list with an operator first, or true or false"),
        (["and", []], "query[1] is []: use a list"),
        (["and"], "query: and has no arguments"),
        (["=", "$zone"], "query: = compares its first argument with the others: give at least two"),
        (["and", [">", "$fre.VCPU", 1]], "query[1][1]: unknown variable '$fre.VCPU': use $free.CLASS"),
        (["=", "$free", 1], "query[1]: unknown variable '$free'"),
        (["=", "$zone.x", "a"], "unknown variable '$zone.x'"),
        (["=", "$free.VCPUS", 1], "query[1]: '$free.VCPUS': unknown resource class 'VCPUS'"),
        (["=", "$free.pool:lic/CUSTOM_SEAT", 1], "a shared pool belongs to no host"),
        (["=", "$label.a b", "x"], "query[1]: '$label.a b': label 'a b' is not a name"),
        (["=", "$metric.", 1], "metric '' is not a name"),
        (["=", "$free.VCPU", "4"], "query compares $free.VCPU with '4', a number with a string"),
        (["in", "$zone", "az1", 5], "compares $zone with 5, a number with a string"),
        (["=", "$zone", True], "query[2] compares True: use strings, numbers"),
        (["=", "$zone", None], "query[2] compares None"),
        (["=", "$claims", ["=", 1, 1]], "query[2] compares ['=', 1, 1]"),
        (["=", "$claims", float("nan")], "query[2] compares nan"),
        (["=", "$claims", 2**53], "query[2] compares 9007199254740992"),
        (["in", "$zone", *map(str, range(200))], "query is too large: use at most 200 entries"),
    ],
)
def test_a_query_without_meaning_is_an_error_that_says_where(query: Any, message: str) -> None:
    with pytest.raises(InvalidRequest) as raised:
        compile_expression(query)
    assert message in raised.value.detail


def nested(depth: int) -> Any:
    """Return a query with this many nested lists."""
    return ["=", "$host", "h1"] if depth == 1 else ["and", nested(depth - 1)]


def test_a_query_may_be_twenty_lists_deep_and_no_deeper() -> None:
    assert hosts(nested(20)) == ["h1"]
    with pytest.raises(InvalidRequest, match="too large"):
        compile_expression(nested(21))


def test_a_body_may_hold_each_query_that_can_be_compiled() -> None:
    """The parser of request bodies has the same limits."""
    largest = ["in", "$zone", *map(str, range(197))]
    compile_expression(largest)
    for query in (nested(20), largest):
        parse(json.dumps({"resources": {"VCPU": 1}, "query": query}).encode(), Request)
    for query in (nested(21), [*largest, "more"]):
        with pytest.raises(InvalidRequest, match="more than 200 entries, or more than 20 levels"):
            parse(json.dumps({"resources": {"VCPU": 1}, "query": query}).encode(), Request)


def test_a_query_says_what_it_found_at_a_host() -> None:
    query = compile_expression(
        [
            "and",
            [">", "$free.VCPU", "$claims"],
            ["=", "$label.nope", "x"],
            [">", "$metric.cpu.percent", 1],
            ["=", "$claims", 3],
        ]
    )
    replica = columns()
    row = replica.row("h1")
    assert row is not None
    assert (
        query.values_text(replica, row)
        == "$free.VCPU is 60, $claims is 3, $label.nope is none, $metric.cpu.percent is 12.5"
    )
