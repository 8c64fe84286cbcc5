"""Parsing of a query: nested lists, an operator first, validated completely before any comparison.

The meaning is that of nova.scheduler.filters.json_filter, whose comparisons compare their first argument with all
others: `["<", 1, "$free.VCPU", "$free.PCPU"]` is true if both are above 1. It differs where Nova's behaviour is
accidental: an attribute that the host lacks makes a comparison false instead of being omitted; a `not` within an `and`
negates (in Nova it is always true there); a meaningless query is an error at once, not a failed request later.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_, eq, or_
from typing import Any

from redsched.cache.columns import Columns
from redsched.decide.expression.compare import RELATIONS, Test, compared, one_of
from redsched.decide.expression.operands import Operand, operand
from redsched.decide.rules import Mask, Rows
from redsched.decide.text_match import everywhere
from redsched.decide.work_limit import check_work
from redsched.errors import InvalidRequest
from redsched.model.limits import MAX_QUERY_DEPTH, MAX_QUERY_ENTRIES
from redsched.model.validation import shown

_OPERATORS = "use = < > <= >= in and or not"


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled query: `passes(columns, rows)`, with its `text` and its variables for messages."""

    passes: Test
    text: str
    variables: tuple[Operand, ...]

    def values_text(self, columns: Columns, row: int) -> str:
        """Return the values of its variables at one host, as text."""
        return (
            ", ".join(f"{one.name} is {one.values_text(columns, row)}" for one in self.variables) or "nothing is asked"
        )


def compile_expression(query: Sequence[Any]) -> Expression:
    """Compile a query of nested tuples or lists.

    Raises InvalidRequest, with the location as in `query[2][1]`, for an unknown operator or variable, an empty list, or
    a query that is too large.
    """
    _check_size(query)
    variables: dict[str, Operand] = {}
    passes = _node("query", query, variables)
    return Expression(passes, json.dumps(query), tuple(variables.values()))


def _check_size(query: Any) -> None:
    nodes, level, depth = 0, [query], 0
    while level:
        nodes, depth = nodes + len(level), depth + 1
        if nodes > MAX_QUERY_ENTRIES or depth > MAX_QUERY_DEPTH + 1:
            raise InvalidRequest(
                f"query is too large: use at most {MAX_QUERY_ENTRIES} entries and {MAX_QUERY_DEPTH} levels"
            )
        level = [one for within in level if isinstance(within, tuple | list) for one in within]


def _node(at: str, value: Any, variables: dict[str, Operand]) -> Test:
    if isinstance(value, bool):
        return lambda columns, rows: everywhere(columns, rows) & value
    if not isinstance(value, tuple | list) or not value:
        raise InvalidRequest(f"{at} is {shown(value)}: use a list with an operator first, or true or false")
    name, *arguments = value
    if not isinstance(name, str) or name not in (*_COMBINE, *RELATIONS, "in"):
        raise InvalidRequest(f"{at}[0] is {shown(name)}, which is not an operator: {_OPERATORS}")
    if name in _COMBINE:
        return _combined(at, name, arguments, variables)
    return _comparison(at, name, arguments, variables)


def _combined(at: str, name: str, arguments: list[Any], variables: dict[str, Operand]) -> Test:
    if not arguments:
        raise InvalidRequest(f"{at}: {name} has no arguments: give it at least one list")
    tests = [_node(f"{at}[{number}]", one, variables) for number, one in enumerate(arguments, 1)]
    return _COMBINE[name](tests)


def _all(tests: list[Test]) -> Test:
    return lambda columns, rows: reduce(and_, _results(tests, columns, rows))


def _any(tests: list[Test]) -> Test:
    return lambda columns, rows: reduce(or_, _results(tests, columns, rows))


def _results(tests: list[Test], columns: Columns, rows: Rows) -> Iterator[Mask]:
    for test in tests:
        check_work("testing the query")
        yield test(columns, rows)


def _not(tests: list[Test]) -> Test:
    # Nova negates each argument, and takes a list with a true item as true.
    every = _all(tests)
    return lambda columns, rows: ~every(columns, rows)


_COMBINE: dict[str, Callable[[list[Test]], Test]] = {"and": _all, "or": _any, "not": _not}


def _comparison(at: str, name: str, arguments: list[Any], variables: dict[str, Operand]) -> Test:
    if len(arguments) < 2:
        raise InvalidRequest(f"{at}: {name} compares its first argument with the others: give at least two")
    operands = []
    for number, value in enumerate(arguments, 1):
        one = operand(f"{at}[{number}]", value)
        if one.name.startswith("$"):
            variables[one.name] = one
        operands.append(one)
    if name == "in" and (test := one_of(operands[0], operands[1:])):
        return test
    relation = eq if name == "in" else RELATIONS[name]
    first, *others = operands
    tests = [compared(at, relation, first, other) for other in others]
    return _any(tests) if name == "in" else _all(tests)
