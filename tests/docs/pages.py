"""The shell blocks of a documentation page: the commands that a reader types, and the output that the page shows.

Comments, which are not rendered, tell a test how to treat a block:

    <!-- not run: needs systemd -->     the next block is not run, for this reason
    <!-- file: gpus.yaml -->            the next block is the content of this file
    <!-- setup                          commands to run here that readers do not need: a script, or a console session
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
    """A command, and the output that the page shows below it; `None` if any output is accepted."""

    command: str
    shown: list[str] | None = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block without its indentation, or a set-up comment."""

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
        """Return the commands of a console session with their output; a script is one command without output.

        In a set-up, the output of a command is compared only if the page shows some.
        """
        if self.file:
            return [Step(f"cat > {self.file} << 'END OF FILE'\n{self.text}END OF FILE", None)]
        if not self.text.startswith("$ "):
            return [Step(self.text, None)]
        steps = list(_session(self.text))
        return steps if self.fenced else [Step(step.command, step.shown or None) for step in steps]


def blocks(page: str) -> list[Block]:
    """Return the blocks and set-ups of a page, in order."""
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
    """Return whether a command continues on the next line: after a backslash, or inside quotes."""
    try:
        shlex.split(command, comments=True)
    except ValueError:
        return True
    return command.endswith("\\")
