"""Response models build responses from dataclasses."""

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import pytest

from redsched.schema.answer import Answer, From

pytestmark = pytest.mark.heavy


@dataclass(frozen=True)
class Part:
    size: int


@dataclass(frozen=True)
class Whole:
    id: str
    parts: dict[str, Part]
    tags: frozenset[str]
    last: Part | None

    @property
    def amounts(self) -> dict[str, int]:
        return {name: part.size for name, part in self.parts.items()}

    @property
    def count(self) -> int:
        return len(self.parts)


class PartAnswer(Answer, shows=Part):
    amount: Annotated[int, From("size")]
    note: Annotated[str, From(lambda part: "small" if part.size < 2 else "")] = ""


class WholeAnswer(Answer, shows=Whole):
    name: Annotated[str, From("id")]
    parts: dict[str, PartAnswer]
    tags: list[str]
    last: PartAnswer | None
    count: int
    double: Annotated[int, From(lambda whole: 2 * whole.count)]
    sizes: Annotated[Mapping[str, int], From("amounts")]


def test_an_answer_reads_its_fields_from_the_dataclass() -> None:
    """Nested objects use their own models, sets and dicts are ordered, defaults omitted; the result fits the schema."""
    whole = Whole("w", {"b": Part(2), "a": Part(1)}, frozenset("zx"), Part(3))
    found = WholeAnswer.of(whole)
    assert found == {
        "name": "w",
        "parts": {"a": {"amount": 1, "note": "small"}, "b": {"amount": 2}},
        "tags": ["x", "z"],
        "last": {"amount": 3},
        "count": 2,
        "double": 4,
        "sizes": {"b": 2, "a": 1},
    }
    assert list(found["parts"]) == ["a", "b"]
    assert list(found["sizes"]) == ["b", "a"]
    WholeAnswer.model_validate(found)
    assert WholeAnswer.of(Whole("w", {}, frozenset(), None))["last"] is None


def test_a_field_that_the_dataclass_has_not_is_found_at_import() -> None:
    with pytest.raises(TypeError, match=r"WrongAnswer\.length is read from length, which .*Part"):

        class WrongAnswer(Answer, shows=Part):
            length: int


def test_commands_import_the_models_of_responses_for_json_alone() -> None:
    """Defining the models takes as long as the rest of `redsched --help`."""
    code = (
        "import sys; from redsched.cli.commands import NOUNS, VERBS; from redsched.cli.groups import load\n"
        "for noun in NOUNS.values():\n"
        "    for name, entry in noun.verbs.items(): load(name, entry)\n"
        "for name in ('select', 'explain', 'events', 'capacity'): load(name, VERBS[name])\n"
        "print(*(name for name in sys.modules if name.startswith('redsched.schema.responses.')))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
