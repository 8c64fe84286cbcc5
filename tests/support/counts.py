"""Figures of the code of redsched: lines by package, small modules, responses that copy a record, tables of methods.

    scripts/count-code [FOLDER]

Reads the files of a checkout, of FOLDER or of this one, without importing them: so it counts earlier releases alike.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).parents[2]
SMALL = 40
"""A module with fewer lines is small."""
FEWEST = 2
"""The fewest fields of a response that can be a copy: one with a single field says nothing."""
RESPONSES = ("api", "schema")
"""Packages with models of responses, now or in earlier releases: the records of the library are elsewhere."""
OPERATION = "resize"
"""The operation whose modules are counted."""


@dataclass(frozen=True, slots=True)
class Module:
    """One file: its parts below the checkout, its lines, and its syntax tree."""

    path: Path
    lines: int
    tree: ast.Module

    @property
    def name(self) -> str:
        """The full name for imports."""
        return ".".join(self.path.with_suffix("").parts).removesuffix(".__init__")

    @property
    def package(self) -> str:
        """The name below redsched; '' for a module of redsched itself."""
        return self.path.parts[1] if len(self.path.parts) > 2 else ""

    @property
    def classes(self) -> list[ast.ClassDef]:
        """Its classes, nested ones included."""
        return [one for one in ast.walk(self.tree) if isinstance(one, ast.ClassDef)]


def modules(root: Path) -> list[Module]:
    """Return the modules of redsched in a checkout."""
    texts = {path: path.read_text() for path in sorted((root / "redsched").rglob("*.py"))}
    return [Module(path.relative_to(root), len(text.splitlines()), ast.parse(text)) for path, text in texts.items()]


def by_package(found: Sequence[Module]) -> dict[str, tuple[int, int]]:
    """Return the number of modules and of lines of each package."""
    ordered = sorted(found, key=lambda one: one.package)
    grouped = {name: list(some) for name, some in groupby(ordered, key=lambda one: one.package)}
    return {name: (len(some), sum(one.lines for one in some)) for name, some in grouped.items()}


def imported_once(found: Sequence[Module]) -> int:
    """Return the number of modules that exactly one other imports. A package counts as its `__init__`."""
    names = {one.name for one in found}
    importers = Counter(name for one in found for name in set(_imports(one, names)) - {one.name})
    return sum(count == 1 for count in importers.values())


def _imports(module: Module, names: set[str]) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            parts = {f"{node.module}.{one.name}" for one in node.names} & names
            yield from parts or {node.module} & names
        elif isinstance(node, ast.Import):
            yield from {one.name for one in node.names} & names


def responses(found: Sequence[Module]) -> list[ast.ClassDef]:
    """Return the models of pydantic with fields that describe responses: those of REST but the ones of requests."""
    candidates = [
        one
        for module in found
        if module.package in RESPONSES and "requests" not in module.path.parts
        for one in module.classes
    ]
    models, grown = {"BaseModel"}, True
    while grown:
        more = {one.name for one in candidates if {ast.unparse(base) for base in one.bases} & models} - models
        models, grown = models | more, bool(more)
    return [one for one in candidates if one.name in models and fields(one)]


def copies(found: Sequence[Module]) -> list[str]:
    """Return the responses all of whose fields one dataclass of the library has, as a field or a property."""
    shapes = [
        fields(one) | _properties(one)
        for module in found
        if module.package not in ("schema", "api", "requests")
        for one in module.classes
        if any(ast.unparse(mark).partition("(")[0] in ("dataclass", "record") for mark in one.decorator_list)
    ]
    return [
        one.name
        for one in responses(found)
        if len(fields(one)) >= FEWEST and any(fields(one) <= shape for shape in shapes)
    ]


def fields(one: ast.ClassDef) -> set[str]:
    """Return the fields of a dataclass or model itself."""
    return {
        line.target.id
        for line in one.body
        if isinstance(line, ast.AnnAssign)
        and isinstance(line.target, ast.Name)
        and not ast.unparse(line.annotation).startswith("ClassVar")
    }


def _properties(one: ast.ClassDef) -> set[str]:
    functions = [line for line in one.body if isinstance(line, ast.FunctionDef)]
    return {line.name for line in functions if any("property" in ast.unparse(mark) for mark in line.decorator_list)}


def naming(found: Sequence[Module], operation: str) -> list[str]:
    """Return the modules outside the agent and the store that name an operation: in code or as a part of a path."""
    return [one.name for one in found if one.package not in ("agent", "store") and _names(one, operation)]


def _names(module: Module, operation: str) -> bool:
    texts = (
        getattr(node, field)
        for node in ast.walk(module.tree)
        for field in ("id", "attr", "name", "value")
        if isinstance(getattr(node, field, None), str)
    )
    return any(re.split("[/:]", text)[-1] == operation for text in texts)


def operations(module: Module) -> int:
    """Return the number of operations that a module declares."""
    return sum(
        ast.unparse(mark).startswith(("operation(", "listing("))
        for one in module.classes
        for line in one.body
        if isinstance(line, ast.FunctionDef)
        for mark in line.decorator_list
    )


def routes(module: Module) -> int:
    """Return the number of routes that a module declares by their paths."""
    verbs = re.compile(r"\w+\.(get|post|put|patch|delete)\(")
    functions = [one for one in ast.walk(module.tree) if isinstance(one, ast.AsyncFunctionDef | ast.FunctionDef)]
    return sum(bool(verbs.match(ast.unparse(mark))) for one in functions for mark in one.decorator_list)


def scopes(module: Module) -> int:
    """Return the number of rows of tables whose keys are methods and paths."""
    tables = [one for one in ast.walk(module.tree) if isinstance(one, ast.Dict)]
    keys = [key for one in tables for key in one.keys if isinstance(key, ast.Tuple)]
    return sum(bool(re.match(r"\('(GET|POST|PUT|PATCH|DELETE)', '/", ast.unparse(key))) for key in keys)


def bound(module: Module) -> int:
    """Return the number of methods that a module makes of another's: `get = _Method(ClaimService.get)`."""
    return sum(
        isinstance(line, ast.Assign) and ast.unparse(line.value).startswith(("_Method(", "_Listing(", "_Stream("))
        for one in module.classes
        for line in one.body
    )


def public(module: Module) -> int:
    """Return the number of methods without a leading underscore."""
    functions = [
        line for one in module.classes for line in one.body if isinstance(line, ast.AsyncFunctionDef | ast.FunctionDef)
    ]
    return sum(not line.name.startswith("_") for line in functions)


def entries(module: Module) -> int:
    """Return the number of commands that a module lists."""
    return sum(isinstance(one, ast.Call) and ast.unparse(one.func) == "Entry" for one in ast.walk(module.tree))


TABLES: Mapping[str, tuple[str, Callable[[Module], int]]] = {
    "operations": ("redsched/operations/", operations),
    "routes declared beside them": ("redsched/api/routes/", routes),
    "scopes of routes": ("redsched/api/access/", scopes),
    "methods of clients": ("redsched/client/", bound),
    "methods of the command line over REST": ("redsched/cli/remote/", public),
    "methods of the blocking scheduler": ("redsched/blocking/", bound),
    "commands": ("redsched/cli/commands.py", entries),
}
"""Tables that name methods by hand, now or in earlier releases: where they are, and how their rows are counted."""


def tables(found: Sequence[Module]) -> dict[str, int]:
    """Return the number of rows of each table."""
    return {
        name: sum(rows(one) for one in found if one.path.as_posix().startswith(place))
        for name, (place, rows) in TABLES.items()
    }


def figures(found: Sequence[Module]) -> dict[str, int]:
    """Return what is counted of all packages together."""
    return {
        f"modules of fewer than {SMALL} lines": sum(one.lines < SMALL for one in found),
        "modules that one other imports": imported_once(found),
        "models of responses": len(responses(found)),
        "... with all fields of one dataclass": len(copies(found)),
        f"modules that name `{OPERATION}`": len(naming(found, OPERATION)),
        **tables(found),
    }


def main() -> None:
    """Print the figures of a checkout. Raises SystemExit if there is none."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    if not (found := modules(root)):
        raise SystemExit(f"{root} has no folder redsched with modules: name the folder of a checkout")
    print(f"{'package':<40} {'modules':>8} {'lines':>8}")
    for name, (count, lines) in by_package(found).items():
        print(f"{name or 'redsched itself':<40} {count:>8} {lines:>8}")
    print(f"{'all':<40} {len(found):>8} {sum(one.lines for one in found):>8}")
    for name, count in figures(found).items():
        print(f"{name:<40} {count:>8}")


if __name__ == "__main__":
    main()
