"""Work that was active and has lost its place goes before requests that wait with a reservation."""

from dataclasses import replace

import pytest

from redsched.decide.recovery import before_reservations, is_recovery
from redsched.errors import NoValidHost
from redsched.model import ClaimStatus, GangMember, GangOnExit, OnExit, Relation, RelationType, Request
from redsched.store.codec.outcomes import Outcome
from tests.scheduler.working import Work, at_work
from tests.support.waiting import wait_until

GANG = Request(
    members=(GangMember("db", Request({"VCPU": 8}, count=2)),),
    relations=(Relation(RelationType.APART, ("db",)),),
    claim_ids=("one", "two"),
    project="db",
)


async def keep(work: Work, host: str, vcpu: int) -> None:
    """Keep amounts of a host for a request of another project that waits."""
    outcome = await work.store.reservations.put(host, "r1", {"VCPU": vcpu}, 3_600_000, 0, 9, "big", "web")
    assert outcome is Outcome.OK
    await work.scheduler.cells.catch_up()


async def refused(work: Work, request: Request) -> str:
    with pytest.raises(NoValidHost) as raised:
        await work.scheduler.select(request)
    return raised.value.detail


async def test_a_gang_member_of_a_dead_host_gets_what_is_kept_for_a_request_that_waits(clean_store: str) -> None:
    """New claims do not, and the reservation stays."""
    async with at_work(clean_store, 8, 8, 8) as work:
        placed = [one.host for one in (await work.scheduler.select(GANG)).selections]
        await work.work()
        [spare] = {"h0", "h1", "h2"} - set(placed)
        await keep(work, spare, 8)
        assert await refused(work, Request({"VCPU": 8}))
        await work.scheduler.hosts.write_off(placed[0], evacuate=True, force=True)
        work.hosts = [one for one in work.hosts if one.name != placed[0]]
        await work.settle()
        claims = {one: await work.scheduler.claims.get(one) for one in ("one", "two")}
        assert {one.host for one in claims.values()} == {placed[1], spare}
        assert {one.state for one in claims.values()} == {ClaimStatus.ACTIVE}
        assert list(await work.store.reservations.hosts()) == [spare]
        await work.is_sound()


async def test_a_service_that_failed_starts_again_where_its_host_keeps_all(clean_store: str) -> None:
    async with at_work(clean_store, 8) as work:
        service = await work.active(Request({"VCPU": 4}, claim_ids=("service",), on_exit=OnExit.REPLACE))
        await keep(work, "h0", 8)
        await work.store.claims.fail("h0", "service", service.token, by_host=True, reason="it crashed")
        pending = await work.scheduler.claims.get("service")
        assert (pending.state, pending.was_active) == (ClaimStatus.PENDING, True)
        assert await refused(work, Request({"VCPU": 4}))
        again = await work.scheduler.migrations.place_again(work.scheduler.cells.named("c1"), pending)
        assert (again.state, again.host) == (ClaimStatus.CLAIMED, "h0")


async def test_a_gang_that_is_placed_again_as_a_whole_gets_what_is_kept(clean_store: str) -> None:
    async with at_work(clean_store, 8, 8) as work:
        gang = replace(GANG, on_exit=OnExit.REPLACE, gang_on_exit=GangOnExit.REPLACE)
        await work.scheduler.select(gang)
        await work.work()
        for host in ("h0", "h1"):
            await keep(work, host, 8)
        one = await work.scheduler.claims.get("one")
        await work.store.claims.fail(one.host, "one", one.token, by_host=True, reason="it crashed")

        async def runs_again() -> bool:
            await work.sweep()
            await work.work()
            found = [await work.scheduler.claims.get(name) for name in ("one", "two")]
            return {claim.state for claim in found} == {ClaimStatus.ACTIVE} and found[0].token != one.token

        await wait_until(runs_again, timeout=30, what="the gang runs again")


async def test_what_was_never_active_and_what_still_runs_waits_for_the_reservation(clean_store: str) -> None:
    async with at_work(clean_store, 8, 8) as work:
        running = await work.active(Request({"VCPU": 2}, claim_ids=("runs",), hosts=frozenset({"h0"})))
        new = (
            await work.scheduler.select(Request({"VCPU": 2}, claim_ids=("new",), hosts=frozenset({"h0"})))
        ).selections
        await keep(work, "h1", 8)
        with pytest.raises(NoValidHost):
            await work.scheduler.claims.move("runs", running.token)
        await work.scheduler.hosts.disable("h0")
        with pytest.raises(NoValidHost):
            await work.scheduler.claims.fail("new", new[0].token or "")


async def test_why_recovered_work_has_no_place_names_no_reservation(clean_store: str) -> None:
    """What is kept is free for it: only what claims hold is in its way."""
    async with at_work(clean_store, 8, 8) as work:
        await work.active(Request({"VCPU": 2}, claim_ids=("other",), hosts=frozenset({"h1"})), 1)
        await work.active(Request({"VCPU": 8}, claim_ids=("lost",)))
        await keep(work, "h1", 8)
        await work.scheduler.hosts.write_off("h0", evacuate=True, force=True)
        await work.sweep()
        [lost] = (await work.scheduler.hosts.get("h0")).unmovable
        assert lost.claim_id == "lost"
        why = lost.reason
        assert why.endswith("nearest h1: 2 VCPU less"), why


async def test_only_a_call_whose_claims_are_all_recovered_goes_before_reservations(clean_store: str) -> None:
    async with at_work(clean_store, 8, 8) as work:
        lost = await work.active(Request({"VCPU": 2}, claim_ids=("lost",), hosts=frozenset({"h0"})))
        runs = await work.active(Request({"VCPU": 2}, claim_ids=("runs",), hosts=frozenset({"h1"})), 1)
        await keep(work, "h1", 6)
        await work.scheduler.hosts.write_off("h0", force=True)
        await work.scheduler.cells.catch_up()
        columns = work.scheduler.cells.named("c1").updater.columns
        row = columns.row("h1")
        assert row is not None
        for claims, kept in (((lost,), 0), ((lost, runs), 6), ((runs,), 6)):
            with before_reservations(columns, *claims):
                assert columns.external["VCPU"].item(row) == kept
        pending = replace(lost, state=ClaimStatus.PENDING, placements=())
        assert not is_recovery(columns, pending)
        assert is_recovery(columns, replace(pending, raw={"current": lost.token}))
