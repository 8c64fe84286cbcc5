"""No script stops in the middle in a slot that is moved to another server key by key.

The source of such a slot behaves as follows, by `getNodeByQuery` of Redis and Valkey, and as the last tests here show:

- Before a script it checks the declared keys. If all exist, it runs the script. If some are missing, the caller
  gets TRYAGAIN; if all are, ASK. In both cases nothing has run. So a script that is to create a key that it declares
  does not start in such a slot, but is retried until the move has ended.
- At each command of a script it checks again, for that command's keys. A key that is missing by now, because the script
  removed it, is rejected: "Script attempted to access a non local key in a cluster node". Earlier writes stay.

Each script has a line in LINES: the previous state, such that the script removes as many keys as it can, and the
call. It is run twice, in a stable slot and in a moving one. Reply and keys must be the same afterwards. Keys that the
script declares and a line does not create get a member that the script does not know.
"""

import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import pytest
import redis.asyncio as redis
from redis.exceptions import AskError

from redsched.errors import StoreUnavailable
from redsched.model import Aggregate, EndReason, GroupPolicy, HostReport, HostStatus, Inventory, Quota, ServerGroup
from redsched.model.workload import Workload
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.client.scripts import load_all
from redsched.store.codec.keys import Kind
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import FencingBegun, Recorded, Replacement, ScriptResult
from redsched.store.codec.wire import Reply
from redsched.store.commands.fencing import FencingLimits
from redsched.store.commands.quotas import Transfer
from redsched.store.commands.status import Announcement, AuditNote
from redsched.store.commands.workload import MOST, STEP
from redsched.store.embedded.server import ServerBinary
from redsched.store.store import Store
from tests.support.builders.cells import (
    HOUR_S,
    State,
    accepted_claim,
    active,
    call_of,
    claim_on,
    ended,
    ending,
    everything,
    lapse,
    later_than,
    make_due,
    member,
    new_epoch,
    open_host,
    report_of,
)
from tests.support.builders.counted_claims import pool
from tests.support.builders.placements import ask_again
from tests.support.guard import lifted
from tests.support.servers import name_of, servers_of
from tests.support.setups import ClusterSetup, cluster_setup
from tests.support.setups.cluster import SLOTS, cells_apart, slot_of

CELL = cells_apart(2)[0]
BOUND = next(one for one in map(str, range(100)) if slot_of(f"claim:{one}") < SLOTS // 2)
"""An id whose binding is on the same server as the cell."""
HOME = next(one for one in map(str, range(100)) if slot_of(f"host:{one}") < SLOTS // 2)
"""A host whose name is bound on the same server."""
PATIENT = Settings(cells=(CELL,), resend_for_s=60.0, reply_timeout_s=30.0)
BRIEF = PATIENT.model_copy(update={"resend_for_s": 0.3})
TOKEN = "1-a.1"
FIELDS = {"state": "ended", "host": "h1", "token": TOKEN}
FENCING = FencingLimits(after_ms=0, most=1, percent=0, within_ms=60_000)
TRANSFER = Transfer("t", "1", 1, {"claims": 1})
TYPES = {"hosts": "zset", "deadlines": "zset", "reconcile": "zset", "changes": "stream", "events": "stream"}
TYPES |= {
    "inbox": "stream",
    "claims": "set",
    "shelved": "set",
    "draining": "set",
    "attributes": "hash",
    "removed": "string",
    "expected": "hash",
    "reason": "hash",
}
"""Keys beside hosts and claims that a line need not create."""


@dataclass(slots=True)
class World:
    """An empty cell of the cluster, and the call to run there."""

    cell: CellStore
    raw: Any
    """A client of the server that has the cell."""
    setup: ClusterSetup
    epoch: str = ""
    version: str = ""
    """The version of the closed quota. `epoch` is the cell's epoch at that time."""
    slot: str = CELL
    """The hash tag of the keys: the cell, unless the script's key is outside the cell."""
    replies: list[Reply] = field(default_factory=list)

    async def fill(self, keys: Sequence[str]) -> None:
        """Create missing keys that belong to no claim."""
        for key in keys:
            kind = TYPES.get(key.partition("}:")[2].partition(":")[0])
            if kind and not await self.raw.exists(key):
                await FILLS[kind](self.raw, key)


FILLS: Mapping[str, Callable[[Any, str], Awaitable[Any]]] = {
    "zset": lambda raw, key: raw.zadd(key, {"filler": 2**50}),
    "set": lambda raw, key: raw.sadd(key, "filler"),
    "stream": lambda raw, key: raw.xadd(key, {"filler": "1"}),
    "string": lambda raw, key: raw.set(key, TOKEN),
    "hash": lambda raw, key: raw.hset(key, "filler", "1"),
}

Step = Callable[[World], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Line:
    """The previous state, the call, and its outcome. `slot`: for a script whose key is outside the cell."""

    before: Step
    call: Step
    outcome: Outcome = Outcome.OK
    slot: str = CELL


async def host(it: World) -> None:
    await open_host(it.cell)


async def one(state: Callable[..., Awaitable[Any]], it: World) -> None:
    """Create a host, the only one of its cell, with claim `a` in a state."""
    await open_host(it.cell)
    await state(it.cell)


async def token_of(it: World, claim_id: str = "a") -> str:
    return (await it.cell.claims.read([claim_id]))[claim_id].token


async def bound(it: World) -> None:
    await it.raw.set(it.cell.keys.binding(BOUND), "other", px=1000_000)


async def bound_host(it: World) -> None:
    await it.raw.set(it.cell.keys.home(HOME), "other")


async def shrunk_pool(it: World) -> None:
    await pool(it.cell, CUSTOM_SEAT=1, CUSTOM_OTHER=2)


async def lapsed(it: World) -> None:
    await open_host(it.cell)
    await it.raw.hset(it.cell.keys.host("h1"), "alive_until_ms", 1)


async def was_down(it: World) -> None:
    await lapsed(it)
    await it.cell.hosts.mark_down(["h1"])


async def on_duty(it: World) -> None:
    await it.cell.take_duty("record", "me", 60_000)


async def kept_request(it: World) -> None:
    await host(it)
    await it.raw.set(it.cell.keys.request("d"), "{}")


async def miscounted(it: World) -> None:
    """Change the host's zone by hand: its member is the only one that is counted in the former one."""
    await open_host(it.cell)
    await it.cell.declared.put_group(ServerGroup("web", GroupPolicy.SOFT_AFFINITY))
    await it.cell.claims.place(call_of(await it.cell.tick(), replace(member("a", "h1"), group="web")))
    await it.raw.hset(it.cell.keys.host("h1"), "zone", "az9")


async def evacuated(it: World) -> None:
    await open_host(it.cell)
    await it.cell.hosts.write_off("h1", evacuate=True, force=True)
    await it.cell.hosts.report(report_of())


async def counted(it: World) -> None:
    """Count so many requests that the next ones make some sums disappear."""
    await open_host(it.cell)
    await it.cell.workload.add(MOST, Workload({500: 1}))


async def reserved(it: World) -> None:
    await open_host(it.cell)
    await it.cell.reservations.put("h1", "r1", {"VCPU": 1}, HOUR_S * 1000, 0, 1)


async def lapsed_with_claim(it: World) -> None:
    """Let a host be down that holds a claim, beside one that is up."""
    await one(claim_on, it)
    await open_host(it.cell, "h2")
    await lapse(it.raw, it.cell)


async def held(it: World) -> None:
    """Note that the limits forbid to fence a host, and the attempt of long ago to fence another one."""
    await lapsed_with_claim(it)
    await it.cell.fencing.begin("h1", replace(FENCING, most=0))
    await it.raw.hset(it.cell.keys.fencing, "began_ms.h9", "1")


async def fail_to_fence(it: World) -> None:
    begun = await it.cell.fencing.begin("h1", FENCING)
    assert isinstance(begun, FencingBegun)
    await it.cell.fencing.failed(begun, "exit code 1")


async def announced(it: World) -> None:
    """Announce a scheduler, so long ago that the next announcement removes it."""
    await open_host(it.cell)
    await it.cell.status.announce(scheduler("before"))
    await it.raw.hset(it.cell.keys.schedulers, "at_ms.before", "1")


async def wiped(it: World) -> None:
    """Report missing hosts in an epoch after a wipe, and before that in another one, whose report is removed."""
    it.epoch = (await it.cell.tick()).epoch
    await it.raw.hset(it.cell.keys.meta, mapping={"settled": "0", "unattested": "-1"})
    await it.raw.hset(it.cell.keys.missing, mapping={"epoch.before": "1-a", "missing.before": "3"})


def scheduler(name: str) -> Announcement:
    return Announcement(name, 0, "1.0", "node", 7, 0)


async def audited(it: World) -> None:
    """Note an audit with more problems than the next one finds."""
    await open_host(it.cell)
    await it.cell.status.note_audit(AuditNote(0, 1, 1, 2, 0, ("one", "two")))


async def refused(it: World) -> None:
    """Note that two hosts were refused; the epoch of one counts no more."""
    await open_host(it.cell)
    await it.cell.status.note_refused("h2", "4000000000000-a")
    await it.raw.hset(it.cell.keys.refused, "h3", "1-a")


async def in_aggregate(it: World) -> None:
    await open_host(it.cell)
    await it.cell.declared.put_aggregate(Aggregate("az", {}, frozenset({"h1"})))


async def left_over_pool(it: World) -> None:
    await open_host(it.cell)
    await it.raw.hset(it.cell.keys.pool("lic"), mapping={"claimed.CUSTOM_SEAT": "3", "version": "5"})


async def due_for_nothing(it: World) -> None:
    """Create two active claims, only the first with a deadline. (An id without a claim would be a missing key.)"""
    await open_host(it.cell)
    for claim_id in ("a", "c"):
        await active(it.cell, claim_id)
    await it.raw.zadd(it.cell.keys.deadlines, {"a": 2**50})


async def left_gang(it: World) -> None:
    await one(ended, it)
    await it.raw.hset(it.cell.keys.gang("a"), mapping={"member.a": "h1", "waiting": "1"})


async def all_of_a_gone_host(it: World) -> None:
    await one(claim_on, it)
    await it.raw.set(it.cell.keys.removed("h1"), TOKEN)
    await it.raw.hset(it.cell.keys.attributes("h1"), "label.rack", "r1")


async def wrong_deadlines(it: World) -> None:
    """Create an active claim with a deadline, which is wrong, and a claimed one that has lost its deadline."""
    await open_host(it.cell)
    await active(it.cell, "a")
    await claim_on(it.cell, "b")
    await it.raw.zrem(it.cell.keys.deadlines, "b")
    await it.raw.zadd(it.cell.keys.deadlines, {"a": 2**50})
    await it.raw.srem(it.cell.keys.claims("h1"), "b")


async def probed(it: World) -> None:
    """Create the leftovers of an interrupted probe of an earlier release."""
    text, fields, stream, members, scores = (it.cell.keys.probe(number) for number in range(5))
    await it.raw.set(text, "a")
    await it.raw.hset(fields, "a", "1")
    await it.raw.xadd(stream, {"a": "1"})
    await it.raw.sadd(members, "a")
    await it.raw.zadd(scores, {"a": 1})


async def recorded(it: World) -> None:
    await open_host(it.cell)
    await it.cell.events.record("", Recorded("1-1", 1), [{"kind": "x"}], await epoch_of(it), 60.0, 10)


async def record_nothing(it: World) -> ScriptResult:
    return await it.cell.events.record("1-1", Recorded("1-2", 2), [], await epoch_of(it), 0.0, 0)


async def epoch_of(it: World) -> str:
    return (await it.cell.tick()).epoch


async def with_facts(it: World) -> None:
    """Give the host a label, by which the group of its claim counts: a report without it counts the claim anew."""
    await it.cell.declared.put_group(ServerGroup("web", GroupPolicy.SOFT_AFFINITY, count_by=("label:rack",)))
    await open_host(it.cell, "h1", HostReport("h1", {"VCPU": Inventory(8)}, labels={"rack": "r1"}, lease_s=HOUR_S))
    await it.cell.claims.place(call_of(await it.cell.tick(), replace(member("a", "h1"), group="web")))


async def pool_alone(it: World) -> None:
    await host(it)
    await pool(it.cell)


async def due(it: World) -> None:
    await one(claim_on, it)
    await make_due(it.raw, it.cell, "a")


async def asked_to_resize(it: World) -> None:
    await one(active, it)
    await it.cell.claims.resize("h1", "a", await token_of(it), {"VCPU": 2})


async def to_attest(it: World) -> None:
    await one(claim_on, it)
    await it.raw.srem(it.cell.keys.draining, "h1")
    await new_epoch(it.cell)
    await it.cell.hosts.report(report_of())


async def local_ended(it: World) -> None:
    await open_host(it.cell)
    placed = await it.cell.claims.report_local("h1", "a", {"VCPU": 1})
    await it.cell.claims.gone("h1", "a", placed.facts[0], EndReason.RELEASED, {})


async def local_again(it: World) -> Any:
    return await it.cell.claims.report_local("h1", "a", {"VCPU": 1}, token=await token_of(it))


async def voided(it: World) -> None:
    await open_host(it.cell)
    await it.cell.claims.void("a", "digest")
    await claim_on(it.cell, "b")


async def claim_again(it: World) -> Any:
    await later_than(it.cell, (await it.cell.tick()).now_ms)  # a decision of the millisecond of its end may be older
    return await it.cell.claims.place(call_of(await it.cell.tick(), member("a", "h1")))


async def to_move(it: World) -> None:
    await open_host(it.cell, "h2")
    await one(active, it)


async def move(it: World) -> Any:
    return await ask_again(it.cell, "a", "h2", Replacement("h1", await token_of(it), EndReason.MOVED))


def about(verb: str, *more: Any) -> Step:
    """Return the call of a verb on the claim a by its host, with its token."""

    async def call(it: World) -> Any:
        return await getattr(it.cell.claims, verb)("h1", "a", await token_of(it), *more)

    return call


async def quota(it: World) -> None:
    await open_host(it.cell)
    await it.cell.declared.put_quota(Quota("p", {"claims": 5}), (it.cell.name, "c2"))


async def close_quota(it: World) -> Any:
    (fields,) = (await it.cell.declared.read(Kind.QUOTA, ["p"])).values()
    return await it.cell.quotas.close("p", fields["division"], "d")


async def closed(it: World) -> None:
    await quota(it)
    answer, state = await close_quota(it)
    it.epoch, it.version = answer.epoch, state.version


async def shared(it: World) -> None:
    await closed(it)
    await it.cell.quotas.share("p", "d", it.epoch, it.version, {"claims": 5})


async def given(it: World) -> None:
    await shared(it)
    await it.cell.quotas.give("p", "d", "c2", "t", {"claims": 1})


async def first(call: Awaitable[tuple[Any, Any]]) -> Any:
    return (await call)[0]


LINES: dict[str, Line] = {
    "accept": Line(partial(one, claim_on), about("accept", HOUR_S)),
    "announce": Line(announced, lambda it: it.cell.status.announce(scheduler("now"))),
    "audited": Line(audited, lambda it: it.cell.status.note_audit(AuditNote(0, 1, 1, 1, 0, ("one",)))),
    "attest": Line(to_attest, lambda it: it.cell.hosts.attest("h1", "")),
    "audit": Line(partial(one, claim_on), lambda it: anext(it.cell.audit.hosts(["h1"]))),
    "begin_fencing": Line(held, lambda it: it.cell.fencing.begin("h1", FENCING)),
    "bind": Line(bound, lambda it: it.cell.bindings.bind(BOUND, "other", 60_000), slot=f"claim:{BOUND}"),
    "bind_host": Line(bound_host, lambda it: it.cell.homes.bind(HOME), slot=f"host:{HOME}"),
    "claim": Line(voided, claim_again),
    "confirm": Line(partial(one, claim_on), about("confirm")),
    "declare": Line(shrunk_pool, lambda it: pool(it.cell)),
    "down": Line(lapsed, lambda it: it.cell.hosts.mark_down(["h1"])),
    "duty": Line(on_duty, lambda it: it.cell.take_duty("record", "me", 0)),
    "fail": Line(partial(one, accepted_claim), about("fail", True)),
    "fencing_failed": Line(lapsed_with_claim, fail_to_fence),
    "forget": Line(all_of_a_gone_host, lambda it: it.cell.hosts.forget("h1", force=True)),
    "gone": Line(partial(one, ending), about("gone", EndReason.RELEASED, {})),
    "heartbeat": Line(was_down, lambda it: it.cell.hosts.heartbeat("h1", 60)),
    "inbox": Line(partial(one, claim_on), lambda it: it.cell.hosts.inboxes(["h1"])),
    "init": Line(host, lambda it: it.cell.init(), Outcome.ALREADY_DONE),
    "keep": Line(kept_request, lambda it: it.cell.texts.restore("request:d", "{}")),
    "local": Line(local_ended, local_again),
    "lost": Line(host, lambda it: it.cell.hosts.write_off("h1", evacuate=True, force=True)),
    "missing": Line(wiped, lambda it: it.cell.report_missing(it.epoch, "me", 1)),
    "membership": Line(in_aggregate, lambda it: it.cell.declared.put_aggregate(Aggregate("az", {}, frozenset()))),
    "repair_counts": Line(left_over_pool, lambda it: it.cell.repair.counts("pool:lic", "5", "reason", [])),
    "repair_due": Line(due_for_nothing, lambda it: it.cell.repair.due("reason", ["a", "c"])),
    "repair_gang": Line(left_gang, lambda it: it.cell.repair.gang("a", "reason", ["a"])),
    # If this script has something to do, the key of the host, which it declares, is missing: it does not start.
    "repair_gone_host": Line(
        all_of_a_gone_host, lambda it: it.cell.repair.removed_host("h1", "reason", True), Outcome.ALREADY_DONE
    ),
    "repair_members": Line(miscounted, lambda it: it.cell.repair.members("h1", "reason")),
    "repair_host": Line(wrong_deadlines, lambda it: it.cell.repair.host("h1", "reason", ["b"])),
    "probe": Line(probed, lambda it: it.cell._cell.scripts.run("probe", [*map(it.cell.keys.probe, range(5))], ())),
    "raise_epoch": Line(host, lambda it: new_epoch(it.cell)),
    "quota_close": Line(quota, lambda it: first(close_quota(it))),
    "quota_give": Line(shared, lambda it: first(it.cell.quotas.give("p", "d", "c2", "t", {"claims": 1}))),
    "quota_given": Line(given, lambda it: it.cell.quotas.close_transfer("p", "d", "c2", TRANSFER, back=True)),
    "quota_share": Line(closed, lambda it: it.cell.quotas.share("p", "d", it.epoch, it.version, {"claims": 5})),
    "quota_take": Line(shared, lambda it: it.cell.quotas.take("p", "d", "c2", TRANSFER)),
    "refused": Line(refused, lambda it: it.cell.status.note_refused("h1", "4000000000000-a")),
    "reconcile": Line(due, lambda it: it.cell.claims.reconcile(["a"], ["host:h1"]), Outcome.OK),
    "record": Line(recorded, record_nothing),
    "release": Line(partial(one, claim_on), lambda it: it.cell.claims.release("h1", "a")),
    "renew": Line(partial(one, claim_on), about("renew", HOUR_S)),
    "replace": Line(to_move, move),
    "report": Line(with_facts, lambda it: it.cell.hosts.report(report_of())),
    "reserve": Line(reserved, lambda it: it.cell.reservations.end("h1", "r1")),
    "resize": Line(partial(one, claim_on), about("resize", {"VCPU": 2})),
    "resized": Line(asked_to_resize, about("resized", {"VCPU": 2})),
    "restore": Line(
        partial(one, ended), lambda it: it.cell.repair.restore({"a": {"state": "ended", "host": "h1", "token": TOKEN}})
    ),
    "schema": Line(host, lambda it: it.cell.schema.upgrade()),
    "stop_failed": Line(partial(one, ending), about("stop_failed", "target is busy")),
    "status": Line(evacuated, lambda it: it.cell.hosts.set_status("h1", HostStatus.ENABLED)),
    "tick": Line(host, lambda it: it.cell.tick()),
    "touch": Line(host, lambda it: it.cell._cell.run("touch")),
    "undeclare": Line(pool_alone, lambda it: it.cell.declared.delete_pool("lic")),
    "void": Line(voided, lambda it: it.cell.claims.void("a", "digest")),
    "workload": Line(counted, lambda it: it.cell.workload.add(STEP, Workload({250: 1}))),
    "work_ended": Line(partial(one, active), about("work_ended", "no process 7 is left")),
}


@pytest.fixture(scope="module", params=servers_of(__file__), ids=name_of)
def setup(request: pytest.FixtureRequest) -> Iterator[ClusterSetup]:
    """Two shards without replicas: the source and the target of moves. Neither takes the other for dead meanwhile."""
    binary: ServerBinary = request.param
    with cluster_setup(shards=2, replicas=0, binary=binary, cluster_node_timeout="15000") as started:
        yield started


@pytest.fixture
async def world(setup: ClusterSetup) -> AsyncIterator[World]:
    """Yield the cell, with scripts that run without the guard, so that the servers themselves reject wrong accesses."""
    source = setup.primary(CELL)
    at = redis.Redis(host=source.address[0], port=source.address[1], protocol=2, decode_responses=True)
    with lifted():
        async with at as raw, Store.connect(setup.url, PATIENT) as store:
            yield World(store.cell(CELL), raw, setup)


@contextmanager
def watched(it: World, name: str, around: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    """For each call of a script, create its missing keys, run it inside `around`, and append its reply to `replies`."""
    runner, run = it.cell._cell.scripts, it.cell._cell.scripts.run

    async def watching(
        script: str, keys: Sequence[str], arguments: Sequence[str | int], *more: Any, **named: Any
    ) -> Reply:
        if script != name:
            return await run(script, keys, arguments, *more, **named)
        await it.fill(keys)
        with around():
            reply = await run(script, keys, arguments, *more, **named)
        it.replies.append(reply)
        return reply

    runner.run = watching  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        runner.run = run  # type: ignore[method-assign]


def empty(it: World) -> None:
    for node in it.setup.nodes:
        with node.asked() as client:
            client.flushall()


async def play(it: World, name: str, around: Callable[[], AbstractContextManager[None]]) -> State:
    """Play a line in an empty cell; return the state afterwards."""
    empty(it)
    it.replies.clear()
    await it.cell.init()
    line = LINES[name]
    await line.before(it)
    with watched(it, name, around):
        await line.call(it)
    *asked, last = [reply[0] for reply in it.replies]
    assert (set(asked) - {Outcome.RETRY}, last) == (set(), line.outcome)
    return outline(await everything(it.raw))


def outline(state: State) -> State:
    """Return the state without values that differ between runs: times, and tokens."""
    return {key: (_members(value), expires) for key, (value, expires) in state.items()}


_TOKEN = re.compile(r"[0-9]+-[0-9a-f]+\.[0-9]+")


def _members(value: Any) -> list[Any]:
    if isinstance(value, list) and all(isinstance(second, dict) for _, second in value):  # a stream's entries
        return [sorted(second) for _, second in value]
    if isinstance(value, list):  # a sorted set's members, whose scores are times: two may fall into one millisecond
        return sorted(first for first, _ in value)
    return ["a string"] if isinstance(value, str) else sorted(_TOKEN.sub("", one) for one in value)


def lines() -> list[str]:
    """Return the names of all scripts, as parameters."""
    return sorted(LINES)


def test_every_script_has_a_line() -> None:
    """A new script has to be added to LINES."""
    assert load_all().keys() == LINES.keys()


@pytest.mark.parametrize("name", lines())
async def test_no_script_stops_in_the_middle(world: World, name: str) -> None:
    """Its reply and the resulting state are the same in a moving slot and in a stable one."""
    moving = partial(world.setup.moving, LINES[name].slot)
    assert await play(world, name, moving) == await play(world, name, nullcontext)


async def test_a_server_refuses_a_key_that_the_script_has_removed(world: World) -> None:
    """The earlier writes of the script remain: all scripts must avoid this."""
    first, second = world.cell.keys.host("h1"), world.cell.keys.host("h2")
    for key in (first, second):
        await world.raw.hset(key, "a", "1")
    body = "redis.call('HSET', KEYS[2], 'b', '1') redis.call('DEL', KEYS[1]) redis.call('HSET', KEYS[1], 'a', '1')"
    with (
        world.setup.moving(CELL),
        pytest.raises(redis.ResponseError, match=r"(?i)attempted to access a non local key"),
    ):
        await world.raw.eval(f"#!lua\n{body}", 2, first, second)
    assert await world.raw.hgetall(second) == {"a": "1", "b": "1"}
    assert not await world.raw.exists(first)


async def test_a_script_is_not_begun_unless_all_keys_that_it_declares_are_there(world: World) -> None:
    """If some keys are missing, the caller finally gets TRYAGAIN; if all are, ASK, and the other server runs it."""
    empty(world)
    await world.cell.init()
    await host(world)
    before = await everything(world.raw)
    call = call_of(await world.cell.tick(), member("a", "h1"))
    async with Store.connect(world.setup.url, BRIEF) as brief:
        with world.setup.moving(CELL), pytest.raises(StoreUnavailable, match="TRYAGAIN"):
            await brief.cell(CELL).claims.place(call)
    with world.setup.moving(CELL):
        assert await everything(world.raw) == before
        with pytest.raises(AskError):
            await world.raw.eval("#!lua\nreturn 1", 1, world.cell.keys.duty("record"))
        assert await world.cell.take_duty("record", "me", 60_000)
        assert not await world.raw.keys(world.cell.keys.duty("record"))
