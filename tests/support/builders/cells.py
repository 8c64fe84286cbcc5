"""A cell for tests of the store: helpers that create hosts and claims in it, and read all that it holds.

`declared_keys_cell` calls the scripts in the strictest way: each call runs as a user who may access exactly the keys
that it declares, so a script that accesses another key fails on every server.
"""

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from typing import Any

import redis.asyncio as redis

from redsched.model import AgentStamp, Amounts, Candidate, HostReport, Inventory
from redsched.origin import Origin
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.client.script_client import ScriptClient
from redsched.store.codec.claim_fields import carried
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimCall, Clock, Member, Placed
from redsched.store.codec.wire import Reply
from redsched.store.topology.connection import reader_client
from redsched.store.topology.router import router_to
from redsched.store.topology.url import parse
from tests.support.plain_client import PlainClient, plain_client
from tests.support.secret_watch import MARK
from tests.support.waiting import wait_until

HOUR_S = 3600
USER, PASSWORD = "declared-keys", f"{MARK}keys"
WRITES = "rdb_changes_since_last_save:"

State = dict[str, Any]


ALREADY_DONE_NOTES = {
    "claim": "the mark of the call",
    "accept": "the notification that has served",
    "gone": "the notification that has served",
}
"""Scripts that write something although they reply ALREADY_DONE, and what they write."""


class DeclaredKeysRunner(ScriptClient):
    """A runner whose user may access only the keys of the running call. One call at a time.

    It also verifies every ALREADY_DONE: the script has written nothing except ALREADY_DONE_NOTES and the fence's own
    fields.
    """

    operator: PlainClient

    async def run(
        self,
        name: str,
        keys: Sequence[str],
        arguments: Sequence[str | int],
        durable: bool = False,
        origins: Sequence[Origin] = (),
    ) -> Reply:
        before, writes = self._look(keys, ("ACL", "SETUSER", USER, "resetkeys", *(f"~{key}" for key in keys)))
        reply = await super().run(name, keys, arguments, durable, origins)
        if reply[0] in (b"ALREADY_DONE", "ALREADY_DONE") and name not in ALREADY_DONE_NOTES:
            after, writes_after = self._look(keys)
            is_new_epoch = after[0] != before[0]
            of_fence = sum(one != other for one, other in zip(before, after, strict=True))
            assert is_new_epoch or writes_after - writes == of_fence, (
                f"{name}.lua answered ALREADY_DONE and has written"
            )
        return reply

    def _look(self, keys: Sequence[str], *first: Sequence[str]) -> tuple[Sequence[str | None], int]:
        """Return the cell's epoch with the fields that the fence writes, and the server's number of writes.

        `first`: commands that are sent ahead. All of it takes one round trip.
        """
        meta = f"{keys[0].partition('}')[0]}}}:meta"
        asked = (*first, ("HMGET", meta, "epoch", "now_ms", "settled"), ("INFO", "persistence"))
        *_, notes, persistence = self.operator.ask(*asked)
        return notes, int(persistence.partition(WRITES)[2].partition("\r")[0])


@cache
def usual_settings() -> Settings:
    """Return the settings of an empty environment, read once: reading them takes longer than most calls."""
    return Settings()


PATIENT = {"reply_timeout_s": 30.0, "resend_for_s": 60.0, "select_timeout_s": 60.0, "catch_up_timeout_s": 60.0}
"""Settings of schedulers that lose nothing and compete for the processor: none of these limits passes."""


@asynccontextmanager
async def declared_keys_cell(url: str, name: str = "c1") -> AsyncIterator[CellStore]:
    """Yield the typed calls of a cell, through `DeclaredKeysRunner`."""
    settings = usual_settings()
    with plain_client(url) as operator:
        operator.ask(("ACL", "SETUSER", USER, "reset", "on", f">{PASSWORD}", "+@all"))
        router = router_to(url.replace("unix://", f"unix://{USER}:{PASSWORD}@"), settings)
        runner = DeclaredKeysRunner(url, settings, router)
        runner.operator = operator
        reader = reader_client(parse(url), settings)
        try:
            # Nothing is loaded in advance: the server keeps scripts from test to test, and a call loads a missing one.
            yield CellStore(name, url, runner, reader, reader)
        finally:
            await runner.close()
            await router.close()
            await reader.aclose(close_connection_pool=True)
            operator.ask(("ACL", "DELUSER", USER))


@asynccontextmanager
async def raw_client(url: str) -> AsyncIterator[Any]:
    """Return a client with full access; untyped, because redis-py's types allow for bytes in every reply."""
    async with redis.Redis.from_url(url, protocol=2, decode_responses=True) as client:
        yield client


READS: Mapping[str, Callable[[Any, str], object]] = {
    "hash": lambda client, key: client.hgetall(key),
    "set": lambda client, key: client.smembers(key),
    "stream": lambda client, key: client.xrange(key),
    "string": lambda client, key: client.get(key),
    "zset": lambda client, key: client.zrange(key, 0, -1, withscores=True),
}
"""How to read the value of a key of each type."""


PERIODIC = re.compile(r"\}:(schedulers|duty:\w+|decision:.*)$")
"""Keys of a cell that schedulers write at their own times: who they are, who does what, how hosts were chosen."""


async def everything(raw: Any) -> State:
    """Return every key with its value, and whether it expires, in three round trips.

    Without `now_ms` of meta, the time that the fence records, and without what schedulers write from time to time.
    """
    keys = [key async for key in raw.scan_iter(count=1000) if not PERIODIC.search(key)]
    async with raw.pipeline(transaction=False) as pipeline:
        for key in keys:
            pipeline.type(key).pttl(key)
        about = await pipeline.execute()
        kinds, ends_in_ms = about[::2], about[1::2]
        for key, kind in zip(keys, kinds, strict=True):
            READS[kind](pipeline, key)
        values = dict(zip(keys, await pipeline.execute(), strict=True))
    for key in keys:
        if key.endswith("}:meta"):
            values[key].pop("now_ms")
    return {key: (values[key], left_ms > 0) for key, left_ms in zip(keys, ends_in_ms, strict=True)}


@asynccontextmanager
async def nothing_written(raw: Any) -> AsyncIterator[None]:
    """Fail the test if the block changes any key."""
    before = await everything(raw)
    yield
    after = await everything(raw)
    assert {key: after.get(key) for key in after.keys() | before.keys() if after.get(key) != before.get(key)} == {}


def report_of(name: str = "h1", external: Amounts | None = None, lease_s: int = HOUR_S, **totals: int) -> HostReport:
    """Return a report with these totals by class; 8 VCPU by default."""
    inventories = {slot: Inventory(total) for slot, total in (totals or {"VCPU": 8}).items()}
    return HostReport(name, inventories, external=external or {}, lease_s=lease_s)


async def open_host(cell: CellStore, name: str = "h1", report: HostReport | None = None, **totals: int) -> None:
    """Let a host report and attest, so that it is open for claims."""
    said = await cell.hosts.report(report or report_of(name, None, HOUR_S, **totals))
    attested = await cell.hosts.attest(name, said.epoch)
    assert attested.outcome in (Outcome.OK, Outcome.ALREADY_DONE)


def member(claim_id: str, *hosts: str, **amounts: int) -> Member:
    """Return a member that may go to these hosts with the same amounts; 1 VCPU by default."""
    return Member(claim_id, tuple(Candidate(host, amounts or {"VCPU": 1}) for host in hosts))


def call_of(
    clock: Clock,
    *members: Member,
    digest: str = "digest",
    fresh: bool = True,
    lease_ms: int = HOUR_S * 1000,
    **also: Any,
) -> ClaimCall:
    """Return a call that was decided at this clock. `also`: further fields that its claims carry."""
    decided = (clock.epoch, clock.now_ms, clock.seq)
    return ClaimCall(members, *decided, digest, fresh, lease_ms, "project", carried(consumer="consumer", **also))


async def claim_on(cell: CellStore, claim_id: str = "a", host: str = "h1", **amounts: int) -> Placed:
    """Make a claim on a host, and return it as placed."""
    answer = await cell.claims.place(call_of(await cell.tick(), member(claim_id, host, **amounts)))
    assert answer.outcome is Outcome.OK
    return answer.placed[0]


def known(*placed: Placed) -> tuple[Placed, ...]:
    """Return the placed claims as a repeated call reports them: without the candidate."""
    return tuple(replace(one, candidate=None) for one in placed)


async def accepted_claim(cell: CellStore, claim_id: str = "a", host: str = "h1", **amounts: int) -> Placed:
    """Make a claim whose host is starting its work."""
    placed = await claim_on(cell, claim_id, host, **amounts)
    answer = await cell.claims.accept(host, claim_id, placed.token, HOUR_S)
    assert answer.outcome is Outcome.OK
    return placed


async def active(cell: CellStore, claim_id: str = "a", host: str = "h1", **amounts: int) -> Placed:
    """Make a claim whose work runs."""
    placed = await accepted_claim(cell, claim_id, host, **amounts)
    answer = await cell.claims.confirm(host, claim_id, placed.token)
    assert answer.outcome is Outcome.OK
    return placed


async def ending(cell: CellStore, claim_id: str = "a", host: str = "h1", **amounts: int) -> Placed:
    """Make a claim whose host has been asked to stop its work."""
    placed = await active(cell, claim_id, host, **amounts)
    answer = await cell.claims.release(host, claim_id)
    assert answer.outcome is Outcome.ENDING
    return placed


async def ended(cell: CellStore, claim_id: str = "a", host: str = "h1", **amounts: int) -> Placed:
    """Make a claim that was released."""
    placed = await claim_on(cell, claim_id, host, **amounts)
    answer = await cell.claims.release(host, claim_id)
    assert answer.outcome is Outcome.OK
    return placed


IN_STATE = {"claimed": claim_on, "starting": accepted_claim, "active": active, "ending": ending, "ended": ended}
"""The function that brings a claim into each state."""


def stamp(number: int, journal: str = "journal", nonce: str = "nonce") -> AgentStamp:
    """Return the stamp of an agent's report, which orders it."""
    return AgentStamp(journal, nonce, number)


async def new_epoch(cell: CellStore) -> str:
    """Return an epoch above the present one, once the store is in it. A scheduler that runs may have started it."""
    answer = await cell.raise_epoch((await cell.tick()).epoch)
    assert answer.outcome in (Outcome.OK, Outcome.ALREADY_DONE)
    return answer.epoch


async def later_than(cell: CellStore, at_ms: int) -> None:
    """Return once the store's clock is past this time."""

    async def is_past() -> bool:
        return (await cell.tick()).now_ms > at_ms

    await wait_until(is_past, what=f"the store's clock is past {at_ms}")


async def lapse(raw: Any, cell: CellStore, host: str = "h1", ago_ms: int = 1) -> None:
    """Let the lease of a host have ended, without waiting for it."""
    past_ms = (await cell.tick()).now_ms - ago_ms
    await raw.hset(cell.keys.host(host), "alive_until_ms", past_ms)
    await raw.zadd(cell.keys.hosts, {host: past_ms})


async def make_due(raw: Any, cell: CellStore, claim_id: str) -> None:
    """Set the end of a claim's lease to a second ago, without waiting for it."""
    past_ms = (await cell.tick()).now_ms - 1000
    await raw.hset(cell.keys.claim(claim_id), "expires_at_ms", past_ms)
    await raw.zadd(cell.keys.deadlines, {claim_id: past_ms})


async def fields_of(raw: Any, key: str) -> Mapping[str, str]:
    """Read a hash."""
    fields: Mapping[str, str] = await raw.hgetall(key)
    return fields


async def claimed(raw: Any, cell: CellStore, host: str = "h1", slot: str = "VCPU") -> int:
    """Return the claimed amount of a slot in a host's hash."""
    return int(await raw.hget(cell.keys.host(host), f"claimed.{slot}") or 0)
