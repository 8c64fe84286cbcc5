"""The Lua scripts of redsched/lua, composed with their includes.

A line `-- include: name` brings in the file of that name below lua/include, once, after what that file includes
itself. EVAL knows no modules, and one copy of the fence is enough to keep right.

The lines `-- KEYS meta changes ...` and `-- ARGV host id ...` of a script's header are its calling contract: they
become the tables `KEY` and `ARG` of the script, and each call is checked against them. `...` at the end stands for any
number of further ones, which the header describes in words.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from redsched.store.codec.claim_fields import lua_tables

LUA = files("redsched") / "lua"

_INCLUDE = re.compile(r"^-- include: (\w+)\n", re.MULTILINE)


_GENERATED = {"claim_fields": lua_tables}
"""Includes that are made from Python."""
_CONTRACT = re.compile(r"^-- (KEYS|ARGV)((?: [a-z_]+)*)( \.\.\.)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Contract:
    """What a script's header says of its KEYS or ARGV: their names in order, and whether more may follow."""

    names: tuple[str, ...]
    is_open: bool

    def admits(self, count: int) -> bool:
        """Whether a call may pass so many."""
        return count == len(self.names) or (self.is_open and count > len(self.names))

    def table(self, name: str, source: str) -> str:
        """Return the Lua statement that gives the script these values by name."""
        fields = "".join(f"  {one} = {source}[{number}],\n" for number, one in enumerate(self.names, 1))
        return f"local {name} = {{\n{fields}}}\n"


@dataclass(frozen=True, slots=True)
class Script:
    """One composed script: its text as the server gets it, and the SHA-1 by which EVALSHA names it.

    `keys` and `arguments` are the contract of its header.
    """

    name: str
    text: str
    sha: str
    read_only: bool
    keys: Contract
    arguments: Contract

    def check(self, keys: int, arguments: int) -> None:
        """Raise TypeError where a call passes other than the header says."""
        if not self.keys.admits(keys) or not self.arguments.admits(arguments):
            raise TypeError(f"{self.name}.lua: {keys} keys for {self.keys}, {arguments} arguments for {self.arguments}")


@cache
def load_all() -> dict[str, Script]:
    """All scripts by name."""
    return {name: _compose(name) for name in sorted(scripts())}


@cache
def scripts() -> dict[str, str]:
    """The sources of all scripts by name, from the folders of redsched/lua."""
    folders = (entry for entry in LUA.iterdir() if entry.is_dir() and entry.name != "include")
    return {name: text for folder in folders for name, text in _sources(folder)}


@cache
def includes() -> dict[str, str]:
    """The sources of all includes by name, from the folders of redsched/lua/include."""
    folders = (entry for entry in (LUA / "include").iterdir() if entry.is_dir())
    return {name: text for folder in folders for name, text in _sources(folder)}


def _sources(folder: Traversable) -> Iterator[tuple[str, str]]:
    for entry in folder.iterdir():
        if entry.name.endswith(".lua"):
            yield entry.name.removesuffix(".lua"), entry.read_text()


def _compose(name: str) -> Script:
    included: set[str] = set()

    def expand(source: str) -> str:
        return _INCLUDE.sub(lambda line: include(line[1]), source)

    def include(file: str) -> str:
        if file in included:
            return ""
        included.add(file)
        if file in _GENERATED:
            return _GENERATED[file]()
        return expand(includes()[file])

    source = scripts()[name]
    keys, arguments = _contract(source, "KEYS"), _contract(source, "ARGV")
    shebang, _, body = source.partition("\n")
    body = expand(body)
    tables = "".join(
        one.table(table, source)
        for one, table, source in ((keys, "KEY", "KEYS"), (arguments, "ARG", "ARGV"))
        if f"{table}." in body
    )
    text = f"{shebang}\n{tables}{body}"
    sha = hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()
    return Script(name, text, sha, "flags=no-writes" in shebang, keys, arguments)


def _contract(source: str, which: str) -> Contract:
    """Read all lines of a header that begin so. A header that names KEYS alone takes no ARGV."""
    found = list(_CONTRACT.finditer(source))
    lines = [line for line in found if line[1] == which]
    names = tuple(name for line in lines for name in line[2].split())
    return Contract(names, is_open=not found or any(line[3] for line in lines))


def write_out(folder: Path) -> None:
    """Write the composed scripts into `folder`, for luacheck and for reading what the server runs."""
    folder.mkdir(parents=True, exist_ok=True)
    for script in load_all().values():
        (folder / f"{script.name}.lua").write_text(script.text)
