"""Schedulers in separate processes race for a quota, over one cell and over three: exactly the quota is claimed.

Some tests kill schedulers at any moment; afterwards the usage equals the claims of the cells.
"""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from random import Random
from typing import Any

import pytest
import structlog
import uvloop

from redsched.errors import QuotaExceeded
from redsched.model import Quota, Request
from redsched.model.filters import UsageBy
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.codec.keys import Keys
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimCall, ClaimReply
from redsched.store.commands.claims import ClaimCommands
from redsched.store.commands.quotas import QuotaCommands, QuotaState, Transfer
from redsched.store.store import Store
from tests.support.builders.cells import PATIENT, raw_client
from tests.support.fleets.hosts import PlainHost, speak_all
from tests.support.processes.forks import FORKS
from tests.support.processes.racers import Racer, Racers
from tests.support.profiles import is_long
from tests.support.waiting import wait_until

ROUNDS = 5 if is_long() else 1
KILLS = 10 if is_long() else 2
LIMIT = 20

THREE = ("a", "b", "c")

pytestmark = pytest.mark.usefixtures("clean_store")
over_one_and_three = pytest.mark.parametrize("cells", [("a",), THREE], ids=["one cell", "three cells"])


@dataclass(slots=True)
class Results:
    """The results of one process's requests."""

    claimed: list[str] = field(default_factory=list)
    exceeded: list[int] = field(default_factory=list)
    """The `used` of each refusal."""
    errors: list[str] = field(default_factory=list)


async def ask(scheduler: Scheduler, request: Request, results: Results) -> None:
    try:
        found = await scheduler.select(request)
        results.claimed += [str(one.claim_id) for one in found.selections]
    except QuotaExceeded as refusal:
        results.exceeded.append(refusal.facts.exceeded[0].used)
    except Exception as error:
        results.errors.append(repr(error))


async def many(racer: Racer, order: tuple[int, int]) -> Results:
    """Send `order[0]` concurrent requests, each for `order[1]` places of 1 VCPU."""
    requests, count = order
    results = Results()
    await racer.gate()
    asked = [Request({"VCPU": 1}, count=count, project="web") for _ in range(requests)]
    await asyncio.gather(*(ask(racer.scheduler, one, results) for one in asked))
    return results


async def twins(racer: Racer, ids: list[str]) -> Results:
    """Request claims with these ids, which all other processes request too."""
    results = Results()
    await racer.gate()
    asked = [Request({"VCPU": 1}, project="web", claim_ids=(one,)) for one in ids]
    await asyncio.gather(*(ask(racer.scheduler, one, results) for one in asked))
    return results


async def churn(racer: Racer, turns: int) -> list[str]:
    """Claim and release in turn; return the errors. A claim after a release must be within the quota."""
    errors: list[str] = []
    await racer.gate()
    for _ in range(turns):
        try:
            found = await racer.scheduler.select(Request({"VCPU": 2}, project="web"))
            await racer.scheduler.claims.release(str(found.selections[0].claim_id))
        except Exception as error:
            errors.append(repr(error))
    return errors


def hosts_of(cell: str) -> frozenset[str]:
    return frozenset(f"{cell}{number}" for number in range(4))


@asynccontextmanager
async def opened(url: str, cells: tuple[str, ...], quota: Quota) -> AsyncIterator[Scheduler]:
    """Yield a scheduler over cells with room for far more than the quota."""
    settings = Settings.model_validate({**PATIENT, "cells": cells})
    async with Store.connect(url, settings) as store:
        for name in cells:
            await store.cell(name).init()
            await speak_all([PlainHost(store.cell(name), host, 32, 3600) for host in sorted(hosts_of(name))])
    async with Scheduler.connect(url, settings) as scheduler:
        await scheduler.quotas.put(quota)
        yield scheduler


async def assert_exact(scheduler: Scheduler, vcpu: int | None = None) -> int:
    """Check that the quota's usage equals the claims of the cells; return the VCPU used.

    What a killed process has sent last may arrive between the two reads, so these are repeated.
    """
    held, used = dict[str, Any](), dict[str, Any]()

    async def are_equal() -> bool:
        nonlocal held, used
        rows = await scheduler.usage((UsageBy.CLASS,))
        held = dict(rows[0].used) if rows else {}
        used = {name: amount for name, amount in (await scheduler.quotas.get("web")).used.items() if amount}
        return used == held

    await wait_until(are_equal, what="the quota's usage is what the claims hold")
    assert vcpu is None or held.get("VCPU", 0) == vcpu
    assert (await scheduler.audit()).problems == ()
    return int(held.get("VCPU", 0))


async def all_shares(scheduler: Scheduler) -> int:
    """Return the sum of the cells' shares; amounts in transfer count for neither side."""
    states = (await scheduler._enforcement.shares.read("web")).values()
    return sum(one.share["VCPU"] for one in states)


@over_one_and_three
@pytest.mark.parametrize("round_", range(ROUNDS))
@pytest.mark.parametrize("count", [1, 3])
async def test_exactly_the_quota_is_claimed(
    url: str, race: Racers, cells: tuple[str, ...], round_: int, count: int
) -> None:
    """Eight processes request more than the quota allows: as many requests succeed as fit in it."""
    async with opened(url, cells, Quota("web", {"VCPU": LIMIT, "claims": 1000})) as scheduler:
        results = await race.play(many, url, (6, count), cells=cells)
        assert [error for one in results for error in one.errors] == []
        claimed = [claim_id for one in results for claim_id in one.claimed]
        assert len(set(claimed)) == len(claimed) == LIMIT - LIMIT % count
        assert sum(len(one.exceeded) for one in results) == len(race) * 6 - LIMIT // count
        assert {used for one in results for used in one.exceeded} <= set(range(LIMIT - count + 1, LIMIT + 1))
        await assert_exact(scheduler, LIMIT - LIMIT % count)


@over_one_and_three
@pytest.mark.parametrize("round_", range(ROUNDS))
async def test_an_id_that_all_send_is_counted_once(url: str, race: Racers, cells: tuple[str, ...], round_: int) -> None:
    async with opened(url, cells, Quota("web", {"claims": 5})) as scheduler:
        results = await race.play(twins, url, [f"id{number}" for number in range(8)], cells=cells)
        assert [error for one in results for error in one.errors] == []
        assert len({claim_id for one in results for claim_id in one.claimed}) == 5
        await assert_exact(scheduler, 5)


@over_one_and_three
@pytest.mark.parametrize("round_", range(ROUNDS))
async def test_who_has_released_is_never_refused(url: str, race: Racers, cells: tuple[str, ...], round_: int) -> None:
    """Each of eight processes holds at most one claim of 2 VCPU, and the quota allows eight."""
    async with opened(url, cells, Quota("web", {"VCPU": 2 * len(race), "claims": len(race)})) as scheduler:
        results = await race.play(churn, url, 40 if is_long() else 10, cells=cells)
        assert [error for one in results for error in one] == []
        await assert_exact(scheduler, 0)


def _claim_until_killed(url: str, cells: tuple[str, ...], dies_in: str) -> None:
    """Claim and release until killed. With `dies_in`, the process kills itself at this step of a transfer."""
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())

    claim = ClaimCommands.place

    async def claim_and_die(claims: ClaimCommands, call: ClaimCall) -> ClaimReply:
        answer = await claim(claims, call)
        if answer.outcome is Outcome.OK:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    async def die_in_transfer(
        quotas: QuotaCommands, project: str, _: str, other: str, transfer: Transfer, **__: Any
    ) -> None:
        """Check that the giver has recorded the transfer, and the receiver only before the last step; then die."""
        cell = quotas._cell.name
        giver, to = (other, cell) if dies_in == "take" else (cell, other)
        async with raw_client(url) as raw:
            note = await raw.hget(Keys(giver).quota(project), f"given.{to}")
            taken = await raw.hget(Keys(to).quota(project), f"taken.{giver}")
        assert note.startswith(f"{transfer.id} {transfer.number} ")
        assert (taken == transfer.number) is (dies_in == "close_transfer")
        os.kill(os.getpid(), signal.SIGKILL)

    async def play() -> None:
        async with Scheduler.connect(url, Settings.model_validate({**PATIENT, "cells": cells})) as scheduler:

            async def one(number: int) -> None:
                turns = Random(number)
                while True:
                    try:
                        request = Request({"VCPU": 1}, project="web", count=turns.randint(1, 2))
                        for place in (await scheduler.select(request)).selections[turns.randint(0, 1) :]:
                            await scheduler.claims.release(str(place.claim_id))
                    except QuotaExceeded:
                        for claim in (await scheduler.claims.list(project="web", limit=3)).items:
                            await scheduler.claims.release(claim.claim_id)

            if dies_in:
                in_claim = dies_in == "claim"
                room, step = (ClaimCommands, "place") if in_claim else (QuotaCommands, dies_in)
                setattr(room, step, claim_and_die if in_claim else die_in_transfer)
            await asyncio.gather(*(one(number) for number in range(4)))

    uvloop.run(play())


@contextmanager
def workers(count: int, *arguments: Any) -> Iterator[Sequence[BaseProcess]]:
    """Start processes that claim until they are killed, at the latest after the block."""
    started = [FORKS.Process(target=_claim_until_killed, args=arguments, daemon=True) for _ in range(count)]
    for worker in started:
        worker.start()
    try:
        yield started
    finally:
        for worker in started:
            worker.kill()
            worker.join()


@over_one_and_three
async def test_whoever_is_killed_leaves_nothing_counted_that_is_not_there(url: str, cells: tuple[str, ...]) -> None:
    """SIGKILL ends eight working schedulers at a random moment, several times."""
    async with opened(url, cells, Quota("web", {"VCPU": LIMIT})) as scheduler:
        for round_ in range(KILLS):
            further = 200 + Random(round_).randrange(50)
            with workers(8, url, cells, ""):
                before = scheduler.stats().entries
                while scheduler.stats().entries < before + further:
                    await asyncio.wait_for(next(iter(scheduler.cells)).updater.moved(), 60)
            assert await assert_exact(scheduler) <= LIMIT


async def assert_never_exceeded(url: str, cells: tuple[str, ...], until: Callable[[], bool]) -> None:
    """Read all cells in one transaction, repeatedly, and check that usage and shares are within the limit."""
    keys = [Keys(cell).quota("web") for cell in cells]
    async with raw_client(url) as raw:
        while not until():
            async with raw.pipeline(transaction=True) as pipeline:
                for key in keys:
                    pipeline.hgetall(key)
                states = [QuotaState.parse(fields) for fields in await pipeline.execute()]
            used = [one.used.get("VCPU", 0) for one in states]
            shares = [one.share.get("VCPU", 0) for one in states]
            assert sum(used) <= LIMIT
            assert len(cells) == 1 or sum(map(max, used, shares)) <= LIMIT


async def assert_all_can_be_used(scheduler: Scheduler, cells: tuple[str, ...]) -> None:
    """Check that each cell in turn can use all of the limit, and no more than that."""
    for cell in cells:
        await release_all(scheduler)
        for _ in range(LIMIT):
            await scheduler.select(Request({"VCPU": 1}, project="web", hosts=hosts_of(cell)))
        with pytest.raises(QuotaExceeded, match="20 of 20 VCPU are used, 1 more"):
            await scheduler.select(Request({"VCPU": 1}, project="web", hosts=hosts_of(cells[0])))
        await assert_exact(scheduler, LIMIT)


async def release_all(scheduler: Scheduler) -> None:
    while found := (await scheduler.claims.list(project="web")).items:
        for claim in found:
            await scheduler.claims.release(claim.claim_id)


DEATHS = {
    "one cell, the claim is made": (("a",), "claim"),
    "three cells, the giver's share is less": (THREE, "take"),
    "three cells, the receiver's share is more": (THREE, "close_transfer"),
}


@pytest.mark.parametrize(("cells", "step"), DEATHS.values(), ids=list(DEATHS))
async def test_whoever_is_killed_in_the_middle_of_a_transfer_takes_nothing_along(
    url: str, cells: tuple[str, ...], step: str
) -> None:
    """One of eight schedulers dies: the limit always holds, and all of it can be used afterwards, in any cell.

    A single cell has no transfers; there the scheduler dies after its claim was made, before it uses the reply.
    """
    async with opened(url, cells, Quota("web", {"VCPU": LIMIT})) as scheduler:
        with workers(1, url, cells, step) as doomed, workers(7, url, cells, ""):
            looking = asyncio.create_task(assert_never_exceeded(url, cells, lambda: doomed[0].exitcode is not None))
            await asyncio.wait_for(looking, 60)
            assert doomed[0].exitcode == -signal.SIGKILL, "it came to that step"
            enough = scheduler.stats().entries + 100
            await asyncio.wait_for(assert_never_exceeded(url, cells, lambda: scheduler.stats().entries > enough), 60)
        assert await assert_exact(scheduler) <= LIMIT
        if len(cells) > 1:
            assert await all_shares(scheduler) <= LIMIT
        await assert_all_can_be_used(scheduler, cells)
        if len(cells) > 1:
            assert await all_shares(scheduler) == LIMIT
