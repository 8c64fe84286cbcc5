"""Amounts of a host that are kept for a request that waits for room: reserve.lua, and what the other scripts leave."""

from dataclasses import replace
from typing import Any

from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from tests.support.builders.cells import call_of, claim_on, claimed, known, later_than, member, open_host

LEASE_MS = 60_000


async def reserve(cell: CellStore, reservation: str = "r1", host: str = "h1", **amounts: int) -> Outcome:
    return await cell.reservations.put(host, reservation, amounts or {"VCPU": 6}, LEASE_MS, 0, 10)


async def reserve_briefly(cell: CellStore) -> None:
    """Reserve h1, or renew its reservation, with a lease that is over on return."""
    assert await cell.reservations.put("h1", "r1", {"VCPU": 6}, 1, 0, 10) is Outcome.OK
    await later_than(cell, (await cell.reservations.hosts())["h1"])


async def place(cell: CellStore, claim_id: str, reservation: str = "", **amounts: int) -> Outcome:
    call = call_of(await cell.tick(), member(claim_id, "h1", **amounts))
    return (await cell.claims.place(replace(call, reservation=reservation))).outcome


async def test_other_claims_do_not_get_what_is_kept(cell: CellStore, raw: Any) -> None:
    await open_host(cell, VCPU=8, MEMORY_MB=100)
    assert await reserve(cell) is Outcome.OK
    assert await place(cell, "a", VCPU=3) is Outcome.FULL
    assert await place(cell, "b", VCPU=2, MEMORY_MB=100) is Outcome.OK
    assert await place(cell, "c", VCPU=1) is Outcome.FULL
    assert await claimed(raw, cell) == 2


async def test_the_request_that_waits_gets_it(cell: CellStore) -> None:
    await open_host(cell, VCPU=8)
    await reserve(cell)
    assert await place(cell, "a", "r2", VCPU=3) is Outcome.FULL
    assert await place(cell, "a", "r1", VCPU=6) is Outcome.OK


async def test_recovered_work_gets_what_is_kept_for_any_request(cell: CellStore) -> None:
    """What is kept is what is left: the reservation stays."""
    await open_host(cell, VCPU=8)
    await reserve(cell)
    assert await place(cell, "a", "*", VCPU=9) is Outcome.FULL
    assert await place(cell, "a", "*", VCPU=6) is Outcome.OK
    assert await place(cell, "b", VCPU=1) is Outcome.FULL
    assert list(await cell.reservations.hosts()) == ["h1"]


async def test_what_becomes_free_is_kept(cell: CellStore) -> None:
    await open_host(cell, VCPU=8)
    placed = await claim_on(cell, "old", VCPU=8)
    await reserve(cell)
    await cell.claims.release("h1", "old", placed.token)
    assert await place(cell, "a", VCPU=3) is Outcome.FULL
    assert await place(cell, "b", "r1", VCPU=6) is Outcome.OK


async def test_a_host_is_reserved_once(cell: CellStore) -> None:
    await open_host(cell, VCPU=8)
    assert await reserve(cell) is Outcome.OK
    assert await reserve(cell, "r2") is Outcome.IN_USE
    assert await reserve(cell, VCPU=7) is Outcome.OK, "its own may change"
    assert await place(cell, "a", VCPU=2) is Outcome.FULL
    assert await place(cell, "a", VCPU=1) is Outcome.OK


async def test_only_some_hosts_may_be_reserved(cell: CellStore, three_hosts: None) -> None:
    async def put(host: str) -> Outcome:
        return await cell.reservations.put(host, host, {"VCPU": 1}, LEASE_MS, 0, 2)

    assert [await put(host) for host in ("h1", "h2", "h3", "h1")] == [
        Outcome.OK, Outcome.OK, Outcome.FULL, Outcome.OK,
    ]  # fmt: skip
    assert sorted(await cell.reservations.hosts()) == ["h1", "h2"]


async def test_a_reservation_ends_and_leaves_nothing(cell: CellStore, raw: Any) -> None:
    await open_host(cell, VCPU=8)
    before = await raw.hgetall(cell.keys.host("h1"))
    await reserve(cell)
    assert await cell.reservations.end("h1", "r2") is Outcome.ALREADY_DONE
    assert await cell.reservations.end("h1", "r1") is Outcome.OK
    assert await cell.reservations.end("h1", "r1") is Outcome.ALREADY_DONE
    after = await raw.hgetall(cell.keys.host("h1"))
    assert after == before | {"version": str(int(before["version"]) + 2)}
    assert await cell.reservations.hosts() == {}
    assert await place(cell, "a", VCPU=8) is Outcome.OK


async def test_the_host_names_the_request_and_its_project(cell: CellStore, raw: Any) -> None:
    """A renewal may change them; nothing is left of them at the end."""
    await open_host(cell, VCPU=8)
    for request, project in (("big", ""), ("larger", "web")):
        assert await cell.reservations.put("h1", "r1", {"VCPU": 6}, LEASE_MS, 0, 10, request, project) is Outcome.OK
        found = await raw.hgetall(cell.keys.host("h1"))
        assert (found["reservation_request"], found["reservation_project"]) == (request, project)
    await cell.reservations.end("h1", "r1")
    assert not [one for one in await raw.hgetall(cell.keys.host("h1")) if one.startswith("reservation")]


async def test_a_lease_that_is_not_renewed_ends_it(cell: CellStore) -> None:
    await open_host(cell, VCPU=8)
    await reserve(cell)
    assert await cell.reservations.end_expired((await cell.tick()).now_ms) == 0
    await reserve_briefly(cell)
    assert await place(cell, "a", VCPU=3) is Outcome.FULL, "until a scheduler has noticed"
    assert await cell.reservations.end_expired((await cell.tick()).now_ms) == 1
    assert await place(cell, "a", VCPU=3) is Outcome.OK


async def test_another_request_may_take_over_an_expired_one(cell: CellStore, raw: Any) -> None:
    await open_host(cell, VCPU=8, MEMORY_MB=100)
    await reserve_briefly(cell)
    assert await reserve(cell, "r2", MEMORY_MB=50) is Outcome.OK
    host = await raw.hgetall(cell.keys.host("h1"))
    assert {field: text for field, text in host.items() if field.startswith("kept.")} == {"kept.MEMORY_MB": "50"}
    assert await cell.reservations.end("h1", "") is Outcome.ALREADY_DONE, "only an expired one ends without its name"


async def test_a_host_that_is_gone_is_forgotten(cell: CellStore) -> None:
    await open_host(cell, VCPU=8)
    await reserve(cell)
    await cell.hosts.forget("h1", force=True)
    assert await reserve(cell) is Outcome.UNKNOWN
    assert await cell.reservations.hosts() == {}


async def test_a_claim_does_not_grow_into_it(cell: CellStore) -> None:
    await open_host(cell, VCPU=8)
    placed = await claim_on(cell, "a", VCPU=1)
    await reserve(cell)
    answer = await cell.claims.resize("h1", "a", placed.token, {"VCPU": 3})
    assert (answer.outcome, answer.facts) == (Outcome.FULL, ("VCPU", "kept", "6", "2", "0"))
    assert (await cell.claims.resize("h1", "a", placed.token, {"VCPU": 2})).outcome is Outcome.OK


async def test_amounts_edited_by_hand_block(cell: CellStore, raw: Any) -> None:
    await open_host(cell, VCPU=8)
    await reserve(cell)
    await raw.hset(cell.keys.host("h1"), "kept.VCPU", "many")
    assert await place(cell, "a", VCPU=1) is Outcome.FULL


async def test_a_repeated_call_gets_the_first_answer(cell: CellStore) -> None:
    await open_host(cell, VCPU=8)
    placed = await claim_on(cell, "a", VCPU=8)
    await reserve(cell, VCPU=8)
    call = replace(call_of(await cell.tick(), member("a", "h1", VCPU=8)), fresh=False)
    again = await cell.claims.place(call)
    assert (again.outcome, again.placed) == (Outcome.ALREADY_DONE, known(placed))


async def test_work_that_ends_in_time_may_use_it(cell: CellStore) -> None:
    await open_host(cell, VCPU=8)
    await cell.reservations.put("h1", "r1", {"VCPU": 8}, LEASE_MS, 30_000, 10)

    async def with_limit(claim_id: str, seconds: int) -> Outcome:
        call = call_of(await cell.tick(), member(claim_id, "h1", VCPU=1))
        return (await cell.claims.place(replace(call, max_runtime_s=seconds))).outcome

    assert [await with_limit("a", 0), await with_limit("a", 31), await with_limit("a", 29)] == [
        Outcome.FULL, Outcome.FULL, Outcome.OK,
    ]  # fmt: skip
