"""All that runs: a store, four schedulers, five agents with ten hosts each, the machines, a watcher, an operator."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

from redsched.aio import end_all
from redsched.settings import Settings
from tests.faults.suite.child import Child, ChildEnded
from tests.faults.suite.fleet import CAPACITIES, agent_of, cell_of, hosts_of
from tests.faults.suite.ledger import Ledger
from tests.faults.suite.nursery import Nursery, nursery
from tests.faults.suite.operator import Operator, declare
from tests.faults.suite.placings import Placings
from tests.faults.suite.plan import children
from tests.faults.suite.site import Site
from tests.faults.suite.watcher import Watcher, watching
from tests.faults.suite.works import Works, machines

QUICK = {"poll_s": 0.05, "reply_timeout_s": 1.0, "resend_for_s": 3.0}
SCHEDULER = {
    **QUICK,
    "tick_s": 0.4,
    "catch_up_timeout_s": 3.0,
    "select_timeout_s": 4.0,
    "durability_timeout_s": 0.6,
}
AGENT = {**QUICK, "lease_s": 2, "compare_s": 2.0, "report_s": 10.0, "hook_timeout_s": 10.0}
"""Short leases, so that everything happens within seconds. Their proportions are those of the defaults."""

OPERATOR = {**SCHEDULER, "catch_up_timeout_s": 30.0}
"""Its connection is of the suite's own process, which has much else to do."""

REVIVE_S = 0.3


class World:
    """What rounds are played on."""

    def __init__(self, site: Site, seed: int, durability: str, folder: Path, watcher: Watcher) -> None:
        self.site = site
        self.seed = seed
        self.durability = durability
        self.folder = folder
        self.watcher = watcher
        self.ledger = Ledger()
        settings = Settings.model_validate({**OPERATOR, "cells": site.cells})
        self.operator = Operator(site.direct_url, settings, self.ledger, lambda: self.watcher.now)
        self.works = Works(lambda _: CAPACITIES, Random(f"{seed} works"))
        self.children: dict[str, Child] = {}
        self.clock_shift_s: dict[str, float] = {}
        self.disk_is_full: dict[str, set[object]] = {}
        """By agent, the faults that have filled its disk: there is room again once none is left."""
        self.begun_full: set[str] = set()
        """Agents whose present process was begun on a full disk: it ends by that, also after there is room again."""
        self.open_agents: set[str] = set()
        self.kept_away: dict[str, set[object]] = {}
        """By process, the faults that keep it from being begun anew for now."""
        self.problems: list[str] = []
        """What went wrong outside every check: a process that ended by itself."""
        self.hook_looks: list[Any] = []
        self.placings = Placings()
        self._is_playing = False
        self._is_closing = False
        self._hook = ""
        self._reviving: set[asyncio.Task[None]] = set()

    # -- who there is

    @property
    def schedulers(self) -> list[Child]:
        """The scheduler processes."""
        return [self.children[name] for name in children("scheduler")]

    @property
    def agents(self) -> list[Child]:
        """The agent processes."""
        return [self.children[name] for name in children("agent")]

    @property
    def over_committed(self) -> int:
        """Return at how many instants anything had come to hold more than it has."""
        return self.watcher.over_committed + self.works.over_committed

    def cell_of(self, host: str) -> str:
        """The cell of a host."""
        return cell_of(agent_of(host), self.site.cells)

    def journal(self, agent: str) -> Path:
        """The journal of an agent."""
        return self.folder / agent / "journal.sqlite"

    # -- traffic

    def play(self) -> None:
        """Let traffic begin, or go on."""
        self._is_playing = True
        for one in self.schedulers:
            one.tell("play")

    async def rest(self) -> None:
        """Let traffic end, and wait until each request under way has its answer. Raises TimeoutError."""
        self._is_playing = False
        await asyncio.gather(*(self._rests(one) for one in self.schedulers))

    async def _rests(self, one: Child) -> None:
        """A process that is killed before it rests is begun anew, and rests then."""
        for _ in range(5):
            with suppress(ChildEnded):
                await one.ask("rest", "resting")
                return
            await self.revived(one)
        raise TimeoutError(f"{one.name} does not come to rest")

    async def revived(self, one: Child) -> None:
        """Wait until a process runs and is ready."""
        if not one.runs:
            await one.ended()
        await asyncio.gather(*self._reviving, return_exceptions=True)

    async def reaches(self, answers: int, within_s: float) -> bool:
        """Wait until so many answers have been given, or the time is over; whether they have."""
        until = time.monotonic() + within_s
        while self.ledger.answers < answers and time.monotonic() < until:  # noqa: ASYNC110 - a count, and a time
            await asyncio.sleep(0.01)
        return self.ledger.answers >= answers

    # -- processes

    async def begin(self, hook: str, forking: Nursery) -> None:
        """Start all processes."""
        self._hook = hook
        for name in children("any"):
            (self.folder / name).mkdir()
            kind = name.partition("-")[0]
            self.children[name] = Child(
                name,
                forking,
                f"tests.faults.suite.{kind}_process",
                lambda name=name: self._words(name),  # type: ignore[misc]
                lambda said, words, name=name: self._hear(name, said, words),  # type: ignore[misc]
                self.folder / name / "log",
            )
        for some in (self.agents, self.schedulers):
            await asyncio.gather(*(one.begin() for one in some))
            await asyncio.gather(*(one.ready() for one in some))

    async def end(self) -> None:
        """End all processes."""
        self._is_closing = True
        await end_all([*self._reviving])
        for one in self.children.values():
            one.kill()
        await asyncio.gather(*(one.ended() for one in self.children.values()))

    def _words(self, name: str) -> dict[str, Any]:
        way = {"url": self.site.url(name), "ways": self.site.ways(name)}
        common = {"name": name, **way, "clock_shift_s": self.clock_shift_s.get(name, 0)}
        if name.startswith("agent"):
            is_full = bool(self.disk_is_full.get(name))
            self.begun_full = (self.begun_full | {name}) if is_full else (self.begun_full - {name})
            return common | {
                "settings": {**AGENT, "cells": (cell_of(name, self.site.cells),), "hook": self._hook},
                "hosts": hosts_of(name),
                "journal": str(self.journal(name)),
                "disk_is_full": is_full,
            }
        own = _owner(name)
        settings = {**SCHEDULER, "cells": self.site.cells, "durability": self.durability}
        return common | {"name": own, "seed": self.seed, "settings": settings, **self.ledger.left_by(own)}

    def _hear(self, name: str, said: str, words: Mapping[str, Any]) -> None:
        if said == "gone":
            self.open_agents.discard(name)
            if name.startswith("scheduler"):
                self.ledger.silence(_owner(name))
            if not self._is_closing:
                task = asyncio.create_task(self._revive(name))
                self._reviving.add(task)
                task.add_done_callback(self._reviving.discard)
        elif name.startswith("scheduler"):
            if said == "placed":
                self.placings.note(tuple(words["asked"]), self.cell_of(words["hosts"][0]))
            self.ledger.hear(_owner(name), said, words)
        elif said == "ended" and not self._may_end(name, words["problem"]):
            self.problems.append(f"{name} ended: {words}")
        elif said == "ready":
            self.open_agents.add(name)
        elif said == "defect":
            self.problems.append(f"{name}: {words}")

    def _may_end(self, agent: str, problem: str) -> bool:
        """Whether an agent may end by itself: where its disk is full, or where the store is away as it starts."""
        has_begun = agent in self.open_agents
        is_full = bool(self.disk_is_full.get(agent)) or agent in self.begun_full
        return (is_full and problem == "journal-broken") or (not has_begun and problem == "store-unavailable")

    async def _revive(self, name: str) -> None:
        """Begin a process anew, as whatever looks after services would."""
        await asyncio.sleep(REVIVE_S)
        while self.kept_away.get(name):  # noqa: ASYNC110 - faults put in and take out
            await asyncio.sleep(REVIVE_S)
        child = self.children[name]
        # What it said as it died is heard by now: this is called at the end of that.
        while not self._is_closing:
            await child.begin()
            try:
                await child.ready()
            except ChildEnded:
                return  # `gone` has been heard again
            except TimeoutError:
                child.kill()  # and then it is heard
                return
            if self._is_playing and name.startswith("scheduler"):
                child.tell("play")
            return


def _owner(scheduler: str) -> str:
    """How the owner of a scheduler process is called: `s0` of `scheduler-0`."""
    return f"s{scheduler.partition('-')[2]}"


@asynccontextmanager
async def world(site: Site, seed: int, durability: str = "none") -> AsyncIterator[World]:
    """A world at work, with nothing broken; ended with all its processes."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="redsched-faults-")))
        await site.prepare()
        it = World(site, seed, durability, folder, stack.enter_context(watching(site.read, site.parts)))
        hook = await stack.enter_async_context(machines(it.works))
        it.works.watch = lambda what, host: [look(what, agent_of(host)) for look in [*it.hook_looks]]  # type: ignore[assignment]
        forking = await stack.enter_async_context(nursery())
        stack.push_async_callback(it.end)
        await it.begin(hook, forking)
        await it.operator.says(declare)
        operator = asyncio.create_task(it.operator.work())
        stack.push_async_callback(end_all, [operator])
        yield it
