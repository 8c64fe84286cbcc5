"""Conditions on a label or metadata value: a plain text, one of the operators of Nova's extra specs, or <like>.

The operators are those of Nova's extra_specs_ops, with < > and <range-in> of oslo_utils.specs_matcher, which Nova reads
as plain texts. docs/constraints.md lists the differences; tests/oracle compares the verdicts with Nova's.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import contains, eq, ge, gt, le, lt, ne
from typing import Any

from redsched.errors import InvalidRequest

Matches = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Condition:
    """A parsed condition. `matches(text)` tests a non-empty text; `text` is the condition as the caller wrote it."""

    text: str
    matches: Matches
    plain: bool = False
    """Whether only exactly this text matches, so that codes may be compared instead."""
    of_list: bool = False
    """Whether it tests the items of a list together, which must not be split before."""


_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {"==": eq, "!=": ne, ">=": ge, "<=": le, ">": gt, "<": lt}
_NUMERIC: Mapping[str, Callable[[float, float], bool]] = {
    "=": ge,  # Nova's oldest operator, which means >= despite its look
    **_COMPARED,
}
_TEXTUAL: Mapping[str, Callable[[str, str], bool]] = {
    **{f"s{sign}": compared for sign, compared in _COMPARED.items()},
    "<in>": contains,
}
# Where one operator is a prefix of another, the longer one comes first.
_OPERATOR = re.compile(r"\s*(<all-in>|<range-in>|<like>|<or>|<in>|s==|s!=|s>=|s<=|s>|s<|==|!=|>=|<=|=|>|<)")
_RANGE = re.compile(r"([\[(])\s*(\S+)\s+(\S+?)\s*([\])])\Z")


def condition(what: str, text: str) -> Condition:
    """Parse a condition. `what` names its subject in errors, such as "label 'rack'".

    Raises InvalidRequest if an operator has no operand, or a numeric operator one that is not a number.
    """
    found = _OPERATOR.match(text)
    if found is None:
        return Condition(text, lambda have: have == text, plain=True)
    operator, rest = found[1], text[found.end() :].strip()
    if not rest:
        raise InvalidRequest(f"{what}: the operator {operator!r} has no value after it, as in {operator + ' 5'!r}")
    return Condition(text, _matches(what, operator, rest), of_list=operator == "<all-in>")


def number_of(text: str) -> float:
    """Return the finite number in a text; NaN, which compares false with every number, if there is none."""
    try:
        number = float(text)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan


def _matches(what: str, operator: str, rest: str) -> Matches:
    if operator in _NUMERIC:
        return _compares(_NUMERIC[operator], _wanted(what, operator, rest))
    if operator in _TEXTUAL:
        compare = _TEXTUAL[operator]
        return lambda have: compare(have, rest)
    if operator == "<or>":
        return _one_of(what, rest)
    if operator == "<like>":
        return _like(rest)
    return _holds_all(rest) if operator == "<all-in>" else _in_range(what, rest)


def _wanted(what: str, operator: str, text: str) -> float:
    number = number_of(text)
    if math.isnan(number):
        raise InvalidRequest(
            f"{what}: {operator} compares numbers, and {text[:80]!r} is not a number; "
            "for strings use s== s!= s< s<= s> s>= <in> <or> <all-in> <like>"
        )
    return number


def _compares(compare: Callable[[float, float], bool], want: float) -> Matches:
    def matches(text: str) -> bool:
        have = number_of(text)
        return not math.isnan(have) and compare(have, want)

    return matches


def _one_of(what: str, rest: str) -> Matches:
    wanted = frozenset(one.strip() for one in rest.split("<or>"))
    if "" in wanted:
        raise InvalidRequest(f"{what}: an <or> has no value after it: write '<or> a <or> b'")
    return lambda have: have in wanted


def _holds_all(rest: str) -> Matches:
    wanted = frozenset(rest.split())
    return lambda have: wanted <= _words(have)


def _words(text: str) -> frozenset[str]:
    return frozenset(one.strip("'\"") for one in text.strip(" []").replace(",", " ").split())


def _like(rest: str) -> Matches:
    pattern = re.compile(".*".join(map(re.escape, rest.split("*"))))
    return lambda have: any(pattern.fullmatch(one.strip()) for one in have.split(","))


def _in_range(what: str, rest: str) -> Matches:
    found = _RANGE.match(rest)
    if found is None:
        raise InvalidRequest(
            f"{what}: <range-in> {rest[:80]!r} is not a range: write '<range-in> [ 10 20 ]'; ( ) exclude the bounds"
        )
    low, high = (_wanted(what, "<range-in>", one) for one in (found[2], found[3]))
    if low > high:
        raise InvalidRequest(f"{what}: <range-in> starts at {low:g}, above its end {high:g}: swap them")
    above = _compares(_NUMERIC[">=" if found[1] == "[" else ">"], low)
    below = _compares(_NUMERIC["<=" if found[4] == "]" else "<"], high)
    return lambda text: above(text) and below(text)
