"""Processes forked from one that has imported their modules: importing takes most of a short process's time.

Each has its own environment, memory, event loop and exit. There is one such fork server in each process of pytest, so
all modules to import in advance are listed here.
"""

import multiprocessing

from redsched.cli.commands import entries
from redsched.serve.supervisor import APPLICATION

JOBS = (
    "tests.support.processes.constraint_racers",
    "tests.support.processes.lone_agent",
    "tests.faults.test_quota_races",
    "tests.faults.test_race",
    "tests.faults.test_store_faults",
)
"""Modules with functions that run in such processes."""

FORKS = multiprocessing.get_context("forkserver")
COMMANDS = sorted({entry.module for entry in entries().values()})
MODULES = [*COMMANDS, APPLICATION, "redsched.serve.worker", *JOBS]
FORKS.set_forkserver_preload(["redsched.cli", *MODULES, "pytest", "tests.support.processes.preloaded"])
