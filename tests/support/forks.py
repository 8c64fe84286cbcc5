"""Processes forked from one that has imported what tests run in them: importing takes most of a short process's time.

A process is still one of its own: it has its own environment, memory, event loop and end. There is one such server of
forks in each process of pytest, so all that is imported ahead stands here.
"""

import multiprocessing

from redsched.cli.commands import entries

JOBS = (
    "tests.support.constraint_racers",
    "tests.faults.test_quota_races",
    "tests.faults.test_race",
    "tests.faults.test_store_faults",
)
"""Modules with functions that run in such processes."""

FORKS = multiprocessing.get_context("forkserver")
COMMANDS = sorted({entry.module for entry in entries().values()})
FORKS.set_forkserver_preload(["redsched.cli", *COMMANDS, "pytest", *JOBS, "tests.support.preloaded"])
