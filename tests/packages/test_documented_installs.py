"""Every line of a document that installs redsched works, with the wheel of `scripts/build` and without an index.

The lines are taken from all blocks, also from those that tests/docs does not run because the rest of them needs root or
other machines. /opt/redsched is a folder of the test, and pip takes what redsched needs from `write_index`.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from redsched.extras import pip_install
from tests.docs.pages import PAGES, SHELL, blocks
from tests.packages.environments import (
    ROOT,
    copy_sources,
    not_here,
    requirements_of,
    wheel_in,
    write_index,
    write_stand_ins,
)
from tests.support.processes.once import made_once

INSTALLS = re.compile(r"scripts/build\b|\S*python3? -m (venv|pip) |\S*pip3? (install|download) ")
OURS = re.compile(r"redsched\b.*\.whl|redsched\[| redsched$|scripts/build|/opt/redsched$")
NOT_PLAYED = "--require-hashes"
"""The hashes of a lock are those of an index's files."""
BY_NAME = re.compile(r"pip3? install\b.*[ ']redsched(?!-)\b|`redsched\[")
HOME, SERVER = "/opt/redsched", "http://build.example:8000"
MODULE = "redsched/py.typed"

PYTHON = """#!/bin/sh
# Python as on a machine whose virtual environments have pip: this one is lent to them, because it is there already.
[ "$1 $2" = "-m venv" ] || exec {python} "$@"
{python} "$@" --without-pip
for home; do :; done
printf '#!/bin/sh\\nexec {python} -m pip --python %s/bin/python "$@"\\n' "$home" > "$home/bin/pip"
chmod +x "$home/bin/pip"
"""


def lines_of(page: Path) -> list[str]:
    """Return the lines of a page's shell blocks that install redsched, in order, without comments."""
    found = [
        re.sub(r"\s+#.*", "", line.strip())
        for block in blocks(page.read_text())
        if block.language in SHELL and block.fenced
        for line in block.text.splitlines()
    ]
    return [line for line in found if INSTALLS.match(line) and OURS.search(line) and NOT_PLAYED not in line]


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


INSTALLING = [page for page in PAGES if lines_of(page)]


@pytest.fixture(scope="session")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the checkout after `scripts/build`, with an index beside it."""
    return made_once(tmp_path_factory, "checkout", prepare)


def prepare(home: Path) -> None:
    """Copy the checkout, make an index of all that any extra needs, and play the line that builds the wheel."""
    copy_sources(home)
    (home / "index").mkdir()
    (home / "bin").mkdir()
    (home / "bin" / "python3").write_text(PYTHON.format(python=sys.executable))
    (home / "bin" / "python3").chmod(0o755)
    write_index(home / "index")
    ran = play(home, home, "scripts/build")
    wheel = wheel_in(home / "dist")
    assert ran.stdout == f"{wheel.relative_to(home)}\n"
    absent = not_here(line.partition(";")[0] for line in requirements_of(wheel))
    write_stand_ins(home / "index", absent)


def play(checkout: Path, folder: Path, line: str) -> "subprocess.CompletedProcess[str]":
    """Run a line in a folder."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "REDSCHED_", "PYTHON"))},
        "PATH": f"{checkout / 'bin'}:{os.environ['PATH']}",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(checkout / "index"),
        "PIP_NO_COMPILE": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    ran = subprocess.run(["bash", "-c", line], cwd=folder, env=environment, capture_output=True, check=False, text=True)
    assert ran.returncode == 0, f"{line}\n{ran.stdout}{ran.stderr}"
    assert "does not provide the extra" not in ran.stderr, f"{line}\n{ran.stderr}"
    return ran


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder, as `python3 -m http.server` does."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine with the wheel, its copy in dist, and an installed redsched without extras in `home`."""

    checkout: Path
    folder: Path
    home: Path
    played: set[str] = field(default_factory=set)
    """The lines that have been played: pages repeat each other."""

    def play(self, line: str, url: str = "") -> "subprocess.CompletedProcess[str]":
        """Run a line as a user whose `pip` is that of the environment."""
        self.played.add(line)
        line = re.sub(r"^pip ", f"{HOME}/bin/pip ", line.replace(f"{HOME}/bin/python -m pip", f"{HOME}/bin/pip"))
        return play(self.checkout, self.folder, line.replace(HOME, str(self.home)).replace(SERVER, url))

    @property
    def module(self) -> Path:
        """The file of the installed redsched that stands for its code."""
        return next(self.home.glob(f"lib/*/site-packages/{MODULE}"))


@pytest.fixture(scope="module")
def machine(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Machine:
    """Return a machine, on which `scripts/build` has run."""
    base = tmp_path_factory.mktemp("machine")
    found = Machine(checkout, base / "there", base / "opt", {"scripts/build"})
    (found.folder / "dist").mkdir(parents=True)
    wheel = wheel_in(checkout / "dist")
    for copy in (found.folder / wheel.name, found.folder / "dist" / wheel.name):
        copy.symlink_to(wheel)
    found.play(f"python3 -m venv {HOME} && {HOME}/bin/pip install ./{wheel.name}")
    return found


@pytest.mark.parametrize("page", INSTALLING, ids=name_of)
def test_lines_of_a_page_that_install_redsched_work(page: Path, machine: Machine) -> None:
    new = [line for line in dict.fromkeys(lines_of(page)) if line not in machine.played]
    with served(machine.checkout / "dist") as url:
        for line in new:
            machine.play(line, url)
    assert not new or machine.play(f"{HOME}/bin/redsched --version").stdout.startswith("redsched ")


def test_a_newer_wheel_of_the_same_version_replaces_the_code(machine: Machine) -> None:
    [line] = [line for line in lines_of(ROOT / "docs/howto/upgrade.md") if "--force-reinstall" in line]
    machine.module.write_text("old")
    machine.play("pip install ./redsched-*.whl")
    assert machine.module.read_text() == "old", "without the option, pip leaves an equal version as it is"
    machine.play(line)
    assert machine.module.read_text() == ""


def test_the_line_of_a_message_adds_the_extra_though_no_index_has_redsched(machine: Machine) -> None:
    line = pip_install("oidc").replace(sys.executable, f"{HOME}/bin/python")
    assert line.startswith(HOME)
    machine.play(line)
    machine.play(f"{HOME}/bin/python -c 'import jwt, cryptography'")


def test_no_page_installs_redsched_by_its_name() -> None:
    """It is on no index; one page says what changes once it is."""
    others = [
        page for page in PAGES if "decisions" not in page.parts and page.name not in ("install.md", "CHANGELOG.md")
    ]
    found = [(name_of(page), line) for page in others for line in page.read_text().splitlines() if BY_NAME.search(line)]
    assert found == []
