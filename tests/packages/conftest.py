"""Fixtures for tests of what is installed: the wheel, and environments with its extras."""

import os
import re
import subprocess
import sys
import venv
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.cli.conftest import link, redsched, store  # noqa: F401 - fixtures
from tests.packages.environments import build, link_environment, needed_by, not_here, requirements_of, wheel_in
from tests.support.processes.once import made_once

Environment = Callable[..., Path]
"""A function that takes extras and returns the folder with the commands of an environment with these alone."""


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the wheel and the source distribution."""
    return made_once(tmp_path_factory, "dist", build)


@pytest.fixture(scope="session")
def environment(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """Return a function that makes environments with the wheel, extras, and what these need."""
    wheel = wheel_in(built)
    requirements = requirements_of(wheel)

    def make(*extras: str) -> Path:
        def link_here(home: Path) -> None:
            link_environment(home, built / "unpacked", needed_by(requirements, *extras).values())

        def download(home: Path) -> None:
            venv.create(home)
            done = pip(home / "bin", "install", "--quiet", f"{wheel}[{','.join(extras)}]")
            if done.returncode:
                pytest.skip(f"what the extras bring cannot be installed here: {done.stderr[-500:]}")

        name = f"environment-{'-'.join(extras) or 'base'}"
        is_here = not any(not_here(of_extras(requirements, extras)))
        return made_once(tmp_path_factory, name, link_here if is_here else download) / "bin"

    return make


def of_extras(requirements: Sequence[str], extras: Sequence[str]) -> list[str]:
    """Return the requirements that extras add."""
    return [line for line in requirements if any(re.search(rf"extra == ['\"]{one}['\"]", line) for one in extras)]


def pip(commands: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run pip on the environment with these commands, which has none itself."""
    of_it = ("--python", str(commands / "python"), "--disable-pip-version-check")
    return subprocess.run(
        [sys.executable, "-m", "pip", *of_it, *arguments], capture_output=True, check=False, text=True
    )


def ran(command: Path, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run a program of an environment outside of the checkout, without settings but those given."""
    return subprocess.run(
        [command, *arguments], cwd=command.parent, env=outside(environment), capture_output=True, check=False, text=True
    )


def outside(settings: dict[str, str]) -> dict[str, str]:
    """Return the variables of this process without those of redsched and Python, and with `settings`."""
    return {name: one for name, one in os.environ.items() if not name.startswith(("REDSCHED_", "PYTHON"))} | settings
