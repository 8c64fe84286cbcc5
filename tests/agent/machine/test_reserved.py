"""Splitting the reserved amounts of a machine over its parts."""

import pytest
from hypothesis import given, strategies as st

from redsched.agent.collectors.component import apportion


@pytest.mark.parametrize(
    ("amount", "weights", "shares"),
    [
        (512, [1000, 1000], [256, 256]),
        (3, [10, 10], [2, 1]),
        (10, [1, 2, 3], [1, 2, 3]),
        (5, [0, 7], [0, 5]),
        (0, [4, 4], [0, 0]),
        (5, [], []),
        (5, [0, 0], [0, 0]),
    ],
)
def test_shares_are_proportional_and_whole(amount: int, weights: list[int], shares: list[int]) -> None:
    assert apportion(amount, weights) == shares


@given(st.integers(0, 2**53), st.lists(st.integers(0, 2**53), max_size=9))
def test_shares_sum_to_the_amount_and_none_is_above_its_weight(amount: int, weights: list[int]) -> None:
    shares = apportion(amount, weights)
    assert sum(shares) == min(amount, sum(weights))
    for share, weight in zip(shares, weights, strict=True):
        assert 0 <= share <= weight
        assert abs(share * sum(weights) - min(amount, sum(weights)) * weight) < max(1, sum(weights))
