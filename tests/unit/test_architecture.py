"""The dependencies between packages, as import-linter contracts in pyproject.toml declare them."""

import pkgutil
import subprocess
import sys
import tomllib
from pathlib import Path

import grimp
import pytest
from importlinter.cli import lint_imports

import redsched
from redsched import scheduler

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).parents[2]


def test_the_arrows_point_down() -> None:
    """Layers, a pure `decide`, and no Redis outside the store: see [tool.importlinter] in pyproject.toml."""
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


@pytest.mark.parametrize("module", ["redis", "hiredis"])
def test_no_room_but_the_store_may_know_redis(module: str) -> None:
    """A package that the contract does not list, or misspells, could import Redis unnoticed."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [contract] = [one for one in contracts if one["name"] == "only the store knows Redis"]
    rooms = {f"redsched.{one.name}" for one in pkgutil.iter_modules(redsched.__path__)}
    assert set(contract["source_modules"]) == rooms - {"redsched.store"}
    assert module in contract["forbidden_modules"]


def test_every_module_of_the_scheduler_has_a_place_above_or_below_what_operates() -> None:
    """A module that the contract does not list could import what operates, and place nothing without it."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [contract] = [one for one in contracts if one["name"].startswith("what places does not know what operates")]
    placed = {name.strip() for layer in contract["layers"] for name in layer.split(":")}
    modules = {f"redsched.scheduler.{one.name}" for one in pkgutil.iter_modules(scheduler.__path__)}
    assert placed == modules | {"redsched.operate"}


@pytest.mark.parametrize("package", ["redsched", "redsched.model", "redsched.cache.columns", "redsched.decide"])
def test_deciding_loads_no_redis_client(package: str) -> None:
    """Checked in a new interpreter: `decide` works where no Redis client is installed."""
    code = f"import sys, {package}; sys.exit(any(name.split('.')[0] in ('redis', 'hiredis') for name in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_no_module_imports_itself_through_others() -> None:
    """There are no import cycles, including imports for the type checker and inside functions."""
    graph = grimp.build_graph("redsched", cache_dir=None)
    in_circles = [
        module
        for module in graph.modules
        if graph.find_upstream_modules(module) & graph.find_downstream_modules(module)
    ]
    assert sorted(in_circles) == []
