"""Each extra alone in an environment: its commands start, and all others name an extra with which they do."""

import json
import re
import signal
import subprocess
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import pytest
import redis
from _pytest.mark import ParameterSet
from packaging.requirements import Requirement

from redsched.cli.commands import entries
from redsched.extras import AT_THE_STORE, EXTRA_OF_COMMAND
from redsched.settings import Settings
from tests.cli.conftest import Redsched, served
from tests.cli.parts import check_nothing_left, descendants, running, up
from tests.cli.screens import drawn
from tests.packages.conftest import Environment, outside
from tests.packages.environments import ROOT, not_here
from tests.support.waiting import wait_until_sync

EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
del EXTRAS["test"]  # all other tests run with it
EVERY_COMMAND = Path(__file__).parent / "each_command.py"
NAMED = re.compile(r" -m pip install 'redsched\[(\w+)\]'")
OR_API = "or use the API of a fleet with --api"
COMMANDS: Mapping[str, str] = {
    "init": "",
    "select": "VCPU=1 --id vm --host h1",
    "run": "VCPU=1 --detach --id job -- true",
    "explain": "VCPU=1",
    "status": "",
    "capacity": "",
    "events": "",
    "audit": "",
    "host list": "",
    "host show": "h1",
    "host disable": "h2",
    "host enable": "h2",
    "host drain": "h2",
    "host write-off": "h2 --yes",
    "host remove": "h2 --force --yes",
    "claim list": "",
    "logs": "vm",
    "claim show": "vm",
    "claim renew": "vm",
    "claim confirm": "vm",
    "claim resize": "vm VCPU=2",
    "claim move": "vm",
    "claim shelve": "vm",
    "claim unshelve": "vm",
    "claim fail": "vm",
    "claim release": "vm",
    "quota set": "web VCPU=9",
    "quota list": "",
    "quota show": "web",
    "quota delete": "web",
    "aggregate set": "ssd --host h1",
    "aggregate list": "",
    "aggregate show": "ssd",
    "server-group set": "db --policy affinity",
    "server-group list": "",
    "server-group show": "db",
    "server-group delete": "db",
    "shared-pool set": "licences CUSTOM_LICENCE=4 --aggregate ssd",
    "shared-pool list": "",
    "shared-pool show": "licences",
    "shared-pool delete": "licences",
    "aggregate delete": "ssd --force",
    "plan capacity": "VCPU=1",
    "plan drain": "h1",
    "plan without": "h1",
    "plan rebalance": "--for policy",
    "plan with": "fleet.yaml",
    "function install": "",
    "function show": "",
    "context set": "lab --url redis://localhost",
    "context list": "",
    "context show": "lab",
    "context use": "lab",
    "context delete": "lab",
    "token new": "ann --role reader --file tokens.yaml",
    "token list": "--file tokens.yaml",
    "token revoke": "ann --file tokens.yaml",
    "export": "",
    "import": "export.jsonl",
    "replay": "export.jsonl",
    "acl": "--role reader",
    "upgrade": "",
    "top": "--help",
    "agent": "--help",
    "api": "--help",
    "up": "--help",
}
"""Each command with arguments with which it does something; services are started one by one."""
FLEET = "hosts: [{name: new, inventories: {VCPU: {total: 4}}}]\n"


@pytest.fixture
def folder(redsched: Redsched, store: str, tmp_path: Path) -> Iterator[Path]:
    """Yield a folder with the files that commands name, and remove the functions that they install."""
    (tmp_path / "fleet.yaml").write_text(FLEET)
    redsched("select", "VCPU=1").check()
    redsched("export", "--output", str(tmp_path / "export.jsonl")).check()
    yield tmp_path
    with redis.Redis.from_url(store) as client:
        client.function_flush()


def test_the_table_has_each_command() -> None:
    assert COMMANDS.keys() == entries().keys()


def _alone(extra: str) -> ParameterSet:
    """Return an extra as a parameter. What is not in the environment of the tests is downloaded in a long run."""
    return pytest.param(extra, id=extra or "none", marks=[pytest.mark.long] * any(not_here(EXTRAS.get(extra, []))))


@pytest.mark.parametrize("extra", [_alone(extra) for extra in ("", *sorted(EXTRAS))])
def test_commands_start_or_name_the_extra_with_which_they_do(
    extra: str,
    environment: Environment,
    folder: Path,
    store: str,
) -> None:
    commands = environment(*filter(None, [extra]))
    for name, (exit_code, errors) in _outcomes(commands, folder, REDSCHED_REDIS_URL=store).items():
        needed, named = _needed(name), NAMED.findall(errors)
        assert "Traceback" not in errors, (name, errors)
        assert named in ([], [needed]), (name, errors)
        if named:
            assert (exit_code, len(errors.splitlines())) == (2, 1), (name, errors)
            assert not _has(extra, needed), f"`{name}` needs more than its extra has: {errors}"
            assert (OR_API in errors) == ("needs redis" in errors and _may_use_an_api(name)), (name, errors)
        elif extra == "embedded":
            assert exit_code != 2, f"`{name}` has not done anything: {errors}"


def test_commands_need_no_extra_over_an_api(
    environment: Environment,
    folder: Path,
    store: str,
) -> None:
    with served(Settings(redis_url=store)) as url:
        found = _outcomes(environment(), folder, REDSCHED_API=url)
    refused = {name for name, (exit_code, _) in found.items() if exit_code == 2}
    assert refused == {name for name in COMMANDS if not _may_use_an_api(name)} - {"api"}
    assert {name for name, (_, errors) in found.items() if NAMED.search(errors)} <= refused


def _outcomes(commands: Path, folder: Path, **settings: str) -> dict[str, tuple[int, str]]:
    """Return the exit code and stderr of each command, run one after the other."""
    lines = [json.dumps([*name.split(), *arguments.split()]) for name, arguments in COMMANDS.items()]
    ended = subprocess.run(
        [commands / "python", EVERY_COMMAND],
        input="\n".join(lines),
        cwd=folder,
        env=outside({**settings, "REDSCHED_CONFIG": str(folder / "contexts.yaml")}),
        capture_output=True,
        check=False,
        text=True,
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    return {name: tuple(json.loads(line)) for name, line in zip(COMMANDS, ended.stdout.splitlines(), strict=True)}


def _needed(name: str) -> str:
    """Return the extra with all that a command needs at the store."""
    return EXTRA_OF_COMMAND.get(name, "scheduler")


def _may_use_an_api(name: str) -> bool:
    return name.split()[0] not in {*AT_THE_STORE, *EXTRA_OF_COMMAND}


def _has(extra: str, other: str) -> bool:
    """Return whether an extra has all that another one has."""
    return extra == other or any(_has(inner, other) for one in EXTRAS.get(extra, []) for inner in _extras_in(one))


def _extras_in(requirement: str) -> set[str]:
    asked = Requirement(requirement)
    return asked.extras if asked.name == "redsched" else set()


@pytest.mark.parametrize(("extras", "settings"), [("api", {}), ("api,otel", {"REDSCHED_TRACING": "true"})])
def test_the_api_starts_with_its_extra_alone(
    extras: str,
    settings: Mapping[str, str],
    environment: Environment,
    redsched: Redsched,
    store: str,
) -> None:
    words = (
        str(environment(*extras.split(",")) / "python"),
        "-m",
        "redsched.cli",
        "api",
        "--port",
        "0",
        "--url",
        store,
    )
    with running(*words, environment=settings, forked=False) as process:
        wait_until_sync(lambda: bool(process.lines) or process.exit_code is not None, timeout=60)
        assert process.lines, process.wait()
        [url] = re.findall(r"listens on (\S+),", process.lines[0])
        claimed = httpx.post(f"{url}/v1/selections", json={"resources": {"VCPU": 1}}, timeout=60)
        assert (claimed.status_code, claimed.json()["selections"][0]["state"]) == (201, "claimed")
        ended = process.end(signal.SIGTERM)
    assert (ended.exit_code, "Traceback" in ended.errors) == (0, False), ended


@pytest.mark.parametrize(("extras", "settings"), [("agent", {}), ("agent,otel", {"REDSCHED_TRACING": "true"})])
def test_an_agent_of_the_machine_starts_with_its_extra_alone(
    extras: str,
    settings: Mapping[str, str],
    environment: Environment,
    store: str,
    tmp_path: Path,
) -> None:
    words = (str(environment(*extras.split(",")) / "python"), "-m", "redsched.cli", "agent", "--url", store)
    own = {"REDSCHED_HOST_NAME": "here", "REDSCHED_JOURNAL": str(tmp_path / "journal.sqlite"), **settings}
    with running(*words, environment=own, forked=False) as process, redis.Redis.from_url(store) as client:
        wait_until_sync(
            lambda: process.exit_code is not None or client.exists("rs:{c1}:host:here") == 1,
            timeout=60,
            what="a report",
        )
        assert process.exit_code is None, process.wait()
        assert process.end(signal.SIGTERM).exit_code == 0


@pytest.mark.parametrize("extra", ["", "scheduler"], ids=["over the API", "at the store"])
def test_top_draws_with_its_extra_alone(
    extra: str,
    environment: Environment,
    redsched: Redsched,
    store: str,
) -> None:
    words = (str(environment(*filter(None, [extra])) / "python"), "-m", "redsched.cli", "top")
    with served(Settings(redis_url=store)) as url:
        fleet = {"REDSCHED_REDIS_URL": store} if extra else {"REDSCHED_API": url}
        with drawn(fleet, *words, forked=False) as terminal:
            terminal.until_seen("h1", "h2")
            terminal.press("q")
            assert terminal.wait() == 0


def test_an_agent_needs_no_store_where_it_has_an_api(
    environment: Environment,
    redsched: Redsched,
    store: str,
    tmp_path: Path,
) -> None:
    own = {"REDSCHED_HOST_NAME": "here", "REDSCHED_JOURNAL": str(tmp_path / "journal.sqlite")}
    with served(Settings(redis_url=store)) as url, redis.Redis.from_url(store) as client:
        words = (str(environment("agent") / "python"), "-m", "redsched.cli", "agent", "--api", url)
        with running(*words, environment=own, forked=False) as process:
            wait_until_sync(
                lambda: process.exit_code is not None or client.exists("rs:{c1}:host:here") == 1,
                timeout=60,
                what="a report",
            )
            assert process.exit_code is None, process.wait()


def test_everything_starts_with_the_extra_of_a_trial(environment: Environment) -> None:
    with up(command=(str(environment("embedded") / "python"), "-m", "redsched.cli", "up")) as started:
        processes = descendants(started.process.pid)
        listed = httpx.get(f"{started.api}/v1/hosts", timeout=60).json()["hosts"]
        assert len(listed) == 1
        assert started.end(signal.SIGTERM).exit_code == 0
        check_nothing_left(started, processes)
