"""Schedulers in processes of their own race for a quota over two cells: exactly what it allows is claimed.

And they are killed at any moment: what is left of them heals, and what is counted is what the cells hold.
"""

import asyncio
import multiprocessing
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import structlog

from redsched.errors import QuotaExceeded
from redsched.model import Quota, Request
from redsched.scheduler import Scheduler, UsageBy
from redsched.settings import Settings
from redsched.store import Store
from tests.support.cells import raw_client
from tests.support.hosts import PlainHost, speak_all
from tests.support.ledgers import settle_all
from tests.support.profiles import is_long
from tests.support.racers import Racer, Racers

ROUNDS = 40 if is_long() else 1
KILLS = 60 if is_long() else 3
CELLS = ("a", "b")
LIMIT = 20

pytestmark = pytest.mark.usefixtures("clean_store")


@dataclass(slots=True)
class Results:
    """What the requests of one process came to."""

    claimed: list[str] = field(default_factory=list)
    exceeded: list[int] = field(default_factory=list)
    """The `used` of each refusal."""
    errors: list[str] = field(default_factory=list)


async def ask(scheduler: Scheduler, request: Request, results: Results) -> None:
    try:
        found = await scheduler.select(request)
        results.claimed += [str(one.claim_id) for one in found.selections]
    except QuotaExceeded as refusal:
        results.exceeded.append(refusal.facts["exceeded"][0]["used"])
    except Exception as error:
        results.errors.append(repr(error))


async def many(racer: Racer, order: tuple[int, int]) -> Results:
    """So many requests at once, each for so many places of 1 VCPU."""
    requests, count = order
    results = Results()
    await racer.gate()
    asked = [Request({"VCPU": 1}, count=count, project="web") for _ in range(requests)]
    await asyncio.gather(*(ask(racer.scheduler, one, results) for one in asked))
    return results


async def twins(racer: Racer, ids: list[str]) -> Results:
    """The same ids as all others."""
    results = Results()
    await racer.gate()
    asked = [Request({"VCPU": 1}, project="web", claim_ids=(one,)) for one in ids]
    await asyncio.gather(*(ask(racer.scheduler, one, results) for one in asked))
    return results


async def churn(racer: Racer, turns: int) -> list[str]:
    """Claim and release in turn; every claim after a release must be within the quota."""
    errors: list[str] = []
    await racer.gate()
    for _ in range(turns):
        try:
            found = await racer.scheduler.select(Request({"VCPU": 2}, project="web"))
            await racer.scheduler.claims.release(str(found.selections[0].claim_id))
        except Exception as error:
            errors.append(repr(error))
    return errors


@asynccontextmanager
async def opened(url: str, quota: Quota) -> AsyncIterator[Scheduler]:
    """Two cells with room for far more than the quota."""
    settings = Settings(cells=CELLS)
    async with Store.connect(url, settings) as store:
        for name in CELLS:
            await store.cell(name).init()
            await speak_all([PlainHost(store.cell(name), f"{name}{number}", 32, 3600) for number in range(4)])
    async with Scheduler.connect(url, settings) as scheduler:
        await scheduler.quotas.put(quota)
        yield scheduler


async def assert_exact(scheduler: Scheduler, url: str, vcpu: int | None = None) -> int:
    """Once all leases of reservations have run out the ledger says what the cells hold; how much VCPU that is."""
    async with raw_client(url) as raw:
        await settle_all(scheduler, raw)
    rows = await scheduler.usage((UsageBy.CLASS,))
    held: dict[str, Any] = dict(rows[0].used) if rows else {}
    used = {name: amount for name, amount in (await scheduler.quotas.get("web")).used.items() if amount}
    assert used == held
    assert vcpu is None or held.get("VCPU", 0) == vcpu
    assert (await scheduler.audit()).problems == ()
    return int(held.get("VCPU", 0))


@pytest.mark.parametrize("round_", range(ROUNDS))
@pytest.mark.parametrize("count", [1, 3])
async def test_exactly_the_quota_is_claimed(url: str, race: Racers, round_: int, count: int) -> None:
    """Eight processes ask for more than it allows, in two cells: it is used up to the last place that fits."""
    async with opened(url, Quota("web", {"VCPU": LIMIT, "claims": 1000})) as scheduler:
        results = await race.play(many, url, (6, count), cells=CELLS)
        assert [error for one in results for error in one.errors] == []
        claimed = [claim_id for one in results for claim_id in one.claimed]
        assert len(set(claimed)) == len(claimed) == LIMIT - LIMIT % count
        assert sum(len(one.exceeded) for one in results) == len(race) * 6 - LIMIT // count
        assert {used for one in results for used in one.exceeded} <= set(range(LIMIT - count + 1, LIMIT + 1))
        await assert_exact(scheduler, url, LIMIT - LIMIT % count)


@pytest.mark.parametrize("round_", range(ROUNDS))
async def test_an_id_that_all_send_is_counted_once(url: str, race: Racers, round_: int) -> None:
    async with opened(url, Quota("web", {"claims": 5})) as scheduler:
        results = await race.play(twins, url, [f"id{number}" for number in range(8)], cells=CELLS)
        assert [error for one in results for error in one.errors] == []
        assert len({claim_id for one in results for claim_id in one.claimed}) == 5
        await assert_exact(scheduler, url, 5)


@pytest.mark.parametrize("round_", range(ROUNDS))
async def test_who_has_released_is_never_refused(url: str, race: Racers, round_: int) -> None:
    """Each of eight processes holds at most one claim of 2 VCPU, and the quota is for eight."""
    async with opened(url, Quota("web", {"VCPU": 2 * len(race), "claims": len(race)})) as scheduler:
        results = await race.play(churn, url, 40 if is_long() else 10, cells=CELLS)
        assert [error for one in results for error in one] == []
        await assert_exact(scheduler, url, 0)


def _claim_until_killed(url: str) -> None:
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())

    async def play() -> None:
        async with Scheduler.connect(url, Settings(cells=CELLS)) as scheduler:

            async def one(number: int) -> None:
                turns = random.Random(number)
                while True:
                    try:
                        request = Request({"VCPU": 1}, project="web", count=turns.randint(1, 2))
                        for place in (await scheduler.select(request)).selections[turns.randint(0, 1) :]:
                            await scheduler.claims.release(str(place.claim_id))
                    except QuotaExceeded:
                        for claim in (await scheduler.claims.list(project="web", limit=3)).items:
                            await scheduler.claims.release(claim.id)

            await asyncio.gather(*(one(number) for number in range(4)))

    asyncio.run(play())


async def test_whoever_is_killed_leaves_nothing_counted_that_is_not_there(url: str) -> None:
    """Between reserve, claim and hold, between end and free: wherever SIGKILL meets two schedulers at work."""
    # What is imported once is forked from: spawning anew costs more than all that a worker does before it is killed.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    async with opened(url, Quota("web", {"VCPU": LIMIT})) as scheduler:
        for _ in range(KILLS):
            workers = [context.Process(target=_claim_until_killed, args=(url,), daemon=True) for _ in range(2)]
            for worker in workers:
                worker.start()
            try:
                before = scheduler.stats().entries
                while scheduler.stats().entries < before + 200 + random.randrange(50):
                    await asyncio.wait_for(next(iter(scheduler._cells)).mirror.moved(), 60)
            finally:
                for worker in workers:
                    worker.kill()
                    worker.join()
            assert await assert_exact(scheduler, url) <= LIMIT
