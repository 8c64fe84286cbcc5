"""Links in the documents: each decision has a unique number, and the target of each link exists."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def slug(heading: str) -> str:
    """Return a heading's anchor as code hosts generate it: lower case, no punctuation, hyphens for spaces."""
    text = LINK.sub(lambda link: link[0][1 : link[0].index("]")], heading)
    return re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")


def anchors(page: Path) -> set[str]:
    text = FENCED.sub("", page.read_text())
    return {slug(one) for one in re.findall(r"^#+ (.+)$", text, re.MULTILINE)} | set(re.findall(r'<a id="(.+?)"', text))


def broken_links(page: Path) -> Iterator[str]:
    for link in LINK.findall(FENCED.sub("", page.read_text())):
        if re.match(r"https?:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_to_a_file_and_heading_that_is_there(page: Path) -> None:
    assert list(broken_links(page)) == []


def test_every_decision_has_a_number_of_its_own() -> None:
    numbers = [page.name[:4] for page in DECISIONS]
    assert sorted({one for one in numbers if numbers.count(one) > 1}) == []


@pytest.mark.parametrize("page", DECISIONS, ids=name_of)
def test_a_decision_is_headed_by_its_number(page: Path) -> None:
    assert page.read_text().startswith(f"# {page.name[:4]}: ")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_decisions_are_linked_by_their_number(page: Path) -> None:
    """A link whose text is a number leads to the decision of that number."""
    linked = re.findall(r"\[(?:decision )?(\d{4})\]\((?:\S*/)?(\d{4})-", page.read_text())
    assert [(said, meant) for said, meant in linked if said != meant] == []
