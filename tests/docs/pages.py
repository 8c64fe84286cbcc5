"""The shell blocks of a page of documentation: what a reader types, and what the page shows.

A page marks in comments, which no site shows, what a test has to know:

    <!-- not run: needs systemd -->     the next block is not run, for this reason
    <!-- file: gpus.yaml -->            the next block is what a reader writes into this file
    <!-- setup                          commands that are run here and that readers do not need: a script, or a session
    $ redsched agent --fleet hosts.yaml 2> log &
    $ redsched host list
    ...
    -->
"""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent

ROOT = Path(__file__).parents[2]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]

SESSION = "console"
SHELL = {SESSION, "sh", "bash"}

BLOCK = re.compile(
    r"^(?: *<!-- (?:not run: (?P<reason>[^\n]+?)|file: (?P<file>[\w.-]+)) -->\n\s*)?"
    r"^(?P<margin> *)```(?P<language>\S*)(?P<title>[^\n]*)\n(?P<text>.*?)^(?P=margin)```$"
    r"|^ *<!-- setup\n(?P<setup>.*?)^ *-->$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(slots=True)
class Step:
    """A command and the lines that the page shows below it; `None` if it shows no output at all."""

    command: str
    shown: list[str] | None = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block, without its indentation, or a set-up."""

    language: str
    text: str
    reason: str = ""
    file: str = ""
    fenced: bool = True
    line: int = 0

    @property
    def is_run(self) -> bool:
        return self.language in SHELL and not self.reason

    def steps(self) -> list[Step]:
        """Return the commands of a session with their output; a script is one command without any.

        In a set-up the output of a command does not matter unless the page shows some.
        """
        if self.file:
            return [Step(f"cat > {self.file} << 'END OF FILE'\n{self.text}END OF FILE", None)]
        if not self.text.startswith("$ "):
            return [Step(self.text, None)]
        steps = list(_session(self.text))
        return steps if self.fenced else [Step(step.command, step.shown or None) for step in steps]


def blocks(page: str) -> list[Block]:
    """Return the blocks and set-ups of a page, in their order."""
    return [_block(found, page) for found in BLOCK.finditer(page)]


def _block(found: re.Match[str], page: str) -> Block:
    line = page.count("\n", 0, found.start()) + 1
    if found["setup"] is not None:
        return Block("sh", dedent(found["setup"]), fenced=False, line=line)
    margin = len(found["margin"])
    text = "".join(one[margin:] if one.strip() else one for one in found["text"].splitlines(keepends=True))
    return Block(found["language"], text, found["reason"] or "", found["file"] or "", line=line)


def _session(text: str) -> Iterator[Step]:
    step: Step | None = None
    for line in text.splitlines():
        if step and _is_open(step.command):
            step.command += f"\n{line}"
        elif line.startswith("$ "):
            if step:
                yield step
            step = Step(line.removeprefix("$ "))
        elif step and step.shown is not None:
            step.shown.append(line)
        else:
            raise ValueError(f"a session has to begin with a command after '$ ': {line!r}")
    if step:
        yield step


def _is_open(command: str) -> bool:
    """Whether a command goes on in the next line: after a backslash, or inside of quotes."""
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return True
    return command.endswith("\\")
