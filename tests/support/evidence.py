"""A pytest plugin that adds to a failing test what one needs to understand it without running everything again.

These are the command that runs it alone, and the last lines of what the processes wrote that it started. Processes
that inherit stdout and stderr are in what pytest captures. Those that write into files, which are deleted with the
test, are noted here. Seeds are in the test's id, or in the example that hypothesis prints.
"""

import os
import shlex
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from redsched.store.embedded.process import ServerProcess
from tests.support.profiles import is_long

MOST_LINES = 40
_notes: dict[str, Callable[[], str]] = {}
"""How to read what each process wrote, by what it is."""


def note(name: str, read: Callable[[], str]) -> None:
    """Show what `read` returns if the test fails. The last note of a name counts."""
    _notes[name] = read


def file_of(path: Path) -> str:
    """Return the content of a file, or '' if it is not there."""
    with suppress(OSError):
        return path.read_text(errors="replace")
    return ""


def pytest_configure() -> None:
    """Note the logs of all servers that tests start."""
    if not hasattr(ServerProcess.stop, "is_noted"):
        ServerProcess._spawn = _noted_start(ServerProcess._spawn)  # type: ignore[method-assign]
        ServerProcess.stop = _noted_stop(ServerProcess.stop)  # type: ignore[method-assign, assignment]


def _noted_start(start: Callable[..., None]) -> Callable[..., None]:
    def started(self: ServerProcess, *arguments: object) -> None:
        note(_name_of(self), lambda: file_of(self._log))
        start(self, *arguments)

    return started


def _noted_stop(stop: Callable[[ServerProcess], None]) -> Callable[[ServerProcess], None]:
    def stopped(self: ServerProcess) -> None:
        if (name := _name_of(self)) in _notes:  # or an earlier test started it
            text = file_of(self._log)
            note(name, lambda: text)
        stop(self)

    stopped.is_noted = True  # type: ignore[attr-defined]
    return stopped


def _name_of(server: ServerProcess) -> str:
    return f"{server.kind} {server.version} in {server.folder}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, bool, bool]:
    """Begin each test without notes."""
    _notes.clear()
    return (yield)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the sections to the report of a failure."""
    report = yield
    if report.failed:
        report.sections.extend(sections(item.nodeid))
    return report


def sections(test: str) -> Iterator[tuple[str, str]]:
    """Yield the titles and texts of what a failing test shows."""
    yield "how to run it alone", alone(test)
    for name, read in _notes.items():
        if lines := read().splitlines():
            yield f"the last lines of {name}", "\n".join(lines[-MOST_LINES:])


def alone(test: str) -> str:
    """Return the command that runs one test as this run did."""
    servers = os.environ.get("REDSCHED_TEST_SERVERS", "")
    if is_long():
        return f"scripts/test --long {shlex.quote(test)}"
    return f"{f'REDSCHED_TEST_SERVERS={servers} ' if servers else ''}scripts/test {shlex.quote(test)}"
