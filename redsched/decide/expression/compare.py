"""Comparison of two operands of a query over rows: numbers by array, texts once per distinct text."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from redsched.cache.columns import Columns
from redsched.decide.expression.operands import Coded, Operand
from redsched.decide.rules import Mask, Rows
from redsched.decide.text_match import everywhere
from redsched.errors import InvalidRequest

Test = Callable[[Columns, Rows], Mask]
Relation = Callable[[Any, Any], Any]

RELATIONS: dict[str, Relation] = {
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}


def compared(at: str, relation: Relation, left: Operand, right: Operand) -> Test:
    """Make the test whether `left` has this relation to `right`. A host that lacks one of them fails it.

    Raises InvalidRequest if one is a number and the other cannot be one.
    """
    if left.is_number or right.is_number:
        if left.number is None or right.number is None:
            raise InvalidRequest(
                f"{at} compares {left.name} with {right.name}, a number with a string: write numbers without quotes; "
                "only labels can be either"
            )
        return _numbers(relation, left.number, right.number)
    return _texts(relation, left, right)


def one_of(left: Operand, others: Sequence[Operand]) -> Test | None:
    """Make the test whether `left` is equal to one of these texts, in one pass; None if they are not all texts."""
    texts = frozenset(one.text for one in others if one.text is not None)
    if left.coded is None or not all(one.text is not None for one in others):
        return None
    return _one(left.coded, texts.__contains__)


def _numbers(relation: Relation, left: Any, right: Any) -> Test:
    # NaN compares false with everything. Two constants give one result for all rows.
    return lambda columns, rows: everywhere(columns, rows) & relation(left(columns, rows), right(columns, rows))


def _texts(relation: Relation, left: Operand, right: Operand) -> Test:
    if left.coded is not None and right.coded is not None:
        return _both(relation, left.coded, right.coded)
    if left.coded is not None:
        return _one(left.coded, lambda text: relation(text, right.text))
    if right.coded is not None:
        return _one(right.coded, lambda text: relation(left.text, text))
    same = np.bool_(relation(left.text, right.text))
    return lambda columns, rows: everywhere(columns, rows) & same


def _one(coded: Coded, holds: Callable[[str], bool]) -> Test:
    def test(columns: Columns, rows: Rows) -> Mask:
        if isinstance(rows, int):
            text = coded.text(columns, rows)
            return np.bool_(bool(text) and holds(text))
        # The last entry is the result for NO_TEXT, which is -1.
        return np.array([*map(holds, coded.texts(columns)), False], np.bool_)[coded.codes(columns)[rows]]

    return test


def _both(relation: Relation, left: Coded, right: Coded) -> Test:
    def read(coded: Coded, columns: Columns, rows: Rows) -> Any:
        if isinstance(rows, int):
            return coded.text(columns, rows)
        return np.array([*coded.texts(columns), ""], np.object_)[coded.codes(columns)[rows]]

    def test(columns: Columns, rows: Rows) -> Mask:
        one, other = read(left, columns, rows), read(right, columns, rows)
        there = np.not_equal(one, "") & np.not_equal(other, "")
        return there & np.asarray(relation(one, other), np.bool_)

    return test
