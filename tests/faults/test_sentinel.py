"""A store behind Sentinels: schedulers and hosts find the primary and follow each failover to the new one."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest

from redsched.errors import StoreUnavailable, Unavailable
from redsched.model import Request
from redsched.model.tokens import Token, is_newer
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.embedded.server import ServerBinary
from redsched.store.store import Store
from redsched.store.topology import sentinel
from redsched.store.topology.sentinel import SentinelEndpoint
from redsched.store.topology.url import parse
from tests.support.fleets.hosts import PlainHost, fleet, speak_all
from tests.support.servers import name_of, servers_of
from tests.support.setups import Node, SentinelSetup, sentinel_setup
from tests.support.waiting import wait_until

QUICK = Settings(poll_s=0.01, tick_s=0.1, reply_timeout_s=30.0, resend_for_s=60.0, select_timeout_s=60.0)
IMPATIENT = QUICK.model_copy(update={"reply_timeout_s": 1.0})
"""For a primary that is frozen: it breaks no connection, so only missing replies show it."""
ONE = Request({"VCPU": 1}, lease_s=600)


@pytest.fixture(params=servers_of(__file__), ids=name_of)
def setup(request: pytest.FixtureRequest) -> Iterator[SentinelSetup]:
    binary: ServerBinary = request.param
    with sentinel_setup(replicas=1, binary=binary) as started:
        yield started


@asynccontextmanager
async def opened(
    setup: SentinelSetup, settings: Settings = QUICK
) -> AsyncIterator[tuple[Scheduler, CellStore, list[PlainHost]]]:
    """Yield a scheduler, its cell, and two hosts of 50 VCPU each."""
    async with Store.connect(setup.url, settings) as store:
        cell = store.cell("c1")
        await cell.init()
        hosts = await fleet(cell, [50, 50])
        async with Scheduler.connect(setup.url, settings) as scheduler:
            yield scheduler, cell, hosts


async def read_by_all(cell: CellStore, ids: list[str]) -> None:
    """Read over all connections of the pool at once, and check that each read returns these claims."""
    for known in await asyncio.gather(*(cell.claims.read(ids) for _ in range(QUICK.pool_size))):
        assert known.keys() == set(ids)


def uses_of(server: Node) -> list[int]:
    """Return how often scripts were called on a server, and its feed was read; replication counts as neither."""
    with server.asked() as client:
        stats = client.info("commandstats")
    return [stats.get(f"cmdstat_{command}", {}).get("calls", 0) for command in ("evalsha", "evalsha_ro", "xrange")]


async def claim_again(scheduler: Scheduler, hosts: list[PlainHost]) -> str:
    """Claim once the store is available again and the hosts have attested to its epoch; return the claim id."""
    claimed: list[str] = []

    async def goes_on() -> bool:
        try:
            await speak_all(hosts)
            claimed.extend(str(one.claim_id) for one in (await scheduler.select(ONE)).selections)
        except Unavailable:
            return False
        return True

    await wait_until(goes_on, 30.0, "claims go on")
    return claimed[0]


async def test_claims_are_made_through_sentinels(setup: SentinelSetup) -> None:
    """The claim can be read back from the store, and the scheduler reports that it is ready."""
    async with opened(setup) as (scheduler, cell, _):
        found = await scheduler.select(ONE)
        assert (await cell.claims.read([str(found.selections[0].claim_id)])).keys() == {found.selections[0].claim_id}
        assert (await scheduler.readiness()).ready


async def test_a_killed_primary_is_followed_to_the_next(setup: SentinelSetup) -> None:
    """A new epoch begins, the hosts attest to it, and all claims that they hold are in the store."""
    async with opened(setup) as (scheduler, cell, hosts):
        first = str((await scheduler.select(ONE)).selections[0].claim_id)
        for host in hosts:
            await host.work()
        before, epoch = setup.primary(), (await cell.tick()).epoch
        before.kill()
        second = await claim_again(scheduler, hosts)
        assert setup.primary() is not before
        assert (await cell.tick()).epoch > epoch
        assert (await cell.claims.read([first, second])).keys() == {first, second}
        assert (await scheduler.audit()).problems == ()


async def test_what_a_failover_lost_comes_back_with_the_hosts(setup: SentinelSetup) -> None:
    """The replication link is cut before the claim, so the promoted replica lacks it; its host restores it."""
    async with opened(setup) as (scheduler, cell, hosts):
        setup.cut_replication()
        claim_id = str((await scheduler.select(ONE)).selections[0].claim_id)
        for host in hosts:
            await host.work()
        setup.primary().kill()
        await claim_again(scheduler, hosts)
        assert (await cell.claims.read([claim_id]))[claim_id].state == "active"
        assert (await scheduler.audit()).problems == ()


async def test_the_primary_is_left_in_a_failover_that_an_operator_requests(setup: SentinelSetup) -> None:
    """The former primary stays up and answers until Sentinel demotes it, so no reply shows that it was replaced.

    What was claimed before is kept, and what is claimed once the processes have moved on.
    """
    async with opened(setup) as (scheduler, cell, hosts):
        claims = [str((await scheduler.select(ONE)).selections[0].claim_id) for _ in range(5)]
        before, epoch = setup.primary(), (await cell.tick()).epoch
        setup.failover()
        await wait_until(lambda: setup.primary() is not before, 20.0, "another is primary")

        async def all_follow() -> bool:
            """Tell by a claim that the scheduler makes on the new primary, and that the hosts' connections read."""
            claimed = await claim_again(scheduler, hosts)
            [known] = (await cell.claims.read([claimed])).values() or [None]
            return known is not None and is_newer(Token.parse(known.token).epoch, epoch)

        await wait_until(all_follow, 20.0, "all use the new primary")
        used = uses_of(before)
        claims += [str((await scheduler.select(ONE)).selections[0].claim_id) for _ in range(5)]
        assert (await cell.claims.read(claims)).keys() == set(claims)
        assert (await scheduler.audit()).problems == ()
        assert uses_of(before) == used


async def test_a_frozen_primary_is_left_and_not_returned_to(setup: SentinelSetup) -> None:
    """On resuming, it still reports itself as primary; it must not be used, although Sentinel has yet to demote it."""
    async with opened(setup, IMPATIENT) as (scheduler, cell, hosts):
        before = setup.primary()
        await read_by_all(cell, [])
        before.pause()
        claimed = await claim_again(scheduler, hosts)
        before.resume()
        await read_by_all(cell, [claimed])
        claims = [claimed, *[str((await scheduler.select(ONE)).selections[0].claim_id) for _ in range(20)]]
        await wait_until(lambda: not before.is_primary(), 20.0, "the former primary replicates")
        assert (await cell.claims.read(claims)).keys() == set(claims)
        assert (await scheduler.audit()).problems == ()


async def test_a_name_that_no_sentinel_knows_is_said(setup: SentinelSetup) -> None:
    with pytest.raises(StoreUnavailable, match="names a primary for 'another'"):
        async with Store.connect(setup.url.replace("/redsched", "/another"), QUICK):
            pass


async def test_a_sentinel_given_as_a_server_is_said(setup: SentinelSetup) -> None:
    host, port = setup.sentinels[0].address
    with pytest.raises(StoreUnavailable, match="runs as sentinel: give sentinel://"):
        async with Store.connect(f"redis://{host}:{port}", QUICK):
            pass


async def test_sentinels_that_are_gone_are_passed_over(setup: SentinelSetup) -> None:
    for one in setup.sentinels[:2]:
        one.kill()
    async with Store.connect(setup.url, QUICK) as store:
        await store.cell("c1").init()


async def test_no_sentinel_is_forgotten_when_many_ask_at_once(setup: SentinelSetup) -> None:
    """Five lookups reorder the list while the first Sentinel is down; it must still be asked once it alone is up."""
    first, *others = setup.sentinels
    first.kill()
    place = SentinelEndpoint(parse(setup.url), QUICK)
    try:
        found = await asyncio.gather(*(place.find() for _ in range(5)))
        assert len(set(found)) == 1
        first.restart()
        for one in others:
            one.kill()
        assert await place.find() == found[0]
    finally:
        await place.close()


async def test_an_endpoint_in_use_notices_a_failover(setup: SentinelSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    """No connection breaks, and while no Sentinel replies the last address remains."""
    monkeypatch.setattr(sentinel, "RECHECK_S", 0.1)
    place = SentinelEndpoint(parse(setup.url), QUICK)
    try:
        first = await place.find()
        setup.failover()

        def notices() -> bool:
            place.recheck()
            return place.address == setup.primary().address != first

        await wait_until(notices, 20.0, "the new primary is found")
        found = place.address
        for one in setup.sentinels:
            one.kill()

        def has_heard_nobody() -> bool:
            place.recheck()
            return place._is_silent

        await wait_until(has_heard_nobody, what="no Sentinel replies")
        assert place.address == found
    finally:
        await place.close()
