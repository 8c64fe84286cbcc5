"""The kinds of real servers that the suites run against, and which suite runs against which of them.

A usual run uses the embedded Valkey, and each other server only in the suites of ON_EACH: those of what differs between
servers (their start, users, functions, replication ids, WAIT, TLS), and one that calls each script in a cluster.
Failovers by Sentinel and of a cluster are played on Valkey.

REDSCHED_TEST_SERVERS changes that: `all`, which the long run uses, runs every suite against every server, `valkey`
every suite against Valkey alone.
"""

import os
from pathlib import Path

from redsched.store.embedded.server import ServerBinary, find_servers

ROOT = Path(__file__).parents[2]
ON_EACH = (
    "tests/store",
    "tests/lua/cell/test_fence.py",
    "tests/lua/cell/test_permissions.py",
    "tests/faults/test_durability.py",
    "tests/faults/test_moving_slot.py",
)
"""Suites that run against each server in a usual run."""
USUAL, ALL, VALKEY = "usual", "all", "valkey"


def usable_servers() -> list[ServerBinary]:
    """Return each kind and version of usable server once, Valkey first: everyone has it."""
    unique = {name_of(one): one for one in find_servers() if not one.problem}
    return sorted(unique.values(), key=lambda one: one.kind, reverse=True)


def name_of(one: ServerBinary) -> str:
    """Return the server's name in a test's id."""
    return f"{one.kind}-{one.version}"


def matrix() -> str:
    """Return the value of REDSCHED_TEST_SERVERS. Raises ValueError for an unknown one."""
    value = os.environ.get("REDSCHED_TEST_SERVERS", USUAL)
    if value not in {USUAL, ALL, VALKEY}:
        raise ValueError(f"REDSCHED_TEST_SERVERS is {value!r}: use {USUAL!r}, {ALL!r} or {VALKEY!r}")
    return value


USABLE = usable_servers()
"""The usable servers, searched for once."""


def servers_of(test: str | Path) -> list[ServerBinary]:
    """Return the servers that a test file runs against in this run, Valkey first."""
    path = Path(test).resolve().relative_to(ROOT)
    is_on_each = matrix() == ALL or (matrix() == USUAL and any(path.is_relative_to(one) for one in ON_EACH))
    return USABLE if is_on_each else USABLE[:1]
