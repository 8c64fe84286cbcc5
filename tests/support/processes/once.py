"""What is slow to make, made once for all processes of a run of the tests."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

import pytest


def made_once(folders: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder of this name, which `make` has filled. One process makes it, and the others wait for that.

    If `make` fails, the next caller tries again in a new folder.
    """
    base = folders.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    done = shared / f"{name}.done"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            folder = folders.mktemp(name)
            make(folder)
            done.write_text(str(folder))
    return Path(done.read_text())
