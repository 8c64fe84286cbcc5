"""One round: traffic, faults, healing, recovery; then rest, and a check of everything."""

import asyncio
import re
import time
from collections import Counter
from collections.abc import Coroutine, Iterator, Sequence
from itertools import islice

from tests.faults.suite.checks import ends
from tests.faults.suite.checks.histories import with_histories
from tests.faults.suite.checks.losses import came_back, count_lost, lost_shelved, note_active
from tests.faults.suite.checks.promises import Excuses
from tests.faults.suite.checks.view import View, together
from tests.faults.suite.faults import BY_NAME
from tests.faults.suite.faults.base import Breakage
from tests.faults.suite.fleet import hosts_in
from tests.faults.suite.plan import Round
from tests.faults.suite.reporting.errors import told
from tests.faults.suite.reporting.reports import explained
from tests.faults.suite.reporting.result import Result
from tests.faults.suite.world import World

CALM_S = 30.0
"""How long the first fault waits for its answers. On a busy machine it may begin after fewer answers."""

BETWEEN_S = 3.0
"""Maximum wait before the next fault if the previous one holds up traffic."""

STEPS_S = 150.0
"""Maximum time to begin or heal one fault: longer than all waits of the fault itself."""

RECOVER_S = 90.0
AGREE_S = 150.0
"""Maximum time until everything agrees, for slow machines too: the longest reconciliation backoff fits in it twice.
The suite does not wait longer than necessary."""

AFTERWARDS = 60
"""Answers after the first selection, before traffic rests."""

LOOK_AGAIN_S = 0.1
_AGENT = re.compile(r"\b(agent-\d+)-host-")
MAX_SHOWN = 12


async def play(world: World, round_: Round) -> Result:
    """Play one round. Errors are in the result; none is raised."""
    result = Result(round_)
    world.watcher.missed.clear()
    world.watcher.gone.clear()
    answers, epochs = world.ledger.answers, len(world.watcher.epochs)
    acknowledged, over_committed = world.ledger.acknowledged, world.over_committed
    try:
        await _played(world, result)
    except Exception as error:  # whatever it is, it belongs to this round, and the plan continues without this world
        result.wrong.append(told(error))
    result.answers = world.ledger.answers - answers
    result.epochs = len(world.watcher.epochs) - epochs
    result.acknowledged = world.ledger.acknowledged - acknowledged
    result.over_committed = world.over_committed - over_committed
    result.wrong += wrong_so_far(world)
    explanations = [explained(one, world.ledger, world.watcher) for one in result.wrong]
    result.wrong = await with_histories(explanations, world.ledger, world.operator)
    return result


async def _played(world: World, result: Result) -> None:
    faults = await _break(world, result)
    await _recover(world, result)
    await world.rest()
    await _agree(world, result)
    count_lost(world, result, Excuses.of(faults))
    loses_writes = any(one.loses_writes or "forgotten" in one.loses for one in faults)
    result.wrong += [*lost_shelved(world, loses_writes), *came_back(world, loses_writes)]
    await world.site.tidy()


async def _break(world: World, result: Result) -> list[Breakage]:
    """Begin the faults one after the other, and heal each when its time is over, however the others end."""
    world.play()
    faults, healing = list[Breakage](), list[asyncio.Task[None]]()
    try:
        for strike in result.round.strikes:
            given = world.ledger.answers
            await world.reaches(given + strike.after, BETWEEN_S if faults else CALM_S)
            if world.ledger.answers == given and strike.after and not faults:
                raise TimeoutError(f"traffic does not go on: {world.ledger.words} {world.ledger.troubles}")
            if not faults:
                note_active(world)
                before = world.placings.by_cell.copy()
            fault = BY_NAME[strike.fault](world, strike)
            faults.append(fault)
            result.wrong += await failure(fault, "begun", fault.start())
            healing.append(asyncio.create_task(_heal_later(fault, result)))
    finally:
        await asyncio.gather(*healing)
    result.meanwhile = world.placings.by_cell - before
    return faults


async def _heal_later(fault: Breakage, result: Result) -> None:
    await asyncio.sleep(fault.strike.seconds)
    result.wrong += await failure(fault, "healed", fault.heal())


async def failure(fault: Breakage, what: str, steps: Coroutine[None, None, None]) -> list[str]:
    """Take a fault's steps; return the error that stopped them. Nothing is raised: the other faults must be healed."""
    try:
        async with asyncio.timeout(STEPS_S):
            await steps
    except Exception as error:
        return [f"{fault.strike.fault} could not be {what}: {told(error)}"]
    return []


async def _recover(world: World, result: Result) -> None:
    healed = time.monotonic()
    world.placings.look_for_first(world.ledger.asked)
    first = world.placings.first
    seen = world.watcher.instants.copy()
    until = healed + RECOVER_S
    while time.monotonic() < until:
        if result.first_s is None and first.keys() == set(world.site.cells):
            result.first_s = max(first.values()) - healed
            answers = world.ledger.answers
        if result.settled_s is None and _is_seen_since(world, seen) and is_settled(world):
            result.settled_s = time.monotonic() - healed
        if result.first_s is not None and result.settled_s is not None:
            break
        await asyncio.sleep(0.02)
    else:
        placed = f"placed again in {sorted(first)}; {_shown(_unsettled(world))}"
        result.wrong.append(f"not recovered within {RECOVER_S:g} s: {placed}")
        return
    await world.reaches(answers + AFTERWARDS, CALM_S)


def _is_seen_since(world: World, before: Counter[str]) -> bool:
    """Return whether each cell has placed a claim: the first one may have been in progress before."""
    return all(world.watcher.instants[cell] > before[cell] + 1 for cell in world.site.cells)


def is_settled(world: World) -> bool:
    """Return whether hosts and cells are as intended, regardless of claims in transition."""
    return not any(_unsettled(world))


def _unsettled(world: World) -> Iterator[str]:
    for cell in world.site.cells:
        problems = ends.settled(world.watcher.now.get(cell, View()), hosts_in(cell, world.site.cells))
        yield from (f"{cell}: {problem}" for problem in problems if not problem.startswith("claim "))


async def _agree(world: World, result: Result) -> None:
    """Check everything until nothing is wrong or the time is over, and return the errors that remain."""
    rested = time.monotonic()
    problems = await disagreements(world)
    while problems and time.monotonic() < rested + AGREE_S:
        await asyncio.sleep(LOOK_AGAIN_S)
        problems = await disagreements(world)
    result.agree_s = time.monotonic() - rested
    result.wrong += problems[:MAX_SHOWN]
    result.wrong += said_last(world, problems)


def said_last(world: World, problems: Sequence[str]) -> list[str]:
    """Return the last lines of the log of the first agent whose host a problem names, as an error; or nothing."""
    found = (name.group(1) for problem in problems if (name := _AGENT.search(problem)))
    agent = next((world.children[name] for name in found if name in world.children), None)
    if agent is None:
        return []
    state = "runs" if agent.runs else "does not run"
    return [f"{agent.name} {state}, and said last: {' | '.join(agent.log_tail(MAX_SHOWN).splitlines())}"]


async def disagreements(world: World) -> list[str]:
    """Return all disagreements while traffic rests. Expensive checks are skipped if cheap ones find errors."""
    look = {cell: view for part in world.site.parts for cell, view in world.site.read(part).items()}
    claims = together(look)
    found = [f"{cell}: {problem}" for cell, view in look.items() for problem in _unrest(world, cell, view)]
    found += [*ends.once(look), *ends.owners_agree(claims, world.ledger), *ends.machines_agree(claims, world.works)]
    if found:
        return found
    world.watcher.look()
    found += ends.quota_agrees(claims, world.site.quotas())
    found += ends.journals_agree(claims, ends.read_journals([world.journal(one.name) for one in world.agents]))
    for one in world.schedulers:
        replicas = (await one.ask("replicas", "replicas"))["cells"]
        for cell, view in look.items():
            found += ends.replica_agrees(f"{one.name} in {cell}", replicas[cell], view)
    found += (await world.schedulers[0].ask("audit", "audit"))["problems"]
    return found


def _unrest(world: World, cell: str, view: View) -> Iterator[str]:
    yield from ends.settled(view, hosts_in(cell, world.site.cells))
    yield from ends.left_over(view)


def wrong_so_far(world: World) -> list[str]:
    """Return the errors seen since the last call."""
    found: list[str] = []
    for seen in (world.watcher.broken, world.works.broken, world.ledger.defects, world.problems):
        found += seen
        seen.clear()
    return found


async def release_all(world: World) -> list[str]:
    """Let the owners release everything; return, as text, what then remains in the store and on the hosts."""
    await asyncio.gather(*(one.ask("release", "released") for one in world.schedulers))
    until = time.monotonic() + AGREE_S
    left = ["nobody has looked yet"]
    while left and time.monotonic() < until:
        await asyncio.sleep(LOOK_AGAIN_S)
        world.watcher.look()
        journals = ends.read_journals([world.journal(one.name) for one in world.agents])
        now = world.watcher.now
        left = [f"{cell}: {problem}" for cell, view in now.items() for problem in ends.nothing_is_left(view)]
        left += ends.nothing_runs(world.works, journals)
        left += ends.quota_agrees(together(now), world.site.quotas())
    return [*left[:MAX_SHOWN], *wrong_so_far(world)]


def _shown(problems: Iterator[str]) -> str:
    return "; ".join(islice(problems, MAX_SHOWN))
