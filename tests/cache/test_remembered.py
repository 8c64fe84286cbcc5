"""Which hosts a replica remembers after a wipe: all of the cell, or none."""

import pytest

from redsched.cache.columns import Columns
from redsched.cache.remembered import FRESH_MS, RememberedHosts
from redsched.store.codec.replies import Clock

LAST_POLL_MS = 1_790_000_000_000
SETTLED = Clock("1790000000000-a", 7, LAST_POLL_MS, settled=True)
WAITS_FOR_KNOWN = Clock("1790000000000-a", 7, LAST_POLL_MS, settled=False, unattested=1)
WIPED = Clock("1790000000000-a", 7, LAST_POLL_MS, settled=False, unattested=-1)


def epoch(after_ms: int) -> str:
    return f"{LAST_POLL_MS + after_ms}-b"


def columns(*attested: str) -> Columns:
    found = Columns()
    found.set_epoch(epoch(0))
    for name in ("a", "b", "c"):
        found.put(name, {"version": "1", "epoch": epoch(0) if name in attested else ""})
    return found


def test_a_host_is_missing_until_it_has_attested() -> None:
    remembered = RememberedHosts()
    remembered.begin(["a", "b", "gone"], SETTLED, epoch(0))
    assert remembered.is_new
    assert remembered.missing(columns()) == 3
    assert not remembered.is_new
    assert remembered.missing(columns("a", "c")) == 2
    assert remembered.missing(columns("a", "b", "c")) == 1


@pytest.mark.parametrize("clock", [SETTLED, WAITS_FOR_KNOWN])
@pytest.mark.parametrize(("after_ms", "is_fresh"), [(FRESH_MS, True), (FRESH_MS + 1, False), (-FRESH_MS - 1, False)])
def test_a_replica_that_was_not_polled_right_before_remembers_nothing(
    clock: Clock, after_ms: int, is_fresh: bool
) -> None:
    remembered = RememberedHosts()
    remembered.begin(["a"], clock, epoch(after_ms))
    assert remembered.missing(columns()) == (1 if is_fresh else None)


def test_a_replica_that_came_after_a_wipe_does_not_know_all_hosts() -> None:
    remembered = RememberedHosts()
    remembered.begin(["a"], WIPED, epoch(0))
    assert remembered.missing(columns("a")) is None


def test_hosts_are_remembered_through_a_second_wipe() -> None:
    """The second wipe found hosts that had joined since the first, and not yet all that were there before."""
    remembered = RememberedHosts()
    remembered.begin(["a", "b"], SETTLED, epoch(0))
    remembered.missing(columns("a"))
    remembered.begin(["a", "c"], WIPED, epoch(0))
    assert remembered.missing(columns()) == 3
    remembered.forget()
    assert remembered.missing(columns()) is None
