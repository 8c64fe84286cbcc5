"""The kinds of real servers that the suites run against, and which suite runs against which of them.

The suites of the store run against every kind. All others, and the races of schedulers among the fault tests, use the
store through the same calls, so one kind is enough for them. REDSCHED_TEST_SERVERS changes that: `all` runs every suite
against every kind, `valkey` runs every suite against the embedded Valkey alone.
"""

import os
from pathlib import Path

from redsched.store.embedded.server import ServerBinary, find_servers

STORE_SUITES = frozenset({"lua", "store", "faults"})
"""Folders of tests of the servers' behaviour."""
OF_SCHEDULERS = frozenset({"test_race.py", "test_constraint_races.py", "test_quota_races.py", "test_releases.py"})
"""Fault tests of schedulers and of different releases: tests/lua runs the scripts that decide them on all servers."""
STORE, ALL, VALKEY = "store", "all", "valkey"


def usable_servers() -> list[ServerBinary]:
    """Return each kind and version of usable server once, Valkey first: everyone has it."""
    unique = {name_of(one): one for one in find_servers() if not one.problem}
    return sorted(unique.values(), key=lambda one: one.kind, reverse=True)


def name_of(one: ServerBinary) -> str:
    """Return the server's name in a test's id."""
    return f"{one.kind}-{one.version}"


def matrix() -> str:
    """Return the value of REDSCHED_TEST_SERVERS. Raises ValueError for an unknown one."""
    value = os.environ.get("REDSCHED_TEST_SERVERS", STORE)
    if value not in {STORE, ALL, VALKEY}:
        raise ValueError(f"REDSCHED_TEST_SERVERS is {value!r}: use {STORE!r}, {ALL!r} or {VALKEY!r}")
    return value


USABLE = usable_servers()
"""The usable servers, searched for once."""
SERVERS = USABLE[:1] if matrix() == VALKEY else USABLE
"""The servers of this run; the suites of the store use all of them."""


def servers_of(path: Path) -> list[ServerBinary]:
    """Return the servers that a test file runs against."""
    is_of_store = not STORE_SUITES.isdisjoint(path.parts) and path.name not in OF_SCHEDULERS
    uses_all = matrix() == ALL or is_of_store
    return SERVERS if uses_all else SERVERS[:1]
