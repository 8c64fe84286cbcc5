"""A failing test shows how to run it alone, and what the processes wrote that it started."""

import sys

import pytest

from redsched.store.embedded.server import PrivateServer
from tests.cli.parts import running
from tests.support import evidence
from tests.support.profiles import is_long

TEST = "tests/a/test_b.py::test_c[one two]"


def shown() -> dict[str, str]:
    return dict(evidence.sections(TEST))


def test_the_command_runs_this_test_alone_as_it_was_run(monkeypatch: pytest.MonkeyPatch) -> None:
    for servers, before in (("", ""), ("all", "REDSCHED_TEST_SERVERS=all ")):
        monkeypatch.setenv("REDSCHED_TEST_SERVERS", servers)
        expected = f"scripts/test --long '{TEST}'" if is_long() else f"{before}scripts/test '{TEST}'"
        assert shown()["how to run it alone"] == expected


def test_the_log_of_a_server_is_shown_while_it_runs_and_when_it_has_ended() -> None:
    with PrivateServer.start() as server:
        name = f"the last lines of {server.kind} {server.version} in {server.folder}"
        assert "eady to accept connections" in shown()[name]
    assert not server.folder.exists()
    assert "eady to accept connections" in shown()[name]


def test_the_outputs_of_a_command_are_shown_when_it_has_ended() -> None:
    words = (sys.executable, "-c", "import sys; print('out'); print('err', file=sys.stderr)")
    with running(*words, forked=False) as process:
        process.wait()
    assert shown()[f"the last lines of `{' '.join(words)}`"] == "out\nerr"


def test_only_the_last_lines_are_shown() -> None:
    evidence.note("a process", lambda: "".join(f"{number}\n" for number in range(1000)))
    assert shown()["the last lines of a process"].splitlines()[0] == str(1000 - evidence.MOST_LINES)


@pytest.mark.parametrize("fails", [False, True])
def test_a_report_has_them_if_the_test_fails(request: pytest.FixtureRequest, fails: bool) -> None:
    report = pytest.TestReport(TEST, ("", 0, ""), {}, "failed" if fails else "passed", None, "call")
    hook = evidence.pytest_runtest_makereport(request.node)
    next(hook)
    with pytest.raises(StopIteration) as ended:
        hook.send(report)
    titles = [title for title, _ in ended.value.value.sections]
    assert titles == (["how to run it alone"] if fails else [])
