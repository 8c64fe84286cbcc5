"""Every interface is documented: REST routes and problems, commands and their options, exit codes, metrics."""

import re
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from redsched.api.metrics import Metrics
from redsched.cli.commands import NOUNS, entries
from redsched.cli.groups import load
from redsched.errors import RedschedError
from redsched.model import Request
from redsched.model.record import adapter
from redsched.requests.reports import HeldClaimBody
from redsched.store.agent_calls import CALLS
from tests.support.openapi import openapi_document

DOCS = Path(__file__).parents[3] / "docs"
REST, CLI, OPERATE = ((DOCS / name).read_text() for name in ("rest.md", "cli.md", "operate.md"))
METHODS = ("get", "put", "post", "patch", "delete")


def rows(pattern: str, text: str) -> set[str]:
    """Return the names in backquotes in the first cells of tables that match `pattern`."""
    firsts = re.findall(r"^\| ([^|]+) \|", text, re.MULTILINE)
    return {name for first in firsts for name in re.findall(r"`([^`]+)`", first) if re.fullmatch(pattern, name)}


def test_every_route_is_documented_and_no_other() -> None:
    paths: dict[str, dict[str, Any]] = openapi_document()["paths"]
    routes = {f"{method.upper()} {path}" for path, verbs in paths.items() for method in verbs if method in METHODS}
    assert routes == rows(r"[A-Z]+ /.*", REST), "docs/rest.md has other rows"


def test_every_call_of_agents_is_documented_and_no_other() -> None:
    assert rows(r"[a-z-]+", REST.split("## Calls of agents")[1].split("\n## ")[0]) == CALLS.keys()


def problems(error: type[RedschedError] = RedschedError) -> Iterator[str]:
    """Yield the problem types of all errors, including those of HTTP alone."""
    if error.__module__ in {"redsched.errors", "redsched.serve.problems", "redsched.api.problems"}:
        yield f"/problems/{error.problem}"
    for one in error.__subclasses__():
        yield from problems(one)


def test_every_problem_type_is_documented_and_no_other() -> None:
    assert set(problems()) == rows(r"/problems/.*", REST)


def test_every_field_of_a_request_is_documented_and_no_other() -> None:
    request = REST.split("## A request")[1].split("## A report")[0]
    documented = rows(r"\w+", request) - {"1", "120"}
    assert documented == adapter(Request).json_schema()["properties"].keys(), "the table of `A request` in docs/rest.md"


def test_every_field_of_a_claim_in_a_report_is_documented() -> None:
    """An agent that does not know one loses it when the store loses its data."""
    report = REST.split("\n## A report")[1].split("\n## ")[0]
    named = set(re.findall(r"`(\w+)`", report))
    assert {one.name for one in fields(HeldClaimBody) if one.init} - named == set(), "`A report` in docs/rest.md"


COMMANDS = entries()
WHICH_FLEET = {"--url", "--api", "--token-file", "--context"}


def sections() -> dict[str, str]:
    """Return the sections of cli.md by their command or noun."""
    parts = re.split(r"^##+ `redsched ([\w -]+)`$", CLI, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def part(title: str) -> str:
    """Return a part of cli.md that is about several commands."""
    return CLI.partition(f"## {title}\n")[2].partition("\n## ")[0]


def section_of(words: str) -> str:
    """Return the section of a command, or that of its noun if it has a row for the verb; '' if neither exists."""
    noun, _, verb = words.partition(" ")
    own = sections().get(words)
    of_noun = sections().get(noun, "")
    return own if own is not None else (of_noun if f"`{verb}`" in of_noun else "")


def test_every_command_is_documented_and_no_other() -> None:
    assert [words for words in COMMANDS if not section_of(words)] == [], "docs/cli.md has no section of them"
    assert sections().keys() - COMMANDS.keys() == NOUNS.keys()


@pytest.mark.parametrize("words", COMMANDS)
def test_every_option_of_a_command_is_documented(words: str) -> None:
    options = {option for parameter in load(words, COMMANDS[words]).params for option in parameter.opts}
    text = section_of(words)
    # Described once for all commands.
    text += part("Which fleet") if options >= WHICH_FLEET else ""
    text += part("Confirmation") if "--yes" in options else ""
    assert {one for one in options if one.startswith("--") and f"`{one}" not in text} == set()


@pytest.mark.parametrize("words", COMMANDS)
def test_the_help_of_a_command_is_the_first_line_of_its_docstring(words: str) -> None:
    """`redsched --help` shows the line in the table of commands, so that it need not import the command."""
    assert load(words, COMMANDS[words]).help.splitlines()[0] == COMMANDS[words].help


def test_every_exit_code_is_documented() -> None:
    def codes(error: type[RedschedError] = RedschedError) -> Iterator[str]:
        yield str(error.exit_code)
        for one in error.__subclasses__():
            yield from codes(one)

    documented = set(re.findall(r"^\| (\d+) \|", CLI, re.MULTILINE))
    assert documented == {"0", "130", *codes()}


def test_every_metric_is_documented_and_no_other() -> None:
    assert Metrics().names == rows(r"redsched_\w+", OPERATE)
