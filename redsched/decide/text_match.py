"""Tests of each row's text (a label, a zone), run once per distinct text instead of once per host."""

from collections.abc import Callable

import numpy as np

from redsched.cache.arrays import TextColumn
from redsched.cache.columns import Columns
from redsched.decide.rules import Mask, Rows


def matching(columns: Columns, texts: TextColumn | None, rows: Rows, matches: Callable[[str], bool]) -> Mask:
    """Return whether each row has a text that matches. `texts` is None for a label that no host ever had."""
    if texts is None:
        return nowhere(columns, rows)
    if isinstance(rows, int):
        text = texts.text(rows)
        return np.bool_(bool(text) and matches(text))
    # The last entry is the result for NO_TEXT, which is -1.
    by_code = np.array([*map(matches, texts.by_code), False], np.bool_)
    return by_code[texts.codes[rows]]


def nowhere(columns: Columns, rows: Rows) -> Mask:
    """Return False for every row."""
    return columns.present[rows] & False


def everywhere(columns: Columns, rows: Rows) -> Mask:
    """Return True for every row."""
    return columns.present[rows] | True
