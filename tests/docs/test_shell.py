"""Every shell command of every document runs with the output on its page, or is marked with a reason not to."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from redsched.wording import duration
from tests.docs.pages import PAGES, ROOT, SHELL, Step, blocks
from tests.docs.play import play, problem
from tests.docs.terminal import Ran, Stacks, redis_cli

RUN = [page for page in PAGES if any(block.is_run for block in blocks(page.read_text()))]
OTHER = {"python", "toml", "yaml", "json", "text", "ini", "http", "promela", "lua", "nginx", "{toctree}"}
"""The other languages of fenced blocks."""


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def in_order(page: Path) -> ParameterSet:
    """Return the page as a parameter. The longest page is played first."""
    return pytest.param(page, marks=[pytest.mark.slow] if page.name == "tutorial.md" else [])


@pytest.fixture(scope="module")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stacks]:
    with ExitStack() as opened:
        yield Stacks(tmp_path_factory.mktemp("stacks"), opened)


@pytest.mark.timeout(600)  # a page of thirty commands waits for leases and processes
@pytest.mark.parametrize("page", [in_order(page) for page in RUN], ids=map(name_of, RUN))
def test_the_commands_of_a_page_run_and_show_what_it_shows(page: Path, stacks: Stacks, tmp_path: Path) -> None:
    text = page.read_text()
    if redis_cli() is None and any("redis-cli " in block.text for block in blocks(text) if block.is_run):
        pytest.skip("the page needs redis-cli: apt install redis-tools")
    play(text, stacks, tmp_path)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_of_a_page_names_its_language(page: Path) -> None:
    """A block without a language could contain shell commands that are not run."""
    wrong = [(block.line, block.language) for block in blocks(page.read_text()) if block.language not in SHELL | OTHER]
    assert wrong == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_no_other_block_of_a_page_looks_like_a_shell(page: Path) -> None:
    others = [block for block in blocks(page.read_text()) if block.language not in SHELL]
    lines = [line for block in others for line in block.text.splitlines()]
    assert [line for line in lines if re.match(r"\$ |(redsched|scripts/\w+|redis-cli|curl|python -m) \S", line)] == []


def test_every_fence_is_found() -> None:
    """A comment of another form before a block does not hide the block from the tests."""
    for page in PAGES:
        fences = re.findall(r"^ *```", page.read_text(), re.MULTILINE)
        fenced = [block for block in blocks(page.read_text()) if block.fenced]
        assert len(fences) == 2 * len(fenced), name_of(page)


@pytest.mark.parametrize("age_ms", [0, 37_000, 119_000, 200_000, 7_300_000, 200_000_000])
def test_output_on_a_page_matches_whatever_the_ages_in_it(age_ms: int) -> None:
    shown = Step("redsched status | grep epoch", ["  epoch  1-cfdf044b since 2026-11-26T12:31:15Z (37 s), settled"])
    said = f"  epoch  2-f11fe3b5 since 2026-11-27T11:05:39Z ({duration(age_ms)}), settled\n"
    assert not problem(shown, Ran(0, said))
    assert problem(shown, Ran(0, said.replace("settled", "not settled")))
