"""Parsing lists of CPUs such as 2-7,10-15."""

import pytest

from redsched.agent.machine.cpu_list import parse_cpus
from redsched.errors import InvalidRequest


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("", set()),
        ("3", {3}),
        ("2-4,10-11", {2, 3, 4, 10, 11}),
        (" 0 , 2 - 3 ,", {0, 2, 3}),
        ("1,1-2", {1, 2}),
        ("8191", {8191}),
    ],
)
def test_lists_are_read(text: str, cpus: set[int]) -> None:
    assert parse_cpus(text) == cpus


@pytest.mark.parametrize("text", ["a", "1-", "-1", "1-2-3", "0x1", "8192", "99999999999", "1;2", "٣"])
def test_what_is_no_list_is_reported_with_the_way_to_write_one(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"CPU list .* such as 2-7,10-15"):
        parse_cpus(text)


def test_a_range_that_runs_backwards_is_reported() -> None:
    with pytest.raises(InvalidRequest, match=r"'7-2' is a descending range"):
        parse_cpus("0,7-2")
