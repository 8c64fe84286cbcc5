"""The fit check at its limits, on numbers and on arrays."""

import numpy as np
import pytest

from redsched.decide.fit import fits, free
from redsched.model.validation import MAX_AMOUNT

EDGES = [
    # amount, capacity, claimed, external, minimum, maximum, step, fits
    (1, 1, 0, 0, 1, MAX_AMOUNT, 1, True),
    (2, 1, 0, 0, 1, MAX_AMOUNT, 1, False),
    (4, 10, 4, 2, 1, MAX_AMOUNT, 1, True),
    (5, 10, 4, 2, 1, MAX_AMOUNT, 1, False),
    (1, 10, 12, 0, 1, MAX_AMOUNT, 1, False),
    (3, 10, 0, 0, 4, MAX_AMOUNT, 1, False),
    (4, 10, 0, 0, 4, 4, 4, True),
    (5, 10, 0, 0, 1, 4, 1, False),
    (6, 10, 0, 0, 1, 10, 4, False),
    (8, 10, 0, 0, 1, 10, 4, True),
    (1, 0, 0, 0, 1, MAX_AMOUNT, 1, False),
    (MAX_AMOUNT, MAX_AMOUNT, 0, 0, 1, MAX_AMOUNT, 1, True),
    (MAX_AMOUNT, MAX_AMOUNT, 1, 0, 1, MAX_AMOUNT, 1, False),
    (MAX_AMOUNT, MAX_AMOUNT, MAX_AMOUNT, MAX_AMOUNT, 1, MAX_AMOUNT, 1, False),
    (1, 0, MAX_AMOUNT, MAX_AMOUNT, 1, MAX_AMOUNT, 1, False),
]


@pytest.mark.parametrize("edge", EDGES)
def test_each_edge_as_whole_numbers(edge: tuple[int, ...]) -> None:
    assert fits(*edge[:7]) is edge[7]


@pytest.mark.parametrize("edge", EDGES)
def test_each_edge_as_arrays(edge: tuple[int, ...]) -> None:
    others = [np.full(2, number, np.int64) for number in edge[1:7]]
    assert fits(edge[0], *others).tolist() == [edge[7]] * 2


def test_free_is_below_zero_where_a_host_is_over() -> None:
    assert free(10, 8, 4) == -2
