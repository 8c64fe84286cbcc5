"""`scripts/up` in a fresh clone on a bare machine: only Python, no store on PATH. It needs the package index."""

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.parts import check_nothing_left, curl, descendants, up

ROOT = Path(__file__).parents[2]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """Return a clone of this repository, with only what is committed."""
    if not (shutil.which("git") and (ROOT / ".git").exists()):
        pytest.skip("this is no git checkout, or git is not installed")
    made = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(made)], check=True)
    return made


@pytest.fixture
def bare_path(tmp_path: Path) -> str:
    """Return a PATH with the system's programs except stores, and with this Python as python3."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for program in (one for place in ("/usr/bin", "/bin") for one in Path(place).iterdir()):
        if not program.name.startswith(("redis", "valkey", "python")) and not (folder / program.name).is_symlink():
            (folder / program.name).symlink_to(program)
    python = folder / "python3"
    python.write_text(f'#!/bin/sh\nexec "{Path(sys.base_prefix) / "bin" / "python3"}" "$@"\n')
    python.chmod(0o755)
    return str(folder)


@pytest.mark.long
def test_a_fresh_clone_comes_up_with_nothing_but_python(clone: Path, bare_path: str) -> None:
    """It uses the bundled store, selects, ends with Ctrl-C, and leaves the checkout clean."""
    command = (str(clone / "scripts" / "up"),)
    with up("--fleet", "5", command=command, environment={"PATH": bare_path}) as started:
        processes = descendants(started.process.pid)
        assert started.said["store"].startswith("valkey ")
        assert "selections" in curl(started.said["try"])
        ended = started.end(signal.SIGINT)
    assert ended.exit_code == 0, ended
    assert "Traceback" not in ended.errors
    check_nothing_left(started, processes)
    changed = subprocess.run(["git", "-C", str(clone), "status", "--porcelain"], check=True, capture_output=True)
    assert changed.stdout == b""
