"""docs/benchmarks.md has a row for every program in benchmarks/, names none that does not exist, and stays short."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "benchmarks.md").read_text()
MOST_LINES = 400
"""What was measured before, and what was tried and left, is in docs/decisions."""


def programs() -> set[str]:
    """Return the modules and packages that can be run."""
    files = [path for path in (ROOT / "benchmarks").rglob("*.py") if 'if __name__ == "__main__"' in path.read_text()]
    names = (path.relative_to(ROOT).with_suffix("").parts for path in files)
    return {".".join(part for part in parts if part != "__main__") for parts in names}


def test_every_program_has_a_row() -> None:
    assert set(re.findall(r"^\| `python -m (benchmarks[\w.]*)", PAGE, re.MULTILINE)) == programs()


def test_every_command_of_the_page_is_a_program() -> None:
    assert set(re.findall(r"python -m (benchmarks[\w.]*)", PAGE)) <= programs()


def test_the_page_has_current_figures_only() -> None:
    assert len(PAGE.splitlines()) <= MOST_LINES
