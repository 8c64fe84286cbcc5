"""Claims that their hosts restored after the store was wiped are placed elsewhere like any other claim."""

from dataclasses import replace

import pytest

from redsched.errors import ClaimState, Settling
from redsched.model import Claim, ClaimStatus, EndReason, OnExit, Request
from redsched.store.codec.claim_fields import request_name
from tests.scheduler.working import QUICK, Work, at_work
from tests.support.builders.cells import raw_client
from tests.support.builders.placements import ended, let_settle
from tests.support.fleets.hosts import speak_all
from tests.support.waiting import wait_until

MINE = Request({"VCPU": 2}, claim_ids=("mine",), project="web", owner="ann", consumer="job")


async def brought_back(work: Work, url: str, request: Request = MINE) -> Claim:
    """Return a claim on h0 in a settled cell that only its host and the journaled request preserved over a wipe."""
    claim = await work.active(request)
    text = await work.store.texts.get(request_name(claim.digest))
    assert text is not None
    async with raw_client(url) as raw:
        await raw.flushall()
        await speak_all(work.hosts)
        await work.store.texts.restore(request_name(claim.digest), text)
        await let_settle(work.store, raw)
    await work.sweep()
    back = await work.scheduler.claims.get("mine")
    assert (back.token, back.host, back.state) == (claim.token, "h0", ClaimStatus.ACTIVE)
    return back


async def is_on_h1(work: Work) -> None:
    """Let hosts and scheduler work until the claim runs on h1 alone, with the amounts it was requested with."""

    async def is_so() -> bool:
        await work.work()
        await work.sweep()
        claim = await work.scheduler.claims.get("mine")
        return await work.held() == {"h1": ["mine"]} and claim.state is ClaimStatus.ACTIVE

    await wait_until(is_so, timeout=30, what="it runs on h1 alone")
    claim = await work.scheduler.claims.get("mine")
    assert (claim.slots, claim.project, claim.owner, claim.consumer) == ({"VCPU": 2}, "web", "ann", "job")
    await work.is_sound()


async def test_it_is_moved(clean_store: str) -> None:
    async with at_work(clean_store, 4, 4) as work:
        claim = await brought_back(work, clean_store)
        await work.scheduler.claims.move("mine", claim.token)
        await is_on_h1(work)


async def test_it_leaves_a_host_that_is_drained(clean_store: str) -> None:
    async with at_work(clean_store, 4, 4) as work:
        await brought_back(work, clean_store)
        await work.scheduler.hosts.drain("h0", move=True)
        await is_on_h1(work)


async def test_it_leaves_a_host_that_is_evacuated(clean_store: str) -> None:
    async with at_work(clean_store, 4, 4) as work:
        await brought_back(work, clean_store)
        await work.scheduler.hosts.write_off("h0", evacuate=True, force=True)
        work.hosts = work.hosts[1:]
        await is_on_h1(work)


async def test_it_is_replaced_when_its_host_fails_it(clean_store: str) -> None:
    async with at_work(clean_store, 4, 4) as work:
        claim = await brought_back(work, clean_store, replace(MINE, on_exit=OnExit.REPLACE))
        answer = await work.store.claims.fail("h0", "mine", claim.token, by_host=True)
        assert answer.facts == ("pending",)
        await is_on_h1(work)


async def test_its_end_that_only_its_host_knows_is_the_answer_to_a_repeat(clean_store: str) -> None:
    """Nothing has its request any more. The ended claim is not that of another request."""
    async with at_work(clean_store, 4, 4) as work:
        claim = await work.active(MINE)
        work.hosts[0].held.clear()
        work.hosts[0].ended["mine"] = ended(
            "mine", claim.token, end_reason=EndReason.WORK_ENDED, was_active=True, ended_ago_ms=0
        )
        async with raw_client(clean_store) as raw:
            await raw.flushall()
            await speak_all(work.hosts)
            await let_settle(work.store, raw)
        with pytest.raises(ClaimState, match="claim mine has ended or is ending: use new ids"):
            await work.scheduler.select(MINE)


@pytest.mark.parametrize("lapsed", [True, False])
async def test_an_active_claim_stays_where_it_is_while_its_host_is_silent(clean_store: str, lapsed: bool) -> None:
    """A silent host may still run its work: only an operator can have the claim placed elsewhere."""
    async with at_work(clean_store, 4, 4) as work, raw_client(clean_store) as raw:
        before = await work.active(MINE)
        if lapsed:
            await raw.hset(work.store.keys.host("h0"), "alive_until_ms", 1)
            await raw.zadd(work.store.keys.hosts, {"h0": 1})
            assert await work.store.hosts.mark_down(["h0"]) == 1
        else:
            await work.store.raise_epoch((await work.store.tick()).epoch)
            await work.hosts[1].speak()
            await let_settle(work.store, raw)
        for _ in range(3):
            await work.sweep()
            await work.store.claims.reconcile(["mine"])
        now = await work.scheduler.claims.get("mine")
        assert (now.token, now.state, len(now.placements)) == (before.token, ClaimStatus.ACTIVE, 1)
        assert await work.held() == {"h0": ["mine"]}


async def test_the_cell_settles_once_the_hosts_that_schedulers_remember_have_attested(clean_store: str) -> None:
    """Until then a refusal says how many are missing, and how long it takes at most; nobody waits for `settle_s`."""
    async with at_work(clean_store, 4, 4, settings=QUICK) as work, raw_client(clean_store) as raw:
        await raw.flushall()
        await work.hosts[0].speak()

        async def refusal_names_one() -> bool:
            with pytest.raises(Settling) as refused:
                await work.scheduler.select(MINE)
            return "(1 host missing; cell c1 settles in " in refused.value.detail

        await wait_until(refusal_names_one, timeout=30, what="the refusal names the number of missing hosts")
        assert (await work.scheduler.status()).cells[0].unattested == 1
        await work.hosts[1].speak()

        async def is_settled() -> bool:
            return (await work.store.tick()).settled

        await wait_until(is_settled, timeout=30, what="the cell settles")
        assert (await work.store.status.head()).settle_at_ms > (await work.store.tick()).now_ms
        assert (await work.scheduler.select(MINE)).selections[0].claim_id == "mine"


async def test_the_cell_waits_for_no_host_that_was_written_off(clean_store: str) -> None:
    """Its machine may never come back."""
    async with at_work(clean_store, 4, 4, settings=QUICK) as work, raw_client(clean_store) as raw:
        await work.scheduler.hosts.write_off("h1", force=True)
        await work.scheduler.cells.catch_up()
        await raw.flushall()
        await work.hosts[0].speak()

        async def is_settled() -> bool:
            return (await work.store.tick()).settled

        await wait_until(is_settled, timeout=30, what="the cell settles")
        assert (await work.store.status.head()).settle_at_ms > (await work.store.tick()).now_ms


async def test_hosts_are_not_forgotten_before_the_clock_of_the_new_epoch_is_read(clean_store: str) -> None:
    """A sweep may come between the snapshot of a wiped cell and the next poll."""
    async with at_work(clean_store, 4, 4) as work, raw_client(clean_store) as raw:
        updater = work.scheduler.cells.named("c1").updater
        await updater.catch_up()
        before = updater._clock
        await raw.flushall()
        await work.hosts[0].speak()
        await updater.catch_up()
        updater._clock = before
        await updater.report_missing()
        assert updater._remembered.missing(updater.columns) == 1
