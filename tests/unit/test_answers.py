"""Answers are built by the models that describe them."""

from dataclasses import dataclass
from typing import Annotated

import pytest

from redsched.schema.answer import Answer, From


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
    def count(self) -> int:
        return len(self.parts)


class PartAnswer(Answer, shows=Part):
    amount: Annotated[int, From("size")]


class WholeAnswer(Answer, shows=Whole):
    name: Annotated[str, From("id")]
    parts: dict[str, PartAnswer]
    tags: list[str]
    last: PartAnswer | None
    count: int
    double: Annotated[int, From(lambda whole: 2 * whole.count)]


def test_an_answer_reads_its_fields_from_the_dataclass() -> None:
    """Nested ones by their own models, sets and maps in order; and it is of its own schema."""
    whole = Whole("w", {"b": Part(2), "a": Part(1)}, frozenset("zx"), Part(3))
    found = WholeAnswer.of(whole)
    assert found == {
        "name": "w",
        "parts": {"a": {"amount": 1}, "b": {"amount": 2}},
        "tags": ["x", "z"],
        "last": {"amount": 3},
        "count": 2,
        "double": 4,
    }
    assert list(found["parts"]) == ["a", "b"]
    WholeAnswer.model_validate(found)
    assert WholeAnswer.of(Whole("w", {}, frozenset(), None))["last"] is None


def test_a_field_that_the_dataclass_has_not_is_found_at_import() -> None:
    with pytest.raises(TypeError, match=r"WrongAnswer\.length is read from length, which .*Part"):

        class WrongAnswer(Answer, shows=Part):
            length: int
