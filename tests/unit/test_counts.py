"""`scripts/count-code` counts what it names, and finds its tables where they are in this checkout."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support import counts

FILES: Mapping[str, str] = {
    "redsched/__init__.py": "",
    "redsched/model/things.py": """
from dataclasses import dataclass

@dataclass(frozen=True)
class Thing:
    name: str
    size: int

    @property
    def is_large(self) -> bool:
        return self.size > 9
""",
    "redsched/schema/answers.py": """
from pydantic import BaseModel
from redsched.model.things import Thing

class Shown(BaseModel):
    name: str
    is_large: bool

class Counted(Shown):
    name: str
    count: int
""",
    "redsched/operations/things.py": """
from redsched.model import things
from redsched.schema.answers import Shown

class Things:
    @operation(Route(path="/v1/things/{name}"))
    def get(self, name): ...

    @listing(Route(path="/v1/things"))
    def list(self): ...
""",
    "redsched/api/routes/things.py": """
@router.post("/v1/things/{name}/resize")
async def post(name): ...
""",
    "redsched/agent/things.py": "def resize(): ...\n",
    "redsched/cli/commands.py": "GROUP = {'show': Entry('verbs:show'), 'resize': Entry('verbs:resize')}\n",
}


@pytest.fixture
def found(tmp_path: Path) -> list[counts.Module]:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return counts.modules(tmp_path)


def test_lines_are_counted_by_package(found: list[counts.Module]) -> None:
    lines = {name: len(text.splitlines()) for name, text in FILES.items()}
    by_package = counts.by_package(found)
    assert by_package[""] == (1, 0)
    assert by_package["model"] == (1, lines["redsched/model/things.py"])
    assert sum(count for _, count in by_package.values()) == sum(lines.values())


def test_a_response_is_a_copy_if_one_dataclass_has_all_its_fields(found: list[counts.Module]) -> None:
    assert [one.name for one in counts.responses(found)] == ["Shown", "Counted"]
    assert counts.copies(found) == ["Shown"]


def test_modules_that_one_other_imports_and_those_that_name_an_operation(found: list[counts.Module]) -> None:
    assert counts.imported_once(found) == 1  # schema.answers; two import model.things
    assert counts.naming(found, "resize") == ["redsched.api.routes.things", "redsched.cli.commands"]


def test_rows_of_tables(found: list[counts.Module]) -> None:
    rows = counts.tables(found)
    assert (rows["operations"], rows["routes declared beside them"], rows["commands"]) == (2, 1, 2)


def test_the_tables_of_this_checkout_are_found() -> None:
    rows = counts.tables(counts.modules(counts.ROOT))
    here = ("operations", "routes declared beside them", "scopes of routes", "commands")
    assert all(rows[name] for name in here), rows
