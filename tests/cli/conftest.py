"""Fixtures for the command line: a store with two hosts, which commands use directly or over the REST API."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Thread

import pytest
import redis

from redsched.auth.authenticator import Authenticator
from redsched.cli import fleet
from redsched.model import HostReport, Inventory
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from tests.cli.parts import Ran, run
from tests.support.builders.cells import usual_settings
from tests.support.processes.served_api import serving

REPORTS = [
    HostReport("h1", {"VCPU": Inventory(8), "MEMORY_MB": Inventory(16_384)}, zone="az1", lease_s=3600),
    HostReport("h2", {"VCPU": Inventory(4)}, zone="az2", labels={"rack": "r4"}, lease_s=3600),
]

Redsched = Callable[..., Ran]

STORE, REST = "store", "rest"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of a module with BOTH_LINKS over the store, and in the long run over the REST API too.

    Commands do not know their link, and `tests/contract` compares what each operation does over both in every run.
    """
    both = getattr(metafunc.module, "BOTH_LINKS", False) and "needs_store" not in metafunc.fixturenames
    if both and "link" in metafunc.fixturenames:
        marks = () if "needs_both" in metafunc.fixturenames else pytest.mark.long
        metafunc.parametrize("link", [STORE, pytest.param(REST, marks=marks)])


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a command of this process wait for a store that a busy machine keeps from answering."""
    monkeypatch.setattr(fleet, "FIRST_REPLY_S", 60.0)


@pytest.fixture
def store(clean_store: str) -> str:
    """Return the URL of the empty store that the commands use."""
    return clean_store


@pytest.fixture
def link() -> str:
    """Return how commands reach the fleet: `store`, or `rest` too in modules with BOTH_LINKS."""
    return STORE


@pytest.fixture
def needs_store() -> None:
    """Keep a test of a module with BOTH_LINKS to the store."""


@pytest.fixture
def needs_both() -> None:
    """Have a test of a module with BOTH_LINKS run over both in every run: what it checks is no operation's result."""


@pytest.fixture
def redsched(store: str, link: str) -> Iterator[Redsched]:
    """Yield a function that runs a command on a store with hosts h1 and h2, over the link of the test."""
    report_all(store, REPORTS)
    with redis.Redis.from_url(store, protocol=2) as client:
        # No scheduler ticks the clock between two commands, and on a busy machine a command is slow to start.
        client.hset("rs:{c1}:meta", "jump_s", "600")
    if link == STORE:
        yield lambda *arguments: run(*arguments, environment={"REDSCHED_REDIS_URL": store})
        return
    with served(Settings(redis_url=store, pick_from=1)) as url:
        yield lambda *arguments: run(*arguments, environment={"REDSCHED_REDIS_URL": "", "REDSCHED_API": url})


@contextmanager
def served(settings: Settings, authenticator: Authenticator | None = None) -> Iterator[str]:
    """Serve an API in a thread with a loop of its own until the block ends, and yield its URL."""
    ready: Future[str] = Future()
    loop = asyncio.new_event_loop()
    ended = asyncio.Event()

    async def serve() -> None:
        async with serving(settings, authenticator) as url:
            ready.set_result(url)
            await ended.wait()

    thread = Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        yield ready.result(timeout=60)
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


def report_all(url: str, hosts: Sequence[HostReport]) -> None:
    """Report hosts to a store."""

    async def report() -> None:
        async with Scheduler.connect(url, usual_settings()) as scheduler:
            await scheduler.init()
            for one in hosts:
                await scheduler.hosts.report(one)

    asyncio.run(report())
