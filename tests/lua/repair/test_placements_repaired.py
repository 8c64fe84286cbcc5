"""Repairs and restores of claims that have more than one placement."""

from typing import Any

import pytest

from redsched.model import EndReason
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import Placed
from tests.support.builders.cells import HOUR_S, active, fields_of, new_epoch, nothing_written, open_host
from tests.support.builders.counted_claims import AT_BOTH, begin_move, counts, seats
from tests.support.builders.placements import arrive, held, is_kept, move_to, settle, shelved, states
from tests.support.models.sums import check_sums

pytestmark = pytest.mark.usefixtures("three_hosts")


async def moving(cell: CellStore, to: str = "h2") -> tuple[Placed, Placed]:
    """Claim `a`, active on h1, and the target of its move."""
    first = await active(cell, "a")
    return first, await move_to(cell, "a", first, to, by_s=60)


@pytest.mark.parametrize("to", ["h1", "h2"])
async def test_sums_and_sets_of_both_hosts_are_worked_out_again(cell: CellStore, raw: Any, to: str) -> None:
    await moving(cell, to)
    for host in {"h1", to}:
        await raw.hset(cell.keys.host(host), mapping={"claims": "9", "starting": "abc", "claimed.VCPU": "7"})
        await raw.delete(cell.keys.claims(host))
        assert (await cell.repair.host(host, "damage", "a")).outcome is Outcome.OK
    await check_sums(cell, raw)
    async with nothing_written(raw):
        for host in {"h1", to}:
            assert (await cell.repair.host(host, "damage", "a")).outcome is Outcome.ALREADY_DONE


async def test_a_host_that_a_claim_has_left_does_not_list_it(cell: CellStore, raw: Any) -> None:
    first, _ = await moving(cell)
    await cell.claims.fail("h1", "a", first.token, by_host=True)
    await raw.sadd(cell.keys.claims("h1"), "a")
    assert (await cell.repair.host("h1", "damage")).outcome is Outcome.OK
    await check_sums(cell, raw)
    assert await cell.hosts.claim_ids("h2") == {"a"}


@pytest.mark.parametrize("damage", ["no deadline", "another deadline", "no lease"])
async def test_the_deadline_of_a_target_is_worked_out_again(cell: CellStore, raw: Any, damage: str) -> None:
    _, second = await moving(cell)
    if damage == "no deadline":
        await raw.delete(cell.keys.deadlines)
    elif damage == "another deadline":
        await raw.zadd(cell.keys.deadlines, {"a": 5})
    else:
        await raw.hdel(cell.keys.claim("a"), f"placement.{second.token}.expires_at_ms")
    assert (await cell.repair.host("h2", "damage")).outcome is Outcome.OK
    claim = (await cell.claims.read("a"))["a"]
    assert claim.placements[1].expires_at_ms is not None
    await check_sums(cell, raw)


async def test_groups_and_pools_count_every_placement_again(cell: CellStore, raw: Any) -> None:
    await begin_move(cell)
    await raw.hset(cell.keys.server_group("web"), mapping={"members": "1", "count.host=h2": "4", "count.host=h9": "1"})
    await raw.hset(cell.keys.pool("lic"), "claimed.CUSTOM_SEAT", "x")
    for kind, name in (("server-group", "web"), ("pool", "lic")):
        version = await cell.audit.version_of(kind, name)
        assert (await cell.repair.counts(f"{kind}:{name}", version, "damage", "a")).outcome is Outcome.OK
    assert (await counts(raw, cell), await seats(raw, cell)) == (AT_BOTH, 5)
    await check_sums(cell, raw)


async def test_a_claim_that_was_overtaken_is_a_chore_again(cell: CellStore, raw: Any) -> None:
    first, second = await moving(cell)
    await arrive(cell, "a", second)
    await raw.delete(cell.keys.reconcile)
    assert (await cell.repair.due("damage", "a")).outcome is Outcome.OK
    await settle(cell)
    assert await states(cell, "a") == {"h1": "ending moved", "h2": "active"}
    await cell.claims.gone("h1", "a", first.token, EndReason.RELEASED, {})
    await check_sums(cell, raw)


async def test_a_pending_claim_is_a_chore_again_and_is_kept(cell: CellStore, raw: Any) -> None:
    placed = await active(cell, "a")
    await cell.claims.fail("h1", "a", placed.token, by_host=True, retry=True)
    await raw.delete(cell.keys.reconcile)
    await raw.pexpire(cell.keys.claim("a"), HOUR_S * 1000)
    assert (await cell.repair.due("damage", "a")).outcome is Outcome.OK
    await check_sums(cell, raw)
    async with nothing_written(raw):
        assert (await cell.repair.due("damage", "a")).outcome is Outcome.ALREADY_DONE


async def test_a_shelved_claim_is_listed_again_and_kept(cell: CellStore, raw: Any) -> None:
    await shelved(cell, "a", await active(cell, "a"))
    await raw.delete(cell.keys.shelved)
    await raw.pexpire(cell.keys.claim("a"), HOUR_S * 1000)
    await raw.sadd(cell.keys.shelved, "nothing")
    assert (await cell.repair.due("damage", ("a", "nothing"))).outcome is Outcome.OK
    assert list(await cell.claims.shelved_ids()) == ["a"]
    assert await is_kept(cell, raw, "a")
    await check_sums(cell, raw)


async def test_a_claim_with_a_placement_left_is_not_forgotten(cell: CellStore, raw: Any) -> None:
    first, second = await moving(cell)
    await cell.claims.fail("h1", "a", first.token, by_host=True)
    await raw.pexpire(cell.keys.claim("a"), HOUR_S * 1000)
    assert (await cell.repair.due("damage", "a")).outcome is Outcome.OK
    assert await is_kept(cell, raw, "a")
    await arrive(cell, "a", second)


@pytest.mark.parametrize("gone", ["h1", "h2"])
async def test_of_a_host_that_is_gone_only_its_own_placement_ends(cell: CellStore, raw: Any, gone: str) -> None:
    await moving(cell)
    await raw.delete(cell.keys.host(gone))
    answer = await cell.repair.removed_host(gone, "it is gone", operator=True)
    assert answer.outcome is Outcome.OK
    assert await states(cell, "a") == ({"h2": "claimed"} if gone == "h1" else {"h1": "active"})
    assert not await raw.exists(cell.keys.claims(gone), cell.keys.inbox(gone))
    await check_sums(cell, raw)


# Imports


@pytest.mark.parametrize("state", ["moving", "both active", "asked back"])
async def test_a_claim_with_two_placements_is_put_back_with_both(cell: CellStore, raw: Any, state: str) -> None:
    """When its hosts attest, they find the placements that they hold."""
    first, second = await moving(cell)
    if state != "moving":
        await arrive(cell, "a", second)
    if state == "asked back":
        await settle(cell)
    exported = dict(await fields_of(raw, cell.keys.claim("a")))
    await raw.flushall()
    for host in ("h1", "h2"):
        await open_host(cell, host)
    epoch = await new_epoch(cell)
    answer = await cell.repair.restore({"a": exported})
    assert (answer.outcome, answer.facts) == (Outcome.OK, ())
    found = dict(await fields_of(raw, cell.keys.claim("a")))
    times = ("expires_at_ms", "inbox_id")
    assert {name for name in exported if not name.endswith(times)} == {
        name for name in found if not name.endswith(times)
    }
    before = await states(cell, "a")
    await check_sums(cell, raw)
    async with nothing_written(raw):
        assert (await cell.repair.restore({"a": exported})).facts == ("a",)
    await cell.hosts.attest("h1", epoch, held=[held("a", first)])
    await cell.hosts.attest("h2", epoch, held=[] if state == "moving" else [held("a", second, root=first.token)])
    assert await states(cell, "a") == before
    await check_sums(cell, raw)


async def test_a_shelved_claim_and_a_pending_one_are_put_back(cell: CellStore, raw: Any) -> None:
    first = await active(cell, "a")
    await shelved(cell, "a", first)
    second = await active(cell, "b")
    await cell.claims.fail("h1", "b", second.token, by_host=True, retry=True)
    exported = {name: dict(await fields_of(raw, cell.keys.claim(name))) for name in "ab"}
    await raw.flushall()
    await open_host(cell)
    await new_epoch(cell)
    assert (await cell.repair.restore(exported)).outcome is Outcome.OK
    assert (await states(cell, "a"), await states(cell, "b")) == ({"": "ended shelved"}, {"": "pending failed"})
    await check_sums(cell, raw)
