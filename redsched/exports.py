"""Names that a package exports and that are imported on first access. It states them once, for type checkers:

if TYPE_CHECKING:
    from redsched.model import Request as Request
else:
    __getattr__, __dir__ = exports(__name__)
"""

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any


def exports(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a package. They read its source, where type checkers find the imports."""

    @cache
    def modules() -> dict[str, str]:
        return _checked_imports(package)

    def get(name: str) -> Any:
        if name == "__all__":
            return sorted(modules())
        # Exports are classes: `from redsched import logs` asks for a submodule, and reads no source.
        if name[:1].isupper() and name in modules():
            return getattr(import_module(modules()[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get, lambda: [*vars(sys.modules[package]), *modules()]


def _checked_imports(package: str) -> dict[str, str]:
    """Return the module of each name that a package imports for type checkers."""
    import ast  # here: commands over REST read no names
    import linecache  # inspect.getsource looks at every module first, which takes longer than some commands

    module = sys.modules[package]
    source = "".join(linecache.getlines(str(module.__file__), vars(module)))
    checked = (node for node in ast.parse(source).body if isinstance(node, ast.If))
    imports = (node for one in checked for node in one.body if isinstance(node, ast.ImportFrom))
    return {alias.name: node.module or "" for node in imports for alias in node.names}
