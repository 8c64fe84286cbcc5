"""Every `redsched` command that a page names exists."""

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from redsched.cli.main import app

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs").glob("[ho]*/*.md"))]
TOP: Any = typer.main.get_command(app)


def is_command(words: list[str]) -> bool:
    """Return whether the words name a command, with its noun if it has one, or are a noun or its plural."""
    command = TOP.commands.get(words[0]) or TOP.commands.get(words[0].removesuffix("s"))
    below = getattr(command, "commands", None)
    return command is not None and (not below or not words[1:] or words[1] in below)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_of_a_page_exists(page: Path) -> None:
    text = re.sub(r"^#.*", "", page.read_text(), flags=re.MULTILINE)
    lines = re.findall(r"^ *\$ redsched (.+)$", text, re.MULTILINE) + re.findall(r"`redsched ([^`]+)`", text)
    assert [line for line in lines if line[0].isalpha() and not is_command(line.split())] == []
