"""The Lua scripts of redsched/lua, composed with their includes.

A line `-- include: name` is replaced by lua/include/name.lua: Redis knows no modules, and one copy of the fence is
enough to keep right.
"""

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

_INCLUDE = re.compile(r"^-- include: (\w+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Script:
    """One composed script: its text as the server gets it, and the SHA-1 by which EVALSHA names it."""

    name: str
    text: str
    sha: str
    read_only: bool


@cache
def load_all() -> dict[str, Script]:
    """All scripts by name."""
    folder = files("redsched") / "lua"
    names = sorted(entry.name[:-4] for entry in folder.iterdir() if entry.name.endswith(".lua"))
    return {name: _compose(name) for name in names}


def _compose(name: str) -> Script:
    folder = files("redsched") / "lua"
    source = (folder / f"{name}.lua").read_text()
    text = _INCLUDE.sub(lambda line: (folder / "include" / f"{line[1]}.lua").read_text(), source)
    sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
    return Script(name, text, sha, read_only="flags=no-writes" in text.partition("\n")[0])


def write_out(folder: Path) -> None:
    """Write the composed scripts into `folder`, for luacheck and for reading what the server runs."""
    folder.mkdir(parents=True, exist_ok=True)
    for script in load_all().values():
        (folder / f"{script.name}.lua").write_text(script.text)
