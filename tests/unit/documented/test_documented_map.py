"""docs/architecture.md agrees with the code: every package has a row, and every path that it names exists.

So do the docstrings of packages: every module that one lists exists.
"""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs").glob("[!d]*/*.md"))]
MAP = (ROOT / "docs" / "architecture.md").read_text().split("## Map of the code")[1]
ROWS = re.findall(r"^\| `(redsched/[\w/]*)` \| [^|]+ \| ([^|]+) \|$", MAP, re.MULTILINE)
PACKAGES = sorted((ROOT / "redsched").rglob("__init__.py"))
LISTED = re.compile(r"(?<![\w./])([a-z]\w*(?:\.py|/))(?=\W|$)")
"""`app.py` or `routes/`, wherever a docstring names it."""
FIRST_COLUMN = re.compile(r" *(\w+(?:, \w+)*)  +\w.*")
"""A line of a list without endings: `headroom, gpu    weighers ...; demand: what a request takes`."""
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


def modules_in(docstring: str) -> set[str]:
    """Return the names of modules, and of folders with a slash, that the docstring of a package lists."""
    lists = [match for line in docstring.splitlines()[1:] if (match := FIRST_COLUMN.fullmatch(line))]
    names = {name for match in lists for name in (*match[1].split(", "), *re.findall(r"; (\w+):", match[0]))}
    return {*LISTED.findall(docstring), *(f"{name}.py" for name in names)}


def test_what_a_docstring_lists_is_found() -> None:
    assert modules_in("A room.\n\napp.py  the app    routes/  by subject") == {"app.py", "routes/"}
    assert modules_in("A room.\n\n    hosts, gpu   weighers; demand: amounts") == {"hosts.py", "gpu.py", "demand.py"}
    assert modules_in("A room. See docs/weighing.md and `redsched/rest.py`, or `redsched.offline.plans`.") == set()


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: str(path.parent.relative_to(ROOT)))
def test_the_modules_that_a_package_lists_exist(package: Path) -> None:
    listed = modules_in(ast.get_docstring(ast.parse(package.read_text())) or "")
    assert sorted(name for name in listed if not (package.parent / name).exists()) == []
