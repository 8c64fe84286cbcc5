"""docs/walkthrough.md, played as it stands: its files, its commands in their order, and what they show."""

import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.cli.parts import run, up
from tests.support.waiting import wait_until_sync

PAGE = Path(__file__).parents[2] / "docs" / "walkthrough.md"
LONGEST_S = 60.0
LOOKS = ("redsched claim show", "redsched events", "redsched host list", "redsched audit")
"""Commands that a reader repeats until they show what has to come."""

VOLATILE = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "TIME"),
    (r"\d{13}-[0-9a-f]{8}\.\d+", "TOKEN"),
    (r"process \d+", "process N"),
    (r"[ \t]+", " "),
)

Step = tuple[str, list[str]]
"""A command, and the lines that it is to show."""


def blocks(page: str) -> list[str]:
    return re.findall(r"^```\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def steps(block: str) -> list[Step]:
    """The commands of a block that shows some; else the block as one command, of which nothing is shown."""
    if not block.startswith("$ "):
        return [(block, [])]
    found: list[Step] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line.removeprefix("$ "), []))
        elif line.startswith("    "):
            found[-1][1][-1] += f" {line.strip()}"
        else:
            found[-1][1].append(line)
    return found


def plain(text: str) -> str:
    """Text without what differs from run to run."""
    for pattern, name in VOLATILE:
        text = re.sub(pattern, name, text)
    return text


def pattern_of(lines: list[str]) -> str:
    """What output has to look like: `...` stands for anything in its line, and alone for any number of lines."""
    rest = (re.escape(plain(line)).replace(r"\.\.\.", ".*").replace(r"\ .*", ".*") + "\n" for line in lines)
    return "".join(r"(?:.*\n)*" if line == ".*\n" else line for line in rest)


class Shell:
    """A second terminal: one bash that runs a command after the other."""

    def __init__(self, folder: Path, store: str) -> None:
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self._environment = {"REDSCHED_REDIS_URL": store, "REDSCHED_PICK_FROM": "1"}
        self._bash = subprocess.Popen(
            ["bash"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=folder,
            env={**os.environ, **self._environment, "PATH": path},
        )

    def run(self, command: str) -> str:
        """Run a command and return what it has shown. One of redsched's own is forked: that spares its start."""
        if command.startswith("redsched "):
            ran = run(*shlex.split(command)[1:], environment=self._environment)
            return ran.output + ran.errors
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        self._bash.stdin.write(f"{command.rstrip()}\necho '-- done --'\n")
        self._bash.stdin.flush()
        return "".join(iter(self._bash.stdout.readline, "-- done --\n"))

    def end(self) -> None:
        self._bash.communicate()


@contextmanager
def shell(folder: Path, store: str) -> Iterator[Shell]:
    """A terminal in a folder. At the end no agent and no service is left that was started there, whatever happened."""
    found = Shell(folder, store)
    try:
        yield found
    finally:
        for pid in processes_in(folder):  # bash is one of them; all of them hold its output open
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        found.end()


def processes_in(folder: Path) -> list[int]:
    """The processes whose working directory this is."""
    found = list[int]()
    for one in Path("/proc").iterdir():
        with suppress(OSError):
            if one.name.isdecimal() and (one / "cwd").readlink() == folder:
                found.append(int(one.name))
    return found


def play(terminal: Shell, command: str, lines: list[str]) -> None:
    """Run a command and hold what redsched shows to the page; a look is repeated until it does."""
    shown, wanted = [plain(terminal.run(command))], pattern_of(lines)

    def is_as_on_the_page() -> bool:
        if not command.startswith("redsched ") or re.fullmatch(wanted, shown[-1]):
            return True
        if command.startswith(LOOKS):
            shown.append(plain(terminal.run(command)))
        return False

    try:
        wait_until_sync(is_as_on_the_page, LONGEST_S if command.startswith(LOOKS) else 0.1)
    except AssertionError:
        raise AssertionError(f"$ {command}\n{shown[-1]}\nis not what the page shows:\n{wanted}") from None


def test_the_walk_through_goes_as_its_page_says(tmp_path: Path) -> None:
    first, *rest = blocks(PAGE.read_text())
    assert [command for command, _ in steps(first)] == ["export REDSCHED_PICK_FROM=1", "redsched up --no-agent"]
    with (
        up("--no-agent", environment={"REDSCHED_PICK_FROM": "1"}) as started,
        shell(tmp_path, started.store) as terminal,
    ):
        for command, lines in (step for block in rest for step in steps(block)):
            play(terminal, command, lines)
