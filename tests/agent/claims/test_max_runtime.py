"""Work whose time is up: its agent stops it in every state, with and without the store, whatever `on_exit` says.

The time since the machine's boot is shifted, so that no test waits for a deadline.
"""

import asyncio
import dataclasses
import importlib
import json
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import redis

from redsched.agent import backoff
from redsched.agent.claims import runtime_limits
from redsched.agent.claims.stopping import as_ending
from redsched.agent.journal import steady_clock
from redsched.agent.journal.journal import open_journal
from redsched.agent.journal.schema import JournalEntry, WorkEnd
from redsched.errors import Forbidden, NotFound, OutcomeUnknown, RedschedError, StoreUnavailable, Unauthenticated
from redsched.model import ClaimStatus, EndReason, OnExit
from redsched.operate.observe.recorder import Recorder
from redsched.settings import Settings
from redsched.store.store import Store
from tests.agent.conftest import HOSTS, World, api_settings, held_work
from tests.support.builders.cells import usual_settings
from tests.support.processes.proxy import Proxy, proxy
from tests.support.processes.served_api import AgentToken, serving
from tests.support.waiting import wait_until

RUN: Any = importlib.import_module("redsched.agent.run")
"""The module, of which the package has only the function."""

ACTIVE, ENDED = ClaimStatus.ACTIVE, ClaimStatus.ENDED
HOUR_S = 3600
BLOCKED = "while [ ! -e $(dirname $0)/go ]; do sleep 0.02; done"
"""A hook that waits until the test goes on."""


class Shift:
    """How far the time since the boot is ahead, as the journals of this process see it."""

    def __init__(self) -> None:
        self.ms = 0

    def pass_by(self, seconds: int = HOUR_S) -> None:
        self.ms += seconds * 1000


@pytest.fixture(autouse=True)
def shift(monkeypatch: pytest.MonkeyPatch) -> Shift:
    """Shift the clocks of agents, and shorten the pauses between their checks and attempts."""
    made, up_ms = Shift(), steady_clock.up_ms
    monkeypatch.setattr(steady_clock, "up_ms", lambda: up_ms() + made.ms)
    monkeypatch.setattr(runtime_limits, "LOOK_S", 0.02)
    monkeypatch.setattr(RUN, "CONNECT_AGAIN_S", 0.02)
    monkeypatch.setattr(backoff, "LONGEST_PAUSE_S", 0.05)
    return made


async def has_ended(world: World, claim_id: str = "a") -> None:
    """Wait until a claim has ended because its time was up, after its stop hook has run once."""
    claim = await world.reaches(claim_id, ENDED)
    assert claim.end_reason is EndReason.MAX_RUNTIME
    reason = await world.reason(claim_id)
    assert reason is not None
    assert reason.text == "its max_runtime_s of 3600 s has passed"
    assert (await world.host())["claimed.VCPU"] == "0"
    assert not (await world.cell.due.to_reconcile(2**50, 0, 10)), "nothing is left to do"


async def run_work(world: World, on_exit: OnExit = OnExit.RELEASE) -> None:
    await world.place("a", on_exit=on_exit, max_runtime_s=HOUR_S, max_attempts=3)
    await world.reaches("a", ACTIVE)


@pytest.mark.parametrize("on_exit", list(OnExit))
async def test_work_is_stopped_when_its_time_is_up(world: World, shift: Shift, on_exit: OnExit) -> None:
    await world.start(hook=world.hook)
    await run_work(world, on_exit)
    await world.place("unlimited")
    await world.reaches("unlimited", ACTIVE)
    shift.pass_by()
    claim = await world.reaches("a", ENDED)
    assert claim.end_reason is EndReason.MAX_RUNTIME
    assert world.calls("stop") == [f"stop a {claim.token}"]
    assert (await world.reaches("unlimited", ACTIVE)).state is ACTIVE


async def test_hooks_are_told_the_deadline(world: World, shift: Shift) -> None:
    for verb in ("start", "stop"):
        world.on(verb, f"cat > {world.folder}/$1.json")
    await world.start(hook=world.hook)
    await run_work(world)
    claim = await world.claim("a")
    assert claim is not None
    shift.pass_by()
    await has_ended(world)
    for verb in ("start", "stop"):
        told = json.loads((world.folder / f"{verb}.json").read_text())
        assert told["runtime_deadline_ms"] == claim.runtime_deadline_ms


@pytest.mark.parametrize("text", ["soon", "-1", "1e9", ""])
def test_a_deadline_that_was_overwritten_by_hand_stops_nothing(text: str) -> None:
    assert held_work("a", "1-a.1", runtime_deadline_ms=text).runtime_deadline_ms is None


async def test_it_runs_until_then(world: World, shift: Shift) -> None:
    """A check of a time shortly before the deadline stops nothing."""
    await world.start(hook=world.hook)
    await run_work(world)
    shift.pass_by(HOUR_S - 1800)
    await world.place("later", max_runtime_s=60)
    await world.reaches("later", ACTIVE)
    shift.pass_by(60)
    await world.reaches("later", ENDED)
    assert (await world.reaches("a", ACTIVE)).state is ACTIVE


async def test_the_event_says_why(world: World, shift: Shift) -> None:
    await world.start(hook=world.hook)
    await run_work(world)
    shift.pass_by()
    await has_ended(world)
    await Recorder(world.cell, Settings()).record()
    event = (await world.cell.events.read_before("", 1))[0].fields
    assert (event["kind"], event["end_reason"], event["claim"]) == ("max-runtime", "max-runtime", "a")
    assert event["reason"] == "its max_runtime_s of 3600 s has passed"


async def test_a_start_that_takes_longer_is_interrupted(world: World, shift: Shift) -> None:
    world.on("start", BLOCKED)
    await world.start(hook=world.hook)
    await world.place("a", max_runtime_s=HOUR_S, max_attempts=3)
    await wait_until(lambda: world.calls("start") != [])
    shift.pass_by()
    await has_ended(world)
    assert len(world.calls("stop")) == 1


async def test_what_comes_too_late_is_not_started(world: World) -> None:
    """It was placed again, or its host had been cut off."""
    agent = await world.start(hook=world.hook)
    await world.stop(agent)
    await world.place("a", max_runtime_s=HOUR_S, max_attempts=3)
    with redis.Redis.from_url(world.url, protocol=2) as client:
        client.hincrby(world.cell.keys.claim("a"), "runtime_deadline_ms", -HOUR_S * 1000)
    await world.start(hook=world.hook)
    await has_ended(world)
    assert world.calls("start") == []


async def test_a_resize_is_interrupted(world: World, shift: Shift) -> None:
    world.on("resize", BLOCKED)
    await world.start(hook=world.hook)
    await run_work(world)
    claim = await world.claim("a")
    assert claim is not None
    await world.cell.claims.resize("h1", "a", claim.token, {"VCPU": 4, "MEMORY_MB": 2048})
    await wait_until(lambda: world.calls("resize") != [])
    shift.pass_by()
    await has_ended(world)
    assert len(world.calls("stop")) == 1


async def test_a_resized_claim_keeps_its_deadline(world: World, shift: Shift) -> None:
    await world.start(hook=world.hook)
    await run_work(world)
    claim = await world.claim("a")
    assert claim is not None
    resized = await world.cell.claims.resize("h1", "a", claim.token, {"VCPU": 4, "MEMORY_MB": 2048})
    await wait_until(lambda: world.calls("resize") != [])

    async def is_resized() -> bool:
        now = await world.claim("a")
        return now is not None and now.token == resized.facts[0] and not now.resizing_to

    await wait_until(is_resized)
    shift.pass_by()
    await has_ended(world)


async def test_a_stop_that_fails_is_repeated(world: World, shift: Shift, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redsched.agent.claims.context.FIRST_RETRY_S", 0.02)
    world.on("stop", "exit 1")
    await world.start(hook=world.hook)
    await run_work(world)
    shift.pass_by()
    await wait_until(lambda: len(world.calls("stop")) >= 2)
    assert (await world.host())["claimed.VCPU"] == "2"
    world.on("stop", "exit 0")
    await has_ended(world)


async def test_a_release_that_is_under_way_keeps_its_reason(world: World, shift: Shift) -> None:
    world.on("stop", BLOCKED)
    await world.start(hook=world.hook)
    await run_work(world)
    await world.cell.claims.release("h1", "a")
    await wait_until(lambda: world.calls("stop") != [])
    shift.pass_by()
    (world.folder / "go").touch()
    assert (await world.reaches("a", ENDED)).end_reason is EndReason.RELEASED
    assert len(world.calls("stop")) == 1


async def test_an_end_that_an_earlier_agent_began_keeps_its_reason(world: World, shift: Shift) -> None:
    agent = await world.start(hook=world.hook)
    await run_work(world)
    await world.stop(agent)
    journal = open_journal(world.folder / "journal.sqlite")
    (held,) = journal.pages["h1"].held.values()
    ended = dataclasses.replace(held, work_end=WorkEnd("no process 7 is left", 1))
    await journal.write_held("h1", as_ending(ended, EndReason.WORK_ENDED))
    await journal.close()
    shift.pass_by()
    await world.start(hook=world.hook)
    assert (await world.reaches("a", ENDED)).end_reason is EndReason.WORK_ENDED


async def test_the_next_agent_stops_it(world: World, shift: Shift) -> None:
    agent = await world.start(hook=world.hook)
    await run_work(world)
    await world.stop(agent)
    shift.pass_by()
    await world.start(hook=world.hook)
    await has_ended(world)


async def test_an_agent_that_died_while_it_stopped_it_continues(world: World, shift: Shift) -> None:
    world.on("stop", BLOCKED)
    agent = await world.start(hook=world.hook)
    await run_work(world)
    shift.pass_by()
    await wait_until(lambda: world.calls("stop") != [])
    await world.stop(agent)
    world.on("stop", "exit 0")
    await world.start(hook=world.hook)
    await has_ended(world)


async def test_after_a_flush_it_still_has_its_deadline(world: World, shift: Shift) -> None:
    await world.start(hook=world.hook)
    await run_work(world)
    world.flush()

    async def is_back() -> bool:
        return await world.claim("a") is not None

    await wait_until(is_back, timeout=30)
    shift.pass_by()
    await has_ended(world)


# -- without the store


@dataclass
class Line:
    """What connects agents to the store, and can be cut: a proxy in front of the store, or the API."""

    world: World
    url: str
    between: Proxy | None = None
    _served: AsyncExitStack = field(default_factory=AsyncExitStack)
    _port: int = 0

    async def cut(self) -> None:
        """End all connections, and refuse new ones."""
        if self.between is not None:
            self.between.shut_by.add("test")
            self.between.cut()
        await self._served.aclose()

    async def mend(self) -> None:
        """Accept connections, again."""
        if self.between is not None:
            self.between.shut_by.clear()
        elif self.world.token is not None:
            served = serving(api_settings(self.url), self.world.token.authenticator, self._port)
            self.world.api = await self._served.enter_async_context(served)
            self._port = urlsplit(self.world.api).port or 0

    async def start(self) -> "asyncio.Task[None]":
        """Start an agent, and wait until its host is open."""
        return await self.world.start(hook=self.world.hook, resend_for_s=0.05)

    def start_cut_off(self) -> "asyncio.Task[asyncio.Task[None]]":
        """Start an agent that cannot connect."""
        return asyncio.create_task(self.start())

    async def journaled(self) -> list[JournalEntry]:
        """Return the placements in the journal, which no agent has open."""
        journal = open_journal(self.world.folder / "journal.sqlite")
        await journal.close()
        return list(journal.pages["h1"].held.values())


@asynccontextmanager
async def line_to(url: str, folder: Path, link: str) -> AsyncIterator[Line]:
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(Store.connect(url, usual_settings()))
        await store.cell("c1").init()
        between = None
        if link == "redis":
            between = await stack.enter_async_context(proxy(Path(urlsplit(url).path), folder))
        world = World(between.url if between else url, store.cell("c1"), folder)
        if link == "rest":
            world.token = AgentToken(folder, HOSTS)
        made = Line(world, url, between)
        await made.mend()
        stack.push_async_callback(made._served.aclose)
        stack.push_async_callback(world.close)
        yield made


@pytest.fixture(params=["redis", "rest"])
async def line(request: pytest.FixtureRequest, clean_store: str, tmp_path: Path) -> AsyncIterator[Line]:
    async with line_to(clean_store, tmp_path, request.param) as made:
        yield made


async def test_an_agent_that_is_cut_off_stops_it_and_reports_afterwards(line: Line, shift: Shift) -> None:
    await line.start()
    await run_work(line.world)
    await line.cut()
    shift.pass_by()
    await wait_until(lambda: line.world.calls("stop") != [], timeout=30)
    claim = await line.world.claim("a")
    assert claim is not None
    assert claim.state is ACTIVE, "nobody could report it"
    await line.mend()
    await has_ended(line.world)
    assert len(line.world.calls("stop")) == 1


async def test_an_agent_that_starts_without_the_store_stops_it(line: Line, shift: Shift) -> None:
    """The journal has the deadline. Once connected, the agent runs the stop hook again, as after any crash."""
    agent = await line.start()
    await run_work(line.world)
    await line.world.stop(agent)
    await line.cut()
    starting = line.start_cut_off()
    shift.pass_by()
    await wait_until(lambda: line.world.calls("stop") != [], timeout=30)
    with pytest.raises(StoreUnavailable):
        await starting
    (held,) = await line.journaled()
    assert (held.state, held.record["end_reason"]) == (ClaimStatus.ENDING, "max-runtime")
    await line.mend()
    await line.start()
    await has_ended(line.world)


@pytest.fixture
def tries(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows whenever a starting agent tries to connect."""
    connect, counted = RUN._link, list[int]()

    def counting(*arguments: Any) -> Any:
        counted.append(1)
        return connect(*arguments)

    monkeypatch.setattr(RUN, "_link", counting)
    return counted


async def tries_again(starting: "asyncio.Task[asyncio.Task[None]]", tries: list[int]) -> None:
    """Wait until a starting agent has failed to connect twice more, and has not exited."""
    before = len(tries)
    await wait_until(lambda: starting.done() or len(tries) >= before + 3, timeout=30)
    assert not starting.done(), "it has work to stop in time"


async def test_an_agent_that_starts_while_its_api_hangs_stops_it(
    clean_store: str, tmp_path: Path, shift: Shift, tries: list[int]
) -> None:
    """The API's machine accepts connections, but nobody replies. Without such work the agent exits."""
    async with line_to(clean_store, tmp_path, "rest") as line:
        agent = await line.start()
        await run_work(line.world)
        await line.world.stop(agent)
        await line.cut()
        with socket.create_server(("127.0.0.1", line._port)):  # the system accepts
            starting = asyncio.create_task(line.world.start(hook=line.world.hook, reply_timeout_s=0.1))
            await tries_again(starting, tries)
            assert line.world.calls("stop") == []
            shift.pass_by()
            await wait_until(lambda: line.world.calls("stop") != [], timeout=30)
            with pytest.raises(OutcomeUnknown):
                await starting
        await line.mend()
        await line.start()
        await has_ended(line.world)


async def test_an_agent_that_starts_with_an_expired_token_stops_it(
    clean_store: str, tmp_path: Path, shift: Shift, tries: list[int]
) -> None:
    """Once it has stopped the work, it exits and says why."""
    async with line_to(clean_store, tmp_path, "rest") as line:
        token = line.world.token
        assert token is not None
        agent = await line.start()
        await run_work(line.world)
        await line.world.stop(agent)
        token.allow()
        token.watched.look()
        starting = line.start_cut_off()
        await tries_again(starting, tries)
        assert line.world.calls("stop") == []
        shift.pass_by()
        await wait_until(lambda: line.world.calls("stop") != [], timeout=30)
        with pytest.raises(Unauthenticated):
            await starting
        token.allow("agent")
        token.watched.look()
        await line.start()
        await has_ended(line.world)


@pytest.mark.parametrize("refusal", [Unauthenticated, Forbidden, NotFound])
async def test_an_agent_that_is_refused_at_the_start_stays_until_it_is_accepted(
    line: Line, shift: Shift, monkeypatch: pytest.MonkeyPatch, refusal: type[RedschedError]
) -> None:
    agent = await line.start()
    await run_work(line.world)
    await line.world.stop(agent)
    connect, refused = RUN._link, list[int]()

    @asynccontextmanager
    async def at_the_third_try(*arguments: Any) -> AsyncIterator[Any]:
        if len(refused) < 2:
            refused.append(1)
            raise refusal("refused by the test")
        async with connect(*arguments) as link:
            yield link

    monkeypatch.setattr(RUN, "_link", at_the_third_try)
    await line.start()
    assert len(refused) == 2
    shift.pass_by()
    await has_ended(line.world)


async def test_it_stays_until_then_and_connects_when_it_can(line: Line, shift: Shift, tries: list[int]) -> None:
    """An agent with such work does not exit when it cannot connect at the start."""
    agent = await line.start()
    await run_work(line.world)
    await line.world.stop(agent)
    await line.cut()
    starting = line.start_cut_off()
    await tries_again(starting, tries)
    assert line.world.calls("stop") == []
    await line.mend()
    await starting
    shift.pass_by()
    await has_ended(line.world)


async def test_without_such_work_an_agent_cannot_start_without_the_store(line: Line) -> None:
    agent = await line.start()
    await line.world.place("a")
    await line.world.reaches("a", ACTIVE)
    await line.world.stop(agent)
    await line.cut()
    with pytest.raises(StoreUnavailable):
        await line.start_cut_off()
