"""The values of REDSCHED_DURABILITY, and how the replies to WAIT and WAITAOF are read."""

from typing import Any

import pytest
from pydantic import ValidationError
from redis.exceptions import ResponseError

from redsched.settings import Settings
from redsched.store.client.durability import Durability, durability_of


@pytest.mark.parametrize(
    ("text", "replicas", "fsync"),
    [("none", 0, False), ("replicas=2", 2, False), ("fsync", 0, True), ("fsync,replicas=1", 1, True)],
)
def test_a_durability_is_understood(text: str, replicas: int, fsync: bool) -> None:
    found = durability_of(Settings(durability=text, durability_timeout_s=0.5))
    assert found == Durability(replicas, fsync, 500)
    assert bool(found) == (text != "none")


@pytest.mark.parametrize(
    "text", ["", "replicas", "replicas=0", "replicas=-1", "disk", "fsync,fsync", "none,fsync", "fsync,"]
)
def test_another_word_is_refused_with_those_that_there_are(text: str) -> None:
    with pytest.raises(ValidationError, match="must be none, replicas=N, fsync or replicas=N,fsync"):
        Settings(durability=text)


def test_waiting_as_long_as_a_reply_may_take_is_refused() -> None:
    """The connection would time out before WAIT answers; without WAIT the timeout does not matter."""
    with pytest.raises(ValidationError, match="durability_timeout_s is 2, and must be below reply_timeout_s, 1"):
        Settings(durability="fsync", reply_timeout_s=1.0)
    Settings(reply_timeout_s=1.0)


BOTH = Durability(2, True, 100)


@pytest.mark.parametrize(
    ("replies", "missing"),
    [
        ([2, [1, 0]], ""),
        ([3, [1, 3]], ""),
        ([1, [1, 0]], "replicas that have it: 1 of 2"),
        ([2, [0, 2]], "disks that have it: 0 of 1"),
        ([0, [0, 0]], "replicas that have it: 0 of 2, disks that have it: 0 of 1"),
        ([2, ResponseError("no file")], "disks that have it: no file"),
        ([ResponseError("a replica"), [1, 0]], "replicas that have it: a replica"),
    ],
)
def test_the_numbers_are_examined(replies: list[Any], missing: str) -> None:
    assert BOTH.commands == (("WAIT", 2, 100), ("WAITAOF", 1, 0, 100))
    assert BOTH.shortfall(replies) == missing
