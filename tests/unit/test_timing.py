"""tests/timing.txt names each test that reads a clock, sleeps or starts processes, and so depends on the machine.

Such tests fail on slow machines first. A new one needs a line with the reason why it cannot do without.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

pytestmark = pytest.mark.heavy

ROOT = Path(__file__).parents[2]
LIST = ROOT / "tests" / "timing.txt"
LINE = re.compile(r"(?P<where>\S+) (?P<kinds>[a-z]+(?:, [a-z]+)*): (?P<reason>.+)")
SHORTEST_REASON = 20

CALLS = {
    "clock": re.compile(
        r"(time\.)?(monotonic|perf_counter|process_time)(_ns)?|time\.time(_ns)?|(\w+\.)*datetime\.now|.*loop\(\)\.time"
    ),
    "sleep": re.compile(r"(time|asyncio)\.sleep|sleep"),
    "process": re.compile(
        r"subprocess\.\w+|.*\bPrivateServer\.start|asyncio\.create_subprocess_\w+|os\.fork|FORKS\.Process|warm\.\w+"
        r"|running|up|drawn|worker_over|Workers|cluster_setup|sentinel_setup|racers|browser|LoneAgent|Forked"
    ),
}
FIXTURES = {"fresh_server", "race", "running", "start_process"}
"""Fixtures that start processes, for tests that take them."""


@cache
def dependences() -> dict[str, set[str]]:
    """Return the kinds of dependence by `module::function`, or by module alone for processes."""
    found: dict[str, set[str]] = {}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        module = str(path.relative_to(ROOT))
        for name, function in _functions(ast.parse(path.read_text())):
            for kind in set(_kinds(function)):
                where = module if kind == "process" else f"{module}::{name}"
                found.setdefault(where, set()).add(kind)
    return found


def _functions(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            yield from ((f"{node.name}.{name}", one) for name, one in _functions(ast.Module(node.body, [])))


def _kinds(function: ast.AST) -> Iterator[str]:
    for node in ast.walk(function):
        if isinstance(node, ast.arg) and node.arg in FIXTURES:
            yield "process"
        if isinstance(node, ast.Call) and not _gives_a_turn(node):
            called = ast.unparse(node.func)
            yield from (kind for kind, pattern in CALLS.items() if pattern.fullmatch(called))


def _gives_a_turn(call: ast.Call) -> bool:
    """Return whether a call is `asyncio.sleep(0)`, which takes no time."""
    return len(call.args) == 1 and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0


@cache
def listed() -> dict[str, tuple[set[str], str]]:
    """Return the kinds and the reason of each line of the list."""
    found = {}
    for line in LIST.read_text().splitlines():
        if line and not line.startswith("#"):
            parts = LINE.fullmatch(line)
            assert parts, f"{LIST.name}: not `WHERE KIND, KIND: REASON`: {line!r}"
            assert parts["where"] not in found, f"{LIST.name}: twice: {parts['where']}"
            found[parts["where"]] = set(parts["kinds"].split(", ")), parts["reason"]
    return found


def test_each_test_that_depends_on_the_machine_has_a_line() -> None:
    missing = {where: kinds for where, kinds in dependences().items() if listed().get(where, (set(),))[0] != kinds}
    assert missing == {}, f"write a line with the reason into tests/{LIST.name}, or do without: tests.support.waiting"


def test_each_line_is_of_such_a_test() -> None:
    assert listed().keys() - dependences().keys() == set()


def test_each_line_has_a_reason() -> None:
    assert [where for where, (_, reason) in listed().items() if len(reason) < SHORTEST_REASON] == []


def test_calls_are_found() -> None:
    """Also in methods and nested functions; `sleep(0)` is none."""
    source = "class A:\n def b(self):\n  def c():\n   time.sleep(1)\n  asyncio.sleep(0)\nasync def d(race): monotonic()"
    found = {name: set(_kinds(one)) for name, one in _functions(ast.parse(source))}
    assert found == {"A.b": {"sleep"}, "d": {"process", "clock"}}
