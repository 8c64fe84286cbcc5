"""Which changes after a summary are known to be all of them."""

import pytest

from redsched.scheduler.mirroring.ruling_out import _changed
from redsched.store.codec.results import Change, Clock, Poll
from redsched.store.codec.summary import CellSummary


def poll(seq: int, *changes: int, epoch: str = "1-a") -> Poll:
    """Return a poll whose clock was at `seq`, and that read the changes of these seqs."""
    found = tuple(Change(f"{one}-0", one, "host", "h1", one, "report", 0, {}) for one in changes)
    return Poll(Clock(epoch, seq, 0, True), None, found)


@pytest.mark.parametrize(
    ("read", "is_complete"),
    [
        (poll(5), True),
        (poll(7, 6, 7), True),
        (poll(6, 6, 7), True),  # one arrived after the clock was read
        (poll(7), False),
        (poll(7, 7), False),
        (poll(7, 7, 8), False),  # 6 was trimmed, which the length alone does not show
        (poll(8, 6, 7), False),  # there are more than were read
        (poll(4), False),  # the store has gone back
        (poll(5, epoch="2-b"), False),
        (Poll(None, None, ()), False),
    ],
)
def test_changes_are_complete_or_not_known(read: Poll, is_complete: bool) -> None:
    assert (_changed(CellSummary("1-a", 5, "5-0"), read) is not None) == is_complete
