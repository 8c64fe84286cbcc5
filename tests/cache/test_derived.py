"""Arrays derived from columns: computed once, then only for rows that changed, and never kept from tentative places."""

import numpy as np
import pytest

from redsched.cache.columns import Columns
from redsched.cache.derived import ALL_ROWS, MAX_ARRAYS, Rows
from tests.support.builders.columns import columns_of

UP = {"version": "1", "status": "enabled", "alive": "1"}


class Claims:
    """The claims of rows, and the rows that had to be computed."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns
        self.computed: list[Rows] = []

    def __call__(self, rows: Rows) -> object:
        self.computed.append(rows)
        return self.columns.claims[rows]

    def now(self) -> list[int]:
        """Return the derived array of claims."""
        found: list[int] = self.columns.derived("claims", self, ALL_ROWS).tolist()
        return found


def hosts(count: int) -> Columns:
    """Return hosts h0, h1 and so on, on rows of the same numbers."""
    return columns_of(**{f"h{number}": UP | {"claims": str(number)} for number in range(count)})


def test_it_is_computed_once_and_then_for_the_rows_that_changed() -> None:
    columns = hosts(64)
    claims = Claims(columns)
    assert claims.now() == claims.now() == list(range(64))
    assert claims.computed == [ALL_ROWS]
    row = columns.row("h3")
    columns.patch("h3", {"claims": "9", "version": "2"})
    assert claims.now()[3] == 9
    assert claims.computed[1:] == [row]


@pytest.mark.parametrize("changed", [6, 40])
def test_many_changed_rows_are_computed_together(changed: int) -> None:
    columns = hosts(64)
    claims = Claims(columns)
    claims.now()
    for number in range(changed):
        columns.patch(f"h{number}", {"claims": "99", "version": "2"})
    assert claims.now() == [99] * changed + list(range(changed, 64))
    assert len(claims.computed) == 2


def test_new_rows_and_a_new_epoch_have_it_computed_again() -> None:
    columns = hosts(3)
    claims = Claims(columns)
    claims.now()
    for number in range(3, 3 + columns.size):
        columns.put(f"h{number}", UP)
    assert len(claims.now()) == columns.size
    columns.set_epoch("2-b")
    claims.now()
    assert claims.computed == [ALL_ROWS] * 3


def test_tentative_places_are_seen_and_not_kept() -> None:
    columns = hosts(3)
    claims = Claims(columns)
    claims.now()
    columns.tentative += 1
    columns.claims[1] += 5
    assert claims.now()[:3] == [0, 6, 2]
    columns.claims[1] -= 5
    columns.tentative -= 1
    assert claims.now()[:3] == [0, 1, 2]


def test_the_array_is_a_copy_of_the_column() -> None:
    columns = hosts(3)
    assert not np.shares_memory(columns.derived("claims", Claims(columns), ALL_ROWS), columns.claims)


def test_the_arrays_that_are_in_use_are_kept() -> None:
    columns = hosts(3)
    claims = Claims(columns)
    for number in range(3 * MAX_ARRAYS):
        columns.derived(number, Claims(columns), ALL_ROWS)
        claims.now()
    assert claims.computed == [ALL_ROWS]
