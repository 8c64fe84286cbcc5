"""Hosts that were written off without an evacuation: nothing waits for them any more."""

from redsched.model import ClaimStatus, EndReason, Request
from tests.scheduler.working import at_work
from tests.support.builders.cells import raw_client


async def test_what_was_ending_ends_with_the_word_that_its_host_is_lost(clean_store: str) -> None:
    """It keeps its end reason. An active claim stays until it is released; a host that returns stops both."""
    async with at_work(clean_store, 8) as work:
        await work.active(Request({"VCPU": 2}, claim_ids=("ends",)))
        await work.active(Request({"VCPU": 1}, claim_ids=("runs",)))
        await work.scheduler.claims.release("ends")
        await work.scheduler.hosts.write_off("h0", force=True)
        ended = await work.scheduler.claims.get("ends")
        assert (ended.state, ended.end_reason, await work.held()) == (
            ClaimStatus.ENDED,
            EndReason.RELEASED,
            {"h0": ["runs"]},
        )
        await work.is_sound()
        assert await work.scheduler.claims.release("runs")
        await work.hosts[0].speak()
        assert await work.held() == {"h0": ["ends", "runs"]}
        await work.work()
        assert (work.hosts[0].held, await work.held()) == ({}, {})


async def test_a_move_to_a_host_that_was_written_off_ends_with_its_lease(clean_store: str) -> None:
    """The target was starting there: the source stays active, and the claim can be moved again."""
    async with at_work(clean_store, 4, 4, 4) as work, raw_client(clean_store) as raw:
        claim = await work.active(Request({"VCPU": 2}, claim_ids=("mine",)))
        target = await work.scheduler.claims.move("mine", claim.token)
        await work.store.claims.accept(target.host, target.claim_id, target.token, 60)
        await work.scheduler.hosts.write_off(target.host, force=True)
        await raw.hset(work.store.keys.claim("mine"), f"placement.{target.placed}.expires_at_ms", 1)
        await raw.zadd(work.store.keys.deadlines, {"mine": 1})
        work.hosts = [host for host in work.hosts if host.name != target.host]
        await work.settle()
        mine = await work.scheduler.claims.get("mine")
        assert (mine.host, mine.state, mine.target) == ("h0", ClaimStatus.ACTIVE, None)
        again = await work.scheduler.claims.move("mine", mine.token)
        assert again.host not in ("h0", target.host)
