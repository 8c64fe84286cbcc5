"""What services log: who an agent is, each start, stop and failure of work, and lines of JSON."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from redsched.agent.claims.context import DONE_BY
from tests.cli.conftest import Redsched
from tests.cli.parts import Ran, run, running
from tests.support.waiting import wait_until_sync

HOOK = """#!/bin/sh
[ "$1" = stop ] && exit 0
grep -q '"claim_id": "broken"' && { echo 'no image' >&2; exit 1; }
echo cgroup=/nowhere
"""
LIBRARY = """
import logging
from redsched import logs
logs.configure("info", is_json=True)
try:
    1 / 0
except ZeroDivisionError:
    logging.getLogger("uvicorn.error").warning("%s left", 3, exc_info=True)
    logs.get_logger("redsched").exception("broken")
"""
DOCUMENT = Path("docs/agent.md")


@pytest.fixture
def environment(tmp_path: Path, store: str) -> dict[str, str]:
    """Return the environment of an agent with a hook and a journal of its own."""
    hook = tmp_path / "hook"
    hook.write_text(HOOK)
    hook.chmod(0o755)
    journal = tmp_path / "agent.sqlite"
    return {"REDSCHED_REDIS_URL": store, "REDSCHED_HOOK": str(hook), "REDSCHED_JOURNAL": str(journal)}


@pytest.fixture
def fleet(tmp_path: Path) -> str:
    """Return the path of a fleet file with one host."""
    path = tmp_path / "fleet.yaml"
    path.write_text("hosts: [{name: w1, zone: az7, inventories: {VCPU: {total: 8}}}]")
    return str(path)


def agent_log(redsched: Redsched, fleet: str, environment: dict[str, str]) -> Ran:
    """Return what an agent printed that started one claim, failed to start another, and stopped the first."""

    def state_of(claim: str) -> Callable[[], bool]:
        return lambda: redsched("claim", "show", claim, "--json").json()["state"] == "active"

    with running("agent", "--fleet", fleet, environment=environment) as agent:
        wait_until_sync(lambda: "w1" in redsched("host", "list", "-o", "name").output)
        wait_until_sync(lambda: redsched("select", "VCPU=1", "--host", "w1", "--id", "web").exit_code == 0)
        wait_until_sync(state_of("web"))
        redsched("select", "VCPU=1", "--host", "w1", "--id", "broken", "--until", "active")
        redsched("claim", "release", "web").check()
        wait_until_sync(lambda: redsched("claim", "list", "-o", "name", "--host", "w1").check().output == "")
        return agent.end(signal.SIGTERM)


def test_an_agent_says_who_it_is_and_what_its_hook_did_as_json(
    redsched: Redsched, fleet: str, environment: dict[str, str]
) -> None:
    ended = agent_log(redsched, fleet, {**environment, "REDSCHED_LOG_FORMAT": "json"})
    lines: list[dict[str, Any]] = [json.loads(line) for line in ended.errors.splitlines()]
    assert all({"event", "level", "timestamp"} <= line.keys() for line in lines)
    by_event = {line["event"]: line for line in lines}
    begun = by_event["agent started"]
    assert (lines[0], begun["host"], begun["cell"], begun["placements"]) == (begun, "w1", "c1", 0)
    assert (begun["link"], begun["hook"]) == (environment["REDSCHED_REDIS_URL"], environment["REDSCHED_HOOK"])
    assert begun["journal"] == environment["REDSCHED_JOURNAL"]
    opened = by_event["every host is open for claims"]
    assert (opened["host"], opened["zone"]) == ("w1", "az7")
    assert [line["claim"] for line in lines if line["event"] == "work started"] == ["web"]
    assert by_event["claim failed on its host"]["claim"] == "broken"
    assert "web" in [line["claim"] for line in lines if line["event"] == "work stopped"]
    assert lines[-1]["event"] == "agent stopped, its work continues"
    assert all(isinstance(line["took_s"], float) for line in lines if line["event"] in DONE_BY.values())


def test_the_log_is_text_unless_asked(redsched: Redsched, fleet: str, environment: dict[str, str]) -> None:
    ended = agent_log(redsched, fleet, environment)
    first, *_ = ended.errors.splitlines()
    assert "[info     ] agent started" in first
    assert "host=w1" in first


def test_an_agent_without_a_hook_says_so_and_logs_no_work(redsched: Redsched, fleet: str, store: str) -> None:
    with running("agent", "--fleet", fleet, environment={"REDSCHED_REDIS_URL": store}) as agent:
        wait_until_sync(lambda: redsched("select", "VCPU=1", "--host", "w1", "--until", "active").exit_code == 0)
        ended = agent.end(signal.SIGTERM)
    assert "hook='none, claims are confirmed at once'" in ended.errors
    assert not any(event in ended.errors for event in DONE_BY.values())


def test_the_api_logs_requests_as_json(store: str) -> None:
    """Each line of stderr can be parsed."""
    asked = {"REDSCHED_REDIS_URL": store, "REDSCHED_LOG_FORMAT": "json", "REDSCHED_ACCESS_LOG": "true"}
    with running("api", "--port", "0", environment=asked) as api:
        wait_until_sync(lambda: bool(api.lines))
        with urlopen(f"{api.lines[0].split()[4].rstrip(',')}/healthz") as reply:
            assert reply.status == 200
        ended = api.end(signal.SIGTERM)
    lines = [json.loads(line) for line in ended.errors.splitlines()]
    [request] = [line for line in lines if line["event"] == "request" and line["path"] == "/healthz"]
    assert (request["method"], request["status"]) == ("GET", 200)


def test_lines_of_libraries_and_tracebacks_are_json_too() -> None:
    """In a process of its own, as the logging of this one is that of the tests."""
    ran = subprocess.run([sys.executable, "-c", LIBRARY], capture_output=True, text=True, timeout=60, check=True)
    library, own = (json.loads(line) for line in ran.stderr.splitlines())
    assert (library["event"], library["logger"], library["level"]) == ("3 left", "uvicorn.error", "warning")
    assert "ZeroDivisionError" in library["exception"]
    assert (own["event"], own["level"]) == ("broken", "error")
    assert "ZeroDivisionError" in own["exception"]


def test_an_unknown_format_is_refused(store: str) -> None:
    run("api", environment={"REDSCHED_REDIS_URL": store, "REDSCHED_LOG_FORMAT": "xml"}).check_failed(
        2, "REDSCHED_LOG_FORMAT", "'text' or 'json'", "'xml'"
    )


def test_the_events_of_hooks_are_documented() -> None:
    text = DOCUMENT.read_text()
    assert [event for event in DONE_BY.values() if f"`{event}`" not in text] == []
