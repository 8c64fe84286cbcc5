"""Environments with redsched from its wheel, and what it needs of what this environment has: nothing is downloaded."""

import subprocess
import sys
import venv
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from email.parser import Parser
from functools import cache
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path, PurePath

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
SOURCES = ("redsched", "pyproject.toml", "README.md", "LICENSE", "requirements", "scripts")
"""What a copy of the checkout has."""
WHEEL = "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def copy_sources(copy: Path) -> None:
    """Copy what the wheel is built from, and the scripts."""
    files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    for name in filter(None, files.split("\0")):
        if (ROOT / name).is_file() and name.split("/")[0] in SOURCES:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            (copy / name).write_bytes((ROOT / name).read_bytes())
            (copy / name).chmod((ROOT / name).stat().st_mode)


def build(folder: Path) -> None:
    """Build the wheel and the source distribution in a folder, and unpack the wheel in `unpacked`."""
    copy_sources(folder / "source")
    for kind in ("wheel", "sdist"):
        command = f"import sys, setuptools.build_meta as it; it.build_{kind}(sys.argv[1])"
        ended = subprocess.run(
            [sys.executable, "-c", command, folder], cwd=folder / "source", capture_output=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
    zipfile.ZipFile(wheel_in(folder)).extractall(folder / "unpacked")


def wheel_in(folder: Path) -> Path:
    """Return the wheel in a folder."""
    [found] = folder.glob("*.whl")
    return found


def requirements_of(wheel: Path) -> list[str]:
    """Return what the metadata of the wheel require, with their conditions."""
    with zipfile.ZipFile(wheel) as opened:
        [name] = [one for one in opened.namelist() if one.endswith("METADATA")]
        return Parser().parsestr(opened.read(name).decode()).get_all("Requires-Dist") or []


def needed_by(requirements: Iterable[str], *extras: str) -> dict[str, Distribution]:
    """Return the distributions of this environment that meet requirements and those of extras, directly or not.

    Raises PackageNotFoundError for one that is not here.
    """
    found, seen = dict[str, Distribution](), set[tuple[str, frozenset[str]]]()
    own = list(requirements)
    waiting = [(line, frozenset(extras)) for line in own]
    while waiting:
        line, extras_of_it = waiting.pop()
        asked = Requirement(line)
        name, wanted = canonicalize_name(asked.name), frozenset(asked.extras)
        if asked.marker and not any(asked.marker.evaluate({"extra": extra}) for extra in ("", *extras_of_it)):
            continue
        if (name, wanted) in seen:
            continue
        seen.add((name, wanted))
        if name == "redsched":  # extras in extras
            waiting += [(further, wanted) for further in own]
            continue
        one = found[name] = distribution(name)
        assert asked.specifier.contains(one.version), f"{line}: there is {one.version}"
        waiting += [(further, wanted) for further in one.requires or []]
    return found


def link_environment(home: Path, unpacked: Path, needed: Iterable[Distribution]) -> None:
    """Create an environment without pip, with links to the unpacked wheel and to distributions of this environment."""
    venv.create(home)
    [there] = home.glob("lib/python*/site-packages")
    for one in unpacked.iterdir():
        (there / one.name).symlink_to(one)
    for distribution_ in needed:
        link_files(distribution_, there)


def link_files(one: Distribution, folder: Path) -> None:
    """Link the files of a distribution into a folder: whole directories, where no other distribution has files."""
    for path in {_top(PurePath(file)) for file in one.files or [] if not _is_left_out(file)}:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).symlink_to(Path(str(one.locate_file(path))))


def _top(file: PurePath) -> PurePath:
    """Return the highest directory that has a file and is of one distribution alone; else the file."""
    parents = [*reversed(file.parents)][1:]
    return next((parent for parent in parents if parent not in shared()), file)


@cache
def shared() -> frozenset[PurePath]:
    """Return the directories in which more than one distribution of this environment has files."""
    owners = Counter(
        parent
        for one in distributions()
        for parent in {parent for file in one.files or [] if not _is_left_out(file) for parent in file.parents}
    )
    return frozenset(PurePath(path) for path, count in owners.items() if count > 1)


def _is_left_out(file: PurePath) -> bool:
    return file.parts[0] in ("..", "__pycache__") or file.suffix == ".pth"


def write_index(folder: Path) -> None:
    """Write a wheel for each distribution of this environment but redsched, from which pip can install offline.

    A wheel has the metadata of its distribution, and instead of the code a path to links to it: pip resolves and
    installs as from an index, and copies nothing.
    """
    for one in distributions():
        if canonicalize_name(one.name) != "redsched":
            name = _wheel_name(one.name)
            link_files(one, code := folder / "code" / name)
            for info in code.glob("*.dist-info"):
                info.unlink()
            texts = {file: one.read_text(file) for file in ("METADATA", "entry_points.txt")}
            _write_wheel(folder, name, one.version, {file: text for file, text in texts.items() if text}, str(code))


def write_stand_ins(folder: Path, requirements: Iterable[str]) -> None:
    """Write an empty wheel for each requirement, with the version that it names."""
    for asked in map(Requirement, requirements):
        version = max(spec.version for spec in asked.specifier)
        name = _wheel_name(asked.name)
        _write_wheel(folder, name, version, {"METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"})


def _wheel_name(name: str) -> str:
    return canonicalize_name(name).replace("-", "_")


def _write_wheel(folder: Path, name: str, version: str, about: Mapping[str, str], code: str = "") -> None:
    info = f"{name}-{version}.dist-info"
    files = {f"{info}/{file}": text for file, text in {**about, "WHEEL": WHEEL}.items()} | {f"{name}.pth": code}
    record = "".join(f"{path},,\n" for path in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        for path, text in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(path, text)


def not_here(requirements: Iterable[str]) -> Iterator[str]:
    """Yield those requirements of which this environment has no distribution."""
    for line in requirements:
        name = Requirement(line).name
        if not any(distributions(name=name)) and canonicalize_name(name) != "redsched":
            yield line
