"""Files written by hand: aliases are allowed, but not as a bomb."""

import time

import pytest

from redsched.errors import InvalidRequest
from redsched.yaml_io import parse_yaml

pytestmark = pytest.mark.heavy

BOMB = "a0: &a0 [x, x]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 30)
)


def test_aliases_and_merges_are_read() -> None:
    assert parse_yaml("a: &a {b: 1}\nc: {<<: *a, d: 2}\n") == {"a": {"b": 1}, "c": {"b": 1, "d": 2}}
    assert parse_yaml("") is None


@pytest.mark.parametrize("text", [BOMB, "a: &a [1, *a]", "&a {b: *a}"], ids=["bomb", "list in itself", "map in itself"])
def test_aliases_that_stand_for_too_much_are_refused(text: str) -> None:
    """Whatever walks over the values, as the reading of units does, would never end."""
    with pytest.raises(InvalidRequest, match="aliases stand for more than"):
        parse_yaml(text)


def cpu_s(keys: int) -> float:
    """Return the processor time of reading a mapping of so many keys, of which one is given twice."""
    text = "".join(f"k{number}: 1\n" for number in range(keys)) + "k1: 2\n"
    started = time.process_time()
    with pytest.raises(InvalidRequest, match="'k1' is given twice"):
        parse_yaml(text)
    return time.process_time() - started


def test_a_mapping_of_many_keys_is_read_in_linear_time() -> None:
    """Finding keys that are given twice took a pass over all keys for each key: of eight times as many, 64 times."""
    few_s = min(cpu_s(2500) for _ in range(2))
    assert cpu_s(20_000) < 24 * few_s


@pytest.mark.parametrize("text", ["a: 2026-02-30", "!!bool maybe", "!!timestamp soon", "!!int x", f"a: {'9' * 5000}"])
def test_values_that_are_not_of_their_type_are_refused(text: str) -> None:
    """PyYAML raises whatever the conversion does."""
    with pytest.raises(InvalidRequest, match="not YAML: a value is not of its type"):
        parse_yaml(text)


@pytest.mark.parametrize(
    "text", ["a: secret: [", "secret: *secret", "secret: 1\nsecret: 1", "secret: \x00", "- %secret"]
)
def test_an_error_can_leave_out_the_text(text: str) -> None:
    with pytest.raises(InvalidRequest, match="not YAML") as caught:
        parse_yaml(text, quotes=False)
    assert "secret" not in str(caught.value)
