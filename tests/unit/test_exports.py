"""Packages export names that are imported on first access."""

import compileall
import subprocess
import sys
from pathlib import Path

import pytest

import redsched
from redsched.exports import exports
from redsched.model import Request

get, _ = exports("redsched")


def test_each_name_is_that_of_its_module() -> None:
    found = {name: get(name) for name in get("__all__")}
    assert {"Request", "Scheduler", "NoValidHost"} < found.keys() <= set(dir(redsched))
    assert {one.__name__ for one in found.values()} == found.keys()
    assert found["Request"] is Request


def test_what_a_module_has_besides_is_not_exported() -> None:
    with pytest.raises(AttributeError, match="module 'redsched' has no attribute 'Candidate'"):
        get("Candidate")


def test_a_package_loads_nothing_that_it_exports() -> None:
    program = "import sys, redsched; print('redsched.model' in sys.modules, redsched.Request.__name__)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["False", "Request"]


def test_a_package_without_its_source_exports_the_same(tmp_path: Path) -> None:
    """As frozen applications have it."""
    source = tmp_path / "redsched_copy" / "__init__.py"
    source.parent.mkdir()
    source.write_text(Path(redsched.__file__).read_text())
    assert compileall.compile_file(source, quiet=1, legacy=True)
    source.unlink()
    program = "import redsched_copy, redsched; print(redsched_copy.__all__ == redsched.__all__, redsched_copy.Request)"
    ended = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ended.stdout.split(maxsplit=1) == ["True", f"{Request}\n"]
