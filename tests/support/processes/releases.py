"""Other releases of redsched: copies of the package with another schema, which run as separate processes."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import redsched
from redsched.store.commands.schema import SCHEMA

BYTECODE = {"PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"}
_PACKAGE = Path(redsched.__file__).parent


@dataclass(frozen=True, slots=True)
class Release:
    """A copy of the package under `folder`, whose command line `run` and `start` execute against a store."""

    folder: Path
    url: str
    journal: Path

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run one command to its end."""
        command = self._command(arguments)
        return subprocess.run(
            command,
            cwd=self.folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a command that runs until it is ended."""
        return subprocess.Popen(
            self._command(arguments), cwd=self.folder, env=self._environment(), stderr=subprocess.DEVNULL
        )

    # `-m` searches the working folder first, and so finds this copy and not the installed package.
    def _command(self, arguments: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-m", "redsched.cli", *arguments]

    def _environment(self) -> dict[str, str]:
        # Compiled once, into the copy, even if the tests' own bytecode is stored elsewhere or nowhere.
        inherited = {name: value for name, value in os.environ.items() if name not in BYTECODE}
        return {
            **inherited,
            "REDSCHED_REDIS_URL": self.url,
            "REDSCHED_JOURNAL": str(self.journal),
            "REDSCHED_LEASE_S": "2",
        }


def copy_package(
    folder: Path, number: int = SCHEMA.number, beside: int = SCHEMA.beside, reads: int = SCHEMA.reads
) -> None:
    """Make a release of schema `number` in `folder`: `beside` and `reads` as in `Schema`."""
    copy = folder / "redsched"
    shutil.copytree(_PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    declared = f"Schema(number={number}, beside={beside}, reads={reads})"
    _replace(copy / "store/commands/schema.py", f"{SCHEMA}", declared)
    _replace(copy / "lua/include/core/fence.lua", f"local SCHEMA = {SCHEMA.number}", f"local SCHEMA = {number}")


def _replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1, f"{path.name} does not say {old!r} once"
    path.write_text(text.replace(old, new))
