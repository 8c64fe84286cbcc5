"""The arrows between the packages, as pyproject.toml draws them for import-linter."""

from pathlib import Path

from importlinter.cli import lint_imports

ROOT = Path(__file__).parents[2]


def test_the_arrows_point_down() -> None:
    """Layers, a pure `decide`, and Redis known to the store alone: [tool.importlinter] in pyproject.toml."""
    assert lint_imports(config_filename=str(ROOT / "pyproject.toml"), no_cache=True) == 0
