"""Agents under test, in this process or in one that can be killed, and hooks that record their calls."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import redis

from redsched.agent import host_session
from redsched.agent.claims import lifecycle
from redsched.agent.collectors.base import Collector
from redsched.agent.journal.schema import JournalEntry
from redsched.agent.rest import heartbeats
from redsched.agent.run import run
from redsched.aio import end
from redsched.model import (
    Candidate,
    Claim,
    ClaimStatus,
    EndReason,
    HostReport,
    Inventory,
    OnExit,
    Placement,
    Reason,
    Request,
)
from redsched.settings import Settings
from redsched.store.access.roles import StoreRole
from redsched.store.cell import CellStore
from redsched.store.codec.claim_fields import carried
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimCall, ClaimReply, Member, Replacement
from redsched.store.store import Store
from tests.support.builders.cells import usual_settings
from tests.support.processes.lone_agent import LoneAgent
from tests.support.processes.served_api import AgentToken, serving
from tests.support.store_users import url_as
from tests.support.waiting import patience_s, wait_until

LEASE_S = 30
"""The lease of hosts and claims here. It does not run out while this process is not scheduled for some seconds."""

H1 = HostReport("h1", {"VCPU": Inventory(8), "MEMORY_MB": Inventory(8192)}, lease_s=LEASE_S)
SHORT_LIVED = replace(H1, lease_s=2)
"""For tests that wait until the lease has run out while the agent lives. It is placed on with `place_soon`."""

TWO = {"VCPU": 2, "MEMORY_MB": 1024}

HOSTS = ["h1", "h2", "h3", *(f"sim-{number:05}" for number in range(1, 61))]
PROJECTS = ["", "web", "ops"]
"""What the agents' token is for."""

WEB = Request({"VCPU": 2}, consumer="web")
REQUEST, DIGEST = WEB.canonical(), WEB.digest()
"""The request that all claims here belong to, and its digest."""


def held_work(
    claim_id: str,
    token: str,
    amounts: Mapping[str, int] | None = None,
    resizing_to: Mapping[str, int] | None = None,
    placed: str = "",
    **changes: Any,
) -> JournalEntry:
    """Return a placement's journal entry. `changes`: fields of the entry, or else values of its record."""
    own = {name: changes.pop(name) for name in [*changes] if name in JournalEntry.__dataclass_fields__}
    own.setdefault("root", placed or token)
    work = JournalEntry(claim_id, placed or token, token, record=changes, **own)
    return work.with_amounts(amounts or {}, resizing_to or {}, work.before)


# Records its call, and runs the file named after the verb (shell code), if there is one.
HOOK = """#!/bin/sh
echo "$1 $REDSCHED_CLAIM_ID $REDSCHED_TOKEN" >> {folder}/calls
if [ -e {folder}/$1 ]; then . {folder}/$1; fi
"""


def quick(**changes: object) -> Settings:
    """Return settings for an agent that acts fast, and by default does not watch the work of its claims."""
    values: dict[str, object] = {
        "lease_s": LEASE_S,
        "collect_s": 0.05,
        "poll_s": 0.01,
        "compare_s": 0.5,
        "hook_timeout_s": 20,
        "work_watch_s": 3600,
    }
    return Settings.model_validate(values | changes)


@dataclass
class World:
    """A cell, and the agents that call it."""

    url: str
    cell: CellStore
    folder: Path
    api: str = ""
    """The URL of the API that agents use; '' if they use the store."""
    has_users: bool = False
    """Whether agents connect as users of their role. A server that restarts has forgotten them."""
    token: AgentToken | None = None
    """The token that agents send to the API."""
    _running: list[asyncio.Task[None]] = field(default_factory=list)

    async def start(
        self, hosts: Sequence[Collector | HostReport] = (H1,), journal: str = "journal.sqlite", **changes: object
    ) -> "asyncio.Task[None]":
        """Start an agent in this process, as a user for agents of its hosts, and wait until its hosts are open."""
        ready = asyncio.Event()
        url = self.url_of_agent([one.name for one in hosts])
        task = asyncio.create_task(run(quick(**self.link, **changes), url, hosts, self.folder / journal, ready))
        self._running.append(task)
        opened = asyncio.create_task(ready.wait())
        await asyncio.wait([task, opened], return_when=asyncio.FIRST_COMPLETED, timeout=patience_s(60))
        opened.cancel()
        if task.done():
            task.result()
        assert ready.is_set()
        return task

    def url_of_agent(self, hosts: Sequence[str]) -> str:
        """Return the URL that the agent of these hosts connects to."""
        return url_as(self.url, StoreRole.AGENT, hosts) if self.has_users else self.url

    @property
    def link(self) -> dict[str, object]:
        """The settings of agents that say what they connect to."""
        return {} if self.token is None else {"api": self.api, "token_file": str(self.token.path)}

    async def stop(self, task: "asyncio.Task[None]") -> None:
        """Stop an agent gracefully."""
        await end(task)

    def flush(self) -> None:
        """Remove everything from the store."""
        with redis.Redis.from_url(self.url, protocol=2) as client:
            client.flushall()

    async def close(self) -> None:
        for task in self._running:
            if not task.done():
                await self.stop(task)

    async def place(
        self,
        claim_id: str,
        amounts: Mapping[str, int] = TWO,
        host: str = "h1",
        lease_s: int = LEASE_S,
        group: str = "",
        request: str = "",
        digest: str = DIGEST,
        max_attempts: int = 1,
        on_exit: OnExit = OnExit.RELEASE,
        max_runtime_s: int = 0,
        outcome: Outcome | None = Outcome.OK,
    ) -> ClaimReply:
        """Claim amounts on a host, as a scheduler would. `outcome`: what the store has to answer; None: anything."""
        clock = await self.cell.tick()
        member = Member(claim_id, (Candidate(host, amounts),), group)
        answer = await self.cell.claims.place(
            ClaimCall(
                (member,),
                clock.epoch,
                clock.now_ms,
                clock.seq,
                digest,
                fresh=True,
                lease_ms=lease_s * 1000,
                request=request,
                carried=carried(max_attempts=max_attempts, on_exit=on_exit),
                max_runtime_s=max_runtime_s,
            )
        )
        assert outcome in (None, answer.outcome), f"{claim_id} on {host}: {answer}"
        return answer

    async def place_soon(self, claim_id: str) -> None:
        """Claim amounts on h1 as soon as it is up."""

        async def is_placed() -> bool:
            answer = await self.place(claim_id, outcome=None)
            return answer.outcome in (Outcome.OK, Outcome.ALREADY_DONE)

        await wait_until(is_placed, timeout=30, what=f"h1 is up and takes {claim_id}")

    async def move(
        self, claim_id: str, host: str, amounts: Mapping[str, int], source: Placement | None = None
    ) -> ClaimReply:
        """Place an active claim a second time beside its placement, as a scheduler does to move it."""
        claim = await self.claim(claim_id)
        assert claim is not None
        source = source or claim.placements[0]
        clock = await self.cell.tick()
        again = Replacement(source.host, source.token, EndReason.MOVED)
        member = Member(claim_id, (Candidate(host, amounts),), replacement=again)
        return await self.cell.claims.place(
            ClaimCall((member,), clock.epoch, clock.now_ms, clock.seq, DIGEST, fresh=False, lease_ms=30_000)
        )

    async def placements(self, claim_id: str) -> dict[str, str]:
        """Return the states of a claim's placements, by `placed`."""
        claim = await self.claim(claim_id)
        return {one.placed: one.state.value for one in claim.placements} if claim is not None else {}

    async def claim(self, claim_id: str) -> Claim | None:
        return (await self.cell.claims.read([claim_id])).get(claim_id)

    async def reason(self, claim_id: str) -> Reason | None:
        return (await self.cell.claims.reasons([claim_id])).get(claim_id)

    async def stop_failure(self, claim_id: str) -> Reason | None:
        return (await self.cell.claims.failures([claim_id]))[1].get(claim_id)

    async def reaches(self, claim_id: str, state: ClaimStatus) -> Claim:
        """Wait until a claim is in a state."""
        found: Claim | None = None

        async def is_there() -> bool:
            nonlocal found
            found = await self.claim(claim_id)
            return found is not None and found.state is state

        await wait_until(is_there, timeout=80, what=f"{claim_id} is {state}")
        assert found is not None
        return found

    async def host(self, name: str = "h1") -> Mapping[str, str]:
        """Return a host's fields."""
        return (await self.cell.hosts.read([name]))[0].fields

    async def lapse(self, name: str = "h1") -> None:
        """End the lease of a host whose agent is gone, without waiting for it."""

        async def is_down() -> bool:
            with redis.Redis.from_url(self.url, protocol=2) as client:
                client.hset(self.cell.keys.host(name), "alive_until_ms", 1)
                client.zadd(self.cell.keys.hosts, {name: 1})
            await self.sweep()
            return (await self.host(name))["alive"] == "0"

        await wait_until(is_down, what=f"{name} is down")

    async def sweep(self) -> None:
        """Do what schedulers do every second."""
        clock = await self.cell.tick()
        await self.cell.hosts.mark_down(await self.cell.hosts.lapsed(0, clock.now_ms, 0, 100))
        due = await self.cell.due.expired(clock.now_ms, 0, 100)
        due_claims = await self.cell.due.to_reconcile(clock.now_ms, 0, 100)
        await self.cell.claims.reconcile([*dict.fromkeys((*due, *due_claims))])

    # -- the hook

    @property
    def hook(self) -> str:
        path = self.folder / "hook.sh"
        if not path.exists():
            path.write_text(HOOK.format(folder=self.folder))
            path.chmod(0o755)
        return str(path)

    def calls(self, verb: str = "") -> list[str]:
        """Return the hook's calls in order, as `verb id token`."""
        path = self.folder / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if line.startswith(verb)]

    def on(self, verb: str, shell: str) -> None:
        """Make the hook run this for a verb from now on."""
        (self.folder / "new").write_text(shell)
        (self.folder / "new").rename(self.folder / verb)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have agents in this process renew their leases every 0.7 s, as with short ones: so they notice what has changed.

    Leases that are long all the same do not run out if the process is not scheduled for some seconds.
    """
    monkeypatch.setattr(host_session, "BEATS_IN_LEASE", 45)
    monkeypatch.setattr(lifecycle, "BEATS_IN_LEASE", 45)
    monkeypatch.setattr(heartbeats, "GATHERED_IN_LEASE", 300)


OVER_REST = {"test_claims_of_a_host.py", "test_local_work.py", "test_placements.py", "test_work_ended.py"}
"""Modules whose tests run over both links in a usual run. Together they use each command of the link over REST but
`raise_epoch`, whose route tests/api/test_agents.py has."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run tests of agents over the store, and over the REST API: some in a usual run, all in the long one."""
    chosen = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    if "world" in metafunc.fixturenames and "world" not in chosen:
        marks = () if metafunc.definition.path.name in OVER_REST else pytest.mark.long
        metafunc.parametrize("world", ["redis", pytest.param("rest", marks=marks)], indirect=True)


@pytest.fixture
async def world(request: pytest.FixtureRequest, clean_store: str, tmp_path: Path, often: None) -> AsyncIterator[World]:
    """Yield an empty cell, on each kind of server, whose agents use the store, or an API over it."""
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(Store.connect(clean_store, usual_settings()))
        cell = store.cell("c1")
        await cell.init()
        made = World(clean_store, cell, tmp_path, has_users=True)
        if request.param == "rest":
            made.token = AgentToken(tmp_path, HOSTS, PROJECTS)
            served = serving(api_settings(clean_store), made.token.authenticator)
            made.api = await stack.enter_async_context(served)
        stack.push_async_callback(made.close)
        yield made


def api_settings(url: str) -> Settings:
    """Return settings of an API whose scheduler leaves the cell alone: tests do what schedulers do every second."""
    return Settings(redis_url=url, poll_s=0.01, tick_s=3600, check_s=0, events_keep_s=0)


StartProcess = Callable[[World], Awaitable[LoneAgent]]


@pytest.fixture
def start_process() -> Iterator[StartProcess]:
    """Start an agent for h1 in a process of its own, with the world's hook, and wait until it is open."""
    started: list[LoneAgent] = []

    async def start(world: World) -> LoneAgent:
        settings, url = quick(hook=world.hook, **world.link), world.url_of_agent(["h1"])
        agent = LoneAgent(settings, url, H1, world.folder / "journal.sqlite")
        started.append(agent)
        await asyncio.to_thread(agent.wait_until_ready)  # this process serves the API
        return agent

    yield start
    for agent in started:
        agent.kill()
