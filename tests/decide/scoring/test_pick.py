"""The order of hosts and the choice among the best few."""

from random import Random

import numpy as np
import pytest
from hypothesis import given, strategies as st

from redsched.decide.pick import best_rows, pick


@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), max_size=40), st.integers(1, 50), st.randoms())
def test_best_rows_are_the_first_of_all_rows_sorted_by_score_and_then_order(
    hosts: list[tuple[int, bool]], count: int, shuffler: Random
) -> None:
    scores = np.array([score / 4 for score, _ in hosts])
    order = list(range(len(hosts)))
    shuffler.shuffle(order)
    rows = [row for row, (_, fits) in enumerate(hosts) if fits]
    expected = sorted(rows, key=lambda row: (-scores[row], order[row]))[:count]
    found = best_rows(np.array(rows, np.intp), scores, np.array(order, np.int64), count)
    assert found.tolist() == expected


def test_among_many_equal_scores_the_lowest_order_is_kept() -> None:
    order = np.array([(7 * row) % 40 for row in range(40)], np.int64)
    scores = np.array([1.0 if row == 39 else 0.5 for row in range(40)])
    found = best_rows(np.arange(40, dtype=np.intp), scores, order, 5)
    assert found[0] == 39
    assert order[found[1:]].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(("pick_from", "reachable"), [(1, "a"), (2, "ab"), (4, "abcd"), (9, "abcde")])
def test_the_first_is_any_of_the_best_few_and_the_rest_keeps_its_order(pick_from: int, reachable: str) -> None:
    picked = [pick("abcde", pick_from, Random(seed)) for seed in range(200)]
    assert {one[0] for one in picked} == set(reachable)
    for one in picked:
        assert one[1:] == [letter for letter in "abcde" if letter != one[0]]


def test_nothing_to_pick_from_is_nothing() -> None:
    assert pick([], 4, Random(0)) == []
