"""docs/howto/: every `redsched` command of a page is one that exists."""

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from redsched.cli.main import app

HOWTO = sorted((Path(__file__).parents[2] / "docs" / "howto").glob("*.md"))
TOP: Any = typer.main.get_command(app)


def is_command(words: list[str]) -> bool:
    """Whether the words lead to a command, through its group if it has one."""
    command = TOP.commands.get(words[0])
    below = getattr(command, "commands", None)
    return command is not None and (not below or (len(words) > 1 and words[1] in below))


@pytest.mark.parametrize("page", HOWTO, ids=lambda page: page.stem)
def test_every_command_of_a_page_exists(page: Path) -> None:
    text = page.read_text()
    lines = re.findall(r"^ *\$ redsched (.+)$", text, re.MULTILINE) + re.findall(r"`redsched ([^`]+)`", text)
    assert [line for line in lines if not is_command(line.split())] == []
