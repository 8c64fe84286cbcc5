"""docs/architecture.md agrees with the code: every package has a row, and every path that it names exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs").glob("[!d]*/*.md"))]
MAP = (ROOT / "docs" / "architecture.md").read_text().split("## Map of the code")[1]
ROWS = re.findall(r"^\| `(redsched/[\w/]*)` \| [^|]+ \| ([^|]+) \|$", MAP, re.MULTILINE)
PATH = re.compile(r"`((?:redsched|tests|benchmarks|scripts|docs)/[\w./-]*)(?:::\w+)?`")


def packages() -> set[str]:
    """Return the folders with Python or Lua sources."""
    sources = [*(ROOT / "redsched").rglob("*.py"), *(ROOT / "redsched").rglob("*.lua")]
    return {f"{source.parent.relative_to(ROOT)}/" for source in sources}


def test_every_package_has_one_row_in_the_map() -> None:
    assert sorted(package for package, _ in ROWS) == sorted(packages())


@pytest.mark.parametrize(("package", "files"), ROWS, ids=[package for package, _ in ROWS])
def test_the_files_to_start_reading_at_exist(package: str, files: str) -> None:
    names = re.findall(r"`([\w.]+)`", files)
    assert names
    assert [name for name in names if not (ROOT / package / name).is_file()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_path_that_a_page_names_exists(page: Path) -> None:
    assert [path for path in PATH.findall(page.read_text()) if not (ROOT / path).exists()] == []
