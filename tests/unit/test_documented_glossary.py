"""docs/glossary.md: each term once; the names that it lists as gone are gone, and those to be used instead exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
TERMS, GONE = GLOSSARY.read_text().split("## Names that are no longer used")
OLD_NAMES = re.findall(r"^\| (class )?`(\w+)` \| `(\w+)` \|$", GONE, re.MULTILINE)
RECORDS = (ROOT / "docs" / "decisions", GLOSSARY)
"""Pages that may use the old names."""


def searched() -> dict[Path, str]:
    """The text of all code and pages, by path."""
    folders = ["redsched", "tests", "benchmarks", "docs"]
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".lua", ".md"}]
    paths += [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    found = [path for path in paths if not any(path.is_relative_to(record) for record in RECORDS)]
    return {path.relative_to(ROOT): path.read_text() for path in found}


SEARCHED = searched()
WORDS = {path: set(re.findall(r"\w+", text)) for path, text in SEARCHED.items()}
CODE = "\n".join(text for path, text in SEARCHED.items() if path.parts[0] == "redsched")
CLASSES = set(re.findall(r"^ *class (\w+)", CODE, re.MULTILINE))
FUNCTIONS = set(re.findall(r"^ *(?:async )?def (\w+)", CODE, re.MULTILINE))


def test_every_term_has_one_row() -> None:
    rows = [re.split(r"\s*\|\s*", line.strip("| ")) for line in TERMS.splitlines() if line.startswith("| ")]
    terms = [term.strip() for row in rows[1:] for term in row[0].split(",")]
    assert len(terms) > 40
    assert sorted({term for term in terms if terms.count(term) > 1}) == []


@pytest.mark.parametrize("name", [name for kind, name, _ in OLD_NAMES if not kind])
def test_a_name_that_was_given_up_is_not_used(name: str) -> None:
    assert [str(path) for path, words in WORDS.items() if name in words] == []


@pytest.mark.parametrize("name", [name for kind, name, _ in OLD_NAMES if kind])
def test_no_class_has_a_name_that_was_given_up(name: str) -> None:
    assert name not in CLASSES


@pytest.mark.parametrize("name", sorted({name for *_, name in OLD_NAMES}))
def test_the_name_to_use_instead_is_defined(name: str) -> None:
    assert name in CLASSES | FUNCTIONS
