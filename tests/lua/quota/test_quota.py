"""A quota in one cell: claim.lua checks it, and every script that makes, changes or ends a claim counts it."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from redsched.agent.claims.context import objects_of, work_of
from redsched.model import Candidate, EndReason, Exceeded, Quota
from redsched.store.cell import CellStore
from redsched.store.codec.claim_codec import exceeded
from redsched.store.codec.keys import Kind
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ClaimReply, EndedPlacement, Member, ReleaseMode, Replacement, ScriptResult
from tests.support.builders.cells import (
    HOUR_S,
    accepted_claim,
    active,
    call_of,
    claim_on,
    ended,
    fields_of,
    make_due,
    member,
    new_epoch,
    nothing_written,
    open_host,
    report_of,
)
from tests.support.builders.counted_claims import SEAT, pool
from tests.support.builders.placements import arrive, ask_again, held, move_to, settle

QUOTA = Quota("project", {"VCPU": 6, "claims": 3})
PROJECT = ("quota:project",)


@pytest.fixture
async def cell(cell: CellStore) -> CellStore:
    """Two hosts with room for far more than the quota."""
    for host in ("h1", "h2"):
        await open_host(cell, host, VCPU=32, MEMORY_MB=1024)
    return cell


async def used(raw: Any, cell: CellStore) -> dict[str, int]:
    fields = await fields_of(raw, cell.keys.quota("project"))
    return {name.removeprefix("used."): int(value) for name, value in fields.items() if name.startswith("used.")}


async def ask(cell: CellStore, claim_id: str, vcpu: int, **more: int) -> ClaimReply:
    return await cell.claims.place(call_of(await cell.tick(), member(claim_id, "h1", VCPU=vcpu, **more)))


# Declaring


async def test_a_quota_is_declared_changed_and_taken_back(cell: CellStore, raw: Any) -> None:
    assert (await cell.declared.put_quota(QUOTA)).outcome is Outcome.OK
    async with nothing_written(raw):
        assert (await cell.declared.put_quota(QUOTA)).outcome is Outcome.ALREADY_DONE
    (fields,) = (await cell.declared.read(Kind.QUOTA, ["project"])).values()
    assert {"limit.VCPU": "6", "limit.claims": "3"}.items() <= fields.items()
    await cell.declared.put_quota(Quota("project", {"claims": 5}))
    (fields,) = (await cell.declared.read(Kind.QUOTA, ["project"])).values()
    assert fields.keys() == {"version", "limit.claims"}
    assert await cell.declared.names(Kind.QUOTA) == ["project"]
    assert (await cell.declared.delete_quota("project")).outcome is Outcome.OK
    assert (await cell.declared.delete_quota("project")).outcome is Outcome.UNKNOWN
    assert await cell.declared.names(Kind.QUOTA) == []
    assert not await raw.exists(cell.keys.quota("project"))


async def test_what_is_used_is_known_before_a_quota_is_declared_and_after_it_was_taken_back(
    cell: CellStore, raw: Any
) -> None:
    """So no scan for claims is needed, and none made at the very moment of the declaration is missed."""
    await claim_on(cell, "a", VCPU=4)
    await cell.declared.put_quota(QUOTA)
    assert (await ask(cell, "b", 3)).over == (Exceeded("VCPU", 6, 4, 3),)
    await cell.declared.delete_quota("project")
    assert (await ask(cell, "b", 3)).outcome is Outcome.OK
    await cell.claims.release("h1", "a")
    await cell.declared.put_quota(QUOTA)
    assert await used(raw, cell) == {"VCPU": 3, "claims": 1}
    await cell.declared.delete_quota("project")
    await cell.claims.release("h1", "b")
    assert not await raw.exists(cell.keys.quota("project")), "nothing is left"


async def test_the_feed_tells_declarations_and_not_what_claims_use(cell: CellStore) -> None:
    seq = (await cell.tick()).seq
    await cell.declared.put_quota(QUOTA)
    await claim_on(cell, "a")
    await cell.claims.release("h1", "a")
    entries = [one for one in await cell.feed.read("0-0", 100) if one.seq > seq and one.kind == "quota"]
    assert [(one.op, dict(one.fields)) for one in entries] == [("declared", {"limit.VCPU": "6", "limit.claims": "3"})]


# Claiming


async def test_a_claim_within_the_quota_is_one_call_and_beyond_it_writes_nothing(cell: CellStore, raw: Any) -> None:
    await cell.declared.put_quota(QUOTA)
    assert (await ask(cell, "a", 4, MEMORY_MB=8)).outcome is Outcome.OK
    assert await used(raw, cell) == {"VCPU": 4, "MEMORY_MB": 8, "claims": 1}
    async with nothing_written(raw):
        answer = await ask(cell, "b", 3)
    assert (answer.outcome, answer.over) == (Outcome.OVER_QUOTA, (Exceeded("VCPU", 6, 4, 3),))
    assert (await ask(cell, "b", 2)).outcome is Outcome.OK
    other = replace(call_of(await cell.tick(), member("c", "h1", VCPU=3)), project="other")
    assert (await cell.claims.place(other)).outcome is Outcome.OK


async def test_members_are_counted_together_over_pools_and_shared_pools(cell: CellStore, raw: Any) -> None:
    await pool(cell)
    await cell.declared.put_quota(Quota("project", {"VCPU": 6, "CUSTOM_SEAT": 4, "claims": 3}))
    members = [Member(name, (Candidate("h1", {"VCPU": 2, SEAT: 2}),)) for name in "abcd"]
    answer = await cell.claims.place(call_of(await cell.tick(), *members))
    expected = (Exceeded("CUSTOM_SEAT", 4, 0, 8), Exceeded("VCPU", 6, 0, 8), Exceeded("claims", 3, 0, 4))
    assert (answer.outcome, answer.over) == (Outcome.OVER_QUOTA, expected)
    assert (await cell.claims.place(call_of(await cell.tick(), *members[:2]))).outcome is Outcome.OK
    assert await used(raw, cell) == {"VCPU": 4, "CUSTOM_SEAT": 4, "claims": 2}


async def test_an_id_that_is_known_gets_its_outcome_though_the_quota_is_used_up(cell: CellStore) -> None:
    await cell.declared.put_quota(QUOTA)
    assert (await ask(cell, "a", 6)).outcome is Outcome.OK
    assert (await ask(cell, "a", 6)).outcome is Outcome.ALREADY_DONE
    assert (await ask(cell, "b", 1)).outcome is Outcome.OVER_QUOTA


async def test_what_somebody_has_made_unreadable_admits_nothing(cell: CellStore, raw: Any) -> None:
    await cell.declared.put_quota(QUOTA)
    for field in ("used.VCPU", "limit.VCPU"):
        before = await raw.hget(cell.keys.quota("project"), field)
        await raw.hset(cell.keys.quota("project"), field, "1e3")
        assert (await ask(cell, "a", 1)).outcome is Outcome.OVER_QUOTA
        await raw.hset(cell.keys.quota("project"), field, before or "0")
    assert (await ask(cell, "a", 1)).outcome is Outcome.OK


async def test_a_limit_below_what_is_used_ends_nothing(cell: CellStore, raw: Any) -> None:
    await cell.declared.put_quota(QUOTA)
    await claim_on(cell, "a", VCPU=5)
    await cell.declared.put_quota(Quota("project", {"VCPU": 2}))
    assert (await ask(cell, "b", 1)).over == (Exceeded("VCPU", 2, 5, 1),)
    assert await used(raw, cell) == {"VCPU": 5, "claims": 1}


# Every end, and every change


async def _expired(cell: CellStore, raw: Any) -> None:
    await make_due(raw, cell, "a")
    assert await cell.claims.reconcile(["a"]) == 1


ENDS: dict[str, Callable[[CellStore, Any, str], Awaitable[Any]]] = {
    "release": lambda cell, raw, token: cell.claims.release("h1", "a", token),
    "release, quota known": lambda cell, raw, token: cell.claims.release("h1", "a", token, objects=PROJECT),
    "fail": lambda cell, raw, token: cell.claims.fail("h1", "a", token, by_host=False),
    "fail by host": lambda cell, raw, token: cell.claims.fail("h1", "a", token, by_host=True),
    "gone": lambda cell, raw, token: cell.claims.gone("h1", "a", token, EndReason.RELEASED, {}),
    "shelve": lambda cell, raw, token: cell.claims.shelve("h1", "a", token),
    "expire": lambda cell, raw, token: _expired(cell, raw),
    "forget": lambda cell, raw, token: cell.hosts.forget("h1", force=True),
}


@pytest.mark.parametrize("end", ENDS)
async def test_whatever_ends_a_claim_frees_what_it_used_at_once(cell: CellStore, raw: Any, end: str) -> None:
    """In the same script: an owner that has the answer can claim again. A repeated call changes nothing."""
    await cell.declared.put_quota(QUOTA)
    placed = await claim_on(cell, "a", VCPU=6)
    await ENDS[end](cell, raw, placed.token)
    assert await used(raw, cell) == {}
    if end not in ("expire", "forget"):
        async with nothing_written(raw):
            await ENDS[end](cell, raw, placed.token)
        assert (await ask(cell, "b", 6)).outcome is Outcome.OK


async def test_a_claim_counts_until_its_host_says_that_the_work_is_gone(cell: CellStore, raw: Any) -> None:
    await cell.declared.put_quota(QUOTA)
    token = (await accepted_claim(cell, "a", VCPU=6)).token
    await cell.claims.release("h1", "a")
    assert (await ask(cell, "b", 1)).outcome is Outcome.OVER_QUOTA
    await cell.claims.gone("h1", "a", token, EndReason.RELEASED, {})
    assert (await ask(cell, "b", 6)).outcome is Outcome.OK


async def test_a_resize_takes_before_and_releases_with_the_word_of_the_host(cell: CellStore, raw: Any) -> None:
    await cell.declared.put_quota(QUOTA)
    placed = await claim_on(cell, "a", VCPU=4)
    async with nothing_written(raw):
        answer = await cell.claims.resize("h1", "a", placed.token, {"VCPU": 7}, PROJECT)
    assert (answer.outcome, exceeded(answer.facts)) == (Outcome.OVER_QUOTA, (Exceeded("VCPU", 6, 4, 3),))
    grown = await cell.claims.resize("h1", "a", placed.token, {"VCPU": 6})
    assert (grown.outcome, await used(raw, cell)) == (Outcome.OK, {"VCPU": 6, "claims": 1})
    await cell.claims.accept("h1", "a", grown.facts[0], HOUR_S)
    shrunk = await cell.claims.resize("h1", "a", grown.facts[0], {"VCPU": 1, "MEMORY_MB": 8})
    assert await used(raw, cell) == {"VCPU": 6, "MEMORY_MB": 8, "claims": 1}
    await cell.claims.resized("h1", "a", shrunk.facts[0], {"VCPU": 1, "MEMORY_MB": 8})
    assert await used(raw, cell) == {"VCPU": 1, "MEMORY_MB": 8, "claims": 1}


async def test_what_a_host_runs_by_itself_is_counted_and_not_refused(cell: CellStore, raw: Any) -> None:
    """The work runs already. If it turns out to belong to another project, it is counted there instead."""
    await cell.declared.put_quota(QUOTA)
    token = (await cell.claims.report_local("h1", "l", {"VCPU": 8}, "project")).facts[0]
    assert await used(raw, cell) == {"VCPU": 8, "claims": 1}
    token = (await cell.claims.report_local("h1", "l", {"VCPU": 7}, "project", token=token)).facts[0]
    assert await used(raw, cell) == {"VCPU": 7, "claims": 1}
    assert (await ask(cell, "a", 1)).outcome is Outcome.OVER_QUOTA
    await cell.claims.report_local("h1", "l", {"VCPU": 7}, "other", token=token)
    assert await used(raw, cell) == {}
    assert await raw.hget(cell.keys.quota("other"), "used.VCPU") == "7"


# Moves


async def test_a_move_counts_once_at_the_larger_amounts(cell: CellStore, raw: Any) -> None:
    await cell.declared.put_quota(QUOTA)
    placed = await active(cell, "a", VCPU=4, MEMORY_MB=8)
    again = Replacement("h1", placed.token, EndReason.MOVED)
    answer = await ask_again(cell, "a", "h2", again, VCPU=7)
    assert (answer.outcome, answer.over) == (Outcome.OVER_QUOTA, (Exceeded("VCPU", 6, 4, 3),))
    answer = await ask_again(cell, "a", "h2", again, VCPU=5)
    assert await used(raw, cell) == {"VCPU": 5, "MEMORY_MB": 8, "claims": 1}
    await arrive(cell, "a", answer.placed[0])
    await settle(cell)
    assert await used(raw, cell) == {"VCPU": 5, "MEMORY_MB": 8, "claims": 1}, "the first is still ending"
    await cell.claims.gone("h1", "a", placed.token, EndReason.RELEASED, {})
    assert await used(raw, cell) == {"VCPU": 5, "claims": 1}
    await cell.claims.release("h2", "a", how=ReleaseMode.FORCE)
    assert await used(raw, cell) == {}


async def test_a_move_that_comes_to_nothing_leaves_what_was_used_before(cell: CellStore, raw: Any) -> None:
    await cell.declared.put_quota(QUOTA)
    placed = await active(cell, "a", VCPU=4)
    found = await ask_again(cell, "a", "h2", Replacement("h1", placed.token, EndReason.MOVED), VCPU=6)
    assert await used(raw, cell) == {"VCPU": 6, "claims": 1}
    await cell.claims.fail("h2", "a", found.placed[0].token, by_host=True)
    await settle(cell)
    assert await used(raw, cell) == {"VCPU": 4, "claims": 1}


async def test_a_failed_placement_is_not_counted_and_the_next_one_is(cell: CellStore, raw: Any) -> None:
    await cell.declared.put_quota(QUOTA)
    placed = await claim_on(cell, "a", VCPU=1)
    await cell.claims.fail("h1", "a", placed.token, by_host=True, retry=True)
    assert await used(raw, cell) == {}
    await move_to(cell, "a", placed, end_reason=EndReason.FAILED)
    assert await used(raw, cell) == {"VCPU": 1, "claims": 1}


# Losses of data


async def test_while_hosts_attest_a_claim_waits(cell: CellStore, raw: Any) -> None:
    """Hosts may restore claims that count."""
    await cell.declared.put_quota(QUOTA)
    placed = await active(cell, "a", VCPU=1)
    epoch = await new_epoch(cell)
    await cell.hosts.attest("h1", epoch, None, [held("a", placed, project="project")])
    assert (await ask(cell, "b", 1)).outcome is Outcome.SETTLING
    other = replace(call_of(await cell.tick(), member("c", "h1")), project="other")
    assert (await cell.claims.place(other)).outcome is Outcome.OK
    await cell.hosts.attest("h2", epoch)
    assert (await ask(cell, "b", 6)).over == (Exceeded("VCPU", 6, 1, 6),)
    assert (await ask(cell, "b", 5)).outcome is Outcome.OK


async def test_attesting_brings_back_what_a_wiped_cell_has_forgotten(cell: CellStore, raw: Any) -> None:
    """Not the limits, which hosts do not have: until they are declared again nothing is limited, but all is counted."""
    await cell.declared.put_quota(QUOTA)
    first, second = await active(cell, "a", VCPU=1), await active(cell, "b", "h2", VCPU=1)
    await raw.flushall()
    for host, claim_id, placed in (("h1", "a", first), ("h2", "b", second)):
        await cell.hosts.report(report_of(host, VCPU=32, MEMORY_MB=1024))
        await cell.hosts.attest(host, "", None, [held(claim_id, placed, project="project")])
    assert await used(raw, cell) == {"VCPU": 2, "claims": 2}
    await raw.hset(cell.keys.meta, "settle_at_ms", 1)
    await cell.declared.put_quota(QUOTA)
    assert (await ask(cell, "c", 5)).over == (Exceeded("VCPU", 6, 2, 5),)


async def test_an_attestation_counts_out_what_the_journal_says_has_ended(cell: CellStore, raw: Any) -> None:
    await cell.declared.put_quota(QUOTA)
    placed = await active(cell, "a", VCPU=1)
    epoch = await new_epoch(cell)
    await cell.hosts.attest("h1", epoch, None, [], [EndedPlacement("a", placed.token)])
    assert await used(raw, cell) == {}


async def test_restoring_an_exported_claim_counts_it(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a", VCPU=3)
    fields = {k: v for k, v in (await fields_of(raw, cell.keys.claim("a"))).items() if k != "inbox_id"}
    await cell.hosts.forget("h1", force=True)
    await raw.delete(cell.keys.claim("a"))
    assert (placed.host, await used(raw, cell)) == ("h1", {})
    await cell.hosts.report(report_of("h1", VCPU=32))
    assert (await cell.repair.restore({"a": fields})).outcome is Outcome.OK
    assert await used(raw, cell) == {"VCPU": 3, "claims": 1}


# Repairing


async def test_repairing_works_out_again_what_is_used(cell: CellStore, raw: Any) -> None:
    """The feed reports the repair once. Claims that joined since the caller searched for claims are not lost."""
    await cell.declared.put_quota(QUOTA)
    await claim_on(cell, "a", VCPU=2)
    await ended(cell, "b")
    version = await cell.audit.version_of("quota", "project")
    await raw.hset(cell.keys.quota("project"), mapping={"used.VCPU": "5", "used.MEMORY_MB": "7"})
    await claim_on(cell, "c", VCPU=1)
    assert (await cell.repair.counts("quota:project", version, "manual", ["a", "b"])).outcome is Outcome.RETRY
    version = await cell.audit.version_of("quota", "project")
    assert (await cell.repair.counts("quota:project", version, "manual", ["a", "b", "c"])).outcome is Outcome.OK
    assert await used(raw, cell) == {"VCPU": 3, "claims": 2}
    entry = (await cell.feed.read("0-0", 100))[-1]
    assert (entry.kind, entry.name, entry.op, entry.fields["reason"]) == ("quota", "project", "repaired", "manual")
    async with nothing_written(raw):
        assert (
            await cell.repair.counts("quota:project", version, "manual", ["a", "b", "c"])
        ).outcome is Outcome.ALREADY_DONE


@pytest.mark.parametrize("script", ["gone", "fail", "resized", "local"])
async def test_what_an_agent_says_of_a_claim_under_a_quota_is_one_call(
    cell: CellStore, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    """The agent passes the key of the quota, by the project in its journal, and does not get RETRY."""
    await cell.declared.put_quota(QUOTA)
    token = (await active(cell, "a", VCPU=2)).token
    if script == "resized":
        token = (await cell.claims.resize("h1", "a", token, {"VCPU": 1})).facts[0]
    claim = (await cell.claims.read(["a"]))["a"]
    objects = objects_of(work_of(claim, claim.placements[0]))
    asked: list[str] = []
    answer = cell._cell.answer

    async def noted(name: str, keys: Sequence[str] = (), arguments: Sequence[str | int] = ()) -> ScriptResult:
        asked.append(name)
        return await answer(name, keys, arguments)

    monkeypatch.setattr(cell._cell, "answer", noted)
    if script == "gone":
        await cell.claims.gone("h1", "a", token, EndReason.RELEASED, {}, objects=objects)
    elif script == "fail":
        await cell.claims.fail("h1", "a", token, True, objects=objects)
    elif script == "resized":
        await cell.claims.resized("h1", "a", token, {"VCPU": 1}, objects=objects)
    else:
        await cell.claims.report_local("h1", "console", {"VCPU": 1}, project="project")
    assert asked == [script]
