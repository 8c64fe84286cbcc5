"""The walks of docs/architecture/ follow the code: each step exists, and is reached from the step before it.

A step is reached if its function, or its script, is named in the file of the step before. Otherwise it says how:

    (from step N)                        it is named in the file of that step
    (through `word`)                     both files name this key, field or value
    (through `word`, set in `file`)      the file before calls `word`; `file` sets it to this function
    (called by an operator)              a route or a command names it
"""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
WALKS = sorted((ROOT / "docs" / "architecture").glob("*.md"))
STEP = re.compile(r"^(\d+)\. `([\w/.]+?)(?:::(\w+))?`(?: \(([^)]+)\))?")
MAX_STEPS = 12


@dataclass(frozen=True)
class Step:
    path: str
    function: str
    way: str

    @property
    def text(self) -> str:
        return (ROOT / self.path).read_text()

    def is_named_in(self, text: str) -> bool:
        """Return whether a text names the function or script of this step."""
        if self.function:
            return has_word(text, self.function)
        script = Path(self.path).stem
        return f'"{script}"' in text or has_word(text, f"{script}.lua")


def has_word(text: str, word: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None


def steps_of(walk: Path) -> list[Step]:
    found = [STEP.match(line) for line in walk.read_text().splitlines()]
    return [Step(one[2], one[3] or "", one[4] or "") for one in found if one]


def defined_in(step: Step) -> set[str]:
    if step.path.endswith(".lua"):
        return set(re.findall(r"^ *(?:local )?function (\w+)", step.text, re.MULTILINE))
    nodes = ast.walk(ast.parse(step.text))
    return {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}


def is_reached(steps: list[Step], index: int) -> bool:
    step, before = steps[index], steps[index - 1]
    if source := re.fullmatch(r"from step (\d+)", step.way):
        return int(source[1]) <= index and step.is_named_in(steps[int(source[1]) - 1].text)
    if key := re.fullmatch(r"through `([\w.]+)`", step.way):
        return has_word(before.text, key[1]) and has_word(step.text, key[1])
    if callback := re.fullmatch(r"through `(\w+)`, set in `([\w/.]+)`", step.way):
        return has_word(before.text, callback[1]) and step.is_named_in((ROOT / callback[2]).read_text())
    if step.way == "called by an operator":
        edges = [*(ROOT / "redsched/api/routes").glob("*.py"), *(ROOT / "redsched/cli").glob("*.py")]
        return any(step.is_named_in(edge.read_text()) for edge in edges)
    return not step.way and step.is_named_in(before.text)


def test_there_are_six_walks() -> None:
    assert [walk.stem for walk in WALKS] == ["attestation", "command", "failed-host", "release", "report", "selection"]


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.stem)
def test_every_step_of_a_walk_exists(walk: Path) -> None:
    steps = steps_of(walk)
    numbers = re.findall(r"^(\d+)\. ", walk.read_text(), re.MULTILINE)
    assert numbers == [str(number) for number in range(1, len(steps) + 1)]
    assert 0 < len(steps) <= MAX_STEPS
    assert [step for step in steps if not (ROOT / step.path).is_file()] == []
    assert [step for step in steps if step.function and step.function not in defined_in(step)] == []


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.stem)
def test_every_step_is_reached_from_the_one_before_or_says_how(walk: Path) -> None:
    steps = steps_of(walk)
    assert [steps[index] for index in range(1, len(steps)) if not is_reached(steps, index)] == []
