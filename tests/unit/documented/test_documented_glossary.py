"""docs/glossary.md: each term occurs once, the old names are not used, and their replacements exist."""

import re
from pathlib import Path

import pytest

from redsched.store.codec.outcomes import Outcome

ROOT = Path(__file__).parents[3]
GLOSSARY = ROOT / "docs" / "glossary.md"
TERMS, GONE = GLOSSARY.read_text().split("## Names that are no longer used")
OLD_NAMES = re.findall(r"^\| (class |outcome |field )?`(\w+)` \| `(\w+)` \|$", GONE, re.MULTILINE)
RECORDS = (ROOT / "docs" / "decisions", ROOT / "docs" / "model", GLOSSARY)
"""Pages that may use the old names."""


def searched() -> dict[Path, str]:
    """Return the text of all code and pages, by path."""
    folders = ["redsched", "tests", "benchmarks", "docs"]
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in {".py", ".lua", ".md"}]
    paths += [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    found = [path for path in paths if not any(path.is_relative_to(record) for record in RECORDS)]
    return {path.relative_to(ROOT): path.read_text() for path in found}


SEARCHED = searched()
WORDS = {path: set(re.findall(r"\w+", text)) for path, text in SEARCHED.items()}
CODE = "\n".join(text for path, text in SEARCHED.items() if path.parts[0] == "redsched")
CLASSES = set(re.findall(r"^ *class (\w+)", CODE, re.MULTILINE))
NAMED = set(re.findall(r"""["'.](\w+)""", CODE)) | set(re.findall(r"^    (\w+):", CODE, re.MULTILINE))
"""First words of strings, and names of attributes and fields."""
FUNCTIONS = set(re.findall(r"^ *(?:(?:async )?def|local function) (\w+)", CODE, re.MULTILINE))


def test_every_term_has_one_row() -> None:
    rows = [re.split(r"\s*\|\s*", line.strip("| ")) for line in TERMS.splitlines() if line.startswith("| ")]
    terms = [term.strip() for row in rows[1:] for term in row[0].split(",")]
    assert len(terms) > 40
    assert sorted({term for term in terms if terms.count(term) > 1}) == []


@pytest.mark.parametrize("name", [name for kind, name, _ in OLD_NAMES if not kind])
def test_a_name_that_was_given_up_is_not_used(name: str) -> None:
    assert [str(path) for path, words in WORDS.items() if name in words] == []


@pytest.mark.parametrize("name", [name for kind, name, _ in OLD_NAMES if kind == "class "])
def test_no_class_has_a_name_that_was_given_up(name: str) -> None:
    assert name not in CLASSES


@pytest.mark.parametrize("name", [name for kind, name, _ in OLD_NAMES if kind == "outcome "])
def test_no_script_answers_with_a_word_that_was_given_up(name: str) -> None:
    assert name not in Outcome.__members__
    assert f"'{name}'" not in CODE


@pytest.mark.parametrize("name", [name for kind, name, _ in OLD_NAMES if kind == "field "])
def test_no_key_or_field_has_a_name_that_was_given_up(name: str) -> None:
    """It is neither a whole string nor, as in `leaving.`, the prefix of a family of fields."""
    assert not re.search(rf"""["']{name}(["']|[.:]["'{{])""", CODE)


@pytest.mark.parametrize("package", ["agent", "lua", "store"])
def test_entries_of_an_inbox_are_notifications_and_only_requests_have_hints(package: str) -> None:
    folder = Path("redsched", package)
    assert [str(path) for path in WORDS if folder in path.parents and re.search(r"(?i)hint", SEARCHED[path])] == []


@pytest.mark.parametrize(("kind", "name"), sorted({(kind, name) for kind, _, name in OLD_NAMES}))
def test_the_name_to_use_instead_is_there(kind: str, name: str) -> None:
    known = Outcome.__members__ if kind == "outcome " else CLASSES | FUNCTIONS | NAMED
    assert name in known
