"""What cannot be taken back is confirmed: on a terminal by an answer, elsewhere by --yes."""

import os
import pty
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Redsched
from tests.cli.parts import COMMAND

BOTH_LINKS = True
ASKED = [
    (("host", "write-off", "h1", "--force"), "Host h1 will be written off"),
    (("host", "remove", "h1", "--force"), "Host h1 will be removed, and its claims end"),
    (("claim", "release", "--project", "web"), "2 claims will be released"),
    (("claim", "shelve", "--project", "web"), "2 claims will be shelved"),
    (("claim", "renew", "--project", "web"), "2 claims will be renewed"),
]


@pytest.fixture
def filled(redsched: Redsched) -> Redsched:
    """Return a function that runs a command on two hosts with two claims of a project."""
    for name in ("a", "b"):
        redsched("select", "VCPU=1", "--host", "h1", "--id", name, "--project", "web").check()
    return redsched


def answered(store: str, answer: str, *words: str) -> tuple[int, str]:
    """Return the exit code and all output of a command on a terminal, at which this is typed."""
    ours, its = pty.openpty()
    environment = {**os.environ, "REDSCHED_REDIS_URL": store, "TERM": "dumb"}
    with subprocess.Popen([*COMMAND, *words], stdin=its, stdout=its, stderr=its, env=environment) as ran:
        os.close(its)
        shown = b""
        try:
            while part := os.read(ours, 65_536):
                shown += part
                if shown.endswith(b"[y/N] "):
                    os.write(ours, answer.encode())
        except OSError:  # reading a terminal ends like this when its other side is closed
            pass
        os.close(ours)
        return ran.wait(), " ".join(shown.decode().split())


@pytest.mark.parametrize(("words", "said"), ASKED)
def test_without_a_terminal_it_is_refused_with_the_consequences(
    filled: Redsched, words: tuple[str, ...], said: str
) -> None:
    """Nothing has changed then: both claims are there, and the host is as it was."""
    filled(*words).check_failed(2, said, "a, b (2 of web)", "add --yes")
    assert filled("claim", "list", "-o", "name").check().output.split() == ["a", "b"]
    assert filled("host", "list", "-o", "name", "--status", "enabled").check().output.split() == ["h1", "h2"]


def test_the_claims_that_are_named_are_those_that_the_verb_would_change(filled: Redsched) -> None:
    """Unshelving changes shelved claims only, and asks about these."""
    filled("claim", "shelve", "a").check()
    filled("claim", "unshelve", "--project", "web").check_failed(2, "1 claim will be unshelved: a (1 of web)")
    filled("claim", "shelve", "b").check()
    filled("claim", "unshelve", "--project", "web").check_failed(2, "2 claims will be unshelved: a, b (2 of web)")


@pytest.mark.usefixtures("needs_store")
@pytest.mark.parametrize(
    ("answer", "code", "left"), [("y\n", 0, []), ("\n", 130, ["a", "b"]), ("no\n", 130, ["a", "b"])]
)
def test_an_answer_decides(filled: Redsched, store: str, answer: str, code: int, left: list[str]) -> None:
    ended, shown = answered(store, answer, "claim", "release", "--project", "web")
    assert ended == code
    assert "2 claims will be released: a, b (2 of web). Go on? [y/N]" in shown
    assert ("nothing is changed" in shown) == bool(left)
    assert filled("claim", "list", "-o", "name").check().output.split() == left


def test_a_release_by_force_says_where_the_work_may_still_run(filled: Redsched) -> None:
    said = "Freed at once, even if the work still runs, so that others may get the same amounts: a (claimed on h1)"
    filled("claim", "release", "a", "nope", "--force").check_failed(2, said, "add --yes")
    assert filled("claim", "list", "-o", "name").check().output.split() == ["a", "b"]
    filled("claim", "release", "a", "--force", "--yes").check()
    filled("claim", "release", "nope", "--force").check_failed(4, "nope")


@pytest.mark.usefixtures("needs_store")
def test_what_will_be_refused_or_changes_nothing_is_not_asked_for(filled: Redsched) -> None:
    filled("host", "write-off", "h1").check_failed(3, "is alive")
    filled("host", "remove", "h1").check_failed(3, "release them first")
    assert "dry run" in filled("claim", "release", "--project", "web", "--dry-run").check().output
    assert filled("claim", "release", "--project", "none").check().output == "no claims\n"
    filled("claim", "release", "a").check()


@pytest.mark.usefixtures("needs_store")
def test_many_claims_are_counted_and_the_first_are_named(redsched: Redsched, tmp_path: Path) -> None:
    for number in range(7):
        redsched("select", "VCPU=1", "--id", f"c{number}", "--project", "web" if number else "db").check()
    refused = redsched("claim", "release", "--state", "claimed")
    refused.check_failed(2, "7 claims will be released", "and 2 more", "6 of web", "1 of db")
