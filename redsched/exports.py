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
    """Return `__getattr__` and `__dir__` of a package.

    They read its code, in which the imports for type checkers are too: an application may be frozen without its source.
    """

    @cache
    def modules() -> dict[str, str]:
        return _checked_imports(package)

    def get(name: str) -> Any:
        if name == "__all__":
            return sorted(modules())
        # Exports are classes: `from redsched import logs` asks for a submodule, and reads no code.
        if name[:1].isupper() and name in modules():
            return getattr(import_module(modules()[name]), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get, lambda: [*vars(sys.modules[package]), *modules()]


def _checked_imports(package: str) -> dict[str, str]:
    """Return the module of each name that a package imports for type checkers."""
    import dis  # here: commands over REST read no names

    loader: Any = sys.modules[package].__loader__
    found, module = dict[str, str](), ""
    for step in dis.get_instructions(loader.get_code(package)):
        if step.opname == "IMPORT_NAME":
            module = str(step.argval)
        elif step.opname == "IMPORT_FROM" and module.startswith("redsched.") and step.argval[:1].isupper():
            found[step.argval] = module
    return found
