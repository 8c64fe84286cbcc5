"""Requests that reserve hosts while they wait: they get what becomes free, and leave nothing behind."""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from redsched import origin
from redsched.errors import InvalidRequest, NoValidHost
from redsched.model import GangMember, Quota, Request
from redsched.origin import Origin
from redsched.scheduler import Scheduler
from redsched.scheduler.selection import reservations
from redsched.settings import Settings
from tests.scheduler.working import BY_HAND, Work, at_work
from tests.support.waiting import patience_s, wait_until

WHOLE = Request({"VCPU": 8}, queue_timeout_s=60, reserve=True)
SMALL = Request({"VCPU": 2})


class Rounds:
    """Counts the rounds of each request that reserves: in each it chooses a host, or renews that."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.of: Counter[str] = Counter()
        renew = reservations._Reservation._renew

        async def counted(one: reservations._Reservation) -> None:
            await renew(one)
            self.of[one.id] += 1

        monkeypatch.setattr(reservations._Reservation, "_renew", counted)

    async def pass_by(self, requests: int) -> None:
        """Wait until so many requests have each ended a round that began after this call."""
        before = Counter(self.of)
        await wait_until(lambda: sum(self.of[one] >= before[one] + 2 for one in self.of) >= requests)


@pytest.fixture(autouse=True)
def rounds(monkeypatch: pytest.MonkeyPatch) -> Rounds:
    """Renew reservations after a moment."""
    monkeypatch.setattr(reservations, "RENEW_S", 0.02)
    return Rounds(monkeypatch)


async def start(work: Work, request: Request = WHOLE) -> "asyncio.Task[str]":
    """Start a request that waits, and return its task when a host is reserved for it."""
    before = len(await work.store.reservations.hosts())

    async def select() -> str:
        return (await work.scheduler.select(request)).selections[0].host

    task = asyncio.create_task(select())
    await wait_until(is_reserved(work, before + 1), what="a host is reserved")
    return task


def is_reserved(work: Work, number: int) -> Callable[[], Awaitable[bool]]:
    async def found() -> bool:
        return len(await work.store.reservations.hosts()) == number

    return found


def is_swept(work: Work) -> Callable[[], Awaitable[bool]]:
    """Return a check that sweeps, and says whether nothing is reserved any more."""

    async def found() -> bool:
        await work.sweep()
        return await work.store.reservations.hosts() == {}

    return found


async def fill(work: Work, requests: int, request: Request = SMALL) -> list[str]:
    return [(await work.scheduler.select(request)).selections[0].claim_id or "" for _ in range(requests)]


async def release(work: Work, claim_id: str) -> None:
    await work.scheduler.claims.release(claim_id)
    await work.work()


async def test_small_requests_do_not_get_in_before_a_large_one(clean_store: str) -> None:
    async with at_work(clean_store, 8) as work:
        ids = await fill(work, 4)
        task = await start(work)
        for claim_id in ids:
            await release(work, claim_id)
            if claim_id != ids[-1]:
                with pytest.raises(NoValidHost):
                    await work.scheduler.select(SMALL)
        async with asyncio.timeout(patience_s(30)):
            assert await task == "h0"
        assert await work.store.reservations.hosts() == {}
        await work.is_sound()


async def test_without_a_reservation_they_do(clean_store: str) -> None:
    async with at_work(clean_store, 8) as work:
        ids = await fill(work, 4)
        waiting = asyncio.create_task(work.scheduler.select(Request({"VCPU": 8}, queue_timeout_s=60)))
        for claim_id in ids:
            await release(work, claim_id)
            await work.scheduler.select(SMALL)
        assert not waiting.done()
        waiting.cancel()


async def test_the_host_that_fewest_claims_have_to_leave_is_reserved(clean_store: str) -> None:
    async with at_work(clean_store, 8, 8, 4) as work:
        for host, amounts in (("h0", (2, 2, 2)), ("h1", (3, 3)), ("h2", (1,))):
            for amount in amounts:
                await work.scheduler.select(Request({"VCPU": amount}, hosts=frozenset({host})))
        task = await start(work)
        assert list(await work.store.reservations.hosts()) == ["h1"], "h2 is too small"
        task.cancel()
        await wait_until(is_reserved(work, 0), what="nothing is reserved")


async def test_another_host_is_chosen_when_it_is_clearly_better(clean_store: str, rounds: Rounds) -> None:
    async with at_work(clean_store, 8, 8, settings=with_half(BY_HAND)) as work:
        on: dict[str, list[str]] = {"h0": [], "h1": []}
        for host, number in (("h0", 2), ("h1", 3)):
            for _ in range(number):
                on[host] += await fill(work, 1, Request({"VCPU": 2}, hosts=frozenset({host})))
        task = await start(work)
        assert list(await work.store.reservations.hosts()) == ["h0"]
        await release(work, on["h1"].pop())
        await rounds.pass_by(1)
        assert list(await work.store.reservations.hosts()) == ["h0"], "as many claims have to leave"
        await release(work, on["h1"].pop())

        async def is_h1() -> bool:
            return list(await work.store.reservations.hosts()) == ["h1"]

        await wait_until(is_h1, what="h1 is reserved instead")
        await release(work, on["h1"].pop())
        async with asyncio.timeout(patience_s(30)):
            assert await task == "h1"


async def test_a_host_that_leaves_the_zone_of_the_request_is_given_up(clean_store: str) -> None:
    """It is chosen anew, by where hosts are now."""
    async with at_work(clean_store, 8, 8, settings=with_half(BY_HAND)) as work:
        for host in ("h0", "h1", "h1"):
            await fill(work, 1, Request({"VCPU": 2}, hosts=frozenset({host})))
        task = await start(work, replace(WHOLE, zones=frozenset({"default"})))
        assert list(await work.store.reservations.hosts()) == ["h0"]
        work.hosts[0].report = replace(work.hosts[0].report, zone="az9")
        await work.hosts[0].speak()

        async def is_h1() -> bool:
            return list(await work.store.reservations.hosts()) == ["h1"]

        await wait_until(is_h1, what="h1 is reserved instead")
        task.cancel()
        await wait_until(is_reserved(work, 0), what="nothing is reserved")


def with_half(settings: Settings) -> Settings:
    return settings.model_copy(update={"reserved_hosts_percent": 50})


async def test_it_is_placed_elsewhere_if_there_is_room_first(clean_store: str) -> None:
    async with at_work(clean_store, 8, 8) as work:
        ids = await fill(work, 8)
        claims = {claim_id: (await work.scheduler.claims.get(claim_id)).host for claim_id in ids}
        task = await start(work)
        [reserved] = await work.store.reservations.hosts()
        await work.scheduler.hosts.disable(reserved)
        for claim_id, host in claims.items():
            if host != reserved:
                await release(work, claim_id)
        async with asyncio.timeout(patience_s(30)):
            assert await task != reserved
        assert await work.store.reservations.hosts() == {}


async def test_reservations_end_with_the_request(clean_store: str) -> None:
    async with at_work(clean_store, 8) as work:
        await fill(work, 1)
        with pytest.raises(NoValidHost):
            await work.scheduler.select(Request({"VCPU": 8}, queue_timeout_s=1, reserve=True))
        assert await work.store.reservations.hosts() == {}
        await fill(work, 3)


async def test_reservations_of_a_scheduler_that_died_end_with_their_lease(clean_store: str) -> None:
    """It renews nothing, and another one's sweep ends them."""
    async with at_work(clean_store, 8) as work:
        await work.store.reservations.put("h0", "of-the-dead", {"VCPU": 8}, 60_000, 0, 1)
        await work.sweep()
        assert list(await work.store.reservations.hosts()) == ["h0"]
        await work.store.reservations.put("h0", "of-the-dead", {"VCPU": 8}, 1, 0, 1)
        await wait_until(is_swept(work), what="its lease has ended")


async def test_only_some_hosts_are_reserved(clean_store: str, rounds: Rounds) -> None:
    async with at_work(clean_store, 8, 8, settings=with_half(BY_HAND)) as work:
        await fill(work, 2)
        for host in ("h0", "h1"):
            await work.scheduler.select(Request({"VCPU": 1}, hosts=frozenset({host})))
        first = await start(work)
        second = asyncio.create_task(work.scheduler.select(WHOLE))
        await rounds.pass_by(2)
        assert len(await work.store.reservations.hosts()) == 1
        for task in (first, second):
            task.cancel()
        await asyncio.wait([first, second])


async def test_a_request_that_waits_gets_the_host_of_one_that_gave_up(
    clean_store: str, monkeypatch: pytest.MonkeyPatch, rounds: Rounds
) -> None:
    """Though it looks for a better host only now and then: most claims have left that host already."""
    monkeypatch.setattr(reservations, "RENEW_S", 3600)
    async with at_work(clean_store, 8, 8, settings=with_half(BY_HAND)) as work:
        on: dict[str, list[str]] = {"h0": [], "h1": []}
        for host, ids in on.items():
            ids += await fill(work, 4, Request({"VCPU": 2}, hosts=frozenset({host})))
        first = await start(work, Request({"VCPU": 8}, hosts=frozenset({"h0"}), queue_timeout_s=60, reserve=True))
        second = asyncio.create_task(work.scheduler.select(WHOLE))
        await wait_until(lambda: len(rounds.of) == 2, what="the second request has looked for a host")
        assert list(await work.store.reservations.hosts()) == ["h0"], "only one host may be reserved"
        for claim_id in on["h0"][:3]:
            await release(work, claim_id)
        first.cancel()
        await asyncio.wait([first])
        await wait_until(is_reserved(work, 1), what="h0 is reserved again")
        await release(work, on["h0"][3])
        async with asyncio.timeout(patience_s(30)):
            assert (await second).selections[0].host == "h0"


async def test_a_project_reserves_nothing_beyond_its_quota(clean_store: str, rounds: Rounds) -> None:
    async with at_work(clean_store, 8) as work:
        await work.scheduler.quotas.put(Quota("p", {"VCPU": 9}))
        await fill(work, 1)
        [claim_id] = await fill(work, 1, Request({"VCPU": 2}, project="p"))
        large = Request({"VCPU": 8}, project="p", queue_timeout_s=60, reserve=True)
        waiting = asyncio.create_task(work.scheduler.select(large))
        await rounds.pass_by(1)
        assert await work.store.reservations.hosts() == {}
        await release(work, claim_id)
        await wait_until(is_reserved(work, 1), what="it is within the quota")
        waiting.cancel()
        await asyncio.wait([waiting])


async def test_what_a_project_reserves_counts_together(clean_store: str, rounds: Rounds) -> None:
    settings = BY_HAND.model_copy(update={"reserved_hosts_percent": 100})
    async with at_work(clean_store, 8, 8, settings=settings) as work:
        await work.scheduler.quotas.put(Quota("p", {"VCPU": 12}))
        for host in ("h0", "h1"):
            await fill(work, 1, Request({"VCPU": 2}, hosts=frozenset({host})))
        large = Request({"VCPU": 8}, project="p", queue_timeout_s=60, reserve=True)
        tasks = [asyncio.create_task(work.scheduler.select(large)) for _ in range(2)]
        await wait_until(is_reserved(work, 1), what="a host is reserved")
        await rounds.pass_by(2)
        assert len(await work.store.reservations.hosts()) == 1
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def test_an_unexpected_error_does_not_end_renewal(clean_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with at_work(clean_store, 8) as work:
        await fill(work, 1)
        failures = [RuntimeError("a mistake")]
        put = work.store.reservations.put

        async def failing(*arguments: Any) -> Any:
            if failures:
                raise failures.pop()
            return await put(*arguments)

        monkeypatch.setattr(work.store.reservations, "put", failing)
        task = await start(work)
        assert failures == []
        task.cancel()
        await asyncio.wait([task])


async def test_reservations_end_with_their_scheduler(clean_store: str) -> None:
    async with at_work(clean_store, 8) as work:
        await fill(work, 1)
        task = await start(work)
        await work.scheduler._reservations.stop()
        assert await work.store.reservations.hosts() == {}
        task.cancel()
        await asyncio.wait([task])
        assert not [one for one in asyncio.all_tasks() if one.get_name().startswith("redsched-reservation")]


async def test_a_host_that_was_forgotten_and_reports_again_may_be_reserved(clean_store: str) -> None:
    async with at_work(clean_store, 8) as work:
        await work.store.reservations.put("h0", "before", {"VCPU": 8}, 1, 0, 1)
        await work.store.hosts.forget("h0", force=True)
        await work.hosts[0].speak()
        await wait_until(is_swept(work), what="the reservation has ended")


async def test_short_work_goes_to_a_reserved_host(clean_store: str) -> None:
    """Only if it ends before the other work there, for which the request has to wait anyway."""
    async with at_work(clean_store, 8) as work:
        await fill(work, 1, Request({"VCPU": 2}, max_runtime_s=600))
        task = await start(work)
        with pytest.raises(NoValidHost):
            await work.scheduler.select(SMALL)
        with pytest.raises(NoValidHost):
            await work.scheduler.select(Request({"VCPU": 2}, max_runtime_s=900))
        assert (await work.scheduler.select(Request({"VCPU": 2}, max_runtime_s=500))).selections[0].host == "h0"
        task.cancel()
        await asyncio.wait([task])


async def test_how_long_short_work_may_run_if_nobody_knows(clean_store: str) -> None:
    async with at_work(clean_store, 8) as work:
        await fill(work, 1)
        task = await start(work)
        with pytest.raises(NoValidHost):
            await work.scheduler.select(Request({"VCPU": 2}, max_runtime_s=90))
        assert (await work.scheduler.select(Request({"VCPU": 2}, max_runtime_s=30))).selections[0].host == "h0"
        task.cancel()
        await asyncio.wait([task])


async def test_a_refusal_says_what_is_kept(scheduler: Scheduler) -> None:
    store = scheduler.cells.named("c1").store
    await store.reservations.put("h1", "r", {"VCPU": 6}, 60_000, 0, 9)
    request = Request({"VCPU": 7}, hosts=frozenset({"h1"}))

    async def said() -> tuple[str, object]:
        found = await scheduler.explain(request, "h1")
        [check] = [one for one in found.checks[0].checks if one.name in ("VCPU", "kept")]
        return check.detail, found.nearest[0].free

    assert await said() == ("needs 7 VCPU, free 8, of which 6 are kept for a request that waits", {"VCPU": 8})
    await scheduler.select(Request({"VCPU": 2}, hosts=frozenset({"h1"})))
    assert await said() == ("needs 7 VCPU, free 6, of which 6 are kept for a request that waits", {"VCPU": 6})


@pytest.mark.parametrize(
    ("fields", "request_id", "expected"),
    [
        ({"claim_ids": ("big",), "project": "web"}, "r-1", "kept for request big of project web"),
        ({"claim_ids": ("big",)}, "", "kept for request big"),
        ({}, "r-1", "kept for request r-1"),
        ({}, "", "kept for request [0-9a-f]{16}"),
    ],
)
async def test_a_host_names_the_request_that_it_is_reserved_for(
    clean_store: str, fields: dict[str, Any], request_id: str, expected: str
) -> None:
    """By the id of its claim, its request id, or that of the reservation; explanations and the host say the same."""
    async with at_work(clean_store, 8) as work:
        await fill(work, 1)
        token = origin.enter(Origin("me", request_id))
        task = await start(work, replace(WHOLE, **fields))
        origin.leave(token)
        columns = work.scheduler.cells.named("c1").updater.columns
        await wait_until(lambda: len(columns.reserved) == 1, what="the replica has the reservation")
        (miss,) = (await work.scheduler.explain(SMALL)).nearest
        view = await work.scheduler.hosts.get("h0")
        for kept in (miss.kept, view.kept_for):
            assert kept is not None
            assert re.fullmatch(expected, kept.text), kept.text
            assert kept.slots == {"VCPU": 8}
        task.cancel()
        await asyncio.wait([task])


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"resources": {"VCPU": 1}, "reserve": True}, "reserve requires queue_timeout_s: how long the request waits"),
        ({"resources": {"VCPU": 1}, "reserve": True, "queue_timeout_s": 9, "count": 2}, "reserve is for one place"),
        (
            {
                "members": (GangMember("a", Request({"VCPU": 1})), GangMember("b", Request({"VCPU": 1}))),
                "reserve": True,
                "queue_timeout_s": 9,
            },
            "reserve is for one place, and members are several",
        ),
    ],
)
def test_requests_that_cannot_reserve(fields: dict[str, object], expected: str) -> None:
    with pytest.raises(InvalidRequest, match=expected):
        Request(**fields)  # type: ignore[arg-type]
