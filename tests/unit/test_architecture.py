"""The arrows between the packages, as pyproject.toml draws them for import-linter."""

import pkgutil
import tomllib
from pathlib import Path

import pytest
from importlinter.cli import lint_imports

import redsched

ROOT = Path(__file__).parents[2]


def test_the_arrows_point_down() -> None:
    """Layers, a pure `decide`, and Redis known to the store alone: [tool.importlinter] in pyproject.toml."""
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0


@pytest.mark.parametrize("module", ["redis", "hiredis"])
def test_no_room_but_the_store_may_know_redis(module: str) -> None:
    """A room that the contract does not name, or not by its name, would be free to."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [contract] = [one for one in contracts if one["name"] == "only the store knows Redis"]
    rooms = {f"redsched.{one.name}" for one in pkgutil.iter_modules(redsched.__path__)}
    assert set(contract["source_modules"]) == rooms - {"redsched.store"}
    assert module in contract["forbidden_modules"]
