"""Objects are connected by constructor arguments, in one place: `redsched/scheduler/scheduler.py`.

So no constructor changes its arguments, and no object registers itself or sets a callback on another object.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).parents[2]
SCHEDULER = ROOT / "redsched" / "scheduler" / "scheduler.py"
MODULES = sorted((ROOT / "redsched").rglob("*.py"))
CONSTRUCTORS = {"__init__", "__post_init__"}
ADDING = {"append", "appendleft", "add", "extend", "insert", "setdefault", "update"}
Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def trees() -> dict[Path, ast.Module]:
    """Return all modules, parsed on first use: every process collects these tests, but only one runs them."""
    return {path.relative_to(ROOT): ast.parse(path.read_text()) for path in MODULES}


@cache
def nodes() -> list[ast.AST]:
    return [node for tree in trees().values() for node in ast.walk(tree)]


@cache
def fields() -> dict[str, ast.AnnAssign]:
    """Return the annotated names of all modules and classes."""
    return {ast.unparse(node.target): node for node in nodes() if isinstance(node, ast.AnnAssign)}


@cache
def callbacks() -> set[str]:
    """Return the names of fields that hold a function."""
    aliases = {
        ast.unparse(node.targets[0])
        for node in nodes()
        if isinstance(node, ast.Assign) and ast.unparse(node.value).startswith("Callable[")
    }
    return {
        name.removeprefix("self.")
        for name, node in fields().items()
        if ast.unparse(node.annotation).split("[")[0].removesuffix(" | None") in {"Callable", *aliases}
    }


@cache
def methods() -> set[str]:
    """Return the names of functions and methods, except properties and names that are also fields."""
    functions = [node for node in nodes() if isinstance(node, Function)]
    properties = {node.name for node in functions if node.decorator_list}
    return {node.name for node in functions} - properties - fields().keys()


def is_own(node: ast.expr) -> bool:
    """Return whether an expression is an attribute of `self`, or an entry of one."""
    if isinstance(node, ast.Subscript):
        return is_own(node.value)
    return isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"


def assigned(tree: ast.AST) -> Iterator[ast.expr]:
    """Yield all targets of assignments except plain names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            given = node.targets if isinstance(node, ast.Assign) else [node.target]
            parts = (one.elts if isinstance(one, ast.Tuple) else [one] for one in given)
            yield from (one for some in parts for one in some if not isinstance(one, ast.Name))


def method_calls(tree: ast.AST) -> Iterator[tuple[ast.expr, ast.Call]]:
    """Yield the calls of methods, each with its object."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.value, node


def is_connection(argument: ast.expr) -> bool:
    """Return whether an argument is `self` or a method."""
    return ast.unparse(argument) == "self" or (isinstance(argument, ast.Attribute) and argument.attr in methods())


def changes_of_others(constructor: Function) -> Iterator[str]:
    """Yield what a constructor changes other than its own attributes and locals."""
    given = {one.arg for one in [*constructor.args.args, *constructor.args.kwonlyargs]} - {"self"}
    yield from (ast.unparse(one) for one in assigned(constructor) if not is_own(one))
    for owner, call in method_calls(constructor):
        is_given = ast.unparse(owner).split(".")[0] in given or ast.unparse(owner).count(".") > 1
        if is_given and (call.func.attr in ADDING or any(map(is_connection, call.args))):  # type: ignore[attr-defined]
            yield ast.unparse(call)


def connections(tree: ast.AST) -> Iterator[str]:
    """Yield code that sets a callback of another object, or adds `self` or a method to a collection of one."""
    for one in assigned(tree):
        if isinstance(one, ast.Attribute) and one.attr in callbacks() and not is_own(one):
            yield ast.unparse(one)
    for owner, call in method_calls(tree):
        is_foreign = isinstance(owner, ast.Attribute) and not is_own(owner)
        if is_foreign and call.func.attr in ADDING and any(map(is_connection, call.args)):  # type: ignore[attr-defined]
            yield ast.unparse(call)


def test_a_constructor_changes_no_object_but_its_own() -> None:
    constructors = (
        (path, one) for path, tree in trees().items() for one in ast.walk(tree) if isinstance(one, Function)
    )
    found = {
        f"{path}:{one.lineno}": changes
        for path, one in constructors
        if one.name in CONSTRUCTORS and (changes := [*changes_of_others(one)])
    }
    assert found == {}


def test_nobody_connects_himself_to_another_object_afterwards() -> None:
    assert {str(path): found for path, tree in trees().items() if (found := [*connections(tree)])} == {}


def test_all_parts_of_a_scheduler_are_imported_before_processes_fork() -> None:
    """A worker of the API is a fork: what it imports itself takes time and memory again in each of them."""
    program = "import sys, redsched.scheduler.preload; print(*sys.modules)"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    parts = (
        node
        for node in ast.walk(ast.parse(SCHEDULER.read_text()))
        if isinstance(node, ast.FunctionDef) and "cached_property" in map(ast.unparse, node.decorator_list)
    )
    imported = {one.module for part in parts for one in ast.walk(part) if isinstance(one, ast.ImportFrom)}
    assert len(imported) > 20
    assert {one for one in imported if one is not None} - {*ended.stdout.split()} == set()
