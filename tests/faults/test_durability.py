"""REDSCHED_DURABILITY: a claim that too few replicas or disks have is neither answered nor left in the store."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from redsched.errors import NotDurable, StoreUnavailable
from redsched.model import ClaimStatus, EndReason, Request
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import Clock, Replacement, ScriptResult
from redsched.store.commands.claims import ClaimCommands
from redsched.store.embedded.server import PrivateServer, ServerBinary
from redsched.store.store import Store
from tests.support.builders.cells import call_of, member
from tests.support.fleets.hosts import fleet
from tests.support.servers import name_of, servers_of
from tests.support.setups import Node
from tests.support.waiting import wait_until, wait_until_sync

PATIENT = Settings(durability="replicas=1", durability_timeout_s=30, reply_timeout_s=60, tick_s=600)
BRIEF = PATIENT.model_copy(update={"durability_timeout_s": 0.3})
"""For claims that no replica will have."""
DISK = PATIENT.model_copy(update={"durability": "fsync"})
ONE = Request({"VCPU": 1}, lease_s=600)
SERVERS = servers_of(__file__)
HAS_WAITAOF = [one for one in SERVERS if (one.kind, one.version) >= ("redis", "7.2")]
HAS_NONE = [one for one in SERVERS if one not in HAS_WAITAOF]


@pytest.fixture(params=SERVERS, ids=name_of)
def pair(request: pytest.FixtureRequest) -> Iterator[tuple[Node, Node]]:
    """A primary and its replica."""
    binary: ServerBinary = request.param
    with Node(binary, {}) as primary, Node(binary, {}) as replica:
        primary.launch()
        replica.launch()
        with replica.asked() as client:
            client.replicaof(*primary.address)
        wait_until_sync(lambda: heard(primary))
        yield primary, replica


def heard(primary: Node) -> bool:
    """Return whether the replica has reported all data to its primary; before that, WAIT does not count it."""
    return (primary.says("replication", "slave0") or {}).get("state") == "online"


def url_of(node: Node) -> str:
    return "redis://{}:{}".format(*node.address)


@asynccontextmanager
async def opened(url: str, settings: Settings = PATIENT) -> AsyncIterator[tuple[Scheduler, CellStore]]:
    async with Store.connect(url, settings) as store:
        cell = store.cell("c1")
        await cell.init()
        await fleet(cell, [100], lease_s=3600)
        async with Scheduler.connect(url, settings) as scheduler:
            yield scheduler, cell


async def claimed(cell: CellStore) -> int:
    [host] = await cell.hosts.read(["h0"])
    return int(host.fields.get("claimed.VCPU", "0"))


@asynccontextmanager
async def behind_the_replica(pair: tuple[Node, Node]) -> AsyncIterator[tuple[Scheduler, Scheduler]]:
    """Yield a scheduler that does not wait for the replica, and one that does, in vain: it gets nothing any more."""
    primary, _ = pair
    async with (
        opened(url_of(primary), Settings(tick_s=600)) as (hasty, _),
        Scheduler.connect(url_of(primary), BRIEF) as waiting,
    ):
        primary.cut_replication()
        yield hasty, waiting


async def test_the_outcome_of_an_earlier_call_is_answered_when_its_replica_has_it(pair: tuple[Node, Node]) -> None:
    """Whatever the answer is read from: a claim script that has run, or the claims of the ids."""
    some = Request({"VCPU": 1}, count=2, mode="incremental", claim_ids=("a", "b"), lease_s=600)
    async with behind_the_replica(pair) as (hasty, waiting):
        await hasty.select(some)
        with pytest.raises(NotDurable, match="send it again"):
            await waiting.select(some)
        assert (await hasty.claims.get("a")).state is ClaimStatus.CLAIMED


async def test_a_claim_that_was_unshelved_is_answered_when_its_replica_has_it(pair: tuple[Node, Node]) -> None:
    async with behind_the_replica(pair) as (hasty, waiting):
        token = (await hasty.select(replace(ONE, claim_ids=("a",)))).selections[0].token
        await hasty.claims.shelve("a", token or "")
        await hasty.claims.unshelve("a")
        with pytest.raises(NotDurable, match="send it again"):
            await waiting.claims.unshelve("a")
        assert (await hasty.claims.get("a")).state is ClaimStatus.CLAIMED


async def test_a_claim_is_answered_when_its_replica_has_it(pair: tuple[Node, Node]) -> None:
    """The replica is queried right after the reply, without a delay."""
    primary, replica = pair
    async with opened(url_of(primary)) as (scheduler, _):
        claim_id = (await scheduler.select(ONE)).selections[0].claim_id
        primary.kill()
        with replica.asked() as client:
            assert client.hget(f"rs:{{c1}}:claim:{claim_id}", "state") == "claimed"


async def test_a_claim_that_no_replica_has_is_refused_and_ended(pair: tuple[Node, Node]) -> None:
    primary, _ = pair
    async with opened(url_of(primary), BRIEF) as (scheduler, cell):
        primary.cut_replication()
        with pytest.raises(NotDurable, match="replicas that have it: 0 of 1"):
            await scheduler.select(ONE)
        assert await claimed(cell) == 0
        assert (await scheduler.audit()).problems == ()
        primary.repair_replication()
        await wait_until(lambda: heard(primary), what="the replica is back")
        async with Scheduler.connect(url_of(primary), PATIENT) as patient:
            await patient.select(ONE)
        assert await claimed(cell) == 1


async def test_what_became_active_in_the_place_of_another_claim_is_not_undone(
    pair: tuple[Node, Node], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its host confirms it during the wait for replicas; the former placement is gone, so this one is not undone."""
    primary, _ = pair
    async with opened(url_of(primary)) as (scheduler, _), opened(url_of(primary), BRIEF) as (_, cell):
        former = (await scheduler.select(ONE)).selections[0]
        primary.cut_replication()
        undone = ClaimCommands.release

        async def confirmed_first(
            self: ClaimCommands, host: str, claim_id: str, token: str, *how: Any, **more: Any
        ) -> ScriptResult:
            assert (await self.confirm(host, claim_id, token)).outcome is Outcome.OK
            return await undone(self, host, claim_id, token, *how, **more)

        monkeypatch.setattr(ClaimCommands, "release", confirmed_first)
        again = Replacement(former.host, former.token or "", EndReason.MOVED)
        target = replace(member(former.claim_id or "", former.host), replacement=again)
        with pytest.raises(NotDurable):
            await cell.claims.place(call_of(await cell.tick(), target))
        claim = (await cell.claims.read([target.id]))[target.id]
        assert (claim.state, claim.token != former.token) == (ClaimStatus.ACTIVE, True)


async def is_placed(cell: CellStore, clock: Clock) -> bool:
    """Place a claim with a new id; return whether its replica had it in time. If not, it is undone."""
    with suppress(NotDurable):
        return (await cell.claims.place(call_of(clock, member(secrets.token_hex(8), "h0")))).outcome == "OK"
    return False


async def test_an_id_sent_again_waits_for_what_its_first_sending_wrote(pair: tuple[Node, Node]) -> None:
    """The repeated call writes nothing, and the replica was frozen after it had the connection's earlier writes.

    WAIT covers only the connection's own writes, so without an extra write it would succeed.
    """
    primary, replica = pair
    async with (
        opened(url_of(primary), BRIEF) as (_, cell),
        opened(url_of(primary), Settings(tick_s=600)) as (_, careless),
    ):
        clock = await cell.tick()
        await wait_until(partial(is_placed, cell, clock), what="its connection has a write that the replica has")
        replica.pause()
        call = call_of(clock, member("a", "h0"))
        assert (await careless.claims.place(call)).outcome == "OK"
        with pytest.raises(NotDurable):
            await cell.claims.place(call)
        assert await claimed(cell) == 2, "the claim of an earlier call is not this call's to end"


async def test_a_user_who_may_not_wait_gets_an_error(pair: tuple[Node, Node]) -> None:
    """A claim whose durability could not be checked does not count as durable."""
    primary, _ = pair
    async with opened(url_of(primary)) as (_, cell):
        with primary.asked() as client:
            client.execute_command("ACL", "SETUSER", "default", "-wait")
        with pytest.raises(NotDurable, match=r"replicas that have it: .*wait"):
            await cell.claims.place(call_of(await cell.tick(), member("a", "h0")))
        assert await claimed(cell) == 0


async def test_a_refusal_waits_for_nothing(pair: tuple[Node, Node]) -> None:
    """A refusal writes nothing that would have to be durable."""
    primary, _ = pair
    async with opened(url_of(primary), BRIEF) as (_, cell):
        primary.cut_replication()
        assert (await cell.claims.place(call_of(await cell.tick(), member("a", "h0", VCPU=101)))).outcome == "FULL"


async def test_other_calls_do_not_wait_for_replicas(pair: tuple[Node, Node]) -> None:
    """While a claim waits, other calls use another connection."""
    primary, _ = pair
    async with opened(url_of(primary)) as (_, cell):
        primary.cut_replication()
        waiting = asyncio.create_task(cell.claims.place(call_of(await cell.tick(), member("a", "h0"))))

        async def is_made() -> bool:
            await cell.tick()
            return await claimed(cell) == 1

        await wait_until(is_made, what="the claim is in the primary")
        assert not waiting.done()
        primary.repair_replication()
        assert (await waiting).outcome == "OK"


async def test_scripts_that_were_flushed_are_loaded_and_waited_for(pair: tuple[Node, Node]) -> None:
    """This includes the script that writes before WAIT."""
    primary, _ = pair
    async with opened(url_of(primary)) as (scheduler, cell), opened(url_of(primary), BRIEF) as (brief, _):
        with primary.asked() as client:
            client.script_flush()
        await scheduler.select(ONE)
        with primary.asked() as client:
            client.script_flush()
        primary.cut_replication()
        with pytest.raises(NotDurable):
            await brief.select(ONE)
        assert await claimed(cell) == 1


@pytest.mark.parametrize("binary", HAS_WAITAOF, ids=name_of)
async def test_a_claim_waits_for_the_disk(binary: ServerBinary) -> None:
    """An answered claim exists after a crash."""
    with Node(binary, {"appendonly": "yes", "appendfsync": "always"}) as node:
        node.launch()
        async with opened(url_of(node), DISK) as (scheduler, _):
            claim_id = (await scheduler.select(ONE)).selections[0].claim_id
        node.kill()
        node.restart()
        with node.asked() as client:
            assert client.hget(f"rs:{{c1}}:claim:{claim_id}", "state") == "claimed"


@pytest.mark.parametrize("binary", HAS_WAITAOF, ids=name_of)
async def test_a_disk_that_is_never_asked_is_not_taken_for_one(binary: ServerBinary) -> None:
    """`appendonly` is switched off while redsched runs: claims are refused, and removed again."""
    with Node(binary, {"appendonly": "yes", "appendfsync": "always"}) as node:
        node.launch()
        async with opened(url_of(node), DISK) as (scheduler, cell):
            with node.asked() as client:
                client.config_set("appendonly", "no")
            with pytest.raises(NotDurable, match=r"disks that have it: .*appendonly"):
                await scheduler.select(ONE)
            assert await claimed(cell) == 0


@pytest.mark.parametrize("binary", HAS_WAITAOF, ids=name_of)
async def test_a_store_without_a_file_is_refused_at_connect(binary: ServerBinary) -> None:
    with PrivateServer.start(binary.path) as server, pytest.raises(StoreUnavailable, match="set appendonly yes"):
        async with Store.connect(server.url, Settings(durability="fsync")):
            pass


@pytest.mark.parametrize("binary", HAS_NONE, ids=name_of)
async def test_a_store_without_waitaof_is_refused_at_connect(binary: ServerBinary) -> None:
    with PrivateServer.start(binary.path) as server, pytest.raises(StoreUnavailable, match="has no WAITAOF"):
        async with Store.connect(server.url, Settings(durability="fsync")):
            pass
