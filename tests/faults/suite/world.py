"""All that runs: a store, four schedulers, five agents with ten hosts each, the machines, a watcher, an operator."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from redsched.aio import end_all
from redsched.settings import Settings
from tests.faults.suite.callers.operator import Operator, declare
from tests.faults.suite.callers.placings import Placings
from tests.faults.suite.checks.ledger import Ledger
from tests.faults.suite.checks.watcher import Watcher, watching
from tests.faults.suite.fleet import CAPACITIES, agent_of, cell_of, hosts_of
from tests.faults.suite.plan import children
from tests.faults.suite.processes.child import Child, ChildEnded
from tests.faults.suite.processes.nursery import Nursery, nursery
from tests.faults.suite.stores.site import Site
from tests.faults.suite.works import Works, machines
from tests.support.store_clock import settable

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
"""The timeout of the operator's connection, which is in the suite's busy process."""

REVIVE_S = 0.3


@cache
def settings_of_operator(cells: tuple[str, ...]) -> Settings:
    """Return the settings of the operator's connection, read once: that takes longer than playing two faults."""
    return Settings.model_validate({**OPERATOR, "cells": cells})


class World:
    """The world in which rounds are played."""

    def __init__(self, site: Site, seed: int, durability: str, folder: Path, watcher: Watcher) -> None:
        self.site = site
        self.seed = seed
        self.durability = durability
        self.folder = folder
        self.watcher = watcher
        self.ledger = Ledger()
        self.operator = Operator(
            site.direct_url, settings_of_operator(site.cells), self.ledger, lambda: self.watcher.now
        )
        self.works = Works(lambda _: CAPACITIES, Random(f"{seed} works"))
        self.children: dict[str, Child] = {}
        self.clock_shift_s: dict[str, float] = {}
        self.disk_is_full: dict[str, set[object]] = {}
        """The faults that have filled an agent's disk, by agent: the disk has room again once none is left."""
        self.begun_full: set[str] = set()
        """Agents whose present process started on a full disk. It ends because of that, even if there is room again."""
        self.rezoned: dict[str, set[object]] = {}
        """The faults that have moved an agent's hosts to other zones, by agent."""
        self.renamed: dict[str, set[object]] = {}
        """The faults that have given an agent's hosts other names, by agent."""
        self.begun_renamed: set[str] = set()
        """Agents whose present process started with other names: it must end by itself."""
        self.lost_gpus: dict[str, set[object]] = {}
        """The faults that have taken the first GPUs of an agent's machines away, by agent."""
        self.open_agents: set[str] = set()
        self.kept_away: dict[str, set[object]] = {}
        """The faults that prevent a process from being restarted, by process."""
        self.problems: list[str] = []
        """Errors outside every check: a process that ended by itself."""
        self.hook_looks: list[Any] = []
        self.placings = Placings()
        self._is_playing = False
        self._is_closing = False
        self._hook = ""
        self._reviving: set[asyncio.Task[None]] = set()

    # -- membership

    @property
    def schedulers(self) -> list[Child]:
        """Return the scheduler processes."""
        return [self.children[name] for name in children("scheduler")]

    @property
    def agents(self) -> list[Child]:
        """Return the agent processes."""
        return [self.children[name] for name in children("agent")]

    @property
    def over_committed(self) -> int:
        """Return the number of instants at which something had come to hold more than it has."""
        return self.watcher.over_committed + self.works.over_committed

    def cell_of(self, host: str) -> str:
        """Return the cell of a host."""
        return cell_of(agent_of(host), self.site.cells)

    def journal(self, agent: str) -> Path:
        """Return the journal of an agent."""
        return self.folder / agent / "journal.sqlite"

    # -- traffic

    def play(self) -> None:
        """Start or resume traffic."""
        self._is_playing = True
        for one in self.schedulers:
            one.tell("play")

    async def rest(self) -> None:
        """Stop traffic, and wait until each request in progress has its answer. Raises TimeoutError."""
        self._is_playing = False
        await asyncio.gather(*(self._rests(one) for one in self.schedulers))

    async def _rests(self, one: Child) -> None:
        """Stop the traffic of one process. If it is killed before that, it is restarted, and stops then."""
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
        """Wait until there are this many answers or the time is over; return whether there are."""
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
                f"tests.faults.suite.processes.{kind}_process",
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
            is_renamed = bool(self.renamed.get(name))
            self.begun_renamed = (self.begun_renamed | {name}) if is_renamed else (self.begun_renamed - {name})
            return common | {
                "settings": {**AGENT, "cells": (cell_of(name, self.site.cells),), "hook": self._hook},
                "hosts": [f"{host}-renamed" if is_renamed else host for host in hosts_of(name)],
                "zones_on": len(self.rezoned.get(name, ())),
                "journal": str(self.journal(name)),
                "disk_is_full": is_full,
                "lost_gpus": int(bool(self.lost_gpus.get(name))),
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
            if name in self.begun_renamed:
                self.problems.append(f"{name} has started under other names, and its journal has claims of its hosts")
        elif said == "defect":
            self.problems.append(f"{name}: {words}")

    def _may_end(self, agent: str, problem: str) -> bool:
        """Return whether an agent may end by itself: its disk is full, the store is away, or its hosts were renamed."""
        has_begun = agent in self.open_agents
        if problem == "invalid-request":
            return agent in self.begun_renamed
        is_full = bool(self.disk_is_full.get(agent)) or agent in self.begun_full
        return (is_full and problem == "journal-broken") or (
            not has_begun and problem in ("store-unavailable", "store-full")
        )

    async def _revive(self, name: str) -> None:
        """Restart a process, as a service manager would."""
        await asyncio.sleep(REVIVE_S)
        while self.kept_away.get(name):  # noqa: ASYNC110 - faults put in and take out
            await asyncio.sleep(REVIVE_S)
        child = self.children[name]
        # The last messages of the former process have been received: this is called after them.
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
    """Return the owner's name of a scheduler process: `s0` of `scheduler-0`."""
    return f"s{scheduler.partition('-')[2]}"


@asynccontextmanager
async def world(site: Site, seed: int, durability: str = "none") -> AsyncIterator[World]:
    """Yield a running world without faults; end it with all its processes."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="redsched-faults-")))
        stack.enter_context(settable())
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
