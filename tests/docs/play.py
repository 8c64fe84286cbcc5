"""Playing a page: its commands in their order, on one terminal, and what they show beside what the page shows.

The output has the shape of the page if it is the same but for numbers, ids, times and spaces. `...` stands for anything
in its line, and alone in a line for any number of lines. An answer in JSON may be broken into lines.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.cli.parts import Up
from tests.docs.pages import Step, blocks
from tests.docs.terminal import UP, Ran, Stacks, Terminal, terminal

USUAL = "scripts/up --no-agent --fleet 3"
"""The stack of a page that starts none."""
LONGEST_S, RECORDING_S, PAUSE_S = 60.0, 15.0, 0.1
LOOKS = re.compile(
    r"redsched (claim (show|list)|events|host (list|show)|audit|usage|quota (show|list)|explain)\b"
    r"|curl -s localhost:8080/\S+$|curl -s -o \S+|tail |grep |cat |ls"
)
"""Commands that a reader repeats until they show what has to come."""
ERROR = "redsched: "

VOLATILE = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    (r"\d{13}-[0-9a-f]{8}\.\d+", "TOKEN"),
    (r"\d+-[0-9a-f]{8}\b", "WRONG_EPOCH"),
    (r"\b[0-9a-f]{24,}\b", "ID"),
    (r"\d+(\.\d+)?", "0"),
    (r"[ \t]+", " "),
    (r"[ \r]+$", ""),
)


def plain(text: str) -> str:
    """Text without what differs from run to run."""
    if text.startswith("{"):
        text = re.sub(r"\s", "", text)
    for pattern, name in VOLATILE:
        text = re.sub(pattern, name, text, flags=re.MULTILINE)
    return text.rstrip("\n")


def pattern_of(lines: list[str]) -> str:
    """What output has to look like after `plain`."""
    text = plain("\n".join(lines))
    escaped = [re.escape(line).replace(r"\.\.\.", ".*") for line in text.splitlines()]
    if text.startswith("{"):
        return "(?s)" + "".join(escaped)
    return "".join(r"(?:.*(?:\n|\Z))*?" if line.strip(r"\ ") == ".*" else rf"{line}(?:\n|\Z)" for line in escaped)


Record = Callable[[Step, str], None]


@dataclass(frozen=True, slots=True)
class Playing:
    """A page at play. With `record`, which gets each command and what it has shown, nothing is held to the page."""

    stacks: Stacks
    terminal: Terminal
    folder: Path
    record: Record | None

    def play(self, step: Step) -> None:
        """Run a command, and hold what it shows to the page; a look is repeated until it does."""
        ran = self._come_up(step.command) if UP.fullmatch(step.command) else self._run(step)
        if self.record:
            self.record(step, ran.shown)
        elif found := problem(step, ran):
            raise AssertionError(found)

    def _come_up(self, command: str) -> Ran:
        stack = self.stacks.of(command, self.folder)
        self.terminal.use(stack)
        return Ran(0, banner(stack))

    def _run(self, step: Step) -> Ran:
        patience = (RECORDING_S if self.record else LONGEST_S) if step.shown and LOOKS.match(step.command) else 0.0
        deadline = time.monotonic() + patience
        ran = self.terminal.run(step.command)
        while problem(step, ran) and time.monotonic() < deadline:
            time.sleep(PAUSE_S)
            ran = self.terminal.run(step.command)
        return ran


def problem(step: Step, ran: Ran) -> str:
    """What is wrong with what a command did, in words; '' for nothing."""
    shown = step.shown or []
    fails = any(line.startswith(ERROR) for line in shown)
    if (ran.exit_code != 0) != fails:
        return f"$ {step.command}\n{ran.shown}\nended with exit code {ran.exit_code}"
    if step.shown is not None and not re.fullmatch(pattern_of(shown), plain(ran.shown)):
        wanted = "\n".join(shown)
        return f"$ {step.command}\n{ran.shown}\nhas another shape than on the page:\n{wanted}"
    return ""


def banner(stack: Up) -> str:
    """What `redsched up` has shown until it was up."""
    lines = [f"  {name:<5}  {said}" for name, said in stack.said.items() if name != "redsched"]
    return "\n".join([f"redsched {stack.said['redsched']}", *lines, ""])


def play(page: str, stacks: Stacks, folder: Path, record: Record | None = None) -> None:
    """Play a page in an empty folder."""
    steps = [step for block in blocks(page) if block.is_run or block.file for step in block.steps()]
    with terminal(folder) as opened:
        if not any(UP.fullmatch(step.command) for step in steps):
            opened.use(stacks.of(USUAL, folder))
        playing = Playing(stacks, opened, folder, record)
        for step in steps:
            playing.play(step)
