"""The settings and logging of a command."""

import pytest

from redsched import logs
from redsched.cli.context import settings_for

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
