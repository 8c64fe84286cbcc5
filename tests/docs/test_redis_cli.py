"""docs/howto/redis-cli.md has twenty questions, each with its line, the output and what it means.

tests/docs/test_shell.py runs each line with the real redis-cli, and compares the output.
"""

import re

import pytest

from redsched.store.client.scripts import functions
from tests.docs.pages import ROOT, blocks

PAGE = (ROOT / "docs" / "howto" / "redis-cli.md").read_text()
QUESTIONS = re.split(r"^### (\d+\. .+)\n", PAGE, flags=re.MULTILINE)[1:]
TWENTY = dict(zip(QUESTIONS[::2], QUESTIONS[1::2], strict=True))
WIDTH = 80


def test_there_are_twenty_questions() -> None:
    assert [int(question.partition(".")[0]) for question in TWENTY] == list(range(1, 21))
    assert all(question.endswith("?") for question in TWENTY)


@pytest.mark.parametrize("question", TWENTY)
def test_each_has_a_line_that_is_run_its_output_and_its_meaning(question: str) -> None:
    (block,) = blocks(TWENTY[question])
    (step,) = block.steps()
    assert block.is_run
    assert step.command.startswith("redis-cli ")
    assert [line for line in step.shown or [] if line != "..."]
    assert max(map(len, step.shown or [])) <= WIDTH
    meaning = TWENTY[question].rpartition("```")[2]
    assert len(re.sub(r"^## .*", "", meaning, flags=re.MULTILINE).split()) > 8


def test_each_function_answers_one_of_them() -> None:
    used = re.findall(r"^\$ redis-cli FCALL_RO rs_(\w+)", PAGE, re.MULTILINE)
    assert sorted(used) == sorted(functions())
