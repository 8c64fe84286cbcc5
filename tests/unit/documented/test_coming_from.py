"""docs/howto/coming-from.md: each line for redsched is one that the command line accepts."""

import re
from pathlib import Path

import pytest

from redsched.cli.commands import entries
from redsched.cli.groups import load

PAGE = (Path(__file__).parents[3] / "docs" / "howto" / "coming-from.md").read_text()
ROWS = [line.strip("| ").split(" | ") for line in PAGE.splitlines() if line.startswith("| ")][1:]
LINES = [re.findall(r"`redsched ([^`]+)`", row[-1]) for row in ROWS]
COMMANDS = entries()


@pytest.mark.parametrize("line", [line for lines in LINES for line in lines])
def test_the_command_line_takes_it(line: str) -> None:
    """The command is found, and all of its options and arguments are parsed; nothing runs."""
    words = line.split()
    length = 2 if " ".join(words[:2]) in COMMANDS else 1
    name = " ".join(words[:length])
    load(name, COMMANDS[name]).make_context(name, words[length:])


def test_each_row_has_a_line() -> None:
    assert all(LINES)
    assert len(ROWS) > 25
