"""A request that no mirrored cell can take: other cells are ruled out by their summaries, or loaded and used."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from redsched.errors import ClaimIdReused, ClaimState, NotFound, NoValidHost, Settling
from redsched.model import (
    Aggregate,
    GangMember,
    GroupPolicy,
    Hints,
    HostStatus,
    Inventory,
    Request,
    ServerGroup,
    SharedPool,
)
from redsched.scheduler import Scheduler
from redsched.store.codec.summary import CellSummary
from tests.scheduler.conftest import report_all, report_of
from tests.scheduler.mirroring.mirrored import (
    BOTH,
    cell_of,
    has_replica,
    loads,
    place,
    settings_of,
    stop_writing,
    summarize,
    summary_of,
)
from tests.support.builders.cells import everything, make_due, new_epoch, raw_client
from tests.support.waiting import wait_until


async def test_a_mirrored_cell_is_used_first(partial: Scheduler) -> None:
    """`pack` would prefer b2, the fullest host of all cells."""
    assert await place(partial, 2) == "a1"
    assert (has_replica(partial), loads(partial)) == (["a"], 0)


async def test_a_cell_is_loaded_when_no_mirrored_one_has_room(partial: Scheduler) -> None:
    assert [await place(partial, 4) for _ in range(3)] == ["a1", "a1", "b1"]
    assert await place(partial, 2) == "b2"
    assert loads(partial) == 1


async def test_a_refusal_needs_no_replica_if_the_summary_proves_it(partial: Scheduler) -> None:
    with pytest.raises(NoValidHost, match="none of 3 hosts can take 9 VCPU: 3 short of VCPU") as refused:
        await place(partial, 9)
    assert refused.value.facts["reasons"] == [{"reason": "VCPU", "hosts": 3}]
    assert loads(partial) == 0


async def test_a_refusal_loads_the_cell_if_the_summary_cannot_prove_it(partial: Scheduler) -> None:
    """Labels are not in summaries."""
    with pytest.raises(NoValidHost, match="none of 3 hosts"):
        await place(partial, 1, labels={"rack": "r9"})
    assert loads(partial) == 1


async def test_a_dry_run_and_an_incremental_request_look_elsewhere_too(partial: Scheduler) -> None:
    assert await place(partial, 8, claim=False) == "a1"
    await place(partial, 8)
    assert await place(partial, 4, claim=False) == "b1"
    found = await partial.select(Request({"VCPU": 2}, count=4, mode="incremental"))
    assert {one.cell for one in found.selections} == {"b"}
    assert len(found.selections) == 3


async def test_what_was_released_after_the_summary_is_seen(full: Scheduler, partial: Scheduler) -> None:
    """The summary shows a full cell; a later entry of the feed names the host that has room again."""
    await stop_writing(full)
    for number in range(2):
        await full.select(Request({"VCPU": 4}, claim_ids=(f"one-{number}",), hosts=frozenset({"a1"})))
    await full.select(Request({"VCPU": 4}, claim_ids=("mine",), hosts=frozenset({"b1"})))
    await summarize(full)
    with pytest.raises(NoValidHost):
        await place(partial, 3)
    assert loads(partial) == 0
    await full.claims.release("mine")
    assert await place(partial, 3) == "b1"


async def test_a_host_that_joins_or_is_enabled_after_the_summary_is_seen(full: Scheduler, partial: Scheduler) -> None:
    await stop_writing(full)
    await full.hosts.report(report_of("b3", cell="b", VCPU=16))
    assert await place(partial, 16) == "b3"
    await full.hosts.set_status("b1", HostStatus.DISABLED)
    await summarize(full)
    await cell_of(partial, "b").updater.drop()
    await place(partial, 8)
    with pytest.raises(NoValidHost):
        await place(partial, 3)
    await full.hosts.set_status("b1", HostStatus.ENABLED)
    assert await place(partial, 3) == "b1"


async def test_a_claim_whose_lease_is_over_takes_no_room(full: Scheduler, partial: Scheduler, clean_store: str) -> None:
    await stop_writing(full)
    for tasks in full._tasks.values():
        await tasks.sweeper.stop()
    b = cell_of(full, "b").store
    await full.select(Request({"VCPU": 4}, claim_ids=("mine",), hosts=frozenset({"b1"})))
    await place(full, 8, hosts=frozenset({"a1"}))
    await summarize(full)
    async with raw_client(clean_store) as raw:
        await make_due(raw, b, "mine")
    assert await place(partial, 3) == "b1"


async def test_the_members_of_a_gang_may_go_to_changed_and_unchanged_hosts(full: Scheduler, partial: Scheduler) -> None:
    """Each of the two kinds fits only on hosts that the other half of the knowledge has."""
    await stop_writing(full)
    await place(full, 4, hosts=frozenset({"b1"}))
    await report_all(full, [report_of("b4", cell="b", CUSTOM_GPU=2)])
    await summarize(full)
    await full.hosts.report(report_of("b5", cell="b", VCPU=16))
    members = (GangMember("cpu", Request({"VCPU": 16})), GangMember("gpu", Request({"CUSTOM_GPU": 2})))
    found = await partial.select(Request({}, members=members))
    assert {one.host for one in found.selections} == {"b4", "b5"}


async def test_a_shared_pool_counts_for_hosts_that_changed(full: Scheduler, partial: Scheduler) -> None:
    """The pool is in the summary, and the host with room among the changes since; and the reverse."""
    await stop_writing(full)
    await full.pools.put(SharedPool("nfs", {"DISK_GB": Inventory(100)}), "b")
    await summarize(full)
    await full.hosts.report(report_of("b3", cell="b", VCPU=16))
    found = await partial.select(Request({"VCPU": 16, "DISK_GB": 10}))
    assert found.selections[0].host == "b3"
    await cell_of(partial, "b").updater.drop()
    await summarize(full)
    await full.pools.put(SharedPool("nfs", {"DISK_GB": Inventory(1000)}), "b")
    found = await partial.select(Request({"VCPU": 2, "DISK_GB": 500}))
    assert found.selections[0].cell == "b"


@pytest.mark.parametrize("behind", ["trimmed", "ahead", "gone", "unreadable"])
async def test_a_summary_that_proves_nothing_is_not_believed(
    full: Scheduler, partial: Scheduler, clean_store: str, behind: str
) -> None:
    """The summary shows an empty cell, but later feed entries are missing, or it belongs to other data."""
    await stop_writing(full)
    await place(full, 8, hosts=frozenset({"a1"}))
    b, now = cell_of(full, "b").store, await summary_of(full, "b")
    empty = CellSummary(now.epoch, now.seq, now.entry)
    await b.summary.write(empty)
    with pytest.raises(NoValidHost):
        await place(partial, 3)  # this summary is believed
    async with raw_client(clean_store) as raw:
        if behind == "trimmed":
            await b.summary.write(replace(empty, seq=now.seq - 1, entry="0-0"))
            await raw.xtrim(b.keys.changes, maxlen=0, approximate=False)
        elif behind == "ahead":
            await b.summary.write(replace(empty, seq=now.seq + 5))
        elif behind == "gone":
            await raw.delete(b.keys.summary)
        else:
            await raw.hset(b.keys.summary, "hosts", "none")
    assert await place(partial, 3) == "b1"
    assert loads(partial) == 1


async def test_a_summary_of_another_epoch_is_not_believed(full: Scheduler, partial: Scheduler) -> None:
    await stop_writing(full)
    await place(full, 8, hosts=frozenset({"a1"}))
    b, now = cell_of(full, "b").store, await summary_of(full, "b")
    await b.summary.write(CellSummary(now.epoch, now.seq, now.entry))
    epoch = await new_epoch(b)
    with pytest.raises(Settling, match="2 of 3 hosts have not attested"):
        await place(partial, 3)
    assert loads(partial) == 1
    for host in ("b1", "b2"):
        await b.hosts.attest(host, epoch)
    assert await place(partial, 3) == "b1"


async def test_a_cell_whose_hosts_still_attest_is_no_refusal(full: Scheduler, partial: Scheduler) -> None:
    """Also if a summary of the new epoch shows that no host takes claims."""
    await stop_writing(full)
    await place(full, 8, hosts=frozenset({"a1"}))
    await new_epoch(cell_of(full, "b").store)
    await summarize(full, "b")
    with pytest.raises(Settling, match="2 of 3 hosts have not attested"):
        await place(partial, 3)
    assert loads(partial) == 0


async def test_a_wiped_cell_is_asked_again(full: Scheduler, partial: Scheduler, clean_store: str) -> None:
    """Its hosts come back; until then, requests get what a scheduler that mirrors all cells answers."""
    await place(full, 8, hosts=frozenset({"a1"}))
    async with raw_client(clean_store) as raw:
        await raw.delete(*[key async for key in raw.scan_iter(match="rs:{b}:*")])
    for scheduler in (full, partial):
        with pytest.raises(NoValidHost, match="none of 1 hosts"):
            await place(scheduler, 3)
    await full.hosts.report(report_of("b7", cell="b", VCPU=4))
    assert await place(partial, 3) == "b7"


async def test_two_schedulers_with_different_cells_share_the_last_room(full: Scheduler, clean_store: str) -> None:
    """14 VCPU in both cells: of 20 requests at two schedulers 14 are claimed, and 6 refused."""
    async with (
        Scheduler.connect(clean_store, settings_of(BOTH, "a")) as one,
        Scheduler.connect(clean_store, settings_of(BOTH, "b")) as other,
    ):
        asked = [place(scheduler, 1) for scheduler in (one, other) for _ in range(10)]
        found = await asyncio.gather(*asked, return_exceptions=True)
        hosts = [host for host in found if isinstance(host, str)]
        assert sorted(hosts) == sorted(["a1"] * 8 + ["b1"] * 4 + ["b2"] * 2)
        assert all(isinstance(one, str | NoValidHost) for one in found)
        for scheduler in (one, other):
            with pytest.raises(NoValidHost):
                await place(scheduler, 1)
    assert (await full.audit()).problems == ()


async def test_concurrent_requests_for_a_cell_load_it_once(full: Scheduler, partial: Scheduler) -> None:
    await place(full, 8, hosts=frozenset({"a1"}))
    found = await asyncio.gather(*(place(partial, 1) for _ in range(6)))
    assert sorted(found) == ["b1"] * 4 + ["b2"] * 2
    assert loads(partial) == 1


async def test_own_ids_have_one_outcome_whichever_cells_are_mirrored(full: Scheduler, partial: Scheduler) -> None:
    """A repeated id gets its first outcome from a scheduler that does not mirror its cell, without loading it."""
    request = Request({"VCPU": 2}, claim_ids=("mine",), hosts=frozenset({"b2"}))
    first = (await full.select(request)).selections[0]
    again = await partial.select(request)
    assert (again.fresh, again.selections[0].host, again.selections[0].token) == (False, "b2", first.token)
    with pytest.raises(ClaimIdReused):
        await partial.select(Request({"VCPU": 3}, claim_ids=("mine",)))
    assert await partial.claims.release("mine")
    with pytest.raises(ClaimState, match="has ended"):
        await partial.select(request)
    assert loads(partial) == 0


@pytest.mark.parametrize("bound", ["a", "b"])
async def test_an_own_id_moves_on_from_a_full_cell_to_one_elsewhere(
    full: Scheduler, partial: Scheduler, bound: str
) -> None:
    """The id was bound by another process, which died; the request fits only in the other cell."""
    await cell_of(full, bound).store.bindings.bind("mine", "", 60_000)
    fits = {"a": "b1", "b": "a1"}[bound]
    await (place(full, 8, hosts=frozenset({"a1"})) if bound == "a" else place(full, 4, hosts=frozenset({"b1"})))
    found = await partial.select(Request({"VCPU": 4}, claim_ids=("mine",)))
    assert (found.selections[0].host, found.fresh) == (fits, True)
    assert (await cell_of(full, bound).store.claims.read(["mine"]))["mine"].end_reason == "void"


async def test_concurrent_copies_of_an_id_at_different_schedulers_are_one_claim(
    full: Scheduler, clean_store: str
) -> None:
    async with (
        Scheduler.connect(clean_store, settings_of(BOTH, "a")) as one,
        Scheduler.connect(clean_store, settings_of(BOTH, "b")) as other,
    ):
        for number in range(5):
            request = Request({"VCPU": 2}, claim_ids=(f"mine-{number}",))
            copies = await asyncio.gather(*(each.select(request) for each in (one, other, one, other)))
            assert len({(copy.selections[0].cell, copy.selections[0].token) for copy in copies}) == 1
    assert len((await full.claims.list()).items) == 5


async def test_hints_and_named_hosts_reach_cells_that_are_not_mirrored(full: Scheduler, partial: Scheduler) -> None:
    await full.select(Request({"VCPU": 1}, claim_ids=("near",), hosts=frozenset({"b2"})))
    assert await place(partial, 1, hints=Hints(same_host=frozenset({"near"}))) == "b2"
    assert await place(partial, 1, hosts=frozenset({"b1"})) == "b1"
    assert loads(partial) == 1
    await cell_of(partial, "b").updater.drop()
    with pytest.raises(NoValidHost, match="3 not among those named"):
        await place(partial, 1, hosts=frozenset({"nowhere"}))
    assert loads(partial) == 1


async def test_a_group_pinned_to_a_cell_elsewhere_is_placed_there(full: Scheduler, partial: Scheduler) -> None:
    await full.server_groups.put(ServerGroup("together", GroupPolicy.AFFINITY))
    assert await place(full, 1, server_group="together") == "b2"
    assert await place(partial, 1, server_group="together") == "b2"
    with pytest.raises(NoValidHost):
        await place(partial, 1, server_group="together")


async def test_names_that_are_not_declared_are_refused(full: Scheduler, partial: Scheduler) -> None:
    with pytest.raises(NotFound, match="server group 'web' is not declared"):
        await place(partial, 9, server_group="web")
    await full.aggregates.put(Aggregate("ssd", hosts=frozenset({"b1"})))
    assert await place(partial, 1, member_of=(frozenset({"ssd"}),)) == "b1"
    with pytest.raises(NotFound, match="aggregate 'nvme'"):
        await place(partial, 1, member_of=(frozenset({"nvme"}),))


async def test_an_answer_can_wait_for_a_host_of_a_cell_elsewhere(full: Scheduler, partial: Scheduler) -> None:
    """The replica is kept while the request waits, although nothing else uses it."""
    b = cell_of(full, "b").store
    waiting = asyncio.create_task(place(partial, 2, hosts=frozenset({"b2"}), until="active", confirm_timeout_s=600))

    async def claim() -> Any:
        return (await full.claims.list(host="b2")).items

    await wait_until(claim, what="the claim")
    (made,) = await claim()
    await partial._replicas.drop_idle()
    await b.claims.confirm("b2", made.id, made.token)
    assert await waiting == "b2"


async def test_a_request_waits_for_room_in_a_cell_elsewhere(
    full: Scheduler, partial: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("redsched.scheduler.selection.elsewhere.AGAIN_AFTER_S", 0.0)
    await place(full, 8, hosts=frozenset({"a1"}))
    await full.select(Request({"VCPU": 4}, claim_ids=("mine",), hosts=frozenset({"b1"})))
    await summarize(full)
    waiting = asyncio.create_task(place(partial, 3, queue_timeout_s=60))
    await wait_until(lambda: _waits(partial), what="the queue")
    await full.claims.release("mine")
    await summarize(full)
    await partial._mirrors.watch()
    assert await waiting == "b1"


async def _waits(scheduler: Scheduler) -> bool:
    return bool(scheduler._selector._wait_queue._waiters)


async def test_nothing_is_written_for_a_request_that_is_ruled_out(
    partial: Scheduler, full: Scheduler, clean_store: str
) -> None:
    """Only leases of background work may have come in between."""
    await stop_writing(full)
    await stop_writing(partial)

    async def written(raw: Any) -> dict[str, Any]:
        return {key: value for key, value in (await everything(raw)).items() if ":duty:" not in key}

    async with raw_client(clean_store) as raw:
        before = await written(raw)
        with pytest.raises(NoValidHost):
            await place(partial, 9)
        assert await written(raw) == before
