"""README.md stays short, and begins with two commands that a checkout has."""

import os
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
README = (ROOT / "README.md").read_text()
MAX_LINES = 150


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) < MAX_LINES


def test_it_begins_with_two_commands_that_a_checkout_has() -> None:
    block = README.split("## Two commands")[1].split("```")[1]
    commands = re.findall(r"^(scripts/\w+)", block, re.MULTILINE)
    assert commands == ["scripts/up", "scripts/test"]
    assert all(os.access(ROOT / command, os.X_OK) for command in commands)


def test_it_leads_to_every_folder_of_documents() -> None:
    linked = {Path(path).parts[1] for path in re.findall(r"\]\((docs/[^)#]+)", README) if len(Path(path).parts) > 2}
    folders = {path.name for path in (ROOT / "docs").iterdir() if path.is_dir() and list(path.glob("*.md"))}
    assert folders - linked - {"decisions", "architecture"} == set()
