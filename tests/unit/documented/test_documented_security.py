"""docs/security.md names tests that exist: each claim of the page can be tried."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
ROWS = (ROOT / "docs" / "security.md").read_text().split("## How each defence is tested")[1].splitlines()


def named() -> list[tuple[str, str]]:
    """Return the file and name of each test; a name alone is of the file before it in its row."""
    found = []
    for row in ROWS:
        file = ""
        for path, name in re.findall(r"`(?:(tests/[\w/]+\.py)(?:::)?)?(test_\w+)?`", row):
            file = path or file
            found += [(file, name)] if file else []
    return found


@pytest.mark.parametrize(("file", "name"), named())
def test_each_test_that_the_page_names_exists(file: str, name: str) -> None:
    assert f"def {name}" in (ROOT / file).read_text()


def test_the_page_names_tests() -> None:
    assert len(named()) > 10
