"""The journal's clock follows no clock that can be set, counts suspends, and continues over restarts of the machine."""

from pathlib import Path

import pytest

from redsched.agent.journal import steady_clock
from redsched.agent.journal.journal import open_journal
from redsched.agent.journal.steady_clock import SteadyClock, read_clocks
from tests.agent.claims.test_steps import E1
from tests.agent.conftest import held_work
from tests.support.clocks import Clocks

HOUR_MS = 3_600_000
LIMITED = held_work("a", f"{E1}.7", runtime_deadline_ms="1790000000000", max_runtime_s="3600")


@pytest.mark.parametrize("set_by_ms", [-30 * 24 * HOUR_MS, 0, 30 * 24 * HOUR_MS])
def test_a_wall_clock_that_is_set_changes_nothing(set_by_ms: int) -> None:
    clocks = Clocks()
    clock = SteadyClock(None, clocks.read)
    before_ms = clock.now_ms()
    clocks.wall_ms += set_by_ms
    clocks.wait(5000)
    assert clock.now_ms() - before_ms == 5000


@pytest.mark.parametrize(
    ("set_by_ms", "passed_ms"), [(0, 5000 + HOUR_MS + 20_000), (-30 * 24 * HOUR_MS, 5000 + 20_000)]
)
def test_over_a_restart_the_wall_clock_counts_unless_it_was_set_back(set_by_ms: int, passed_ms: int) -> None:
    clocks = Clocks()
    first = SteadyClock(None, clocks.read)
    before_ms = first.now_ms()
    clocks.wait(5000)
    kept = first.reading()
    clocks.restart(off_ms=HOUR_MS)
    clocks.wall_ms += set_by_ms
    assert SteadyClock(kept, clocks.read).now_ms() - before_ms == passed_ms


async def test_the_journal_counts_how_long_work_may_run(tmp_path: Path) -> None:
    """A process of the same boot continues exactly, also with a wall clock that was set meanwhile."""
    clocks = Clocks()
    journal = open_journal(tmp_path / "j.sqlite", clocks.read)
    assert journal.left_ms("h1", LIMITED.placed) is None
    await journal.write_held("h1", LIMITED, HOUR_MS)
    clocks.wait(60_000)
    await journal.write_held("h1", LIMITED, 2 * HOUR_MS)  # it is not counted anew
    assert journal.left_ms("h1", LIMITED.placed) == HOUR_MS - 60_000
    await journal.close()
    clocks.wait(60_000)
    clocks.wall_ms += 9 * HOUR_MS
    journal = open_journal(tmp_path / "j.sqlite", clocks.read)
    assert journal.left_ms("h1", LIMITED.placed) == HOUR_MS - 120_000
    journal.prune()
    await journal.close()
    clocks.restart(off_ms=600_000, up_ms=60_000)
    journal = open_journal(tmp_path / "j.sqlite", clocks.read)
    assert journal.left_ms("h1", LIMITED.placed) == HOUR_MS - 120_000 - 660_000
    await journal.write_ended("h1", LIMITED)
    assert journal.left_ms("h1", LIMITED.placed) is None
    await journal.close()
    journal = open_journal(tmp_path / "j.sqlite", clocks.read)
    assert journal.limits == {}
    await journal.close()


async def test_a_journal_of_an_earlier_release_has_no_limits(tmp_path: Path) -> None:
    journal = open_journal(tmp_path / "j.sqlite")
    await journal.write_held("h1", LIMITED)
    await journal.close()
    journal = open_journal(tmp_path / "j.sqlite")
    assert journal.limits == {("h1", LIMITED.placed): None}
    await journal.close()


def test_without_a_boot_id_each_process_counts_as_a_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steady_clock, "_BOOT_ID", tmp_path / "none")
    steady_clock._boot_id.cache_clear()
    first = read_clocks().boot_id
    assert read_clocks().boot_id == first
    steady_clock._boot_id.cache_clear()
    assert read_clocks().boot_id != first
    steady_clock._boot_id.cache_clear()
