"""`redsched top`: what its screen shows, its keys, and its end."""

import asyncio
import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

from redsched.cli.top import pictures, reading
from redsched.cli.top.app import TopApp
from redsched.cli.top.host_screen import HostScreen
from redsched.errors import RedschedError, StoreUnavailable
from redsched.model import HostCondition, HostReport, HostStatus, Inventory
from redsched.model.records.hosts import HostView
from redsched.model.records.status import StatusProblem
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.embedded.server import PrivateServer
from tests.cli.conftest import REST, Redsched, served
from tests.cli.screens import LEFT, drawn
from tests.support.builders.cells import usual_settings
from tests.support.waiting import wait_until


@pytest.fixture(params=["store", REST])
def environment(request: pytest.FixtureRequest, redsched: Redsched, store: str) -> Iterator[dict[str, str]]:
    """Yield how the command reaches a fleet with hosts h1 and h2, of which h1 has a claim."""
    redsched("select", "VCPU=6", "--host", "h1", "--id", "placed", "--project", "web").check()
    if request.param == REST:
        with served(Settings(redis_url=store)) as url:
            yield {"REDSCHED_REDIS_URL": "", "REDSCHED_API": url}
    else:
        yield {"REDSCHED_REDIS_URL": store}


def hosts_of(text: str) -> list[str]:
    """Return the hosts of the table, in its order."""
    return [line.split()[0] for line in text.splitlines() if line.startswith((" h1 ", " h2 "))]


def row(text: str, start: str) -> list[str]:
    """Return the words of the first line that starts so, or none while no line does."""
    return next((line.split() for line in text.splitlines() if line.startswith(start)), [])


def test_a_person_looks_around(environment: dict[str, str]) -> None:
    """Over the store, and over REST: the order, a filter, a host and back, and the end."""
    with drawn(environment, "top", "--interval", "1") as terminal:
        terminal.until_seen("2 hosts by fullest", "2 hosts up, 1 claim")
        terminal.until(lambda text: row(text, "VCPU")[2:] == ["50%", "6", "0", "12"], "the amounts of VCPU")
        terminal.until(lambda text: row(text, " h1 ")[1:6] == ["az1", "up", "1", "75%", "VCPU"], "the row of h1")
        terminal.until(lambda text: hosts_of(text) == ["h1", "h2"], "both hosts")

        terminal.press("sss")
        terminal.until_seen("2 hosts by zone")
        terminal.press("/az2")
        terminal.until(lambda text: hosts_of(text) == ["h2"], "h2 alone")
        terminal.until_seen("1 of 2 hosts")
        terminal.press("\x1b")
        terminal.until(lambda text: hosts_of(text) == ["h1", "h2"], "both hosts")
        terminal.press("\x1b[A\r")
        terminal.until_seen("h1  cell c1  zone az1  up", "1 claim", "placed", "web", "VCPU=6")
        terminal.press("\x1b")
        terminal.until_seen("2 hosts by zone")
        terminal.press("?")
        terminal.until_seen("close this help")
        terminal.press("q")
        assert terminal.wait() == 0
        assert LEFT in terminal.written


@pytest.fixture
def over_rest(redsched: Redsched, store: str) -> Iterator[dict[str, str]]:
    """Yield how the command reaches an API: its scheduler records the events."""
    with served(Settings(redis_url=store)) as url:
        yield {"REDSCHED_REDIS_URL": "", "REDSCHED_API": url}


def test_it_shows_what_changes_meanwhile(redsched: Redsched, over_rest: dict[str, str]) -> None:
    with drawn(over_rest, "top", "--interval", "1", lines=40) as terminal:
        terminal.until_seen("2 hosts up, 0 claims", "h1")
        redsched("select", "VCPU=1", "--id", "later", "--host", "h1").check()
        terminal.until_seen("1 claim", "claimed", "later")
        redsched("host", "disable", "h2").check()
        terminal.until(lambda text: "disabled" in text, "the state of h2")
        terminal.press("s")
        by_state = re.compile(r"2 hosts by state.*\bh2 .*\bh1 ", re.DOTALL)
        terminal.until(lambda text: by_state.search(text) is not None, "hosts that take no claims first")


def test_a_terminal_that_grows_shows_more(redsched: Redsched, over_rest: dict[str, str]) -> None:
    redsched("select", "VCPU=1", "--id", "placed").check()
    with drawn(over_rest, "top", "--interval", "1") as terminal:
        assert "placed" not in terminal.until_seen("2 hosts by fullest", "1 claim")
        terminal.resize(120, 40)
        terminal.until_seen("claimed", "placed")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_and_returns_the_terminal(redsched: Redsched, store: str, number: signal.Signals) -> None:
    with drawn({"REDSCHED_REDIS_URL": store}, "top") as terminal:
        terminal.until_seen("2 hosts by fullest")
        terminal.signal(number)
        assert terminal.wait() == 0
        assert LEFT in terminal.written


def test_ctrl_c_ends_it(redsched: Redsched, store: str) -> None:
    with drawn({"REDSCHED_REDIS_URL": store}, "top") as terminal:
        terminal.until_seen("2 hosts by fullest")
        terminal.press("\x03")
        assert terminal.wait() == 0


def test_it_waits_for_a_store_that_stands_still() -> None:
    with one_host() as server, drawn({"REDSCHED_REDIS_URL": server.url}, "top", "--interval", "1") as terminal:
        terminal.until_seen("1 host by fullest", "h1")
        os.kill(server.pid, signal.SIGSTOP)
        try:
            terminal.until_seen("trying again", "h1")  # what was read before stays
        finally:
            os.kill(server.pid, signal.SIGCONT)
        terminal.until(lambda text: "trying again" not in text, "the health of the fleet")


@contextmanager
def one_host() -> Iterator[PrivateServer]:
    """Yield a store of its own with a host."""

    async def fill(url: str) -> None:
        async with Scheduler.connect(url, usual_settings()) as scheduler:
            await scheduler.init()
            await scheduler.hosts.report(HostReport("h1", {"VCPU": Inventory(8)}, lease_s=3600))

    with PrivateServer.start() as server:
        asyncio.run(fill(server.url))
        yield server


def test_without_a_terminal_it_names_other_commands(redsched: Redsched) -> None:
    redsched("top").check_failed(2, "draws on a terminal", "redsched status")


def test_what_is_wrong_from_the_start_is_an_error_and_no_screen(tmp_path: object) -> None:
    with drawn({"REDSCHED_REDIS_URL": f"unix://{tmp_path}/none.sock"}, "top") as terminal:
        assert terminal.wait() != 0
        assert "redsched: " in terminal.text
        assert LEFT not in terminal.written


async def test_reading_takes_at_most_a_tenth_of_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reads that take 0.1, 5, 1 and 10 s. The second one fails, and the next one follows soon."""
    now_s = 0.0
    pauses, failed = list[float](), list[RedschedError]()
    takes_s = iter([0.1, 5.0, 1.0, 10.0])

    async def read() -> float:
        nonlocal now_s
        now_s += (took := next(takes_s))
        if took == 5.0:
            raise StoreUnavailable("it stands still")
        return took

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 4:
            raise asyncio.CancelledError

    monkeypatch.setattr("redsched.cli.top.reading.time", SimpleNamespace(monotonic=lambda: now_s))
    monkeypatch.setattr("redsched.cli.top.reading.asyncio", SimpleNamespace(sleep=sleep))
    shown = list[float]()
    with pytest.raises(asyncio.CancelledError):
        await reading.repeat(read, shown.append, failed.append, pytest.fail, 2.0)  # type: ignore[arg-type]
    assert pauses == pytest.approx([2.0, 5.0, 9.0, 90.0])
    assert shown == [0.1, 1.0, 10.0]
    assert len(failed) == 1


async def test_an_error_that_nobody_expected_ends_it() -> None:
    """It does not leave a screen that no longer changes."""
    broken = RuntimeError("nobody expected this")

    async def fail() -> None:
        raise broken

    app = TopApp(SimpleNamespace(status=fail, hosts=SimpleNamespace(list=lambda **_: fail())), "store", 1.0)  # type: ignore[arg-type]
    async with app.run_test():
        await wait_until(lambda: app.failed is not None)
    assert app.failed is broken


async def test_an_error_that_nobody_expected_ends_it_on_the_screen_of_a_host_too() -> None:
    """The command raises it, with its exit code, instead of a traceback over the screen."""
    broken = RuntimeError("nobody expected this")

    async def fail(_: str) -> None:
        raise broken

    async def wait(**_: object) -> None:
        await asyncio.Event().wait()

    fleet = SimpleNamespace(status=wait, hosts=SimpleNamespace(get=fail, list=wait))
    app = TopApp(fleet, "store", 1.0)  # type: ignore[arg-type] # the calls that are used
    async with app.run_test():
        app.push_screen(HostScreen(app._fleet, "h1", 1.0, app._end))
        await wait_until(lambda: app.failed is not None)
    assert app.failed is broken


@pytest.mark.parametrize(
    ("claimed", "external", "expected"),
    [
        (0.0, 0.0, "··········"),
        (0.001, 0.0, "█·········"),
        (0.5, 0.2, "█████▒▒···"),
        (0.5, 0.5, "█████▒▒▒▒▒"),
        (0.99, 0.5, "██████████"),
        (1.5, 0.0, "██████████"),
    ],
)
def test_a_bar_has_its_width_and_shows_any_use(claimed: float, external: float, expected: str) -> None:
    assert pictures.bar(claimed, external, 10) == expected


def test_states_are_in_the_order_of_their_urgency() -> None:
    up = HostView("h1", "c1", "", HostStatus.ENABLED, True, True, 1, 30, {}, frozenset(), {}, {}, 0)
    draining, disabled = (replace(up, status=one) for one in (HostStatus.DRAINING, HostStatus.DISABLED))
    lost = replace(up, alive=False, written_off=True)
    down, unattested = replace(up, alive=False), replace(up, attested=False)
    views = [down, unattested, lost, draining, disabled, up]
    assert sorted([up, lost, disabled, down, draining, unattested], key=pictures.ORDERS["state"]) == views
    assert [one.condition for one in views] == list(HostCondition)


def test_problems_lead_to_what_to_do() -> None:
    found = [StatusProblem("host-down", "c1", f"host h{number} is down", "") for number in range(4)]
    for count, more in ((1, ""), (4, "and 1 more; ")):
        state = SimpleNamespace(report=SimpleNamespace(problems=found[:count]))
        lines = str(pictures.problems(cast("reading.State", state))).splitlines()
        assert (lines[0], lines[-1]) == ("! cell c1: host h0 is down", f"  {more}what to do: redsched status")
