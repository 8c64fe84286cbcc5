"""docs/packages.md lists what the locks have, and the locks have what pyproject.toml asks for, with hashes."""

import re
import tomllib
from importlib.metadata import PackageNotFoundError, version

import pytest

from tests.support.packages_page import PAGE, ROOT, canonical, licence, locked, tables

LOCKS = sorted(path.stem for path in (ROOT / "requirements").glob("*.lock"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
ROWS = tables(PAGE.read_text())


def wanted(extra: str) -> set[str]:
    """Return the packages that an extra asks for, with those of the extras in it and of the base."""
    found = set(map(canonical, PROJECT["dependencies"]))
    for one in PROJECT["optional-dependencies"][extra]:
        inner = re.fullmatch(r"redsched\[([\w,]+)\]", one)
        found |= set().union(*map(wanted, inner[1].split(","))) if inner else {canonical(one)}
    return found


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_has_each_dependency_of_its_extra(name: str) -> None:
    assert wanted(name) <= set(locked(name)), "run scripts/lock"


@pytest.mark.parametrize("name", LOCKS)
def test_a_lock_has_hashes_and_no_address(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.lock").read_text()
    blocks = [block for block in re.split(r"\n(?=\S)", text) if "==" in block.split("\n")[0]]
    assert len(blocks) == len(locked(name))
    assert not [block for block in blocks if "--hash=sha256:" not in block]
    assert "://" not in text


def test_what_both_locks_have_is_the_same() -> None:
    assert locked("embedded").items() <= locked("test").items()


def test_the_page_lists_what_is_locked() -> None:
    """Each package once, with its version: `scripts/packages` writes the tables."""
    listed = {name: number for rows in ROWS.values() for name, number, *_ in rows}
    assert listed == locked("test")
    assert sum(map(len, ROWS.values())) == len(listed)


def test_the_page_has_the_licences_that_the_packages_state() -> None:
    for name, number, stated, why in (row for rows in ROWS.values() for row in rows):
        assert stated != "not stated", name
        assert why, name
        try:
            is_same = version(name) == number
        except PackageNotFoundError:
            continue
        assert not is_same or licence(name) == stated, name
