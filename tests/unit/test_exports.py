"""Packages export names that are imported on first access."""

import subprocess
import sys

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
