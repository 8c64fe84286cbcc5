"""A pytest plugin that fails each test whose output shows a secret: a password of a test, or a token.

Passwords in tests begin with MARK. Looked through: captured stdout, stderr and log, what a test reads with capsys and
capfd, and what helpers pass to `look`, such as the output of commands. Tests whose purpose is to print a token are
marked `shows_secret`.
"""

import re
from collections.abc import Generator
from typing import Any

import pytest

MARK = "s3cr3t-"
SECRET = re.compile(rf"{MARK}[A-Za-z0-9]|rst_[A-Za-z0-9._-]+_[A-Za-z0-9_-]{{43}}")
CONTEXT = 60
_found: list[str] = []
"""Where the current test has shown a secret."""


def look(where: str, text: str | bytes) -> None:
    """Note each secret in the output of the current test."""
    plain = text.decode(errors="replace") if isinstance(text, bytes) else text
    _found.extend(
        f"{where}: ...{SECRET.sub('***', plain[max(0, one.start() - CONTEXT) : one.start()])}***"
        for one in SECRET.finditer(plain)
    )


def pytest_configure(config: pytest.Config) -> None:
    """Look through what tests read with capsys and capfd: it is not captured otherwise."""
    config.addinivalue_line("markers", "shows_secret: its purpose is to print a token or a password")
    read = pytest.CaptureFixture.readouterr
    if not hasattr(read, "is_watched"):
        pytest.CaptureFixture.readouterr = _watched(read)  # type: ignore[method-assign]


def _watched(read: Any) -> Any:
    def readouterr(self: Any) -> Any:
        found = read(self)
        for where, text in zip(("stdout", "stderr"), found, strict=True):
            look(where, text)
        return found

    readouterr.is_watched = True  # type: ignore[attr-defined]
    return readouterr


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail the test if its output so far shows a secret."""
    report = yield
    for _, where, text in (one for one in item._report_sections if one[0] == call.when):
        look(f"captured {where}", text)
    shown, _found[:] = list(dict.fromkeys(_found)), []
    if shown and item.get_closest_marker("shows_secret") is None and report.outcome != "failed":
        report.outcome = "failed"
        report.longrepr = "the output shows a secret:\n" + "\n".join(shown)
    return report
