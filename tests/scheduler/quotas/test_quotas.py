"""Quotas in one cell: exact, with the numbers in each refusal, and exact again after a loss of data."""

from typing import Any

import pytest

from redsched.errors import ClaimState, NotFound, NoValidHost, QuotaExceeded, Settling
from redsched.model import Exceeded, Quota, Request
from redsched.model.filters import UsageBy
from redsched.model.records.problems import QuotaFacts
from redsched.model.validation import MAX_AMOUNT
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.cell import CellStore
from tests.scheduler.quotas.calls import scripts_about_claims
from tests.support.builders.cells import new_epoch, open_host, raw_client

QUOTA = Quota("web", {"VCPU": 6, "claims": 3})


def web(vcpu: int = 1, **more: Any) -> Request:
    return Request({"VCPU": vcpu}, project="web", **more)


def first_of(scheduler: Scheduler) -> CellStore:
    return next(iter(scheduler.cells)).store


async def used(scheduler: Scheduler) -> dict[str, int]:
    """Return what the quota shows as used; it must equal what the project's claims hold."""
    says = {name: amount for name, amount in (await scheduler.quotas.get("web")).used.items() if amount}
    rows = await scheduler.usage((UsageBy.CLASS, UsageBy.PROJECT))
    assert says == next((dict(row.used) for row in rows if row.project == "web"), {})
    return says


async def test_a_project_gets_what_its_quota_allows_and_no_more(scheduler: Scheduler) -> None:
    """The refusal shows the numbers; other projects, and requests without a project, are not limited."""
    found, new = await scheduler.quotas.put(QUOTA)
    assert (found.limits, found.used, new) == ({"VCPU": 6, "claims": 3}, {"VCPU": 0, "claims": 0}, True)
    await scheduler.select(web(4))
    with pytest.raises(QuotaExceeded, match="4 of 6 VCPU are used, 3 more") as refused:
        await scheduler.select(web(3))
    assert refused.value.facts == QuotaFacts(project="web", exceeded=(Exceeded("VCPU", 6, 4, 3),))
    await scheduler.select(Request({"VCPU": 3}, project="other"))
    await scheduler.select(Request({"VCPU": 1}))
    await scheduler.select(web(2))
    assert await used(scheduler) == {"VCPU": 6, "claims": 2}


async def test_the_places_of_one_request_are_counted_together(scheduler: Scheduler) -> None:
    await scheduler.quotas.put(QUOTA)
    with pytest.raises(QuotaExceeded) as refused:
        await scheduler.select(web(2, count=4))
    assert [(one.resource, one.asked) for one in refused.value.facts.exceeded] == [("VCPU", 8), ("claims", 4)]
    await scheduler.select(web(2, count=3))
    await used(scheduler)


async def test_who_releases_can_claim_again_at_once(scheduler: Scheduler) -> None:
    """A release frees the quota itself; no sweep is needed."""
    await scheduler.quotas.put(QUOTA)
    for _ in range(5):
        found = await scheduler.select(web(6))
        assert await scheduler.claims.release(str(found.selections[0].claim_id))
    assert await used(scheduler) == {}


async def test_a_claim_counts_until_its_host_says_that_the_work_is_gone(scheduler: Scheduler) -> None:
    await scheduler.quotas.put(QUOTA)
    one = (await scheduler.select(web(6))).selections[0]
    cell = next(iter(scheduler.cells)).store
    await cell.claims.accept(one.host, str(one.claim_id), str(one.token), 3600)
    assert not await scheduler.claims.release(str(one.claim_id))
    with pytest.raises(QuotaExceeded):
        await scheduler.select(web(1))
    await scheduler.claims.release(str(one.claim_id), force=True)
    await scheduler.select(web(6))


async def test_what_no_host_can_take_uses_nothing(scheduler: Scheduler) -> None:
    """A refused id may be tried again, whether no host or the quota refused it."""
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
    await used(scheduler)


async def test_ids_sent_again_are_counted_once_and_get_their_outcome(scheduler: Scheduler) -> None:
    """A used-up quota does not change that; an id whose claim has ended is refused."""
    await scheduler.quotas.put(QUOTA)
    first = await scheduler.select(web(6, claim_ids=("mine",)))
    again = await scheduler.select(web(6, claim_ids=("mine",)))
    assert (again.selections[0].token, again.fresh) == (first.selections[0].token, False)
    await used(scheduler)
    await scheduler.claims.release("mine")
    await scheduler.select(web(6))
    with pytest.raises(ClaimState):
        await scheduler.select(web(6, claim_ids=("mine",)))
    await used(scheduler)


async def test_claims_from_before_the_quota_are_counted_and_freed(scheduler: Scheduler) -> None:
    before = (await scheduler.select(web(4))).selections[0]
    found, _ = await scheduler.quotas.put(QUOTA)
    assert found.used == {"VCPU": 4, "claims": 1}
    with pytest.raises(QuotaExceeded):
        await scheduler.select(web(3))
    await scheduler.claims.release(str(before.claim_id))
    await scheduler.select(web(6))
    await used(scheduler)


async def test_limits_can_change_below_what_is_used(scheduler: Scheduler) -> None:
    await scheduler.quotas.put(QUOTA)
    await scheduler.select(web(6))
    found, new = await scheduler.quotas.put(Quota("web", {"VCPU": 2}))
    assert (found.limits, found.used, new) == ({"VCPU": 2}, {"VCPU": 6, "claims": 1}, False)
    with pytest.raises(QuotaExceeded):
        await scheduler.select(web(1))


async def test_lists_come_in_pages_by_project(scheduler: Scheduler) -> None:
    for number in (3, 1, 2):
        await scheduler.quotas.put(Quota(f"p{number}", {"VCPU": number}))
    first = await scheduler.quotas.list(limit=2)
    rest = await scheduler.quotas.list(limit=2, after=first.next or "")
    assert [(one.project, one.limits) for one in first.items + rest.items] == [
        (f"p{n}", {"VCPU": n}) for n in (1, 2, 3)
    ]


async def test_a_dry_run_is_refused_as_the_claim_would_be(scheduler: Scheduler) -> None:
    await scheduler.quotas.put(QUOTA)
    assert (await scheduler.select(web(6, claim=False))).selections
    await scheduler.select(web(5))
    with pytest.raises(QuotaExceeded, match="5 of 6 VCPU"):
        await scheduler.select(web(2, claim=False))
    await used(scheduler)


async def test_an_explanation_says_what_the_quota_does_not_allow(scheduler: Scheduler) -> None:
    """It counts all places together, even where they fit; while hosts attest, the usage is unknown."""
    await scheduler.quotas.put(QUOTA)
    await scheduler.select(web(4))
    found = await scheduler.explain(web(1, count=3))
    assert found.exceeded == (Exceeded("VCPU", 6, 4, 3), Exceeded("claims", 3, 1, 3))
    assert found.fits == 3
    assert (await scheduler.explain(web(2))).exceeded == ()
    assert (await scheduler.explain(Request({"VCPU": 99}, project="other"))).exceeded == ()
    await new_epoch(next(iter(scheduler.cells)).store)
    assert (await scheduler.explain(web(2))).exceeded is None


async def test_a_claim_under_a_quota_is_one_call(scheduler: Scheduler) -> None:
    await scheduler.quotas.put(QUOTA)
    with scripts_about_claims(scheduler) as called:
        await scheduler.select(web())
    assert called == ["claim"]


async def test_what_is_shelved_takes_nothing_and_is_asked_for_again(scheduler: Scheduler) -> None:
    await scheduler.quotas.put(QUOTA)
    one = (await scheduler.select(web(4))).selections[0]
    await scheduler.claims.shelve(str(one.claim_id), str(one.token))
    assert await used(scheduler) == {}
    other = (await scheduler.select(web(3))).selections[0]
    with pytest.raises(QuotaExceeded):
        await scheduler.claims.unshelve(str(one.claim_id))
    await scheduler.claims.release(str(other.claim_id))
    await scheduler.claims.unshelve(str(one.claim_id))
    assert await used(scheduler) == {"VCPU": 4, "claims": 1}


async def test_a_resize_takes_before_and_releases_after(scheduler: Scheduler) -> None:
    """A claim whose work runs holds the larger amounts until its host has resized it."""
    await scheduler.quotas.put(QUOTA)
    one = (await scheduler.select(web(4))).selections[0]
    cell = next(iter(scheduler.cells))
    with pytest.raises(QuotaExceeded, match="4 of 6 VCPU are used, 3 more"):
        await scheduler.claims.resize(str(one.claim_id), str(one.token), {"VCPU": 7})
    grown = await scheduler.claims.resize(str(one.claim_id), str(one.token), {"VCPU": 6})
    assert await used(scheduler) == {"VCPU": 6, "claims": 1}
    await cell.store.claims.accept(one.host, grown.claim_id, grown.token, 3600)
    shrunk = await scheduler.claims.resize(grown.claim_id, grown.token, {"VCPU": 1})
    assert await used(scheduler) == {"VCPU": 6, "claims": 1}
    await cell.store.claims.resized(one.host, shrunk.claim_id, shrunk.token, {"VCPU": 1}, ())
    assert await used(scheduler) == {"VCPU": 1, "claims": 1}


async def test_while_hosts_attest_again_a_quota_is_settling_and_then_exact(scheduler: Scheduler) -> None:
    """The cell may have lost claims: restored ones are counted, and projects without a quota are not held up."""
    await scheduler.quotas.put(QUOTA)
    await scheduler.select(web(4, hosts=frozenset(("h1",))))
    cell = next(iter(scheduler.cells)).store
    epoch = await new_epoch(cell)
    await cell.hosts.attest("h1", epoch)
    with pytest.raises(Settling):
        await scheduler.select(web(1, hosts=frozenset(("h1",))))
    await scheduler.select(Request({"VCPU": 1}, hosts=frozenset(("h1",))))
    for host in ("h2", "h3"):
        await cell.hosts.attest(host, epoch)
    with pytest.raises(QuotaExceeded):
        await scheduler.select(web(3))
    await scheduler.select(web(2))
    await used(scheduler)


async def test_a_wiped_store_knows_no_quota_until_it_is_declared_again(scheduler: Scheduler, clean_store: str) -> None:
    await scheduler.quotas.put(QUOTA)
    await scheduler.select(web(4))
    async with raw_client(clean_store) as raw:
        await raw.flushall()
    await first_of(scheduler).init()
    with pytest.raises(NotFound):
        await scheduler.quotas.get("web")
    found, new = await scheduler.quotas.put(QUOTA)
    assert (found.used, new) == ({"VCPU": 0, "claims": 0}, True)


async def test_audits_hold_what_is_used_to_the_claims_and_repair_it(scheduler: Scheduler, clean_store: str) -> None:
    """This includes the usage of a project without limits."""
    await scheduler.quotas.put(QUOTA)
    await scheduler.select(web(4))
    await scheduler.select(Request({"VCPU": 1}, project="other"))
    keys = first_of(scheduler).keys
    async with raw_client(clean_store) as raw:
        await raw.hset(keys.quota("web"), mapping={"used.VCPU": "1", "used.MEMORY_MB": "5"})
        await raw.delete(keys.quota("other"))
    problems = {(one.thing, one.found, one.should) for one in (await scheduler.audit()).problems}
    assert problems == {
        ("quota:web used.VCPU", "1", "4"),
        ("quota:web used.MEMORY_MB", "5", "0"),
        ("quota:other used.VCPU", "0", "1"),
        ("quota:other used.claims", "0", "1"),
    }
    assert (await scheduler.repair()).broken == ()
    assert (await scheduler.audit()).problems == ()
    assert await used(scheduler) == {"VCPU": 4, "claims": 1}


async def test_a_project_without_a_quota_uses_no_more_than_can_be_counted(clean_store: str) -> None:
    async with Scheduler.connect(clean_store, Settings()) as scheduler:
        await scheduler.init()
        for name in ("h1", "h2"):
            await open_host(next(iter(scheduler.cells)).store, name, VCPU=MAX_AMOUNT)
        await scheduler.select(web(5 * 10**15))
        with pytest.raises(QuotaExceeded, match=r"web would use more than can be counted.*request less") as refused:
            await scheduler.select(web(5 * 10**15))
        [exceeded] = refused.value.facts.exceeded
        assert (exceeded.limit, exceeded.used) == (MAX_AMOUNT, 5 * 10**15)
        await scheduler.select(web(MAX_AMOUNT - 5 * 10**15))
        assert (await scheduler.audit()).problems == ()
