"""Verbs, lists and quotas at a scheduler that does not mirror the cell concerned."""

import pytest

from redsched.errors import NotFound, NoValidHost, QuotaExceeded
from redsched.model import Aggregate, ClaimStatus, Quota, Request
from redsched.scheduler import Scheduler, UsageBy
from redsched.settings import Settings
from tests.scheduler.conftest import report_of
from tests.scheduler.mirroring.mirrored import BOTH, cell_of, loads, place, settings_of, summarize


@pytest.fixture
async def claim(full: Scheduler) -> str:
    """Return an id that is claimed in b."""
    await full.select(Request({"VCPU": 1}, claim_ids=("mine",), hosts=frozenset({"b1", "b2"}), project="web"))
    return "mine"


async def test_a_claim_is_read_and_changed_without_a_replica(full: Scheduler, partial: Scheduler, claim: str) -> None:
    found = await partial.claims.get(claim)
    assert (found.cell, found.host) == ("b", "b2")
    found = await partial.claims.resize(claim, found.token, {}, {"VCPU": 2})
    found = await partial.claims.renew(claim, found.token, 60)
    found = await partial.claims.confirm(claim, found.token)
    assert found.state is ClaimStatus.ACTIVE
    assert not await partial.claims.release(claim)
    assert (await full.claims.get(claim)).state is ClaimStatus.ENDING
    assert loads(partial) == 0


async def test_lists_and_sums_are_complete_without_a_replica(full: Scheduler, partial: Scheduler, claim: str) -> None:
    await full.hosts.report(report_of("b3", cell="b", VCPU=1))
    await full.aggregates.put(Aggregate("ssd", {"x": "1"}, frozenset({"a1", "b2"})))
    for zone in (None, "default"):
        assert await partial.hosts.list(zone=zone) == await full.hosts.list(zone=zone)
    assert (await partial.hosts.list(limit=2)).next == "b1"
    for wanted in ({}, {"cell": "b"}, {"host": "b2"}, {"zone": "nowhere"}):
        assert await partial.claims.list(**wanted) == await full.claims.list(**wanted)  # type: ignore[arg-type]
    for by in UsageBy:
        assert await partial.usage((by,)) == await full.usage((by,))
    assert await partial.aggregates.get("ssd") == await full.aggregates.get("ssd")
    assert (await partial.hosts.get("b2")).claims == 1
    assert (await partial.audit()).problems == ()
    assert loads(partial) == 0


async def test_hosts_are_known_without_a_replica(partial: Scheduler) -> None:
    await partial.aggregates.put(Aggregate("ssd", hosts=frozenset({"a1", "b2"})))
    with pytest.raises(NotFound, match="there are no hosts b9"):
        await partial.aggregates.put(Aggregate("ssd", hosts=frozenset({"a1", "b9"})))
    await partial.hosts.report(report_of("b2", cell="b", VCPU=4))
    assert (await partial.hosts.get("b2")).slots["VCPU"].capacity == 4


async def test_an_explanation_covers_all_cells(full: Scheduler, partial: Scheduler) -> None:
    request = Request({"VCPU": 5})
    found = await partial.explain(request, "b1")
    assert found == await full.explain(request, "b1")
    assert (found.hosts, found.fits, found.checks[0].reason) == (3, 1, "VCPU")


async def test_verbs_that_place_a_claim_again_load_its_cell(full: Scheduler, partial: Scheduler, claim: str) -> None:
    found = await partial.claims.confirm(claim, (await partial.claims.get(claim)).token)
    moved, _ = await partial.migrations.move(claim, found.token)
    assert (moved.host, loads(partial)) == ("b1", 1)


async def test_a_pending_claim_is_placed_by_a_scheduler_without_its_cell(full: Scheduler, partial: Scheduler) -> None:
    await full.select(Request({"VCPU": 1}, claim_ids=("mine",), hosts=frozenset({"b1", "b2"}), alternates=1))
    first = await partial.claims.get("mine")
    again = await partial.migrations.fail("mine", first.token)
    assert {first.host, again.host} == {"b1", "b2"}


@pytest.mark.parametrize("mirrored", ["a", "b"])
async def test_a_quota_holds_over_all_cells(full: Scheduler, clean_store: str, mirrored: str) -> None:
    """The first cell knows which quotas are shared, whether it is mirrored or not."""
    async with Scheduler.connect(clean_store, settings_of(BOTH, mirrored)) as one:
        await one.quotas.put(Quota("web", {"VCPU": 10}))
        for vcpu in (4, 2, 4):
            await place(one, vcpu, project="web")
        with pytest.raises(QuotaExceeded, match="VCPU"):
            await place(one, 2, project="web")
        assert (await one.quotas.get("web")).used["VCPU"] == 10
        assert await one.quotas.list() == await full.quotas.list()


@pytest.mark.parametrize("mirrored", ["a", "b"])
async def test_a_cell_that_has_lost_a_quota_gets_it_back(full: Scheduler, clean_store: str, mirrored: str) -> None:
    """Otherwise the cell would admit any amount, as it knows no limit."""
    await full.quotas.put(Quota("web", {"VCPU": 3}))
    async with Scheduler.connect(clean_store, settings_of(BOTH, mirrored)) as one:
        b = cell_of(full, "b").store
        await b.declared.delete_quota("web")
        if mirrored == "b":
            await cell_of(one, "b").updater.catch_up()
        await place(one, 2, project="web", hosts=frozenset({"b1"}))
        with pytest.raises(QuotaExceeded):
            await place(one, 2, project="web", hosts=frozenset({"b1"}))


async def test_abandoned_transfers_are_swept_without_a_replica_of_the_first_cell(
    full: Scheduler, clean_store: str
) -> None:
    await full.quotas.put(Quota("web", {"VCPU": 4}))
    async with Scheduler.connect(clean_store, settings_of(BOTH, "b")) as one:
        await cell_of(full, "b").store.declared.delete_quota("web")
        await cell_of(one, "b").updater.catch_up()
        await one._quotas.shares.sweep()
        assert await one._quotas.shares.is_divided("web")


async def test_a_request_in_a_full_fleet_of_many_cells_is_refused_by_summaries(clean_store: str) -> None:
    cells = tuple("abcdefgh")
    async with Scheduler.connect(clean_store, Settings(cells=cells, pick_from=1)) as full:
        await full.init()
        for cell in cells:
            await full.hosts.report(report_of(f"{cell}1", cell=cell, VCPU=2))
        await full.explain(Request({"VCPU": 1}))
        await summarize(full)
        async with Scheduler.connect(clean_store, settings_of(cells, "1")) as one:
            hosts = [await place(one, 2) for _ in cells]
            assert sorted(hosts) == [f"{cell}1" for cell in cells]
            await full._cells.catch_up()
            await summarize(full)
            before = loads(one)
            with pytest.raises(NoValidHost, match="none of 8 hosts can take 1 VCPU: 8 short of VCPU"):
                await place(one, 1)
            assert loads(one) == before
