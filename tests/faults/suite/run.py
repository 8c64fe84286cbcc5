"""A run: rounds by a seed's plan, on the worlds of their set-ups, until the time or the plan is over."""

import time
from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from tests.faults.suite.checks.ledger import Levels
from tests.faults.suite.faults import ALL
from tests.faults.suite.plan import CELLS, SETUPS, Round, Shape, rounds
from tests.faults.suite.processes.leftovers import end_left_over, marked
from tests.faults.suite.reporting.errors import told
from tests.faults.suite.reporting.reports import explained
from tests.faults.suite.reporting.result import Result
from tests.faults.suite.reporting.tables import levels_table, recovery_table, rounds_table
from tests.faults.suite.reporting.telling import Telling
from tests.faults.suite.rounds import play, release_all
from tests.faults.suite.stores.sites import SITES
from tests.faults.suite.world import World, world

RELEASE_EVERY = 5
"""After this many rounds everything is released, to check that nothing is left."""

MAX_FAILED_STARTS = 3
"""Failed set-ups in a row after which the run gives up: this machine cannot play them."""


@dataclass(slots=True)
class Run:
    """The result of a run."""

    seed: int
    results: list[Result] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    levels: dict[str, Levels] = field(default_factory=dict)
    over_committed: int = 0

    def tables(self, command: str = "") -> str:
        """Return all tables; `command` is the command line that the last of them shows."""
        levels = levels_table(command, self.results, self.levels, self.over_committed)
        return "\n\n".join((rounds_table(self.results), recovery_table(self.results), levels))


def shapes(only: str = "") -> list[Shape]:
    """Return the shapes of the faults whose name contains a string. Raises ValueError if there is none."""
    found = [one.shape for one in ALL if only in one.shape.name]
    if not found:
        raise ValueError(f"no fault is called like {only!r}: {', '.join(one.shape.name for one in ALL)}")
    return found


async def run(
    seed: int,
    planned: Iterator[Round],
    until_s: float,
    telling: Telling,
    durability: str = "none",
    cells: Sequence[str] = CELLS,
) -> Run:
    """Play planned rounds until there are none left, or until a monotonic time. Errors of rounds are not raised."""
    playing = _Playing(Run(seed), telling, durability, cells)
    with marked() as mark:
        try:
            for round_ in planned:
                if time.monotonic() > until_s and playing.has_begun:
                    break
                if not await playing.has_world(round_.setup):
                    break
                await playing.play(round_)
        finally:
            await playing.finish()
            playing.note(end_left_over(mark))
    return playing.done


class _Playing:
    """The worlds of a run, one after the other. Errors of one are reported, and the next world is a new one."""

    def __init__(self, done: Run, telling: Telling, durability: str, cells: Sequence[str]) -> None:
        self.done = done
        self.has_begun = False
        self._telling = telling
        self._durability = durability
        self._cells = cells
        self._setup = ""
        self._world: World | None = None
        self._stack = AsyncExitStack()

    async def has_world(self, setup: str) -> bool:
        """Start a world of that set-up. Return False if several attempts fail."""
        if self._world is not None and setup != self._setup:
            await self.finish()
        for _ in range(MAX_FAILED_STARTS):
            if self._world is not None:
                break
            await self._start(setup)
        return self._world is not None

    async def play(self, round_: Round) -> None:
        """Play a round, and release everything at intervals."""
        assert self._world is not None
        self.has_begun = True
        self._telling.begins(round_)
        result = await play(self._world, round_)
        self.done.results.append(result)
        self.done.wrong += result.wrong
        self._telling.ended(result)
        if result.wrong:
            # Leftovers of this world must not affect later rounds.
            await self._end()
        elif len(self.done.results) % RELEASE_EVERY == 0 and not await self._is_released():
            await self._end()

    async def finish(self) -> None:
        """Release everything, check that nothing is left, and end the world, if there is one."""
        if self._world is not None:
            await self._is_released()
            await self._end()

    def note(self, problems: Sequence[str]) -> None:
        """Record and report errors that belong to no round."""
        self.done.wrong += problems
        for problem in problems:
            self._telling.wrong(problem)

    async def _is_released(self) -> bool:
        it = self._world
        assert it is not None
        try:
            left = await release_all(it)
        except Exception as error:
            left = [f"not all could be given back: {told(error)}"]
        self.note([explained(one, it.ledger, it.watcher) for one in left])
        return not left

    async def _start(self, setup: str) -> None:
        try:
            site = await self._stack.enter_async_context(SITES[setup](self._durability, self._cells))
            self._world = await self._stack.enter_async_context(world(site, self.done.seed, self._durability))
            self._setup = setup
        except Exception as error:
            self.note([f"the set-up {setup} could not be started: {told(error)}"])
            await self._end()

    async def _end(self) -> None:
        """Record the answers of the world's owners, and end it."""
        it, self._world = self._world, None
        if it is not None:
            self.done.over_committed += it.over_committed
            for until, level in it.ledger.levels.items():
                self.done.levels.setdefault(until, Levels()).add(level)
        try:
            await self._stack.aclose()
        except Exception as error:
            self.note([f"the set-up could not be ended: {told(error)}"])
        self._stack = AsyncExitStack()


def planned(
    seed: int,
    only: str = "",
    setups: Sequence[str] = SETUPS,
    alone: bool = True,
    together: bool = True,
    cells: Sequence[str] = CELLS,
) -> Iterator[Round]:
    """Return the rounds of a seed, of all faults or those whose name contains a string. Raises ValueError for none."""
    return rounds(seed, shapes(only), setups, alone, together, cells)
