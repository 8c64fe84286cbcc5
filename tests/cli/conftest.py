"""A store with two hosts for the commands. One kind of server is enough: the matrix is the matter of other suites."""

import asyncio
from collections.abc import Callable, Iterator

import pytest
import redis

from redsched.model import HostReport, Inventory
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.embedded.server import PrivateServer
from tests.cli.parts import Ran, run

REPORTS = [
    HostReport("h1", {"VCPU": Inventory(8), "MEMORY_MB": Inventory(16_384)}, zone="az1", lease_s=3600),
    HostReport("h2", {"VCPU": Inventory(4)}, zone="az2", labels={"rack": "r4"}, lease_s=3600),
]

Redsched = Callable[..., Ran]


@pytest.fixture(scope="module")
def store() -> Iterator[str]:
    """The URL of a server for one file of tests."""
    with PrivateServer.start() as started:
        yield started.url


@pytest.fixture
def redsched(store: str) -> Redsched:
    """Runs a command on a store with hosts h1 and h2, and nothing else."""
    with redis.Redis.from_url(store, protocol=2) as client:
        client.flushall()
    asyncio.run(_report(store))
    with redis.Redis.from_url(store, protocol=2) as client:
        # Nobody ticks the clock between two commands, and on a busy machine each takes its time to start.
        client.hset("rs:{c1}:meta", "jump_s", "600")
    return lambda *arguments: run(*arguments, environment={"REDSCHED_REDIS_URL": store})


async def _report(url: str) -> None:
    async with Scheduler.connect(url, Settings()) as scheduler:
        await scheduler.init()
        for report in REPORTS:
            await scheduler.hosts.report(report)
