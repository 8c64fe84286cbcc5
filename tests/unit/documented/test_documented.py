"""All settings and dependencies are documented: one without its row in docs/ fails here."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import PydanticUndefined

from redsched.settings import Settings

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"


def table_rows(text: str) -> dict[str, list[str]]:
    """Return the rows of all Markdown tables: the first cell, without backticks, and the following cells."""
    rows = (line.strip("|").split(" | ") for line in text.splitlines() if line.startswith("| "))
    return {first.strip(" `|"): [cell.strip(" |") for cell in rest] for first, *rest in rows}


SETTINGS = table_rows((DOCS / "settings.md").read_text())


def shown(default: Any) -> str:
    """Return a default as docs/settings.md writes it."""
    if default in ("", ()):
        return "*empty*"
    if isinstance(default, tuple):
        return f"`{','.join(default)}`"
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_documented_with_its_default(name: str) -> None:
    field = Settings.model_fields[name]
    default = field.default if field.default is not PydanticUndefined else field.get_default(call_default_factory=True)
    row = SETTINGS.get(f"REDSCHED_{name.upper()}")
    assert row, f"docs/settings.md has no row for REDSCHED_{name.upper()}"
    assert row[0] == shown(default)
    assert row[1]


def test_no_setting_is_documented_that_does_not_exist() -> None:
    documented = {name for name in SETTINGS if name.startswith("REDSCHED_")}
    assert documented == {f"REDSCHED_{name.upper()}" for name in Settings.model_fields}


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    listed = project["dependencies"] + [one for extra in project["optional-dependencies"].values() for one in extra]
    reasons = table_rows((DOCS / "decisions" / "0002-dependencies.md").read_text())
    assert {re.split(r"[<>=!~\[; ]", one)[0] for one in listed} - {"redsched"} == reasons.keys() - {"dependency"}
