"""The files below deploy/: each setting, command and option in them exists, and systemd accepts the units."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from redsched.cli.commands import VERBS
from redsched.cli.groups import load
from redsched.settings import Settings

DEPLOY = Path(__file__).parents[3] / "deploy"
FILES = sorted(path for path in DEPLOY.rglob("*") if path.is_file())
UNITS = sorted(DEPLOY.glob("systemd/*.service"))
EXPOSURE = {"redsched-api.service": 2.5, "redsched-agent.service": 4.0}
"""The most exposure by `systemd-analyze security`, of 10; hooks need more of the machine than the API."""


def commands() -> Iterator[tuple[str, list[str]]]:
    """Yield the command lines of redsched in all files, each with its file."""
    for unit in UNITS:
        [line] = re.findall(r"^ExecStart=\S+/redsched (.*)$", unit.read_text(), re.MULTILINE)
        yield unit.name, line.split()
    services: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())["services"]
    yield from (("compose.yaml", services[name]["command"]) for name in ("api", "agent"))
    pod = yaml.safe_load((DEPLOY / "kubernetes" / "agent-daemonset.yaml").read_text())["spec"]["template"]["spec"]
    yield "agent-daemonset.yaml", pod["containers"][0]["args"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_setting_in_a_file_exists(path: Path) -> None:
    named = set(re.findall(r"\bREDSCHED_[A-Z_]+", path.read_text()))
    assert named <= {f"REDSCHED_{name.upper()}" for name in Settings.model_fields}


@pytest.mark.parametrize(("file", "words"), list(commands()))
def test_every_command_and_option_exists(file: str, words: list[str]) -> None:
    options = {option for one in load(words[0], VERBS[words[0]]).params for option in one.opts}
    assert [word for word in words if word.startswith("-") and word not in options] == []


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_variables_of_a_unit_are_in_its_file_of_settings(path: Path) -> None:
    text = path.read_text()
    [file] = re.findall(r"^EnvironmentFile=/etc/redsched/(\S+)$", text, re.MULTILINE)
    given = re.findall(r"^#? ?([A-Z_]+)=", (DEPLOY / "systemd" / file).read_text(), re.MULTILINE)
    assert set(re.findall(r"\$\{(\w+)\}", text)) <= set(given)


@pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed: apt install systemd"
)
@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_systemd_accepts_a_unit_and_its_exposure_is_low(path: Path, tmp_path: Path) -> None:
    """With a program and a user that this machine has, which it would miss otherwise."""
    unit = tmp_path / path.name
    text = re.sub(r"^ExecStart=\S+", f"ExecStart={shutil.which('true')}", path.read_text(), flags=re.MULTILINE)
    unit.write_text(re.sub(r"^(User|Group)=.*$", r"\1=root", text, flags=re.MULTILINE))
    checked = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert [line for line in checked.stderr.splitlines() if path.name in line] == []
    unit.write_text(path.read_text())
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", unit], capture_output=True, text=True, check=False
    )
    found = re.search(r"exposure level for \S+: ([\d.]+)", rated.stdout)
    assert found, rated.stdout + rated.stderr
    assert float(found[1]) <= EXPOSURE[path.name]


def test_the_image_installs_extras_that_exist_and_runs_the_command() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    project = (DEPLOY.parent / "pyproject.toml").read_text()
    [extras] = re.findall(r"^ARG EXTRAS=(\S+)$", text, re.MULTILINE)
    assert all(f"\n{extra} = [" in project for extra in extras.split(","))
    assert 'ENTRYPOINT ["redsched"]' in text


def test_a_pod_has_a_volume_for_each_mount_and_gives_up_its_rights() -> None:
    pod = yaml.safe_load((DEPLOY / "kubernetes" / "agent-daemonset.yaml").read_text())["spec"]["template"]["spec"]
    [agent] = pod["containers"]
    assert {one["name"] for one in agent["volumeMounts"]} == {one["name"] for one in pod["volumes"]}
    assert agent["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert not agent["securityContext"]["allowPrivilegeEscalation"]


def test_users_can_enter_the_folder_of_job_logs_that_the_example_names() -> None:
    """The agent's state directory is closed to them."""
    (folder,) = re.findall(r"REDSCHED_JOB_FOLDER=(\S+)", (DEPLOY / "systemd" / "agent.env").read_text())
    unit = (DEPLOY / "systemd" / "redsched-agent.service").read_text()
    assert folder.startswith("/var/log/redsched/")
    assert {"LogsDirectory=redsched", "LogsDirectoryMode=0755"} <= set(unit.splitlines())


@pytest.mark.parametrize("page", ["README.md", "docs/howto/install.md", "docs/operate/deploy.md"])
def test_a_page_that_installs_says_what_a_machine_with_api_and_agent_takes(page: str) -> None:
    assert "[api,agent]" in (DEPLOY.parent / page).read_text()
