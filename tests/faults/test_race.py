"""Schedulers in separate processes race for the last places: exactly as many requests are placed as fit.

The requests of a round are fixed; their order depends on the operating system and differs from round to round.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import pytest

from redsched.cache.diff import difference
from redsched.cache.snapshot import take_snapshot
from redsched.cache.updater import ReplicaUpdater
from redsched.errors import NoValidHost
from redsched.model import HostReport, Inventory, Request
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimCall, ClaimReply
from redsched.store.store import Store
from tests.support.fleets.hosts import fleet
from tests.support.processes.racers import Racer, Racers
from tests.support.profiles import is_long
from tests.support.waiting import wait_until

ROUNDS = 5 if is_long() else 1
TURNS = 60 if is_long() else 12

pytestmark = pytest.mark.usefixtures("clean_store")


@dataclass(slots=True)
class Results:
    """The results of the requests of one process, or of all."""

    claimed: list[str] = field(default_factory=list)
    """Claim ids."""
    refused: list[int] = field(default_factory=list)
    """Hosts in the reasons of each refusal."""
    errors: list[str] = field(default_factory=list)
    calls: int = 0
    retries: int = 0
    needless: list[str] = field(default_factory=list)
    """Replies of FULL although a listed candidate had room."""

    def add(self, other: "Results") -> None:
        self.claimed += other.claimed
        self.refused += other.refused
        self.errors += other.errors
        self.calls += other.calls
        self.retries += other.retries
        self.needless += other.needless


async def many(racer: Racer, order: tuple[int, int]) -> Results:
    """Send `order[0]` concurrent requests, each for `order[1]` places: the job of most races."""
    requests, count = order
    results = Results()
    look_over_shoulder(racer.updater.cell, results)
    await racer.gate()
    asked = (Request({"VCPU": 1}, count=count, consumer=f"p{racer.number}-{n}") for n in range(requests))
    await asyncio.gather(*(ask(racer.scheduler, request, results) for request in asked))
    results.calls = sum(effort.calls for effort in racer.efforts)
    results.retries = sum(effort.retries for effort in racer.efforts)
    return results


async def ask(scheduler: Scheduler, request: Request, results: Results) -> None:
    try:
        found = await scheduler.select(request)
        results.claimed += [str(one.claim_id) for one in found.selections]
    except NoValidHost as refusal:
        results.refused.append(sum(one.hosts for one in refusal.facts.reasons))
    except Exception as error:
        results.errors.append(repr(error))


def look_over_shoulder(cell: CellStore, results: Results) -> None:
    """Record every FULL reply for which a listed candidate had room."""
    really = cell.claims.place

    async def claim(call: ClaimCall) -> ClaimReply:
        answer = await really(call)
        causes = {host.host: host.cause for host in answer.looked_at}
        if answer.outcome is Outcome.FULL and len(call.members) == 1:
            listed = {one.host for one in call.members[0].candidates}
            if listed != causes.keys() or not all(causes.values()):
                results.needless.append(f"{sorted(listed)} were listed, {causes} answered")
        return answer

    cell.claims.place = claim  # type: ignore[method-assign]


def together(results: list[Results]) -> Results:
    total = Results()
    for one in results:
        total.add(one)
    return total


@asynccontextmanager
async def opened(url: str, *capacities: int) -> AsyncIterator[Scheduler]:
    """Yield the test's own scheduler, over a new cell with a fleet."""
    async with Store.connect(url) as store:
        await store.cell("c1").init()
        await fleet(store.cell("c1"), capacities)
    async with Scheduler.connect(url) as scheduler:
        yield scheduler


async def stored_claims(scheduler: Scheduler) -> Counter[str]:
    """Return the number of places that each consumer holds in the store."""
    page = await scheduler.claims.list(limit=10_000)
    assert page.next is None
    return Counter(claim.consumer for claim in page.items)


async def assert_sound(scheduler: Scheduler, hosts: int, places: int) -> None:
    """Check that every host's counters equal its claims, and that exactly this many places are taken."""
    report = await scheduler.audit()
    assert (report.problems, report.hosts, report.claims) == ((), hosts, places)
    views = (await scheduler.hosts.list()).items
    assert sum(host.slots["VCPU"].claimed for host in views) == places
    assert all(host.slots["VCPU"].free >= 0 for host in views)


@pytest.mark.parametrize("round_", range(ROUNDS))
async def test_exactly_the_last_places_are_given_away(url: str, race: Racers, round_: int) -> None:
    """Eight processes request more than a fleet has: as many as fit are placed, all others refused with reasons.

    The claim script replies FULL only if no listed candidate has room, so no request makes a needless second call.
    """
    hosts, vcpu, each = 12, 3, 8
    async with opened(url, *[vcpu] * hosts) as scheduler:
        total = together(await race.play(many, url, (each, 1)))
        assert (total.errors, total.needless) == ([], [])
        assert len(set(total.claimed)) == len(total.claimed) == hosts * vcpu
        assert len(total.refused) == len(race) * each - hosts * vcpu
        assert set(total.refused) == {hosts}, "a refusal gives a reason for every host"
        assert sum((await stored_claims(scheduler)).values()) == hosts * vcpu
        await assert_sound(scheduler, hosts, hosts * vcpu)


@pytest.mark.parametrize("round_", range(ROUNDS))
@pytest.mark.parametrize("schedulers", [1, 4])
async def test_thirty_one_requests_for_three_hosts_need_no_retry(
    url: str, race: Racers, schedulers: int, round_: int
) -> None:
    """Three hosts with just enough room, 31 requests at once from one and from four processes: all placed, 0 retries.

    The number of places only falls, so even a process that is behind lists a host with room.
    """
    async with opened(url, 11, 11, 9) as scheduler:
        shares = [31 // schedulers + (number < 31 % schedulers) for number in range(schedulers)]
        shares += [0] * (len(race) - schedulers)
        total = together(await race.play(share, url, shares))
        assert (total.errors, total.refused, len(total.claimed)) == ([], [], 31)
        assert (total.calls, total.retries) == (31, 0)
        await assert_sound(scheduler, 3, 31)


async def share(racer: Racer, shares: list[int]) -> Results:
    """Like `many`, but each process sends its own number of requests."""
    return await many(racer, (shares[racer.number], 1))


@pytest.mark.parametrize("round_", range(ROUNDS))
async def test_a_gang_is_placed_whole_or_not_at_all(url: str, race: Racers, round_: int) -> None:
    """Requests for three places each race for the last ones: as many as fit are placed whole, and no others in part.

    A replica that follows the feed meanwhile never contains a part of a request.
    """
    hosts, vcpu, each = 9, 4, 3
    async with opened(url, *[vcpu] * hosts) as scheduler, watched(url, lambda taken: taken % 3 == 0) as replicas:
        total = together(await race.play(many, url, (each, 3)))
        assert total.errors == []
        assert len(set(total.claimed)) == len(total.claimed) == hosts * vcpu
        assert len(total.refused) == len(race) * each - hosts * vcpu // 3
        assert set((await stored_claims(scheduler)).values()) == {3}
        await assert_sound(scheduler, hosts, hosts * vcpu)
        await wait_until(lambda: bool(replicas) and replicas[-1] == hosts * vcpu)


@asynccontextmanager
async def watched(url: str, whole: Callable[[int], bool]) -> AsyncIterator[list[int]]:
    """Yield the claimed VCPU after each change of a replica that follows the feed; fail if a sum is not `whole`."""
    sums: list[int] = []

    async def look(updater: ReplicaUpdater) -> None:
        while True:
            moved = asyncio.ensure_future(updater.moved())
            sums.append(int(updater.columns.claimed["VCPU"].sum()))
            await moved

    settings = Settings(poll_s=0.001)
    async with Store.connect(url, settings) as store:
        updater = ReplicaUpdater(store.cell("c1"), settings)
        await updater.start()
        watcher = asyncio.create_task(look(updater))
        try:
            yield sums
        finally:
            watcher.cancel()
            with suppress(asyncio.CancelledError):
                await watcher
            await updater.stop()
    assert all(whole(one) for one in sums), sums


async def pass_on(racer: Racer, times: int) -> int:
    """Pass places round the ring of processes: claim the received host, release it, name it to the next process."""
    await racer.gate()
    await racer.say(f"h{racer.number}")
    for _ in range(times):
        host = await racer.hear()
        request = Request({"VCPU": 1}, hosts=frozenset({host}))
        found = await racer.scheduler.select(request)
        with pytest.raises(NoValidHost):
            await racer.scheduler.select(request)
        await racer.scheduler.claims.release(str(found.selections[0].claim_id))
        await racer.say(host)
    await racer.hear()
    return times


async def test_a_released_place_is_found_by_the_next_request_anywhere(url: str, race: Racers) -> None:
    """A request at another process sees a release that was answered before, however rarely that process polls.

    Eight hosts with one place each are passed round a ring of eight processes at the same time.
    """
    async with opened(url, *[1] * len(race)) as scheduler:
        found = await race.play(pass_on, url, TURNS, poll_s=30.0, tick_s=30.0)
        assert found == [TURNS] * len(race)
        await assert_sound(scheduler, len(race), 0)


async def hear_of_host(racer: Racer, _: None) -> str:
    """Each process in turn claims the new host of the process before it, reports its own, and names it to the next."""
    await racer.gate()
    if racer.number:
        name = await racer.hear()
        found = await racer.scheduler.select(Request({"VCPU": 1}, hosts=frozenset({name})))
        assert found.selections[0].host == name
    name = f"new{racer.number}"
    answer = await racer.scheduler.hosts.report(HostReport(name, {"VCPU": Inventory(1)}))
    assert answer.attested
    await racer.say(name)
    return str(await racer.hear()) if not racer.number else name


async def test_a_report_that_was_answered_is_found_by_the_next_request_anywhere(url: str, race: Racers) -> None:
    """A request at another process can claim a host as soon as the host's report was answered."""
    async with opened(url, 1, 1) as scheduler:
        last = await race.play(hear_of_host, url, poll_s=30.0, tick_s=30.0)
        assert last[0] == f"new{len(race) - 1}"
        assert (await scheduler.audit()).problems == ()


async def churn(racer: Racer, rounds: int) -> tuple[int, list[str]]:
    """Claim and release in turn in four concurrent workers; no claim may be refused. Return retries and errors."""
    errors: list[str] = []

    async def one(number: int) -> None:
        for turn in range(rounds):
            try:
                found = await racer.scheduler.select(Request({"VCPU": 1}, consumer=f"{racer.number}-{number}-{turn}"))
                await racer.scheduler.claims.release(str(found.selections[0].claim_id))
            except Exception as error:
                errors.append(repr(error))

    await racer.gate()
    await asyncio.gather(*(one(number) for number in range(4)))
    return sum(effort.retries for effort in racer.efforts), errors


@pytest.mark.parametrize("round_", range(ROUNDS))
async def test_no_request_is_refused_while_as_many_places_are_there_as_are_asked_for(
    url: str, race: Racers, round_: int
) -> None:
    """32 workers in eight processes claim and release in turn on a fleet of 32 places.

    Each worker holds at most one place and requests one only when it holds none. So a place is free at every request,
    and every refusal would be false, whatever the order in which the processes learn of each other's changes.
    """
    async with opened(url, *[4] * 8) as scheduler:
        results = await race.play(churn, url, 40 if is_long() else 8)
        assert [error for _, errors in results for error in errors] == []
        await assert_sound(scheduler, 8, 0)
        updater = next(iter(scheduler.cells)).updater
        await updater.catch_up()
        assert difference(updater.columns, (await take_snapshot(updater.cell)).columns) == []
