"""A claim keeps the payload of its request: where it is shown, and what it survives."""

from dataclasses import replace

import pytest
import redis

from redsched.errors import ClaimIdReused, NoValidHost
from redsched.model import Claim, ClaimStatus, OnExit, Request
from redsched.operate.backup.archive import archive_lines, read
from redsched.operate.plans.live import read_known
from redsched.scheduler import Scheduler
from tests.scheduler.working import at_work
from tests.support.builders.cells import raw_client

JOB = {"argv": ["train.sh", "--epochs", "3"]}
MINE = Request({"VCPU": 2}, claim_ids=("mine",), payload=JOB)


async def mine(scheduler: Scheduler) -> Claim:
    return await scheduler.claims.get("mine")


async def test_it_is_shown_with_its_claim_and_not_in_lists(clean_store: str) -> None:
    async with at_work(clean_store, 4) as work:
        await work.active(MINE)
        assert (await mine(work.scheduler)).payload == JOB
        [listed] = (await work.scheduler.claims.list()).items
        assert listed.payload is None


async def test_only_the_text_of_the_request_has_it(clean_store: str) -> None:
    """Not the feed, which every scheduler follows, nor the claim's hash, which lists, agents and audits read."""
    async with at_work(clean_store, 4) as work:
        await work.active(MINE)
    text = f"rs:{{c1}}:request:{MINE.digest()}"
    with redis.Redis.from_url(clean_store, protocol=2) as client:
        with_it = [key for key in client.scan_iter() if b"train.sh" in client.dump(key)]
    assert with_it == [text.encode()]


async def test_the_same_id_with_another_payload_is_another_request(clean_store: str) -> None:
    async with at_work(clean_store, 4) as work:
        await work.active(MINE)
        assert not (await work.scheduler.select(MINE)).fresh
        with pytest.raises(ClaimIdReused):
            await work.scheduler.select(replace(MINE, payload={"argv": ["other.sh"]}))


async def test_it_moves_with_its_claim(clean_store: str) -> None:
    async with at_work(clean_store, 4, 4) as work:
        claim = await work.active(MINE)
        await work.scheduler.claims.move("mine", claim.token)
        await work.settle()
        moved = await mine(work.scheduler)
        assert (moved.host, moved.payload) == ("h1", JOB)


async def test_it_is_kept_when_its_claim_is_placed_again(clean_store: str) -> None:
    async with at_work(clean_store, 4, 4) as work:
        claim = await work.active(replace(MINE, on_exit=OnExit.REPLACE))
        await work.store.claims.fail("h0", "mine", claim.token, by_host=True, retry=True, reason="exit code 3")
        assert (await mine(work.scheduler)).payload == JOB
        await work.settle()
        again = await mine(work.scheduler)
        assert (again.state, again.host, again.payload) == (ClaimStatus.ACTIVE, "h1", JOB)


async def test_it_is_kept_while_its_claim_is_shelved(clean_store: str) -> None:
    async with at_work(clean_store, 4) as work:
        claim = await work.active(MINE)
        await work.scheduler.claims.shelve("mine", claim.token)
        await work.settle()
        await work.scheduler.claims.unshelve("mine")
        await work.settle()
        assert (await mine(work.scheduler)).payload == JOB


async def test_it_comes_back_from_an_archive(clean_store: str) -> None:
    async with at_work(clean_store, 4) as work:
        await work.active(MINE)
        archive = read(archive_lines(await work.scheduler.export()))
        async with raw_client(clean_store) as raw:
            await raw.flushall()
        await work.scheduler.claims.list()  # brings the replica up to the empty store
        await work.scheduler.import_(archive)
        assert (await mine(work.scheduler)).payload == JOB


async def test_a_gang_shares_it(clean_store: str) -> None:
    async with at_work(clean_store, 4, 4) as work:
        found = await work.scheduler.select(Request({"VCPU": 3}, count=2, payload=JOB))
        claims = [await work.scheduler.claims.get(one.claim_id or "") for one in found.selections]
        assert [one.payload for one in claims] == [JOB, JOB]


async def test_plans_do_without(clean_store: str) -> None:
    """They keep the requests of all claims in memory."""
    async with at_work(clean_store, 4) as work:
        await work.active(MINE)
        known = await read_known(work.scheduler.cells.named("c1"), ["h0"])
        assert list(known.texts.values()) == [Request({"VCPU": 2}).canonical()]


async def test_requests_that_differ_only_in_it_wait_as_one(clean_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a change, the queue checks one of them, and not each."""
    keys: list[object] = []

    async def noted(*_: object, key: object, **__: object) -> None:
        keys.append(key)
        raise NoValidHost("none")

    async with at_work(clean_store, 4) as work:
        monkeypatch.setattr("redsched.scheduler.selection.wait_queue.WaitQueue.place", noted)
        for payload in (1, 2, None):
            with pytest.raises(NoValidHost):
                await work.scheduler.select(Request({"VCPU": 9}, queue_timeout_s=1, payload=payload))
    assert len(set(keys)) == 1
