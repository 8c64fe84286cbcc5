"""The progress of long commands: on stderr, only if that is a terminal, and nothing of it is left."""

import asyncio
import io
import sys

import pytest

from redsched import logs, progress
from redsched.cli.output import progress as shown_progress
from redsched.scheduler import Scheduler
from tests.cli.conftest import Redsched
from tests.support.builders.cells import usual_settings
from tests.support.waiting import wait_until

Reported = list[tuple[str, int, int | None]]


class Terminal(io.StringIO):
    """Takes what is written to a terminal, however much and whenever it is drawn."""

    def isatty(self) -> bool:
        """Return that it is one."""
        return True


def written_to_a_terminal(monkeypatch: pytest.MonkeyPatch, begin_s: float, kind: str = "xterm") -> str:
    """Return what is written to stderr, a terminal, while work reports its progress."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", kind)
    monkeypatch.setattr(shown_progress, "BEGIN_S", begin_s)
    with shown_progress.shown("exporting"):
        progress.report("hosts", 0, 9000)
        progress.report("hosts", 4500, 9000)
        progress.report("claims", 7)
    return terminal.getvalue()


def test_what_is_counted_is_shown_and_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = written_to_a_terminal(monkeypatch, 0.0)
    assert "exporting: 7 claims" in found
    assert found.rstrip().endswith("\x1b[2K"), "the last thing written erases the line"


def test_a_line_of_the_log_stands_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(shown_progress, "BEGIN_S", 0.0)
    logs.configure("warning")
    logs.get_logger("any").warning("the first line")
    with shown_progress.shown("repairing"):
        progress.report("hosts", 1, 9)
        logs.get_logger("any").warning("a leftover is removed")
    (logged,) = (line for line in terminal.getvalue().splitlines() if "a leftover is removed" in line)
    assert "repairing" not in logged, "it has a line of its own"


async def test_waiting_shows_that_time_passes_and_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(shown_progress, "BEGIN_S", 0.0)
    async with shown_progress.waiting("planning"):
        await wait_until(lambda: "0:00:01" in terminal.getvalue())
    assert "planning" in terminal.getvalue()
    assert terminal.getvalue().rstrip().endswith("\x1b[2K"), "the last thing written erases the line"


@pytest.mark.parametrize("begin_s", [0.0, 3600.0], ids=["no terminal", "quick"])
async def test_waiting_shows_nothing_otherwise(monkeypatch: pytest.MonkeyPatch, begin_s: float) -> None:
    written = Terminal() if begin_s else io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(shown_progress, "BEGIN_S", begin_s)
    async with shown_progress.waiting("planning"):
        await asyncio.sleep(0)
    assert written.getvalue() == ""


def test_a_quick_command_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert written_to_a_terminal(monkeypatch, 3600.0) == ""


def test_a_terminal_that_erases_nothing_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert written_to_a_terminal(monkeypatch, 0.0, "dumb") == ""


def test_nothing_is_written_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    monkeypatch.setattr(shown_progress, "BEGIN_S", 0.0)
    with shown_progress.shown("exporting"):
        progress.report("hosts", 1, 2)
    assert written.getvalue() == ""


async def test_audits_and_exports_report(clean_store: str, redsched: Redsched) -> None:
    """In the order of their work, and never more than there is."""
    redsched("select", "VCPU=1", "--host", "h1", "--id", "a").check()
    reported: Reported = []

    def watch(what: str, done: int, total: int | None) -> None:
        reported.append((what, done, total))

    async with Scheduler.connect(clean_store, usual_settings()) as scheduler:
        with progress.watched(watch):
            await scheduler.audit()
            audited, reported = reported, []
            await scheduler.export()
    assert ("hosts", 0, 2) in audited
    assert ("hosts", 0, 2) in reported


def test_work_that_nobody_watches_reports_to_nobody() -> None:
    progress.report("hosts", 1)
