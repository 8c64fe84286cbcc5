"""The event log: each change is recorded once by any number of recorders, gaps are recorded, and reading it works."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from redsched.cache.updater import ReplicaUpdater
from redsched.errors import InvalidRequest, NotFound
from redsched.model import EndReason, Request
from redsched.model.filters import KINDS, EventFilter
from redsched.model.records.events import Event
from redsched.operate.observe import recorder as recording
from redsched.operate.observe.recorder import Recorder
from redsched.scheduler import Scheduler
from redsched.scheduler.background.lease import DutyLease
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import Change, Recorded
from tests.scheduler.conftest import report_all, report_of
from tests.scheduler.working import Work, at_work
from tests.support.builders.cells import later_than, raw_client
from tests.support.waiting import wait_until

KEYS = Path(__file__).parents[3] / "docs" / "keys.md"
QUIET = Settings(events_keep_s=0, check_s=0, pick_from=1)
"""Settings of schedulers that do not record by themselves."""


@pytest.fixture
async def quiet(clean_store: str) -> AsyncIterator[Scheduler]:
    """Yield a scheduler with host h1 that records nothing by itself."""
    async with Scheduler.connect(clean_store, QUIET) as opened:
        await opened.init()
        await report_all(opened, [report_of("h1", VCPU=8)])
        yield opened


def store_of(scheduler: Scheduler) -> CellStore:
    return scheduler.cells.named("c1").store


async def a_life(scheduler: Scheduler, claim_id: str) -> None:
    """Create a claim for project web, and release it."""
    await scheduler.select(Request({"VCPU": 1}, claim_ids=(claim_id,), project="web", consumer="ci"))
    await scheduler.claims.release(claim_id)


async def all_of(scheduler: Scheduler, wanted: EventFilter = EventFilter()) -> list[Event]:  # noqa: B008 - frozen
    return list((await scheduler.events.list(1000, "", wanted)).items)


async def test_a_claims_life_is_recorded_with_owner_and_reason(quiet: Scheduler) -> None:
    recorder = Recorder(store_of(quiet), Settings())
    await quiet.select(Request({"VCPU": 2}, claim_ids=("mine",), project="web", consumer="ci"))
    await recorder.record()
    await quiet.claims.release("mine")
    await quiet.hosts.drain("h1")
    await recorder.record()
    claimed, released = await all_of(quiet, EventFilter(claim="mine"))
    assert (claimed.kind, claimed.slots, claimed.facts["host"]) == ("claimed", {"VCPU": 2}, "h1")
    assert (claimed.facts["project"], claimed.facts["consumer"]) == ("web", "ci")
    assert (released.kind, released.facts["end_reason"], released.facts["project"]) == ("released", "released", "web")
    (drained,) = await all_of(quiet, EventFilter(kind="status"))
    assert (drained.facts["host"], drained.facts["status"]) == ("h1", "draining")
    assert claimed.seq < released.seq < drained.seq
    assert 0 <= drained.at_ms - claimed.at_ms < 60_000


async def test_each_event_shows_what_its_own_placement_held(quiet: Scheduler) -> None:
    """The claim moves to another host and is resized there; all of that is recorded at once, its end later."""
    store, recorder = store_of(quiet), Recorder(store_of(quiet), Settings())
    await quiet.select(Request({"VCPU": 2}, claim_ids=("mine",)))
    first = await quiet.claims.get("mine")
    await store.claims.confirm("h1", "mine", first.token)
    await report_all(quiet, [report_of("h2", VCPU=8)])
    await quiet.claims.move("mine", first.token)
    target = (await quiet.claims.get("mine")).target
    assert target is not None
    await store.claims.confirm("h2", "mine", target.token)
    await store.claims.reconcile(["mine"])
    await store.claims.gone("h1", "mine", first.token, EndReason.MOVED, {})
    now = await quiet.claims.get("mine")
    await quiet.claims.resize("mine", now.token, {"VCPU": 5})
    wanted = await quiet.claims.get("mine")
    await store.claims.resized("h2", "mine", wanted.token, {"VCPU": 5})
    await recorder.record()
    held = {(one.kind, one.facts["host"]): one.slots for one in await all_of(quiet, EventFilter(claim="mine"))}
    assert held["claimed", "h1"] == held["active", "h1"] == held["moved", "h1"] == {"VCPU": 2}
    assert held["active", "h2"] == {"VCPU": 5}
    await quiet.claims.release("mine", force=True)
    await recorder.record()
    (released,) = await all_of(quiet, EventFilter(claim="mine", kind="released"))
    assert released.slots == {"VCPU": 5}


async def test_a_placement_that_ended_before_it_was_recorded_shows_what_it_held(
    clean_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The claim is on another host by then, and its failure is recorded later."""
    async with at_work(clean_store, 4, 3) as work:
        await work.scheduler.select(Request({"VCPU": 2}, claim_ids=("mine",), alternates=1))
        claim = await work.scheduler.claims.get("mine")
        await work.store.claims.fail(claim.host, "mine", claim.token, by_host=True, reason="exit code 1")
        await wait_until(lambda: _is_on(work, "h1"), what="h1 has it")
        monkeypatch.setattr(recording, "BATCH", 1)
        await Recorder(work.store, Settings()).record()
        found = [one for one in await all_of(work.scheduler, EventFilter(claim="mine")) if one.kind == "claimed"]
        assert [(one.facts["host"], one.slots) for one in found] == [("h0", {"VCPU": 2}), ("h1", {"VCPU": 2})]


async def test_each_change_is_recorded_once_by_however_many(quiet: Scheduler) -> None:
    """Four recorders record at the same time while claims are created and released."""
    store = store_of(quiet)
    recorders = [Recorder(store, Settings()) for _ in range(4)]
    for number in range(20):
        await a_life(quiet, f"id-{number}")
        await asyncio.gather(*(recorder.record() for recorder in recorders))
    events = [one for one in await all_of(quiet) if "claim" in one.facts]
    expected = [(kind, f"id-{number}") for number in range(20) for kind in ("claimed", "released")]
    assert [(one.kind, one.facts["claim"]) for one in events] == expected
    assert len({one.seq for one in events}) == len(events)


async def test_changes_of_an_earlier_epoch_are_not_recorded(quiet: Scheduler) -> None:
    """They were read before a failover that may have lost them; the next attempt reads them again."""
    store, recorder = store_of(quiet), Recorder(store_of(quiet), Settings())
    await recorder.record()
    before = (await store.tick()).epoch
    await a_life(quiet, "mine")
    last = await store.events.recorded()
    lost = Recorded(f"{2**45}-0", last.seq + 9)
    await store.raise_epoch(before)
    answer = await store.events.record(last.entry_id, lost, [{"kind": "claimed"}], before, 60.0, 1000)
    assert (answer.outcome, await store.events.recorded()) == (Outcome.RETRY, last)
    await recorder.record()
    assert [one.kind for one in await all_of(quiet, EventFilter(claim="mine"))] == ["claimed", "released"]


async def test_changes_that_nobody_recorded_in_time_are_an_event(quiet: Scheduler, clean_store: str) -> None:
    store = store_of(quiet)
    await Recorder(store, Settings()).record()
    for number in range(3):
        await a_life(quiet, f"id-{number}")
    async with raw_client(clean_store) as raw:
        await raw.xtrim(store.keys.changes, maxlen=1, approximate=False)
    await Recorder(store, Settings()).record()
    hole, last = (await all_of(quiet))[-2:]
    assert (hole.kind, hole.facts["changes"]) == ("missing", "5")
    assert (last.kind, last.facts["claim"]) == ("released", "id-2")


async def test_the_log_is_bounded_by_number_and_age(quiet: Scheduler, clean_store: str) -> None:
    """Redis trims a stream by whole nodes of 100 entries."""
    store = store_of(quiet)
    for number in range(600):
        await a_life(quiet, f"id-{number}")
    await Recorder(store, Settings(events_most=1000)).record()
    async with raw_client(clean_store) as raw:
        kept = await raw.xlen(store.keys.events)
        assert 1000 <= kept < 1200
        await a_life(quiet, "last")
        await store.tick()
        await Recorder(store, Settings(events_keep_s=0.001)).record()
        assert await raw.xlen(store.keys.events) <= 200


async def test_a_duty_is_one_schedulers_until_it_gives_it_up(quiet: Scheduler) -> None:
    store = store_of(quiet)
    one, other = DutyLease(store, "record"), DutyLease(store, "record")
    assert await one.is_mine(60)
    assert not await other.is_mine(60)
    assert await one.is_mine(60)
    await other.give_up()
    assert not await other.is_mine(60)
    await one.give_up()
    assert await other.is_mine(60)


async def test_a_scheduler_records_by_itself_and_another_takes_over(clean_store: str) -> None:
    settings = Settings(tick_s=0.02)
    async with Scheduler.connect(clean_store, settings) as other:
        async with Scheduler.connect(clean_store, settings) as first:
            await first.init()
            await report_all(first, [report_of("h1", VCPU=8)])
            follower = other.events.follow(0.01, "c1:0-0", EventFilter(project="web"))
            first_event = asyncio.ensure_future(anext(follower))
            await asyncio.sleep(0)
            await a_life(first, "one")
            assert (await first_event).facts["claim"] == "one"
        await a_life(other, "two")
        seen = [await anext(follower) for _ in range(3)]
        assert [one.facts["claim"] for one in seen] == ["one", "two", "two"]


async def test_pages_show_every_event_once(quiet: Scheduler) -> None:
    for number in range(9):
        await a_life(quiet, f"id-{number}")
    await Recorder(store_of(quiet), Settings()).record()
    seen: list[Event] = []
    after: str | None = ""
    while after is not None:
        page = await quiet.events.list(4, after)
        seen += page.items
        after = page.next
    assert [one.id for one in seen] == [one.id for one in await all_of(quiet)]
    assert [one.id for one in await quiet.events.newest(3)] == [one.id for one in seen[-3:]]
    assert [one.facts["claim"] for one in await quiet.events.newest(5, EventFilter(claim="id-4"))] == ["id-4"] * 2
    either = EventFilter(claim=("id-4", "id-7"), kind=["claimed", "active"])
    assert [one.facts["claim"] for one in await quiet.events.newest(9, either)] == ["id-4", "id-7"]
    with pytest.raises(InvalidRequest):
        await quiet.events.list(1, "nonsense")
    with pytest.raises(NotFound):
        await quiet.events.list(1, "c9:1-1")


async def test_a_repair_is_an_event(quiet: Scheduler, clean_store: str) -> None:
    store = store_of(quiet)
    async with raw_client(clean_store) as raw:
        await raw.hset(store.keys.host("h1"), "claimed.VCPU", "3")
        await raw.zadd(store.keys.deadlines, {"nix": 2**50})
    await quiet.repair()
    await Recorder(store, Settings()).record()
    repaired = await all_of(quiet, EventFilter(kind="repaired"))
    told = {one.facts.get("host") or one.facts["claim"]: one.facts for one in repaired}
    assert told.keys() == {"h1", "nix"}
    assert told["h1"]["reason"] == "claimed of h1 VCPU was 3"


async def test_failures_in_quick_succession_have_a_reason_each(clean_store: str) -> None:
    """All of them are recorded in one pass, after the claim has failed on the last host."""
    async with at_work(clean_store, 4, 3, 2) as work:
        await work.scheduler.select(Request({"VCPU": 1}, claim_ids=("mine",), alternates=2))
        for number in range(3):
            await wait_until(lambda host=f"h{number}": _is_on(work, host), what=f"h{number} has it")
            claim = await work.scheduler.claims.get("mine")
            await work.store.claims.fail(claim.host, "mine", claim.token, by_host=True, reason=f"exit code {number}")
        await Recorder(work.store, Settings()).record()
        told = await all_of(work.scheduler, EventFilter(claim="mine"))
        failed = [(one.facts["host"], one.facts["reason"]) for one in told if one.kind == "failed"]
        assert failed == [("h0", "exit code 0"), ("h1", "exit code 1"), ("h2", "exit code 2")]
        claimed = [one.facts for one in told if one.kind == "claimed"]
        assert [one for one in claimed if one.keys() & {"end_reason", "reason"}] == [], "nothing had failed there yet"


async def _is_on(work: Work, host: str) -> bool:
    await work.sweep()
    return "mine" in await work.store.hosts.claim_ids(host)


async def test_work_that_ended_gives_the_reason_only_where_its_claim_ends_with_it(quiet: Scheduler) -> None:
    """One claim fails after its work ended, the other ends with its work; both are recorded afterwards."""
    store, recorder = store_of(quiet), Recorder(store_of(quiet), Settings())
    for claim_id in ("replaced", "released"):
        await quiet.select(Request({"VCPU": 1}, claim_ids=(claim_id,)))
        token = (await quiet.claims.get(claim_id)).token
        await store.claims.confirm("h1", claim_id, token)
        if claim_id == "replaced":
            await store.claims.work_ended("h1", claim_id, token, "no process 7 is left")
            await store.claims.fail("h1", claim_id, token, by_host=True, reason="its work had ended")
        else:
            await store.claims.gone("h1", claim_id, token, EndReason.WORK_ENDED, {}, reason="no process 8 is left")
    await recorder.record()
    ended = await all_of(quiet, EventFilter(kind="work-ended"))
    assert [(one.facts["claim"], one.facts.get("end_reason"), one.facts["reason"]) for one in ended] == [
        ("replaced", None, "no process 7 is left"),
        ("released", "work-ended", "no process 8 is left"),
    ]


async def test_a_kind_that_no_event_has_is_refused(quiet: Scheduler) -> None:
    """Its empty result would look as if nothing had happened. Every kind that a script writes is known."""
    with pytest.raises(InvalidRequest, match=r"unknown kind 'fialed': events are active, .*, failed, "):
        EventFilter(kind="fialed")
    rows = re.findall(r"^\| `op` \| The change: (.*?), or the reason why", KEYS.read_text(), re.MULTILINE)
    ops = set(re.findall(r"`([\w-]+)`", rows[0])) - {"report", "reserved", "recounted"}
    assert ops | set(EndReason) | {"missing"} == KINDS


async def test_what_the_replica_has_read_is_not_read_again(quiet: Scheduler, clean_store: str) -> None:
    """The feed is emptied after the replica has read it: what is recorded can only come from the replica."""
    [cell] = quiet.cells
    recorder = Recorder(cell.store, Settings(), cell.updater)
    await recorder.record()
    for number in range(60):
        await a_life(quiet, f"id-{number}")
    await cell.updater.catch_up()
    async with raw_client(clean_store) as raw:
        await raw.xtrim(cell.store.keys.changes, maxlen=0, approximate=False)
    assert await recorder.record() == 120, "more than one batch"
    assert await recorder.record() == 0
    events = [one for one in await all_of(quiet) if "claim" in one.facts]
    assert [one.facts["claim"] for one in events] == [f"id-{number // 2}" for number in range(120)]
    assert "missing" not in {one.kind for one in await all_of(quiet)}
    await a_life(quiet, "later")
    assert await recorder.record() == 2, "the replica has not read them yet, or has only just"


async def test_entries_of_a_replica_that_lacks_the_last_recorded_one_are_not_recorded(quiet: Scheduler) -> None:
    """After a failover other entries may have the numbers of those that it lost."""
    [cell] = quiet.cells
    await Recorder(cell.store, Settings()).record()
    last = await cell.store.events.recorded()
    lost = [Change(f"{2**45 + one}-0", last.seq + one, "host", "h1", 9, "lost", 0, {}) for one in range(3)]
    replica = ReplicaUpdater(cell.store, Settings())
    replica.recent.extend(lost)
    await a_life(quiet, "mine")
    await Recorder(cell.store, Settings(), replica).record()
    assert [one.kind for one in (await all_of(quiet))[-2:]] == ["claimed", "released"]


async def test_claims_of_this_process_are_recorded_without_reading_them(quiet: Scheduler, clean_store: str) -> None:
    """Their events are those that another recorder makes from the stored claims."""
    [cell] = quiet.cells
    recorder = Recorder(cell.store, Settings(), cell.updater, cell.own)
    told: list[list[tuple[str, dict[str, int], dict[str, str]]]] = []
    for is_kept in (True, False):
        cell.own.keep(is_kept)
        await recorder.record()
        before = len(await all_of(quiet))
        await quiet.select(Request({"VCPU": 1}, claim_ids=(f"one-{is_kept}",), project="web", consumer="ci"))
        await quiet.select(Request({"VCPU": 1}, claim_ids=(f"two-{is_kept}", f"three-{is_kept}"), count=2))
        if is_kept:
            async with raw_client(clean_store) as raw:
                ids = [f"{name}-True" for name in ("one", "two", "three")]
                assert await raw.delete(*map(cell.store.keys.claim, ids)) == 3
        await recorder.record()
        events = (await all_of(quiet))[before:]
        told.append(
            [
                (
                    one.kind,
                    dict(one.slots),
                    {name: fact.removesuffix(f"-{is_kept}") for name, fact in one.facts.items()},
                )
                for one in events
            ]
        )
    assert told[0] == told[1]
    assert [slots for _, slots, _ in told[0]] == [{"VCPU": 1}] * 3
    assert [facts.get("gang") for _, _, facts in told[0]] == [None, "two", "two"]


async def test_events_are_selected_by_when_they_happened(quiet: Scheduler) -> None:
    """Whenever they were recorded, in lists and among the newest."""
    for name in ("a", "b", "c"):
        await a_life(quiet, name)
        await later_than(store_of(quiet), (await store_of(quiet).tick()).now_ms)
    await Recorder(store_of(quiet), Settings()).record()
    everything = await all_of(quiet)
    first, last = next(one for one in everything if one.facts.get("claim") == "b"), everything[-1]
    for since_ms, before_ms in ((first.at_ms, 0), (0, first.at_ms), (first.at_ms, last.at_ms), (last.at_ms + 1, 0)):
        wanted = EventFilter(since_ms=since_ms, before_ms=before_ms)
        expected = [one for one in everything if since_ms <= one.at_ms < (before_ms or last.at_ms + 1)]
        assert await all_of(quiet, wanted) == expected
        assert list(await quiet.events.newest(1000, wanted)) == expected
    assert next(iter(await all_of(quiet, EventFilter(since_ms=first.at_ms)))).facts["claim"] == "b"
