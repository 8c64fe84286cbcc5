"""Fixtures for the command line: a store with two hosts."""

import asyncio
from collections.abc import Callable

import pytest
import redis

from redsched.model import HostReport, Inventory
from redsched.scheduler import Scheduler
from tests.cli.parts import Ran, run
from tests.support.builders.cells import usual_settings

REPORTS = [
    HostReport("h1", {"VCPU": Inventory(8), "MEMORY_MB": Inventory(16_384)}, zone="az1", lease_s=3600),
    HostReport("h2", {"VCPU": Inventory(4)}, zone="az2", labels={"rack": "r4"}, lease_s=3600),
]

Redsched = Callable[..., Ran]


@pytest.fixture
def store(clean_store: str) -> str:
    """Return the URL of the empty store that the commands use."""
    return clean_store


@pytest.fixture
def redsched(store: str) -> Redsched:
    """Return a function that runs a command on a store with hosts h1 and h2."""
    asyncio.run(_report(store))
    with redis.Redis.from_url(store, protocol=2) as client:
        # No scheduler ticks the clock between two commands, and on a busy machine a command is slow to start.
        client.hset("rs:{c1}:meta", "jump_s", "600")
    return lambda *arguments: run(*arguments, environment={"REDSCHED_REDIS_URL": store})


async def _report(url: str) -> None:
    async with Scheduler.connect(url, usual_settings()) as scheduler:
        await scheduler.init()
        for report in REPORTS:
            await scheduler.hosts.report(report)
