"""docs/keys.md is a public interface: it documents exactly the keys and fields that the store contains.

The same sequence of calls shows that the permissions in docs/operate/access-control.md suffice.
"""

import inspect
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis.asyncio as redis

from redsched import origin
from redsched.model import (
    AgentStamp,
    Aggregate,
    Candidate,
    EndReason,
    GangOnExit,
    GroupPolicy,
    HostReport,
    HostStatus,
    Inventory,
    OnExit,
    Pool,
    Quota,
    ServerGroup,
    SharedPool,
)
from redsched.model.workload import ScarceDemand, Workload
from redsched.operate.observe.recorder import Recorder
from redsched.origin import Origin
from redsched.settings import Settings
from redsched.store.access.roles import StoreRole
from redsched.store.cell import CellStore
from redsched.store.codec.claim_fields import FIELDS, carried
from redsched.store.codec.keys import CELLS, Keys, Kind
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimCall, FencingBegun, Member, ReleaseMode, Replacement
from redsched.store.commands.fencing import FencingLimits
from redsched.store.commands.status import Announcement, AuditNote
from redsched.store.commands.workload import STEP
from redsched.store.embedded.server import PrivateServer
from redsched.store.store import Store
from tests.support import claim_rows
from tests.support.store_users import url_as

DOCS = Path(__file__).parents[3] / "docs"

LEFT_TO_OPERATORS = {"jump_s", "remember_s", "keep_s", "settle_s"}
ALL_CARRIED = {one.name: one.absent or "x" for one in FIELDS if one.carried and not one.name.startswith("gang_")}
"""A value of each field that claims without a gang carry."""
TOO_RARE = {
    "rs:{c}:changes": {"reread"},
    "rs:{c}:claim:<id>": {"call_id", "clock_shift_ms"},
    "rs:{c}:gang:<id>": {"may_be_complete"},
    "rs:{c}:host:<host>": {"clock_shift_ms"},
    "rs:{c}:meta": {"clock_shift_ms"},
    "rs:{c}:server-group:<name>": {"broken"},
}
"""Documented fields that `live` does not produce: of an entry of more than 900 values, of a claim that waited for
replicas, of a gang that has lost an active member and waits for its replacement, of a clock that has jumped, and of a
group whose members have come where its rule does not allow them."""


def documented() -> dict[str, set[str]]:
    """Return the documented fields of each documented key."""
    found: dict[str, set[str]] = {}
    for section in (DOCS / "keys.md").read_text().split("\n## ")[1:]:
        key = section.split("`")[1]
        found[key] = set(re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE))
    return found


DOCUMENTED = documented()


def with_placeholders(key: str) -> str:
    """Return `rs:{c1}:host:h1` as `rs:{c}:host:<>`: with placeholders for the cell and the last part."""
    key = key.replace("{c1}", "{c}")
    key = re.sub(r"^rs:\{(claim|server-group):[^}]+\}", r"rs:{\1:<>}", key)
    return re.sub(
        r"^(rs:\{c\}:(host|attributes|claims|claim|reason|inbox|gang|request|alternates|decision|duty|aggregate|server-group|pool|quota|probe):).+",
        r"\1<>",
        key,
    )


def plain(key: str) -> str:
    return re.sub(r"<\w+>", "<>", key)


def matches(field: str, patterns: set[str]) -> bool:
    """Return whether a field such as `capacity.VCPU` matches a pattern such as `capacity.<slot>`."""
    return any(re.fullmatch(re.sub(r"<\w+>", ".+", re.escape(one).replace(r"\<", "<")), field) for one in patterns)


def test_every_key_that_the_code_can_build_is_documented() -> None:
    keys = Keys("c")
    built = {CELLS, keys.meta, keys.changes, keys.hosts, keys.deadlines}
    built |= {keys.aggregates, keys.server_groups, keys.pools, keys.reconcile, keys.shelved, keys.draining}
    built |= {keys.quotas, keys.events, keys.recorder, keys.workload, keys.reservations}
    built |= {keys.schedulers, keys.missing, keys.audit, keys.fencing, keys.expected, keys.refused}
    named = inspect.getmembers(keys, inspect.ismethod)
    several = {"shared_object", "text", "of_host", "object_keys"}
    methods = [method for name, method in named if not name.startswith("_") and name not in several]
    built |= {method("<>") for method in methods}
    assert built == {plain(key) for key in DOCUMENTED}


OF_OTHERS = re.compile(r"^placement\.\d+-\w+\.\d+\.")
"""The prefix of the fields of placements other than the main one."""


class Seen:
    """The fields seen in the store so far, for each documented key."""

    def __init__(self, client: redis.Redis) -> None:
        self._client: Any = client  # redis-py's types allow for bytes in every reply
        self.fields: dict[str, set[str]] = {}

    async def look(self) -> None:
        """Add the fields that the store contains now."""
        async for key in self._client.scan_iter():
            kind = await self._client.type(key)
            fields = self.fields.setdefault(with_placeholders(key), set())
            if kind == "hash":
                names = await self._client.hkeys(key)
                fields |= {*names, *(OF_OTHERS.sub("", name) for name in names)}
            elif kind == "stream":
                entries = await self._client.xrange(key)
                fields |= {field for _, values in entries for field in values}


@pytest.fixture
async def cell(clean_store: str) -> AsyncIterator[CellStore]:
    async with Store.connect(clean_store) as store:
        yield store.cell("c1")


@pytest.fixture
async def seen(clean_store: str) -> AsyncIterator[Seen]:
    async with redis.Redis.from_url(clean_store, protocol=2, decode_responses=True) as client:
        yield Seen(client)


def report() -> HostReport:
    return HostReport(
        "h1",
        {"VCPU": Inventory(64, min_unit=2, step_size=2)},
        traits=frozenset({"HW_CPU_X86_AVX2"}),
        labels={"rack": "r4"},
        metrics={"cpu.percent": 12.5},
        external={"VCPU": 2},
        pools={
            "gpu0": Pool(
                {"CUSTOM_GPU_MILLI": Inventory(1000)}, traits=frozenset({"CUSTOM_GPU_T4"}), device="GPU-5fd4f087"
            )
        },
    )


async def declare(cell: CellStore) -> None:
    await cell.declared.put_aggregate(Aggregate("fast", {"disk": "ssd"}, frozenset({"h1"})))
    await cell.declared.put_group(ServerGroup("db", GroupPolicy.SOFT_ANTI_AFFINITY, count_by=("label:rack",)))
    seats = {"CUSTOM_SEAT": Inventory(10, min_unit=2, step_size=2)}
    await cell.declared.put_pool(SharedPool("licences", seats, frozenset({"CUSTOM_LICENCE"}), frozenset({"fast"})))


async def share(cell: CellStore, seen: Seen) -> None:
    """Share a project's quota with another cell, give an amount to it, and take one."""
    await cell.declared.put_quota(Quota("p", {"VCPU": 40, "claims": 20}), ("c1", "c2"))
    (fields,) = (await cell.declared.read(Kind.QUOTA, ["p"])).values()
    answer, state = await cell.quotas.close("p", fields["division"], "division")
    await seen.look()
    await cell.quotas.share("p", "division", answer.epoch, state.version, {"VCPU": 40, "claims": 20})
    _, transfer = await cell.quotas.give("p", "division", "c2", "transfer", {"claims": 1})
    assert transfer is not None
    await cell.quotas.take("p", "division", "c2", transfer)
    await seen.look()


async def claim(cell: CellStore, claim_id: str) -> str:
    clock = await cell.tick()
    amounts = {"VCPU": 2, "pool:licences/CUSTOM_SEAT": 2}
    members = (Member(claim_id, (Candidate("h1", amounts),), group="db"),)
    call = ClaimCall(members, clock.epoch, clock.now_ms, clock.seq, "d", True, 60_000, "p", ALL_CARRIED, "alice")
    answer = await cell.claims.place(call)
    assert answer.outcome is Outcome.OK
    return answer.placed[0].token


async def follow(cell: CellStore, seen: Seen) -> None:
    """Let a gang fail; let a claim be moved, fail, be placed again, postponed, shelved and released."""
    clock = await cell.tick()
    small = (Candidate("h1", {"VCPU": 2}),)

    async def place(*members: Member, **more: Any) -> list[str]:
        call = ClaimCall(members, clock.epoch, clock.now_ms, clock.seq, "d", True, 60_000, request="{}", **more)
        return [one.token for one in (await cell.claims.place(call)).placed]

    ids = ("g1", "g2")
    gang: Any = {"is_gang": True, "carried": carried(gang_members={"m": ids}, gang_on_exit=GangOnExit.RELEASE)}
    tokens = await place(*(Member(one, small, decision="{}") for one in ids), **gang)
    await cell.texts.decisions.write()
    await cell.claims.fail("h1", "g1", tokens[0], by_host=True)
    await seen.look()
    await cell.gangs.end("g1")
    ids = ("g3", "g4")
    gang["carried"] |= carried(gang_members={"places": ids})
    tokens = await place(*(Member(one, small) for one in ids), **gang)
    for claim_id, token in zip(ids, tokens, strict=True):
        await cell.claims.confirm("h1", claim_id, token)
    await cell.claims.gone("h1", "g3", tokens[0], EndReason.WORK_ENDED, {})
    await seen.look()
    await cell.gangs.release_others((await cell.claims.read(["g3"]))["g3"])
    await cell.claims.gone("h1", "g4", tokens[1], EndReason.RELEASED, {})
    others: Any = {"alternates": ("h2",), "most_alternates": 1}
    others["carried"] = carried(max_attempts=3, on_exit=OnExit.REPLACE)
    (token,) = await place(Member("moved", small), max_runtime_s=60, **others)
    await cell.claims.confirm("h1", "moved", token, log="/jobs/log")
    (target,) = await place(Member("moved", small, replacement=Replacement("h1", token, EndReason.MOVED)))
    await cell.claims.fail("h1", "moved", target, by_host=True)
    await seen.look()
    for _ in range(2):
        (target,) = await place(Member("moved", small, replacement=Replacement("h1", token, EndReason.MOVED, 60)))
        await seen.look()
        await cell.claims.confirm("h1", "moved", target)
        await Recorder(cell, Settings()).record()
        await seen.look()
        await cell.claims.reconcile(["moved"])
        await seen.look()
        await cell.claims.gone("h1", "moved", token, EndReason.MOVED, {})
        token = target
    await cell.claims.work_ended("h1", "moved", token, "no process 7 is left")
    await cell.claims.fail("h1", "moved", token, by_host=True)
    await seen.look()
    (token,) = await place(Member("moved", small, replacement=Replacement("h1", token, EndReason.FAILED)))
    await cell.claims.fail("h1", "moved", token, by_host=True, retry=True, reason="exit code 3")
    await cell.claims.postpone("h1", "moved", token, "all is full")
    await seen.look()
    (token,) = await place(Member("moved", small, replacement=Replacement("h1", token, EndReason.FAILED)))
    await seen.look()
    await cell.claims.release("h1", "moved", end_reason=EndReason.SHELVED)
    await cell.hosts.set_status("h1", HostStatus.DRAINING, move=True, deadline_s=60)
    await seen.look()
    await cell.hosts.set_status("h1", HostStatus.ENABLED)
    await cell.claims.release("h1", "moved", how=ReleaseMode.FORCE)


async def keep_up(cell: CellStore, seen: Seen) -> None:
    """Record events, with a gap, and repair a counter that was set wrong by hand."""
    await cell.take_duty("record", "scheduler", 1000)
    await seen._client.hset(cell.keys.host("h1"), "claims", "99")
    await cell.repair.host("h1", "claims was 99")
    await seen._client.hset(cell.keys.recorder, "seq", "1")
    await Recorder(cell, Settings()).record()
    await cell.workload.add(STEP, Workload({250: 1}, {"FPGA": ScarceDemand(1, {"VCPU": 1})}))
    await cell.workload.add(1, Workload({250: 1}))
    await cell.status.announce(Announcement("scheduler", 0, "1.0", "node", 1, 0))
    await cell.status.note_audit(AuditNote(0, 1, 1, 1, 0, ("h1: wrong",)))
    await cell.status.note_refused("h1", "4000000000000-abc")
    await cell.reservations.put("h1", "reservation", {"VCPU": 1}, 1000, 0, 1)
    await seen.look()


async def fence(cell: CellStore, seen: Seen) -> None:
    """Let the limits forbid to fence the host, which is down, and then let its fencing fail."""
    limits = FencingLimits(after_ms=0, most=1, percent=0, within_ms=60_000)
    await cell.hosts.report(HostReport("h2", {"VCPU": Inventory(1, reserved=2)}))
    await cell.hosts.set_status("h3", HostStatus.DISABLED, ahead=True)
    await cell.fencing.begin("h1", replace(limits, most=0))
    await seen.look()
    begun = await cell.fencing.begin("h1", limits)
    assert isinstance(begun, FencingBegun)
    await cell.fencing.failed(begun, "exit code 1")
    await seen.look()


async def live(cell: CellStore, seen: Seen) -> None:
    """Produce nearly all fields: a host joins, is in an aggregate, holds claims, shrinks and is written off."""
    origin.enter(Origin("cli:alice", "r1"))
    await cell.init()
    answer = await cell.hosts.report(report(), AgentStamp("journal", "nonce", 1, "1.0"))
    await cell.hosts.attest("h1", answer.epoch, AgentStamp("journal", "nonce", 2))
    await declare(cell)
    await cell.claims.fail("h1", "failed", await claim(cell, "failed"), by_host=True, reason="exit code 3")
    token = await claim(cell, "kept")
    await seen.look()
    await cell.claims.accept("h1", "kept", token, 30)
    await cell.claims.confirm("h1", "kept", token)
    await cell.claims.work_ended("h1", "kept", token, "no process 7 is left")
    token = (await cell.claims.resize("h1", "kept", token, {"VCPU": 4})).facts[0]
    await cell.claims.report_local("h1", "found", {"VCPU": 2}, "p", "c")
    await cell.claims.release("h1", "kept", reason="drained")
    await cell.claims.stop_failed("h1", "kept", token, "exit code 1")
    await seen.look()
    await cell.claims.gone("h1", "kept", token, EndReason.RELEASED, {"VCPU": 0})
    await follow(cell, seen)
    await claim(cell, "open")
    await share(cell, seen)
    await cell.bindings.bind("moved-on", "", 60_000)
    await cell.bindings.bind_group("db")
    await cell.claims.void("moved-on", "d")
    await cell.schema.upgrade()
    shrunk = replace(report(), inventories={"VCPU": Inventory(0)}, external={})
    await cell.hosts.report(shrunk, AgentStamp("journal", "nonce", 3))
    await cell.declared.put_pool(SharedPool("licences", {"CUSTOM_SEAT": Inventory(1)}))
    await seen.look()
    await cell.hosts.set_status("h1", HostStatus.DRAINING, reason="new GPUs")
    await keep_up(cell, seen)
    await seen._client.hset(cell.keys.host("h1"), "alive_until_ms", "1")
    await cell.claims.release("h1", "found", how=ReleaseMode.FORCE)
    await seen.look()
    await fence(cell, seen)
    await cell.hosts.write_off("h1", force=True)
    await seen.look()
    await seen._client.flushall()
    await cell.report_missing((await cell.tick()).epoch, "scheduler", 1)
    await seen.look()


def test_the_documented_fields_of_claims_are_those_of_the_table() -> None:
    page = claim_rows.PAGE.read_text()
    assert page == claim_rows.written(page), "run scripts/claim-fields"


async def test_every_field_in_a_living_store_is_documented(cell: CellStore, seen: Seen) -> None:
    await live(cell, seen)
    known = {plain(key): fields for key, fields in DOCUMENTED.items()}
    changing = ("host", "attributes", "aggregate", "server-group", "pool", "quota")
    changed = set().union(*(known[f"rs:{{c}}:{kind}:<>"] for kind in changing))
    for key, fields in seen.fields.items():
        patterns = known[key] | (changed if key == "rs:{c}:changes" else set())
        assert not {field for field in fields if not matches(field, patterns)}, key


async def test_no_field_is_documented_that_never_is_there(cell: CellStore, seen: Seen) -> None:
    await live(cell, seen)
    for key, patterns in DOCUMENTED.items():
        fields = seen.fields.get(plain(key), set())
        never = {one for one in patterns if not any(matches(field, {one}) for field in fields)}
        assert not never - LEFT_TO_OPERATORS - TOO_RARE.get(key, set()), key


async def test_the_documented_permissions_are_enough(fresh_server: PrivateServer) -> None:
    """They are those of `redsched acl` for a scheduler."""
    operator: Any
    async with (
        redis.Redis.from_url(fresh_server.url, protocol=2, decode_responses=True) as operator,
        Store.connect(url_as(fresh_server.url, StoreRole.SCHEDULER)) as store,
    ):
        cell = store.cell("c1")
        await live(cell, Seen(operator))
        await cell.feed.poll("0-0", 10)
        assert [one.name async for one in cell.audit.hosts(["h1"])] == ["h1"]
        await cell.texts.restore("alternates:a", "h1 h2")
        assert await cell.texts.get("alternates:a") == "h1 h2"
        await cell.audit.claim_ids()
        await cell.declared.read(Kind.AGGREGATE, await cell.declared.names(Kind.AGGREGATE))
        await cell.declared.delete_aggregate("fast", force=True)
        await cell.declared.delete_group("db")
        await cell.declared.delete_pool("licences")
        await store.memory_policy()
        await cell.hosts.next_lease(0)
        await cell.due.oldest_ms()
