"""Packages with entry points that exist for one test: a folder on sys.path, no pip."""

from collections.abc import Mapping
from pathlib import Path

EntryPoints = Mapping[str, Mapping[str, str]]
"""By group: each name, and its object (`module:attribute`)."""


def install(folder: Path, name: str, source: str, points: EntryPoints) -> None:
    """Write a module and the metadata of a package of that name to a folder on sys.path."""
    (folder / f"{name}.py").write_text(source)
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    groups = (f"[{group}]\n" + "\n".join(f"{k} = {v}" for k, v in found.items()) for group, found in points.items())
    (info / "entry_points.txt").write_text("\n\n".join(groups) + "\n")
