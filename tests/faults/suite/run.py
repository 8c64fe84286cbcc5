"""A run: rounds by a seed's plan, on the worlds of their set-ups, until the time or the plan is over."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from tests.faults.suite.faults import ALL
from tests.faults.suite.ledger import Levels
from tests.faults.suite.plan import CELLS, SETUPS, Round, Shape, rounds
from tests.faults.suite.result import Result
from tests.faults.suite.rounds import play, release_all
from tests.faults.suite.sites import SITES
from tests.faults.suite.tables import levels_table, recovery_table, rounds_table
from tests.faults.suite.world import World, world

RELEASE_EVERY = 5
"""After so many rounds everything is given back, to see that nothing is left of it."""

Say = Callable[[str], None]


@dataclass(slots=True)
class Run:
    """What a run came to."""

    seed: int
    durability: str = "none"
    results: list[Result] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    levels: dict[str, Levels] = field(default_factory=dict)
    over_committed: int = 0

    def tables(self) -> str:
        """All tables."""
        parts = (rounds_table(self.results), recovery_table(self.results))
        return "\n\n".join((*parts, levels_table(self.durability, self.levels, self.over_committed)))


def shapes(only: str = "") -> list[Shape]:
    """The shapes of the faults whose name contains a word. Raises ValueError where none does."""
    found = [one.shape for one in ALL if only in one.shape.name]
    if not found:
        raise ValueError(f"no fault is called like {only!r}: {', '.join(one.shape.name for one in ALL)}")
    return found


async def run(
    seed: int,
    planned: Iterator[Round],
    until_s: float,
    say: Say,
    durability: str = "none",
    cells: Sequence[str] = CELLS,
) -> Run:
    """Play planned rounds until there are none, or until the monotonic clock says so."""
    done = Run(seed, durability)
    async with AsyncExitStack() as stack:
        setup, it = "", None
        for round_ in planned:
            if time.monotonic() > until_s and it is not None:
                break
            if round_.setup != setup or it is None:
                await _finish(done, it, say)
                await stack.aclose()
                setup = round_.setup
                site = await stack.enter_async_context(SITES[setup](durability, cells))
                it = await stack.enter_async_context(world(site, seed, durability))
            say(str(round_))
            result = await play(it, round_)
            done.results.append(result)
            _say_wrong(say, result.wrong)
            if result.wrong:
                # What comes after it must not be judged by what it left.
                _enter(done, it)
                await stack.aclose()
                it = None
            elif len(done.results) % RELEASE_EVERY == 0:
                done.wrong += await release_all(it)
        await _finish(done, it, say)
    done.wrong += [problem for one in done.results for problem in one.wrong]
    return done


async def _finish(done: Run, it: World | None, say: Say) -> None:
    """Give everything back, and look whether anything is left."""
    if it is None:
        return
    left = await release_all(it)
    _say_wrong(say, left)
    done.wrong += left
    _enter(done, it)


def _enter(done: Run, it: World) -> None:
    """Add what the owners of a world were told to that of the others."""
    done.over_committed += it.watcher.over_committed + it.works.over_committed
    for until, level in it.ledger.levels.items():
        total = done.levels.setdefault(until, Levels())
        total.acknowledged += level.acknowledged
        total.lost += level.lost
        total.restored += level.restored


def _say_wrong(say: Say, wrong: list[str]) -> None:
    for problem in wrong:
        say(f"  WRONG: {problem}")


def planned(
    seed: int,
    only: str = "",
    setups: Sequence[str] = SETUPS,
    alone: bool = True,
    together: bool = True,
    cells: Sequence[str] = CELLS,
) -> Iterator[Round]:
    """The rounds of a seed, of all faults or those whose name contains a word. Raises ValueError where none does."""
    return rounds(seed, shapes(only), setups, alone, together, cells)
