"""The store's time on an agent's machine: from replies, from the machine's clocks, from the journal."""

from pathlib import Path

import pytest

from redsched.agent.journal.journal import open_journal
from redsched.agent.store_clock import StoreClock
from tests.agent.claims.test_steps import E1, Bench
from tests.agent.conftest import held_work

AT_MS = 1_790_000_000_000


class Machine:
    """The clocks of a machine; its wall clock is a minute behind the store's."""

    def __init__(self) -> None:
        self.monotonic_s, self.wall_s = 500.0, AT_MS / 1000 - 60
        self.kept: list[int] = []

    def clock(self, wall_offset_ms: int = 0) -> StoreClock:
        return StoreClock(wall_offset_ms, self.kept.append, lambda: self.monotonic_s, lambda: self.wall_s)

    def wait(self, seconds: float) -> None:
        self.monotonic_s += seconds
        self.wall_s += seconds


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_between_replies_the_time_goes_on(machine: Machine) -> None:
    clock = machine.clock()
    clock.note(AT_MS)
    machine.wait(7.5)
    assert clock.now_ms() == AT_MS + 7500


def test_setting_the_machines_clock_changes_nothing(machine: Machine) -> None:
    clock = machine.clock()
    clock.note(AT_MS)
    machine.wall_s -= 86_400
    assert clock.now_ms() == AT_MS


def test_a_reply_that_was_long_under_way_does_not_set_it_back(machine: Machine) -> None:
    clock = machine.clock()
    clock.note(AT_MS)
    machine.wait(5)
    clock.note(AT_MS + 1000)  # four seconds under way
    assert clock.now_ms() == AT_MS + 5000
    clock.note(AT_MS + 5100)
    assert clock.now_ms() == AT_MS + 5100


def test_a_store_whose_clock_was_set_back_is_followed_within_a_minute(machine: Machine) -> None:
    clock = machine.clock()
    clock.note(AT_MS)
    for _ in range(7):
        machine.wait(10)
        clock.note(AT_MS - 3_600_000)
    assert clock.now_ms() == AT_MS - 3_600_000


def test_a_process_without_a_reply_uses_the_machines_clock_and_the_journaled_offset(machine: Machine) -> None:
    clock = machine.clock()
    clock.note(AT_MS)
    assert machine.kept == [60_000]
    machine.wait(3)
    later = machine.clock(machine.kept[-1])
    assert later.now_ms() == AT_MS + 3000


def test_an_offset_that_hardly_changes_is_not_written_again(machine: Machine) -> None:
    clock = machine.clock(60_000)
    for number in range(5):
        clock.note(AT_MS + number * 100)
    assert machine.kept == []
    clock.note(AT_MS + 1000)
    assert machine.kept == [61_000]


async def test_the_journal_keeps_the_offset_of_each_cell(tmp_path: Path) -> None:
    journal = open_journal(tmp_path / "j.sqlite")
    before = journal.clock("c1")
    assert journal.clock("c1") is before, "all hosts of a cell share it"
    before.note(before.now_ms() + 3_600_000)
    await journal.close()
    journal = open_journal(tmp_path / "j.sqlite")
    assert journal.clock("c1").now_ms() - journal.clock("c2").now_ms() > 3_500_000
    await journal.close()


async def test_replies_to_a_host_set_the_clock_of_its_cell(tmp_path: Path) -> None:
    bench, far_ahead_ms = Bench(tmp_path), 4_000_000_000_000
    work = held_work("a", "1-a.1", runtime_deadline_ms=str(far_ahead_ms - 1))
    assert not bench.host.is_overdue(work)
    bench.host.record_reply(E1, far_ahead_ms)
    assert bench.host.is_overdue(work)
    assert not bench.host.is_overdue(held_work("a", "1-a.1"))
    await bench.journal.close()
