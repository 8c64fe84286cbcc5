"""Play a page: run its commands in order on one terminal, and compare their output with that of the page.

Output matches if it differs only in numbers, ids, times and spaces. `...` matches any text within its line, and any
number of lines if it is alone on a line. The page may break JSON output into lines.
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
LONGEST_S, RECORDING_S = 60.0, 15.0
PAUSE_S, LONGEST_PAUSE_S, COST = 0.1, 1.0, 3
"""The pause before a command is repeated: so many times its duration, within these bounds."""
LOOKS = re.compile(
    r"redsched (claim (show|list)|events|status|host (list|show)|audit|usage|quota (show|list)|explain)\b"
    r"|redis-cli FCALL_RO\b"
    r"|curl -s localhost:8080/\S+$|curl -s -o \S+|tail |grep |cat |ls"
)
"""Read-only commands, which are repeated until their output matches."""
ERROR = re.compile(r"redsched: (?!\S+ (starts|runs|has ended)\b)")
"""The beginning of the line of an error, and not of what `redsched run` says about its job."""

VOLATILE = (
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", "TIME"),
    (r"\d{13}-[0-9a-f]{8}\.\d+", "TOKEN"),
    (r"\d+-[0-9a-f]{8}\b", "EPOCH"),
    (r"\b[0-9a-f]{16,}\b", "ID"),
    (r"\bcli:[\w.-]+", "USER"),
    (r"\b(in )?(\d+d\d\dh|\d+h\d\dm|\d+m\d\ds|\d+[smhd])\b", "AGE"),
    (r"\b\d+ (s|min|h|days?)(?![\w/])", "DURATION"),
    (r"\d+(\.\d+)?", "0"),
    (r"[ \t]+", " "),
    (r"[ \r]+$", ""),
)


def plain(text: str) -> str:
    """Return text without the parts that differ from run to run."""
    if text.startswith("{"):
        text = re.sub(r"\s", "", text)
    for pattern, name in VOLATILE:
        text = re.sub(pattern, name, text, flags=re.MULTILINE)
    return text.rstrip("\n")


def pattern_of(lines: list[str]) -> str:
    """Return the regular expression for output after `plain`."""
    text = plain("\n".join(lines))
    escaped = [re.escape(line).replace(r"\.\.\.", ".*") for line in text.splitlines()]
    if text.startswith("{"):
        return "(?s)" + "".join(escaped)
    return "".join(r"(?:.*(?:\n|\Z))*?" if line.strip(r"\ ") == ".*" else rf"{line}(?:\n|\Z)" for line in escaped)


Record = Callable[[Step, str], None]


@dataclass(frozen=True, slots=True)
class Playing:
    """A page that is being played. `record` gets each command and its output, which then is not compared."""

    stacks: Stacks
    terminal: Terminal
    folder: Path
    record: Record | None

    def play(self, step: Step) -> None:
        """Run a command, and compare its output with the page; read-only commands are repeated until it matches."""
        ran = self._come_up(step.command) if UP.fullmatch(step.command) else self._run(step)
        if self.record:
            self.record(step, ran.shown)
        elif found := problem(step, ran):
            raise AssertionError(found)

    def _come_up(self, command: str) -> Ran:
        stack = self.stacks.of(command, self.folder, self.terminal.exported())
        self.terminal.use(stack)
        return Ran(0, banner(stack))

    def _run(self, step: Step) -> Ran:
        patience = (RECORDING_S if self.record else LONGEST_S) if step.shown and LOOKS.match(step.command) else 0.0
        deadline = time.monotonic() + patience
        while True:
            began = time.monotonic()
            ran = self.terminal.run(step.command)
            ended = time.monotonic()
            if not problem(step, ran) or ended >= deadline:
                return ran
            time.sleep(min(max(PAUSE_S, COST * (ended - began)), LONGEST_PAUSE_S))


def problem(step: Step, ran: Ran) -> str:
    """Return what is wrong with a command's exit code or output; '' for nothing."""
    shown = step.shown or []
    fails = any(map(ERROR.match, shown))
    if (ran.exit_code != 0) != fails:
        return f"$ {step.command}\n{ran.shown}\nended with exit code {ran.exit_code}"
    if step.shown is not None and not re.fullmatch(pattern_of(shown), plain(ran.shown)):
        wanted = "\n".join(shown)
        return f"$ {step.command}\n{ran.shown}\nhas another shape than on the page:\n{wanted}"
    return ""


def banner(stack: Up) -> str:
    """Return the output of `redsched up` until it was ready."""
    lines = [f"  {name:<5}  {said}" for name, said in stack.said.items() if name != "redsched"]
    return "\n".join([f"redsched {stack.said['redsched']}", *lines, ""])


def play(page: str, stacks: Stacks, folder: Path, record: Record | None = None) -> None:
    """Play a page in an empty folder."""
    steps = [step for block in blocks(page) if block.is_run or block.file for step in block.steps()]
    with terminal(folder) as opened:
        if not any(UP.fullmatch(step.command) for step in steps):
            opened.use(stacks.of(USUAL, folder, {}))
        playing = Playing(stacks, opened, folder, record)
        for step in steps:
            playing.play(step)
