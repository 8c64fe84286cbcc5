"""docs/index.md is the navigation of the site: it names each page once, by kind. Needs no Sphinx."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```", re.MULTILINE | re.DOTALL)
KINDS = ["Tutorial", "How-to", "Reference", "Explanation"]


def trees(page: str) -> list[list[str]]:
    """Return the lines of each toctree of a page, options included."""
    return [body.splitlines() for body in TOCTREE.findall((DOCS / page).read_text())]


def named(page: str) -> list[str]:
    return [line for tree in trees(page) for line in tree if not line.startswith(":")]


def test_the_navigation_is_by_kind() -> None:
    captions = [line.removeprefix(":caption: ") for tree in trees("index.md") for line in tree if "caption" in line]
    assert captions == KINDS


def test_the_navigation_names_every_page_once() -> None:
    pages = {str(path.relative_to(DOCS).with_suffix("")) for path in DOCS.rglob("*.md")}
    decisions = {page for page in pages if page.startswith("decisions/")}
    assert named("decisions.md") == ["decisions/*"]
    assert sorted(named("index.md")) == sorted(pages - decisions - {"index"})
