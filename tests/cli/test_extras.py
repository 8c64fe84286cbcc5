"""The command of an agent needs neither numpy nor FastAPI, and other commands name the extra that they lack."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from redsched.extras import EXTRA_OF
from redsched.store.embedded.server import PrivateServer
from tests.support.waiting import wait_until_sync

BEYOND_AN_AGENT = {package for package, extra in EXTRA_OF.items() if extra != "agent"}
PROGRAM = f"""
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {BEYOND_AN_AGENT}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
from redsched.cli.main import run
sys.exit(run(sys.argv[1:]))
"""


def start(*arguments: str, url: str) -> "subprocess.Popen[str]":
    """Start a command in a process that has only what an agent's install has."""
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments],
        env={**os.environ, "REDSCHED_REDIS_URL": url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_an_agent_reports_its_hosts_without_the_extras(fresh_server: PrivateServer, tmp_path: Path) -> None:
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text("hosts: [{name: h1, inventories: {VCPU: {total: 4}}}]\n")
    agent = start("agent", "--fleet", str(fleet), url=fresh_server.url)
    try:
        with fresh_server.client() as client:
            wait_until_sync(
                lambda: agent.poll() is not None or client.exists("rs:{c1}:host:h1") == 1, timeout=60, what="the report"
            )
        assert agent.poll() is None, agent.communicate()
    finally:
        agent.terminate()
        agent.communicate(timeout=60)


@pytest.mark.parametrize(
    ("command", "package", "extra"),
    [("select VCPU=1", "numpy", "scheduler"), ("api --port 0", "numpy|fastapi|uvicorn|prometheus_client", "api")],
)
def test_other_commands_name_the_extra(fresh_server: PrivateServer, command: str, package: str, extra: str) -> None:
    ran = start(*command.split(), url=fresh_server.url)
    output, errors = ran.communicate(timeout=120)
    assert (ran.returncode, output) == (2, "")
    assert len(errors.splitlines()) == 1, errors
    assert any(f"this needs {one}" in errors for one in package.split("|"))
    assert f"pip install 'redsched[{extra}]'" in errors
