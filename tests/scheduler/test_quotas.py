"""Quotas over all cells: exact, named with the numbers when they refuse, and right again after whatever is lost."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redsched.scheduler.quota_count import QuotaCount

from redsched.errors import ClaimState, NoValidHost, QuotaExceeded, Settling, Unknown
from redsched.model import Quota, Request, Why
from redsched.scheduler import Exceeded, Scheduler
from redsched.scheduler.quotas import Quotas
from redsched.scheduler.usage import UsageBy
from redsched.store import ClaimAnswer, ClaimCall, Kind, Outcome
from redsched.store.keys import LedgerKeys
from tests.scheduler.working import BY_HAND, at_work
from tests.support.cells import make_due as make_claim_due
from tests.support.cells import new_epoch, raw_client
from tests.support.ledgers import settle_all
from tests.support.waiting import wait_until

QUOTA = Quota("web", {"VCPU": 6, "claims": 3})
KEYS = LedgerKeys("web")


@pytest.fixture
async def raw(clean_store: str) -> AsyncIterator[Any]:
    """A client that sees all keys."""
    async with raw_client(clean_store) as client:
        yield client


def web(vcpu: int = 1, **more: Any) -> Request:
    return Request({"VCPU": vcpu}, project="web", **more)


async def used(scheduler: Scheduler) -> dict[str, int]:
    """What the ledger says is used, without what is nothing."""
    return {name: amount for name, amount in (await scheduler.quotas.get("web")).used.items() if amount}


async def held(scheduler: Scheduler) -> dict[str, int]:
    """What the project's claims really hold."""
    rows = await scheduler.usage((UsageBy.CLASS, UsageBy.PROJECT))
    return next((dict(row.used) for row in rows if row.of["project"] == "web"), {})


async def settled(scheduler: Scheduler, raw: Any) -> None:
    """Wait until nothing is reserved any more, and see that the ledger says what the cells hold."""
    await asyncio.gather(*scheduler._quotas._later)
    assert await raw.zcard(KEYS.deadlines) == 0
    assert await used(scheduler) == await held(scheduler)


async def worked_off(scheduler: Scheduler, raw: Any) -> None:
    """Sweep until no chore is left."""
    await settle_all(scheduler, raw, leases=False)


async def make_due(raw: Any) -> None:
    """Let all reservations have run out."""
    for claim_id in await raw.zrange(KEYS.deadlines, 0, -1):
        await raw.zadd(KEYS.deadlines, {claim_id: 1})


def quotas_of(scheduler: Scheduler) -> Quotas:
    return scheduler._quotas


async def test_a_project_gets_what_its_quota_allows_and_no_more(scheduler: Scheduler, raw: Any) -> None:
    """The refusal has the numbers; another project, and one without a name, is not concerned."""
    found, new = await scheduler.quotas.put(QUOTA)
    assert (found.limits, found.used, new) == ({"VCPU": 6, "claims": 3}, {}, True)
    await scheduler.select(web(4))
    with pytest.raises(QuotaExceeded, match="4 of 6 VCPU are used, 3 more") as refused:
        await scheduler.select(web(3))
    assert refused.value.facts == {
        "project": "web",
        "exceeded": [{"resource": "VCPU", "limit": 6, "used": 4, "asked": 3}],
    }
    await scheduler.select(Request({"VCPU": 3}, project="other"))
    await scheduler.select(Request({"VCPU": 1}))
    await scheduler.select(web(2))
    await settled(scheduler, raw)
    assert await used(scheduler) == {"VCPU": 6, "claims": 2}


async def test_the_places_of_one_request_are_counted_together(scheduler: Scheduler, raw: Any) -> None:
    await scheduler.quotas.put(QUOTA)
    with pytest.raises(QuotaExceeded) as refused:
        await scheduler.select(web(2, count=4))
    assert [(one["resource"], one["asked"]) for one in refused.value.facts["exceeded"]] == [("VCPU", 8), ("claims", 4)]
    await scheduler.select(web(2, count=3))
    await settled(scheduler, raw)


async def test_who_releases_can_claim_again_at_once(scheduler: Scheduler, raw: Any) -> None:
    """Whichever scheduler answered the release, and however rarely it sweeps."""
    await scheduler.quotas.put(QUOTA)
    for _ in range(5):
        found = await scheduler.select(web(6))
        assert await scheduler.claims.release(str(found.selections[0].claim_id))
    await settled(scheduler, raw)
    assert await used(scheduler) == {}


async def test_a_claim_counts_until_its_host_says_that_the_work_is_gone(scheduler: Scheduler, raw: Any) -> None:
    await scheduler.quotas.put(QUOTA)
    one = (await scheduler.select(web(6))).selections[0]
    cell = next(iter(scheduler._cells)).store
    await cell.accept(one.host, str(one.claim_id), str(one.token), 3600)
    assert not await scheduler.claims.release(str(one.claim_id))
    with pytest.raises(QuotaExceeded):
        await scheduler.select(web(1))
    await scheduler.claims.release(str(one.claim_id), force=True)
    await scheduler.select(web(6))


async def test_what_no_host_can_take_uses_nothing(scheduler: Scheduler, raw: Any) -> None:
    """And an own id that was refused may be tried again, whatever refused it."""
    await scheduler.quotas.put(Quota("web", {"VCPU": 20}))
    await scheduler.select(Request({"VCPU": 8}))
    with pytest.raises(NoValidHost):
        await scheduler.select(web(8, claim_ids=("mine",)))
    await scheduler.quotas.put(Quota("web", {"VCPU": 1}))
    with pytest.raises(QuotaExceeded):
        await scheduler.select(web(2, claim_ids=("mine",)))
    await scheduler.quotas.put(Quota("web", {"VCPU": 2}))
    found = await scheduler.select(web(2, claim_ids=("mine",)))
    assert found.selections[0].claim_id == "mine"
    await settled(scheduler, raw)


async def test_ids_sent_again_are_counted_once_and_get_their_outcome(scheduler: Scheduler, raw: Any) -> None:
    """Also when the quota is used up, and also that they have ended."""
    await scheduler.quotas.put(QUOTA)
    first = await scheduler.select(web(6, claim_ids=("mine",)))
    again = await scheduler.select(web(6, claim_ids=("mine",)))
    assert (again.selections[0].token, again.fresh) == (first.selections[0].token, False)
    await settled(scheduler, raw)
    await scheduler.claims.release("mine")
    await scheduler.select(web(6))
    with pytest.raises(ClaimState):
        await scheduler.select(web(6, claim_ids=("mine",)))
    await settled(scheduler, raw)


async def test_claims_from_before_the_quota_are_counted_and_freed(scheduler: Scheduler, raw: Any) -> None:
    before = (await scheduler.select(web(4))).selections[0]
    found, _ = await scheduler.quotas.put(QUOTA)
    assert found.used == {"VCPU": 4, "claims": 1}
    with pytest.raises(QuotaExceeded):
        await scheduler.select(web(3))
    await scheduler.claims.release(str(before.claim_id))
    await scheduler.select(web(6))
    await settled(scheduler, raw)


async def test_limits_can_change_below_what_is_used(scheduler: Scheduler) -> None:
    await scheduler.quotas.put(QUOTA)
    await scheduler.select(web(6))
    found, new = await scheduler.quotas.put(Quota("web", {"VCPU": 2}))
    assert (found.limits, found.used, new) == ({"VCPU": 2}, {"VCPU": 6, "claims": 1}, False)
    with pytest.raises(QuotaExceeded):
        await scheduler.select(web(1))


async def test_a_quota_that_is_taken_back_limits_nothing_and_leaves_nothing(scheduler: Scheduler, raw: Any) -> None:
    """Declared again it counts what was claimed meanwhile."""
    await scheduler.quotas.put(QUOTA)
    await scheduler.select(web(6))
    await asyncio.gather(*quotas_of(scheduler)._later)
    await scheduler.quotas.delete("web")
    assert [key async for key in raw.scan_iter(match="rs:{quota:*")] == []
    with pytest.raises(Unknown):
        await scheduler.quotas.get("web")
    await scheduler.select(web(2))
    found, _ = await scheduler.quotas.put(QUOTA)
    assert found.used == {"VCPU": 8, "claims": 2}


async def test_a_quota_holds_over_all_cells(two_cells: Scheduler, raw: Any) -> None:
    await two_cells.quotas.put(QUOTA)
    await two_cells.select(web(4, hosts=frozenset(("a1",))))
    await two_cells.select(web(2, hosts=frozenset(("b2",))))
    with pytest.raises(QuotaExceeded):
        await two_cells.select(web(1))
    await settled(two_cells, raw)


async def test_an_id_that_moves_on_to_another_cell_is_counted_once(two_cells: Scheduler, raw: Any) -> None:
    """Void in the first cell, claimed in the second."""
    await two_cells.quotas.put(QUOTA)
    await two_cells.select(Request({"VCPU": 4}, hosts=frozenset(("b1",))))
    found = await asyncio.gather(*(two_cells.select(web(4, claim_ids=("mine",))) for _ in range(4)))
    assert len({one.selections[0].token for one in found}) == 1
    await settled(two_cells, raw)


async def test_lists_come_in_pages_by_project(scheduler: Scheduler) -> None:
    for number in (3, 1, 2):
        await scheduler.quotas.put(Quota(f"p{number}", {"VCPU": number}))
    first = await scheduler.quotas.list(limit=2)
    rest = await scheduler.quotas.list(limit=2, after=first.next or "")
    assert [(one.project, one.limits) for one in first.items + rest.items] == [
        (f"p{n}", {"VCPU": n}) for n in (1, 2, 3)
    ]


async def test_a_scheduler_that_closes_goes_on_with_no_count(clean_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would read from a store that this process has closed, over a connection that nobody closes."""
    begun = asyncio.Event()

    async def for_ever(*_: Any) -> None:
        begun.set()
        await asyncio.Event().wait()

    async with Scheduler.connect(clean_store, BY_HAND) as scheduler:
        await scheduler.init()
        monkeypatch.setattr(QuotaCount, "declaration", for_ever)
        waiting = asyncio.create_task(scheduler._quotas.counting.counted("web"))
        await begun.wait()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not scheduler._quotas.counting._running


async def test_a_dry_run_is_refused_as_the_claim_would_be(scheduler: Scheduler, raw: Any) -> None:
    await scheduler.quotas.put(QUOTA)
    assert (await scheduler.select(web(6, claim=False))).selections
    await scheduler.select(web(5))
    with pytest.raises(QuotaExceeded, match="5 of 6 VCPU"):
        await scheduler.select(web(2, claim=False))
    await settled(scheduler, raw)


async def test_an_explanation_says_what_the_quota_does_not_allow(scheduler: Scheduler) -> None:
    """Whatever fits, for all places together; and that it is not known while the ledger is to be counted."""
    await scheduler.quotas.put(QUOTA)
    await scheduler.select(web(4))
    found = await scheduler.explain(web(1, count=3))
    assert found.exceeded == (Exceeded("VCPU", 6, 4, 3), Exceeded("claims", 3, 1, 3))
    assert found.fits == 3
    assert (await scheduler.explain(web(2))).exceeded == ()
    assert (await scheduler.explain(Request({"VCPU": 99}, project="other"))).exceeded == ()
    await new_epoch(next(iter(scheduler._cells)).store)
    assert (await scheduler.explain(web(2))).exceeded is None


async def test_a_project_without_a_quota_makes_no_call_more(scheduler: Scheduler) -> None:
    await scheduler.quotas.put(QUOTA)
    counters = scheduler._store.runner.counters
    before = counters.calls
    await scheduler.select(Request({"VCPU": 1}, project="other"))
    assert counters.calls - before == 1
    before = counters.calls
    await scheduler.select(web())
    await asyncio.gather(*quotas_of(scheduler)._later)
    assert counters.calls - before == 3, "reserve, claim, hold"


# Crashes: between any two steps, and what any scheduler makes of it


async def die(*_: Any) -> Any:
    raise asyncio.CancelledError


async def test_a_reservation_without_a_claim_is_freed_and_its_late_claim_closed(scheduler: Scheduler, raw: Any) -> None:
    """The scheduler died between the two; the call that it had sent comes long after."""
    await scheduler.quotas.put(QUOTA)
    cell = next(iter(scheduler._cells))
    sent: list[ClaimCall] = []

    async def lost(call: ClaimCall) -> ClaimAnswer:
        sent.append(call)
        raise asyncio.CancelledError

    really, cell.store.claim = cell.store.claim, lost  # type: ignore[method-assign]
    with pytest.raises(asyncio.CancelledError):
        await scheduler.select(web(6))
    cell.store.claim = really  # type: ignore[method-assign]
    assert await used(scheduler) == {"VCPU": 6, "claims": 1}
    await quotas_of(scheduler).settler.sweep()
    assert await used(scheduler) == {"VCPU": 6, "claims": 1}, "its lease runs"
    await make_due(raw)
    await quotas_of(scheduler).settler.sweep()
    assert await used(scheduler) == {}
    assert (await cell.store.claim(sent[0])).outcome is Outcome.LATE
    await settled(scheduler, raw)


async def test_a_claim_that_nobody_held_is_held_after_its_lease(scheduler: Scheduler, raw: Any) -> None:
    """The scheduler died between claim and hold."""
    await scheduler.quotas.put(QUOTA)
    quotas_of(scheduler)._ledgers.hold = die  # type: ignore[assignment]
    found = await scheduler.select(web(4))
    await asyncio.gather(*quotas_of(scheduler)._later, return_exceptions=True)
    assert await raw.zrange(KEYS.deadlines, 0, -1) == [found.selections[0].claim_id]
    del quotas_of(scheduler)._ledgers.hold
    await make_due(raw)
    await quotas_of(scheduler).settler.sweep()
    await settled(scheduler, raw)
    assert await used(scheduler) == {"VCPU": 4, "claims": 1}


async def test_settling_does_not_free_what_is_being_claimed(scheduler: Scheduler, raw: Any) -> None:
    """A sweep whose clock is far ahead closes the id: the claim is decided anew, and is counted."""
    await scheduler.quotas.put(QUOTA)
    cell = next(iter(scheduler._cells))
    really = cell.store.claim

    async def swept(call: ClaimCall) -> ClaimAnswer:
        cell.store.claim = really  # type: ignore[method-assign]
        await make_due(raw)
        await quotas_of(scheduler).settler.sweep()
        answer = await really(call)
        assert answer.outcome is Outcome.LATE
        return answer

    cell.store.claim = swept  # type: ignore[method-assign]
    await scheduler.select(web(4))
    await settled(scheduler, raw)
    assert await used(scheduler) == {"VCPU": 4, "claims": 1}


async def test_whatever_ends_a_claim_frees_it(scheduler: Scheduler, raw: Any) -> None:
    """Somebody else ended it, or its lease, or its host; the scheduler that would have freed it is gone."""
    await scheduler.quotas.put(QUOTA)
    found = await scheduler.select(web(1, count=3))
    cell = next(iter(scheduler._cells))
    released, expired, failed = found.selections
    await cell.store.release(released.host, str(released.claim_id))
    await make_claim_due(raw, cell.store, str(expired.claim_id))
    await cell.store.fail(failed.host, str(failed.claim_id), str(failed.token), True)
    await worked_off(scheduler, raw)
    await settled(scheduler, raw)
    assert await used(scheduler) == {}


async def test_what_is_moved_is_counted_once(scheduler: Scheduler, raw: Any) -> None:
    """While both claims are there, and after; under the id by which its owner knows it."""
    await scheduler.quotas.put(QUOTA)
    one = (await scheduler.select(web(4, hosts=frozenset(("h1", "h2"))))).selections[0]
    await asyncio.gather(*quotas_of(scheduler)._later)
    target, _ = await scheduler.claims.move(str(one.claim_id), str(one.token))
    await asyncio.gather(*quotas_of(scheduler)._later)
    assert await used(scheduler) == {"VCPU": 4, "claims": 1}
    cell = next(iter(scheduler._cells))
    await cell.store.accept(target.host, target.id, target.token, 3600)
    await cell.store.confirm(target.host, target.id, target.token)
    await worked_off(scheduler, raw)
    await settled(scheduler, raw)
    assert await used(scheduler) == {"VCPU": 4, "claims": 1}
    await scheduler.claims.release(str(one.claim_id), force=True)
    await settled(scheduler, raw)
    assert await used(scheduler) == {}


async def test_what_is_shelved_takes_nothing_and_is_asked_for_anew(scheduler: Scheduler, raw: Any) -> None:
    await scheduler.quotas.put(QUOTA)
    one = (await scheduler.select(web(4))).selections[0]
    await scheduler.claims.shelve(str(one.claim_id), str(one.token))
    await worked_off(scheduler, raw)
    assert await used(scheduler) == {}
    other = (await scheduler.select(web(3))).selections[0]
    with pytest.raises(QuotaExceeded):
        await scheduler.claims.unshelve(str(one.claim_id))
    await scheduler.claims.release(str(other.claim_id))
    await scheduler.claims.unshelve(str(one.claim_id))
    await settled(scheduler, raw)
    assert await used(scheduler) == {"VCPU": 4, "claims": 1}


async def test_a_resize_takes_before_and_gives_back_after(scheduler: Scheduler, raw: Any) -> None:
    """One that its host runs holds the larger amounts until the host has resized it."""
    await scheduler.quotas.put(QUOTA)
    one = (await scheduler.select(web(4))).selections[0]
    cell = next(iter(scheduler._cells))
    with pytest.raises(QuotaExceeded, match="4 of 6 VCPU are used, 3 more"):
        await scheduler.claims.resize(str(one.claim_id), str(one.token), {}, {"VCPU": 7})
    grown = await scheduler.claims.resize(str(one.claim_id), str(one.token), {}, {"VCPU": 6})
    await settled(scheduler, raw)
    assert await used(scheduler) == {"VCPU": 6, "claims": 1}
    await cell.store.accept(one.host, grown.id, grown.token, 3600)
    shrunk = await scheduler.claims.resize(grown.id, grown.token, {}, {"VCPU": 1})
    assert await used(scheduler) == {"VCPU": 6, "claims": 1}
    await cell.store.resized(one.host, shrunk.id, shrunk.token, {"VCPU": 1}, ())
    await worked_off(scheduler, raw)
    await settled(scheduler, raw)
    assert await used(scheduler) == {"VCPU": 1, "claims": 1}


async def test_a_ledger_that_was_lost_is_counted_anew(scheduler: Scheduler, raw: Any) -> None:
    """Its shard was wiped while the cells were not: the next request finds the same limits and sums."""
    await scheduler.quotas.put(QUOTA)
    await scheduler.select(web(4))
    await asyncio.gather(*quotas_of(scheduler)._later)
    await raw.delete(*[key async for key in raw.scan_iter(match="rs:{quota:*")])
    with pytest.raises(QuotaExceeded):
        await scheduler.select(web(3))
    await scheduler.select(web(2))
    await settled(scheduler, raw)


async def test_a_claim_on_its_way_while_the_ledger_is_lost_is_decided_anew(scheduler: Scheduler, raw: Any) -> None:
    """Its reservation is gone, and somebody has counted before it was made."""
    await scheduler.quotas.put(QUOTA)
    cell = next(iter(scheduler._cells))
    really = cell.store.claim

    async def after_a_loss(call: ClaimCall) -> ClaimAnswer:
        cell.store.claim = really  # type: ignore[method-assign]
        await raw.delete(*[key async for key in raw.scan_iter(match="rs:{quota:*")])
        await scheduler.select(web(4))
        answer = await really(call)
        assert answer.outcome is Outcome.BEHIND
        return answer

    cell.store.claim = after_a_loss  # type: ignore[method-assign]
    with pytest.raises(QuotaExceeded, match="4 of 6"):
        await scheduler.select(web(3))
    await settled(scheduler, raw)


async def test_while_hosts_attest_anew_a_quota_is_settling_and_then_exact(scheduler: Scheduler, raw: Any) -> None:
    """A cell may have lost claims: what its hosts bring back is counted, and projects without a quota go on."""
    await scheduler.quotas.put(QUOTA)
    await scheduler.select(web(4, hosts=frozenset(("h1",))))
    await asyncio.gather(*quotas_of(scheduler)._later)
    cell = next(iter(scheduler._cells)).store
    epoch = await new_epoch(cell)
    await cell.attest("h1", epoch)
    with pytest.raises(Settling):
        await scheduler.select(web(1, hosts=frozenset(("h1",))))
    await scheduler.select(Request({"VCPU": 1}, hosts=frozenset(("h1",))))
    for host in ("h2", "h3"):
        await cell.attest(host, epoch)
    with pytest.raises(QuotaExceeded):
        await scheduler.select(web(3))
    await scheduler.select(web(2))
    await settled(scheduler, raw)


async def test_a_move_does_not_wait_for_a_count(scheduler: Scheduler, raw: Any) -> None:
    """It takes no more than what it moves, which the count will find; what is new waits, and then all is exact."""
    await scheduler.quotas.put(QUOTA)
    one = (await scheduler.select(web(4, hosts=frozenset(("h1", "h2"))))).selections[0]
    await asyncio.gather(*quotas_of(scheduler)._later)
    cell = next(iter(scheduler._cells)).store
    epoch = await new_epoch(cell)
    for host in ("h1", "h2"):
        await cell.attest(host, epoch)
    target, fresh = await scheduler.claims.move(str(one.claim_id), str(one.token))
    assert (fresh, {one.host, target.host}, target.quota) == (True, {"h1", "h2"}, True)
    with pytest.raises(Settling):
        await scheduler.select(web(1, hosts=frozenset(("h1",))))
    await cell.attest("h3", epoch)
    with pytest.raises(QuotaExceeded, match="4 of 6 VCPU"):
        await scheduler.select(web(3))
    await cell.accept(target.host, target.id, target.token, 3600)
    await cell.confirm(target.host, target.id, target.token)
    await worked_off(scheduler, raw)
    await settled(scheduler, raw)
    assert await used(scheduler) == {"VCPU": 4, "claims": 1}
    assert (await scheduler.audit()).problems == ()


async def test_a_move_while_a_count_is_under_way_is_decided_anew(scheduler: Scheduler, raw: Any) -> None:
    """The cells settle, and a count recalls and reads, between its decision and its claim."""
    await scheduler.quotas.put(QUOTA)
    one = (await scheduler.select(web(4, hosts=frozenset(("h1", "h2"))))).selections[0]
    await asyncio.gather(*quotas_of(scheduler)._later)
    cell = next(iter(scheduler._cells))
    epoch = await new_epoch(cell.store)
    for host in ("h1", "h2"):
        await cell.store.attest(host, epoch)
    await cell.mirror.catch_up()
    really, outcomes = cell.store.claim, list[Outcome]()

    async def counted(call: ClaimCall) -> ClaimAnswer:
        cell.store.claim = really  # type: ignore[method-assign]
        await cell.store.attest("h3", epoch)
        await cell.mirror.catch_up()
        assert await quotas_of(scheduler).counting.counted("web")
        answer = await really(call)
        outcomes.append(answer.outcome)
        return answer

    cell.store.claim = counted  # type: ignore[method-assign]
    await scheduler.claims.move(str(one.claim_id), str(one.token))
    assert outcomes == [Outcome.BEHIND]
    await settled_by_id(scheduler, raw)


async def settled_by_id(scheduler: Scheduler, raw: Any) -> None:
    """Nothing is reserved, and what is moved is counted once."""
    await asyncio.gather(*quotas_of(scheduler)._later)
    assert await raw.zcard(KEYS.deadlines) == 0
    assert await used(scheduler) == {"VCPU": 4, "claims": 1}


async def test_a_wiped_store_knows_no_quota_until_it_is_declared_again(scheduler: Scheduler, raw: Any) -> None:
    await scheduler.quotas.put(QUOTA)
    await scheduler.select(web(4))
    await asyncio.gather(*quotas_of(scheduler)._later)
    await raw.flushall()
    await next(iter(scheduler._cells)).store.init()
    with pytest.raises(Unknown):
        await scheduler.quotas.get("web")
    assert not await quotas_of(scheduler).counting.counted("web"), "whoever still takes it for declared hears so"
    assert [key async for key in raw.scan_iter(match="rs:{quota:*")] == []
    found, new = await scheduler.quotas.put(QUOTA)
    assert (found.used, new) == ({}, True)


async def test_a_cell_that_lost_its_declaration_gets_it_back(two_cells: Scheduler, raw: Any) -> None:
    """The first cell has it: nothing is claimed past it in another one that was wiped."""
    await two_cells.quotas.put(QUOTA)
    await two_cells.select(web(4, hosts=frozenset(("a1",))))
    await asyncio.gather(*quotas_of(two_cells)._later)
    await raw.delete(*[key async for key in raw.scan_iter(match="rs:{b}:*")])
    second = two_cells._cells.named("b").store
    await second.init()
    epoch = (await second.tick()).epoch
    await wait_until(lambda: two_cells._cells.named("b").mirror.epoch == epoch)
    with pytest.raises(QuotaExceeded):
        await two_cells.select(web(3))
    assert await second.declared_names(Kind.QUOTA) == ["web"]
    await settled(two_cells, raw)


async def test_a_scheduler_that_has_not_heard_of_a_quota_does_not_take_its_chores_for_done(
    clean_store: str, raw: Any
) -> None:
    """Else the ledger would count for ever what has ended."""
    async with at_work(clean_store, 8) as work, Scheduler.connect(clean_store, BY_HAND) as behind:
        placed = await work.active(web(3, claim_ids=("x",)))
        cell = behind._cells.named("c1")
        await cell.mirror.stop()
        await work.scheduler.quotas.put(QUOTA)
        await work.store.gone("h0", "x", placed.token, Why.RELEASED, {})
        await cell.chores.work_off()
        assert await raw.hget(cell.store.keys.claim("x"), "quota") == "1", "it is left to who knows of it"

        async def is_freed() -> bool:
            await work.sweep()
            return await used(work.scheduler) == {}

        await wait_until(is_freed, what="who knows of it has freed it")
