"""Selecting in one cell: what is claimed, what is returned, and when a request is refused."""

import pytest

from redsched.errors import ClaimIdReused, ClaimState, NoValidHost, Settling
from redsched.model import ClaimStatus, GangMember, ReasonCount, Request
from redsched.model.records.explanations import Miss
from redsched.model.records.problems import ClaimStateFacts
from redsched.scheduler import Scheduler
from redsched.scheduler.results import Effort
from redsched.settings import Settings
from redsched.store.store import Store
from tests.scheduler.conftest import ONE_AT_A_TIME, report_of
from tests.scheduler.working import at_work
from tests.support.builders.cells import make_due, open_host, raw_client
from tests.support.builders.placements import roll_back, snapshot

ALL_OF_H1 = Request({"VCPU": 8})


async def claims_of(scheduler: Scheduler) -> dict[str, str]:
    """Return the host of each claim in the store, by claim id."""
    return {claim.claim_id: claim.host for claim in (await scheduler.claims.list()).items}


async def test_the_best_host_is_claimed(scheduler: Scheduler) -> None:
    """The store holds what was returned, under an id that names the cell."""
    found = (await scheduler.select(Request({"VCPU": 2, "MEMORY_MB": 512}, project="web"))).selections[0]
    assert (found.host, found.cell, found.state) == ("h1", "c1", ClaimStatus.CLAIMED)
    claim = await scheduler.claims.get(found.claim_id or "")
    assert claim.claim_id.startswith("c1.")
    assert (claim.host, claim.token, claim.project) == ("h1", found.token, "web")
    assert claim.slots == {"VCPU": 2, "MEMORY_MB": 512}
    assert claim.expires_at_ms == found.expires_at_ms


async def test_own_claims_show_at_once(scheduler: Scheduler) -> None:
    """The next decision of the same process sees the previous claim, without a poll between them."""
    hosts = [(await scheduler.select(Request({"VCPU": 4}))).selections[0].host for _ in range(4)]
    assert sorted(hosts) == ["h1", "h1", "h2", "h3"]


async def test_a_dry_run_writes_nothing(scheduler: Scheduler) -> None:
    """It shows the host that a claim would get, without an id."""
    found = await scheduler.select(Request({"VCPU": 2}, claim=False, alternates=5))
    assert found.selections[0].host == "h1"
    assert found.selections[0].claim_id is None
    assert found.selections[0].alternates == ("h2", "h3")
    assert await claims_of(scheduler) == {}


async def test_alternates_are_other_hosts_that_fit(scheduler: Scheduler) -> None:
    """There are at most as many as requested, none of them a chosen host or one without capacity."""
    found = await scheduler.select(Request({"VCPU": 5}, alternates=50))
    assert (found.selections[0].host, found.selections[0].alternates) == ("h1", ("h2",))
    one_of_two = await scheduler.select(Request({"VCPU": 1}, alternates=1, claim=False))
    assert len(one_of_two.selections[0].alternates) == 1
    both = await scheduler.select(Request({"VCPU": 3}, count=2, alternates=2))
    chosen = {one.host for one in both.selections}
    for one in both.selections:
        assert not chosen & set(one.alternates)


async def test_many_places_are_claimed_whole(scheduler: Scheduler) -> None:
    """8, 6 and 4 VCPU hold 2 + 2 + 1 places of 3 VCPU, although the sum would be enough for six."""
    found = await scheduler.select(Request({"VCPU": 3}, count=5))
    assert sorted(one.host for one in found.selections) == ["h1", "h1", "h2", "h2", "h3"]
    assert len(await claims_of(scheduler)) == 5


async def test_many_places_or_none(scheduler: Scheduler) -> None:
    """A request for one place too many leaves no claim."""
    with pytest.raises(NoValidHost) as refused:
        await scheduler.select(Request({"VCPU": 3}, count=6))
    assert refused.value.facts.reasons == (ReasonCount("count", 3),)
    assert await claims_of(scheduler) == {}


async def test_ids_sent_again_give_the_first_outcome(scheduler: Scheduler) -> None:
    """This holds also when no capacity is left for the request."""
    first = await scheduler.select(Request({"VCPU": 8}, claim_ids=("mine",)))
    await scheduler.select(Request({"VCPU": 1}, count=10))
    again = await scheduler.select(Request({"VCPU": 8}, claim_ids=("mine",)))
    assert first.fresh
    assert not again.fresh
    assert again.selections[0].token == first.selections[0].token
    assert len(await claims_of(scheduler)) == 11


async def test_an_id_with_other_content_is_refused(scheduler: Scheduler) -> None:
    """Other amounts are refused, and so is a mix of known and unknown ids."""
    await scheduler.select(Request({"VCPU": 1}, claim_ids=("mine",)))
    with pytest.raises(ClaimIdReused):
        await scheduler.select(Request({"VCPU": 2}, claim_ids=("mine",)))
    with pytest.raises(ClaimIdReused):
        await scheduler.select(Request({"VCPU": 1}, claim_ids=("mine", "new"), count=2))
    assert await claims_of(scheduler) == {"mine": "h1"}


async def test_ids_of_which_the_store_has_lost_some_say_which_are_left(clean_store: str) -> None:
    """A claim that is left may have run for long, so its owner decides. Until the cell settles, the call fails."""
    async with at_work(clean_store, 8, 8) as work, raw_client(clean_store) as raw:
        there = [GangMember(host, Request({"VCPU": 1}, hosts=frozenset({host}))) for host in ("h0", "h1")]
        request = Request(members=tuple(there), claim_ids=("one", "two"))
        before = await snapshot(raw)
        await work.scheduler.select(request)
        await work.work([0])
        await roll_back(work.store, raw, before)
        await work.hosts[0].speak()
        with pytest.raises(Settling):
            await work.scheduler.select(request)
        await work.hosts[1].speak()
        with pytest.raises(ClaimState, match="only one is known: the store has lost two") as refused:
            await work.scheduler.select(request)
        assert refused.value.facts == ClaimStateFacts(claims={"one": ClaimStatus.ACTIVE}, unknown=("two",))
        assert await work.store.hosts.claim_ids("h0") == {"one"}


async def test_the_id_of_an_ended_claim_is_not_used_again(scheduler: Scheduler) -> None:
    """A late retry must not claim again what was released."""
    await scheduler.select(Request({"VCPU": 1}, claim_ids=("mine",)))
    assert await scheduler.claims.release("mine")
    with pytest.raises(ClaimState):
        await scheduler.select(Request({"VCPU": 1}, claim_ids=("mine",)))


async def test_which_of_several_ids_has_ended_is_reported(scheduler: Scheduler) -> None:
    """The other claims are still held, and the caller has to know that."""
    request = Request({"VCPU": 1}, claim_ids=("one", "two"), count=2)
    await scheduler.select(request)
    await scheduler.claims.release("two")
    with pytest.raises(ClaimState, match="claim two has ended") as refused:
        await scheduler.select(request)
    assert refused.value.facts == ClaimStateFacts(claims={"one": ClaimStatus.CLAIMED, "two": ClaimStatus.ENDED})


async def test_a_refused_id_may_be_tried_again(scheduler: Scheduler) -> None:
    """A refusal is not an outcome of the id."""
    first = await scheduler.select(ALL_OF_H1)
    with pytest.raises(NoValidHost):
        await scheduler.select(Request({"VCPU": 8}, claim_ids=("mine",)))
    await scheduler.claims.release(first.selections[0].claim_id or "")
    assert (await scheduler.select(Request({"VCPU": 8}, claim_ids=("mine",)))).fresh


async def test_a_refusal_has_reasons_and_the_nearest(scheduler: Scheduler) -> None:
    """Each host counts once; the nearest host is named with its numbers."""
    await scheduler.hosts.disable("h3")
    await scheduler.select(ALL_OF_H1)
    with pytest.raises(NoValidHost) as refused:
        await scheduler.select(Request({"VCPU": 5, "MEMORY_MB": 7000}))
    reasons = {one.reason: one.hosts for one in refused.value.facts.reasons}
    assert reasons == {"disabled": 1, "VCPU": 1, "MEMORY_MB": 1}
    expected = Miss("h2", {"MEMORY_MB": 7000}, {"MEMORY_MB": 6144}, ("856 MEMORY_MB less",))
    assert refused.value.facts.nearest[0] == expected


async def test_what_another_process_answered_is_seen(scheduler: Scheduler, clean_store: str) -> None:
    """A release, a report and a disabled host at one scheduler affect the next request at another."""
    async with Scheduler.connect(clean_store, ONE_AT_A_TIME) as other:
        first = await other.select(ALL_OF_H1)
        with pytest.raises(NoValidHost):
            await scheduler.select(ALL_OF_H1)
        await other.claims.release(first.selections[0].claim_id or "")
        second = await scheduler.select(ALL_OF_H1)
        await other.hosts.report(report_of("h9", VCPU=8))
        assert (await scheduler.select(ALL_OF_H1)).selections[0].host == "h9"
        await scheduler.claims.release(second.selections[0].claim_id or "")
        await other.hosts.disable("h1")
        with pytest.raises(NoValidHost):
            await scheduler.select(ALL_OF_H1)


async def test_an_expired_claim_does_not_cause_a_refusal(clean_store: str) -> None:
    """Before it refuses, a scheduler ends expired claims, whether or not a sweep has run."""
    async with Store.connect(clean_store) as store, Scheduler.connect(clean_store, Settings(tick_s=3600)) as seldom:
        await open_host(store.cell("c1"))
        claimed = await seldom.select(ALL_OF_H1)
        async with raw_client(clean_store) as raw:
            await make_due(raw, store.cell("c1"), claimed.selections[0].claim_id or "")
        assert (await seldom.select(ALL_OF_H1)).selections[0].host == "h1"


async def test_a_lost_race_takes_one_call(scheduler: Scheduler, clean_store: str, efforts: list[Effort]) -> None:
    """The best host turns out to be full: the same call claims the next candidate, and nothing is retried."""
    async with Scheduler.connect(clean_store, ONE_AT_A_TIME) as other:
        await other.select(ALL_OF_H1)
        found = await scheduler.select(Request({"VCPU": 4}))
    assert found.selections[0].host == "h2"
    assert (efforts[-1].outcome, efforts[-1].calls, efforts[-1].retries) == ("claimed", 1, 0)


async def test_explain_tells_every_check_of_a_host(scheduler: Scheduler) -> None:
    """It counts over all hosts, and shows each check of the named host with its numbers."""
    found = await scheduler.explain(Request({"VCPU": 5}), "h3")
    assert (found.hosts, found.fits) == (3, 2)
    check = next(one for one in found.checks[0].checks if not one.ok)
    assert check.name == "VCPU"
    assert check.detail.startswith("needs 5 VCPU, free 4")
