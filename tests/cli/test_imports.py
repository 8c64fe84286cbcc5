"""Commands about one thing load neither what places claims nor what serves the API: imports are most of their time."""

import os
import subprocess
import sys

import pytest

from tests.cli.conftest import Redsched

UNUSED = {"numpy", "structlog", "fastapi", "starlette", "uvicorn", "yaml", "rich", "redsched.decide", "redsched.api"}

PROGRAM = """
import sys
from redsched.cli.main import run
code = run(sys.argv[2:])
print(*(name for name in sys.argv[1].split() if name in sys.modules), file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.parametrize(
    "command",
    [
        ("host", "show", "h1"),
        ("host", "disable", "h1"),
        ("claim", "show", "shown"),
        ("claim", "release", "shown"),
        ("quota", "list"),
        ("quota", "set", "web", "VCPU=4"),
        ("server-group", "list"),
        ("shared-pool", "list"),
        ("events",),
    ],
    ids=" ".join,
)
def test_a_command_loads_only_what_it_needs(redsched: Redsched, store: str, command: tuple[str, ...]) -> None:
    redsched("select", "VCPU=1", "--id", "shown").check()
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM, " ".join(UNUSED), *command],
        env={**os.environ, "REDSCHED_REDIS_URL": store},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stderr.split() == []
