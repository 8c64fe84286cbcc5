"""The store's time on an agent's machine, from the replies of one epoch."""

from pathlib import Path

import pytest

from redsched.agent.journal.journal import open_journal
from redsched.agent.store_clock import StoreClock
from tests.agent.claims.test_steps import E1, E2

AT_MS = 1_790_000_000_000


class Machine:
    """A machine that has run for 500 s."""

    def __init__(self) -> None:
        self.up_ms = 500_000
        self.clock = StoreClock(lambda: self.up_ms)

    def wait(self, seconds: float) -> None:
        self.up_ms += int(seconds * 1000)


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_before_the_first_reply_it_is_unknown(machine: Machine) -> None:
    assert machine.clock.now_ms() is None


def test_between_replies_the_time_goes_on(machine: Machine) -> None:
    machine.clock.note(E1, AT_MS)
    machine.wait(7.5)
    assert machine.clock.now_ms() == AT_MS + 7500


def test_a_reply_that_was_long_under_way_does_not_set_it_back(machine: Machine) -> None:
    machine.clock.note(E1, AT_MS)
    machine.wait(5)
    machine.clock.note(E1, AT_MS + 1000)  # four seconds under way
    assert machine.clock.now_ms() == AT_MS + 5000
    machine.clock.note(E1, AT_MS + 5100)
    assert machine.clock.now_ms() == AT_MS + 5100


def test_within_an_epoch_a_clock_that_drifts_back_is_followed_within_a_minute(machine: Machine) -> None:
    machine.clock.note(E1, AT_MS)
    for number in range(1, 8):
        machine.wait(10)
        machine.clock.note(E1, AT_MS + number * 10_000 - 500)
    assert machine.clock.now_ms() == AT_MS + 69_500


@pytest.mark.parametrize("jump_ms", [9 * 3_600_000, -9 * 3_600_000])
def test_each_epoch_begins_with_its_own_time(machine: Machine, jump_ms: int) -> None:
    """A clock that was set begins one, and so does a replica that takes over with another time."""
    machine.clock.note(E1, AT_MS)
    machine.wait(1)
    machine.clock.note(E2, AT_MS + jump_ms)
    assert (machine.clock.epoch, machine.clock.now_ms()) == (E2, AT_MS + jump_ms)
    machine.clock.note(E1, AT_MS + 1000)
    assert machine.clock.now_ms() == AT_MS + jump_ms, "the reply is of an earlier epoch"


async def test_all_hosts_of_a_cell_share_it(tmp_path: Path) -> None:
    journal = open_journal(tmp_path / "j.sqlite")
    assert journal.store_clock("c1") is journal.store_clock("c1")
    assert journal.store_clock("c1") is not journal.store_clock("c2")
    await journal.close()
