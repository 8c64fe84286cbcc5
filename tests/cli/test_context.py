"""The settings and logging of a command."""

from collections.abc import Iterator

import pytest
import structlog

from redsched import logs
from redsched.cli.context import settings_for


@pytest.fixture(autouse=True)
def _structlog_as_before() -> Iterator[None]:
    before = structlog.get_config()
    yield
    structlog.configure(**before)


BOTH = ["info", "warning"]


@pytest.mark.parametrize(
    ("level", "serves", "shown"),
    [("", False, ["warning"]), ("", True, BOTH), ("info", False, BOTH), ("error", True, [])],
)
def test_commands_log_warnings_and_services_what_they_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], level: str, serves: bool, shown: list[str]
) -> None:
    """A command's output must not depend on whether it met a new epoch. A level that was set applies to all."""
    if level:
        monkeypatch.setenv("REDSCHED_LOG_LEVEL", level)
    settings_for("unix:///store.sock", serves)
    log = logs.get_logger("redsched")
    log.info("event")
    log.warning("event")
    assert [line.split("[")[1].split("]")[0].strip() for line in capsys.readouterr().err.splitlines()] == shown
