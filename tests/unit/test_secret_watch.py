"""The plugin that looks for secrets in the output of tests finds them wherever a test prints."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.secret_watch import MARK

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).parents[2]
BODIES = f"""
import logging, subprocess, sys
import pytest
from tests.support import secret_watch
SECRET, TOKEN = "{MARK}" + "x", "rst_" + "a.b_" + "A" * 43

def test_shown_on_stdout(): print(SECRET)
def test_shown_on_stderr(): print(SECRET, file=sys.stderr)
def test_shown_in_the_log(): logging.getLogger("a").warning("it is %s", SECRET)
def test_shown_by_a_child(): subprocess.run(["echo", SECRET], check=True)
def test_shown_to_capfd(capfd): print(SECRET); capfd.readouterr()
def test_shown_to_capsys(capsys): print(SECRET); capsys.readouterr()
def test_shown_token(): print(TOKEN)
def test_shown_to_a_helper(): secret_watch.look("output", SECRET)
def test_quiet(): pass
def test_quiet_after_a_secret(): print("{MARK}")
def test_quiet_about_what_is_too_short(): print(TOKEN[:-1])
@pytest.mark.shows_secret
def test_quiet_by_its_mark(): print(TOKEN)
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What pytest prints for these tests."""
    folder = tmp_path_factory.mktemp("watched")
    (folder / "test_it.py").write_text(BODIES)
    command = [sys.executable, "-m", "pytest", "-v", "-p", "tests.support.secret_watch", "-p", "no:cacheprovider"]
    return subprocess.run(
        [*command, "--rootdir", str(folder), "-c", "/dev/null", str(folder)],
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    ).stdout


def test_tests_that_show_a_secret_fail(printed: str) -> None:
    assert set(re.findall(r"(test_\w+) FAILED", printed)) == set(re.findall(r"def (test_shown\w*)", BODIES))
    assert "the output shows a secret" in printed


def test_others_pass(printed: str) -> None:
    assert set(re.findall(r"(test_\w+) PASSED", printed)) == set(re.findall(r"def (test_quiet\w*)", BODIES))
