"""What deciders remember of requests is bounded in bytes: large requests take the place of many small ones."""

from random import Random

from redsched.decide.decider import Decider
from redsched.decide.remembered import MAX_BYTES, NAME_BYTES, Remembered, size_of
from redsched.model import Request
from tests.decide.test_decider import DEFAULTS, fleet

TOO_MANY = 20


def test_the_latest_are_remembered_within_both_bounds() -> None:
    known: Remembered[str, int] = Remembered(most=3, most_bytes=10)
    for number, key in enumerate(("a", "b", "c", "d")):
        known.add(key, number)
    assert (known.get("a"), known.get("b"), len(known)) == (None, 1, 3)
    known.add("e" * 8, 4)  # b is the latest of the others
    assert (known.values(), known.size) == ([3, 1, 4], 10)
    known.add("f" * 5, 5)
    assert (known.values(), known.size) == ([5], 5)
    known.add("g" * 100, 6)  # alone it may be larger
    assert (known.values(), known.size) == ([6], 100)


def test_texts_and_names_in_a_key_count() -> None:
    assert size_of((("ab", frozenset({"x", "y"})), None, 7, "cde")) == 2 + 2 * NAME_BYTES + 3


def test_large_requests_are_not_remembered_by_number_alone() -> None:
    """64 dry runs of 128 KiB kept 100 MB, and of 1 MB half a gigabyte."""
    decider = Decider(fleet(9, 9), DEFAULTS)
    names = [f"host{number:050d}" for number in range(1500)]
    for number in range(TOO_MANY):
        decider.decide(Request({"VCPU": 1}, exclude_hosts=frozenset((f"h{number}x", *names))), Random(0))
    for cache in (decider._profiles, decider._host_rules._known):
        assert 1 < len(cache) < TOO_MANY
        assert cache.size <= MAX_BYTES


def test_many_required_traits_count() -> None:
    decider = Decider(fleet(9, 9), DEFAULTS)
    for number in range(TOO_MANY):
        traits = frozenset(f"CUSTOM_T{number}_{one}" for one in range(1000))
        decider.decide(Request({"VCPU": 1}, required=traits), Random(0))
    assert len(decider._profiles) < TOO_MANY
    assert len(decider._host_rules._known) < TOO_MANY


def test_small_requests_are_all_remembered() -> None:
    decider = Decider(fleet(9, 9), DEFAULTS)
    for number in range(64):
        decider.decide(Request({"VCPU": 1}, exclude_hosts=frozenset((f"h{number}x",))), Random(0))
    assert len(decider._profiles) == 64
