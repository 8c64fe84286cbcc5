"""One round: traffic, faults, healing, recovery; then rest, and a look at everything.

What is lost is counted here: a claim that was answered, that its owner has not given back, and that is not there.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

import redis

from tests.faults.suite import ends, traffic
from tests.faults.suite.child import ChildEnded
from tests.faults.suite.faults import BY_NAME
from tests.faults.suite.faults.base import Breakage
from tests.faults.suite.plan import Round
from tests.faults.suite.view import read_view
from tests.faults.suite.world import HOSTS, World

CALM_S = 30.0
"""How long traffic may take to come so far that the first fault is due."""

BETWEEN_S = 3.0
"""How long at most one fault is waited with because the one before holds traffic up."""

RECOVER_S = 90.0
AGREE_S = 90.0
"""How long at most: also on a slow machine. What agrees sooner is not waited for."""

AFTERWARDS = 60
"""Answers after the first selection, before traffic rests."""

LOOK_AGAIN_S = 0.1
MOST_SHOWN = 12


@dataclass(slots=True)
class Result:
    """What a round came to. Times are seconds from the end of its last fault, or from the rest of its traffic."""

    round: Round
    answers: int = 0
    first_s: float | None = None
    """Until a claim that was asked for afterwards was placed."""
    settled_s: float | None = None
    """Until every host had attested and was up, and the cell was settled."""
    agree_s: float | None = None
    """Until nothing was under way any more, and everything agreed."""
    lost: Counter[str] = field(default_factory=Counter)
    restored: int = 0
    epochs: int = 0
    instants: int = 0
    wrong: list[str] = field(default_factory=list)


async def play(world: World, round_: Round) -> Result:
    """Play one round. What went wrong is in the result; nothing is raised for it."""
    result = Result(round_)
    world.watcher.missed.clear()
    answers, epochs, instants = world.ledger.answers, len(world.watcher.epochs), world.watcher.instants
    try:
        faults = await _break(world, round_)
        await _recover(world, result)
        await world.rest()
        await _agree(world, result)
        _count_lost(world, result, frozenset().union(*(one.may_lose() for one in faults)))
        result.wrong += lost_shelved(world, any(one.loses_writes or "forgotten" in one.loses for one in faults))
        await world.site.tidy()
    except (TimeoutError, ChildEnded, AssertionError, redis.RedisError, OSError) as error:
        result.wrong.append(f"{type(error).__name__}: {error}")
    result.answers = world.ledger.answers - answers
    result.epochs = len(world.watcher.epochs) - epochs
    result.instants = world.watcher.instants - instants
    result.wrong += wrong_so_far(world)
    return result


async def _break(world: World, round_: Round) -> list[Breakage]:
    """Begin the faults one after the other, and heal each when its time is over."""
    world.play()
    faults, healing = list[Breakage](), list[asyncio.Task[None]]()
    for strike in round_.strikes:
        reached = await world.reaches(world.ledger.answers + strike.after, BETWEEN_S if faults else CALM_S)
        if not (reached or faults):
            raise TimeoutError(f"traffic does not go on: {world.ledger.words} {world.ledger.troubles}")
        if not faults:
            note_active(world)
        fault = BY_NAME[strike.fault](world, strike)
        await fault.start()
        faults.append(fault)
        healing.append(asyncio.create_task(_heal_later(fault)))
    await asyncio.gather(*healing)
    return faults


async def _heal_later(fault: Breakage) -> None:
    await asyncio.sleep(fault.strike.seconds)
    await fault.heal()


def note_active(world: World) -> None:
    """Note of which claims hosts have said that their work runs: whatever breaks from here on, they stay."""
    world.watcher.look()
    known = world.watcher.now.by_owner()
    for claim_id, one in world.ledger.owned.items():
        one.was_active = known.get(claim_id, {}).get("state") == "active"


async def _recover(world: World, result: Result) -> None:
    healed = time.monotonic()
    world.look_for_first()
    seen = world.watcher.instants + 1  # the one that may be under way is of before
    until = healed + RECOVER_S
    while time.monotonic() < until:
        if result.first_s is None and world.first_placed_at is not None:
            result.first_s = world.first_placed_at - healed
            answers = world.ledger.answers
        if result.settled_s is None and world.watcher.instants > seen and is_settled(world):
            result.settled_s = time.monotonic() - healed
        if result.first_s is not None and result.settled_s is not None:
            break
        await asyncio.sleep(0.02)
    else:
        result.wrong.append(f"not recovered within {RECOVER_S:g} s: {_shown(_unsettled(world))}")
        return
    await world.reaches(answers + AFTERWARDS, CALM_S)


def is_settled(world: World) -> bool:
    """Whether hosts and cell are as they should be, whatever claims are on their way."""
    return not any(_unsettled(world))


def _unsettled(world: World) -> Iterator[str]:
    return (problem for problem in ends.settled(world.watcher.now, HOSTS) if not problem.startswith("claim "))


async def _agree(world: World, result: Result) -> None:
    """Look at everything until nothing is wrong, or the time is over: then what is still wrong is wrong."""
    rested = time.monotonic()
    problems = await disagreements(world)
    while problems and time.monotonic() < rested + AGREE_S:
        await asyncio.sleep(LOOK_AGAIN_S)
        problems = await disagreements(world)
    result.agree_s = time.monotonic() - rested
    result.wrong += problems[:MOST_SHOWN]


async def disagreements(world: World) -> list[str]:
    """Everything that does not agree now, while traffic rests. The costly looks are left out where cheap ones tell."""
    with world.site.connect() as client:
        view = read_view(client)
    found = [*ends.settled(view, HOSTS), *ends.left_over(view), *ends.owners_agree(view, world.ledger)]
    found += ends.machines_agree(view, world.works)
    if found:
        return found
    world.watcher.look()
    found += ends.quota_agrees(view, world.site.ledger())
    found += ends.journals_agree(view, ends.read_journals([world.journal(one.name) for one in world.agents]))
    for one in world.schedulers:
        found += ends.picture_agrees(one.name, await one.ask("picture", "picture"), view)
    found += (await world.schedulers[0].ask("audit", "audit"))["problems"]
    return found


def _count_lost(world: World, result: Result, allowed: frozenset[str]) -> None:
    view = world.watcher.now
    known = view.by_owner()
    for claim_id, one in list(world.ledger.owned.items()):
        level = world.ledger.level(one.until)
        claim = known.get(claim_id)
        if claim is not None:
            if claim_id in world.watcher.missed:
                level.restored += 1
                result.restored += 1
            continue
        if claim_id in view.shelved and "expired" in allowed and not one.was_active:
            # What took its place again did not come up within its lease, and left it as it was.
            world.ledger.shelved[claim_id] = world.ledger.owned.pop(claim_id).owner
            continue
        why = view.ended.get(claim_id, "forgotten")
        level.lost[why] += 1
        result.lost[why] += 1
        del world.ledger.owned[claim_id]
        world.ledger.given[claim_id] = f"lost: {why}"
        if one.was_active or one.until == "active":
            result.wrong.append(f"claim {claim_id} was active on {one.host}, and is lost: {why}")
        elif why not in allowed and not _fell(claim_id, why, allowed):
            result.wrong.append(f"claim {claim_id} on {one.host} was answered as claimed, and is lost: {why}")


def _fell(claim_id: str, why: str, allowed: frozenset[str]) -> bool:
    """Whether it may have gone with another claim of its gang, whose lease ran out: the others are failed then."""
    return why == "failed" and "expired" in allowed and traffic.stands_with_others(claim_id)


def lost_shelved(world: World, is_allowed: bool) -> Iterator[str]:
    """What is wrong of claims that are shelved. Only the store knows of those: what loses writes may lose them.

    Or it loses the shelving, and their hosts have them still. So they are a level of their own.
    """
    view, level = world.watcher.now, world.ledger.level("shelved")
    known = view.by_owner()
    for claim_id in [*world.ledger.shelved]:
        if claim_id in view.shelved:
            continue
        why = "not shelved" if claim_id in known else view.ended.get(claim_id, "forgotten")
        if claim_id not in known:
            level.lost[why] += 1
            world.ledger.given[claim_id] = f"lost: {why}"
            del world.ledger.shelved[claim_id]
        if not is_allowed:
            yield f"claim {claim_id} was shelved, and is lost: {why}"


def wrong_so_far(world: World) -> list[str]:
    """What was seen to be wrong since this was asked last."""
    found: list[str] = []
    for seen in (world.watcher.broken, world.works.broken, world.ledger.defects, world.problems):
        found += seen
        seen.clear()
    return found


async def release_all(world: World) -> list[str]:
    """Let the owners give everything back; what is left of it then."""
    await asyncio.gather(*(one.ask("release", "released") for one in world.schedulers))
    until = time.monotonic() + AGREE_S
    left = ["nobody has looked yet"]
    while left and time.monotonic() < until:
        await asyncio.sleep(LOOK_AGAIN_S)
        world.watcher.look()
        journals = ends.read_journals([world.journal(one.name) for one in world.agents])
        left = [*ends.nothing_is_left(world.watcher.now, world.works, journals)]
        left += ends.quota_agrees(world.watcher.now, world.site.ledger())
    return [*left[:MOST_SHOWN], *wrong_so_far(world)]


def _shown(problems: Iterator[str]) -> str:
    return "; ".join(islice(problems, MOST_SHOWN))
