"""What claims keep of the decision on their newest placement: which hosts there were, and why it went where it is."""

import asyncio
from itertools import cycle
from types import SimpleNamespace

import pytest

from redsched.model import DecisionNote, GangMember, ReasonCount, Relation, RelationType, Request
from redsched.operate.audit.snapshot import read_cell
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.codec.keys import Keys
from redsched.store.commands import notes as notes_module
from redsched.store.commands.texts import KEPT_MS
from tests.scheduler.conftest import report_all, report_of
from tests.scheduler.working import BY_HAND, at_work
from tests.support.builders.cells import raw_client
from tests.support.interleaving import before_next
from tests.support.waiting import patience_s

TWO = Request({"VCPU": 2}, claim_ids=("mine",), alternates=2)


async def decision_of(scheduler: Scheduler, claim_id: str = "mine") -> DecisionNote:
    claim = await scheduler.claims.get(claim_id)
    assert claim.decision is not None
    assert any((one.placed, one.host) == (claim.decision.token, claim.decision.host) for one in claim.placements)
    return claim.decision


async def test_a_claim_keeps_why_it_is_where_it_is(clean_store: str) -> None:
    async with at_work(clean_store, 4, 3, 2, 1) as work:
        [found] = (await work.scheduler.select(TWO)).selections
        kept = await decision_of(work.scheduler)
        assert (kept.token, kept.host, kept.candidate) == (found.token, "h0", 1)
        assert (kept.hosts, kept.fits, kept.reasons) == (4, 3, (ReasonCount("VCPU", 1),))
        assert [(one.host, one.score, one.weighers) for one in kept.ranked] == [
            ("h0", 0.5, {"spread": 0.5}),
            ("h1", 0.333333, {"spread": 0.333333}),
            ("h2", 0.0, {"spread": 0.0}),
        ]
        assert kept.policy == "spread"
        assert 0 <= (await work.store.tick()).now_ms - kept.at_ms < 60_000
        await work.is_sound()


async def test_it_says_which_candidate_was_taken(clean_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another scheduler takes the room of the first one between the decision and the claim."""
    async with at_work(clean_store, 4, 3, 2) as work, Scheduler.connect(clean_store, BY_HAND) as other:
        cell = next(iter(work.scheduler.cells))

        async def take_h0() -> None:
            await other.select(Request({"VCPU": 4}, hosts=frozenset({"h0"})))

        before_next(monkeypatch, cell.store.claims, "place", take_h0)
        [found] = (await work.scheduler.select(TWO)).selections
        kept = await decision_of(work.scheduler)
        assert (found.host, kept.host, kept.candidate) == ("h1", "h1", 2)
        assert [one.host for one in kept.ranked] == ["h0", "h1", "h2"]


async def test_the_placement_of_a_move_has_a_decision_of_its_own(clean_store: str) -> None:
    async with at_work(clean_store, 4, 3) as work:
        claim = await work.active(TWO)
        target = await work.scheduler.claims.move("mine", claim.token)
        kept = await decision_of(work.scheduler)
        assert (kept.token, kept.host) == (target.token, "h1")
        assert (kept.hosts, kept.fits) == (2, 1)
        await work.settle()
        assert await decision_of(work.scheduler) == kept


async def test_the_next_placement_after_a_failure_has_a_decision_of_its_own(clean_store: str) -> None:
    async with at_work(clean_store, 6, 4, 3) as work:
        [found] = (await work.scheduler.select(TWO)).selections
        now = await work.scheduler.claims.fail("mine", found.token or "", found.alternates)
        kept = await decision_of(work.scheduler)
        assert (kept.token, kept.host, kept.ranked[0].host) == (now.token, "h1", "h1")


async def test_a_shelved_claim_has_none_until_it_is_placed_again(clean_store: str) -> None:
    async with at_work(clean_store, 4, 3) as work:
        claim = await work.active(TWO)
        await work.scheduler.claims.shelve("mine", claim.token)
        await work.settle()
        shelved = await work.scheduler.claims.get("mine")
        assert (shelved.is_shelved, shelved.decision) == (True, None)
        again = await work.scheduler.claims.unshelve("mine")
        assert (await decision_of(work.scheduler)).token == again.token


async def test_each_of_several_places_has_the_decision_that_they_share(scheduler: Scheduler) -> None:
    ids = ("a", "b", "c")
    found = await scheduler.select(Request({"VCPU": 3}, count=3, claim_ids=ids))
    for claim_id, one in zip(ids, found.selections, strict=True):
        kept = await decision_of(scheduler, claim_id)
        assert (kept.token, kept.host, kept.hosts) == (one.token, one.host, 3)
        assert one.host in [ranked.host for ranked in kept.ranked]


async def test_the_others_keep_their_decision_when_one_of_several_is_placed_again(scheduler: Scheduler) -> None:
    """The first of them had given its name to what they share."""
    found = await scheduler.select(Request({"VCPU": 1}, count=2, mode="incremental", claim_ids=("a", "b")))
    before = await decision_of(scheduler, "b")
    again = await scheduler.claims.fail("a", found.selections[0].token or "")
    assert (await decision_of(scheduler, "a")).token == again.token
    assert await decision_of(scheduler, "b") == before


async def test_the_members_of_a_gang_have_the_decisions_on_their_own_kind(scheduler: Scheduler) -> None:
    members = (GangMember("big", Request({"VCPU": 6})), GangMember("small", Request({"VCPU": 2})))
    apart = (Relation(RelationType.APART, ("big", "small")),)
    await scheduler.select(Request({}, members=members, relations=apart, claim_ids=("a", "b")))
    big, small = await decision_of(scheduler, "a"), await decision_of(scheduler, "b")
    assert (big.fits, small.fits) == (2, 3)
    assert big.host != small.host


async def test_requests_that_share_a_call_have_a_decision_each(scheduler: Scheduler) -> None:
    found = await asyncio.gather(*(scheduler.select(Request({"VCPU": 1})) for _ in range(6)))
    for selections in found:
        [one] = selections.selections
        kept = await decision_of(scheduler, one.claim_id or "")
        assert (kept.host, kept.token) == (one.host, one.token)


async def test_nothing_is_kept_if_a_setting_says_so(clean_store: str) -> None:
    settings = Settings(keep_decisions=False)
    async with Scheduler.connect(clean_store, settings) as scheduler, raw_client(clean_store) as raw:
        await scheduler.init()
        await report_all(scheduler, [report_of("h1", VCPU=8)])
        await scheduler.select(TWO)
        await scheduler.select(Request({"VCPU": 1}, count=2, claim_ids=("a", "b")))
        assert (await scheduler.claims.get("mine")).decision is None
        assert (await scheduler.claims.get("b")).decision is None
        assert [key async for key in raw.scan_iter("*decision*")] == []


async def test_what_would_take_more_than_its_share_is_not_kept(scheduler: Scheduler) -> None:
    """Calls that several requests share have the decisions on some of them then."""
    cell = next(iter(scheduler.cells))
    allowed = cycle([True, False, False])
    keeping = SimpleNamespace(begin=lambda: next(allowed), end=lambda: None, refused=0)
    cell.decider._keeping = keeping  # type: ignore[assignment]
    shapes = [Request({"VCPU": 1}, forbidden=frozenset({f"CUSTOM_{number}"})) for number in range(6)]
    found = await asyncio.gather(*(scheduler.select(one) for one in shapes))
    claims = [await scheduler.claims.get(one.selections[0].claim_id or "") for one in found]
    assert [one.decision is not None for one in claims] == [True, False, False] * 2
    for one in claims:
        assert one.decision is None or (one.decision.token, one.decision.host) == (one.token, one.host)


async def test_the_number_of_decisions_that_are_not_kept_is_counted(scheduler: Scheduler) -> None:
    cell = next(iter(scheduler.cells))
    assert cell.decider._keeping is not None
    cell.decider._keeping._left = -1.0
    [found] = (await scheduler.select(TWO)).selections
    assert (await scheduler.claims.get("mine")).decision is None
    assert scheduler.stats().decisions_not_kept == 1
    assert found.host


async def test_claims_without_one_or_with_one_that_was_edited_are_shown_without(clean_store: str) -> None:
    """Claims of earlier releases have none; nor have those whose store lost its data."""
    async with at_work(clean_store, 4, 3) as work, raw_client(clean_store) as raw:
        [found] = (await work.scheduler.select(TWO)).selections
        assert await decision_of(work.scheduler)
        key = Keys("c1").decision(found.token or "")
        text = await raw.get(key)
        head = f"1 {found.token}:1"
        for other in ("", "x", f"{head}:2\n{{}}", f"{head}:1\n{{}}", text.replace(":1:1", ":x:1"), text[:-5]):
            await raw.set(key, other)
            assert (await work.scheduler.claims.get("mine")).decision is None
        await raw.delete(key)
        assert (await work.scheduler.claims.get("mine")).decision is None


async def test_lists_leave_it_out(scheduler: Scheduler) -> None:
    await scheduler.select(TWO)
    [one] = (await scheduler.claims.list()).items
    assert one.decision is None


async def test_audits_keep_the_decisions_of_live_claims(scheduler: Scheduler, clean_store: str) -> None:
    """They would be gone after an hour."""
    [alone] = (await scheduler.select(TWO)).selections
    first, _ = (await scheduler.select(Request({"VCPU": 1}, count=2, claim_ids=("a", "b")))).selections
    await decision_of(scheduler, "b")
    cell = next(iter(scheduler.cells))
    async with raw_client(clean_store) as raw:
        keys = [key async for key in raw.scan_iter("*:decision:*")]
        assert len(keys) == 2
        for key in keys:
            await raw.pexpire(key, 1000)
        await scheduler.repair()
        assert all([await raw.pttl(key) > KEPT_MS["decision"] - 60_000 for key in keys])
    assert {f"decision:{one.token}" for one in (alone, first)} <= set((await read_cell(cell.store)).texts)


async def test_nobody_waits_for_a_note(clean_store: str) -> None:
    """A selection is answered while its note is on its way."""
    async with Scheduler.connect(clean_store, BY_HAND) as scheduler:
        await scheduler.init()
        await report_all(scheduler, [report_of("h1", VCPU=8)])
        notes = next(iter(scheduler.cells)).store.texts.decisions
        async with asyncio.timeout(patience_s(30)), notes._writing:
            [found] = (await scheduler.select(TWO)).selections
        assert (await decision_of(scheduler)).token == found.token


async def test_the_end_of_the_process_waits_for_notes(clean_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notes_module, "LINGER_S", 3600)
    async with Scheduler.connect(clean_store, BY_HAND) as scheduler:
        await scheduler.init()
        await report_all(scheduler, [report_of("h1", VCPU=8)])
        [found] = (await scheduler.select(TWO)).selections
    assert not [task for task in asyncio.all_tasks() if "notes" in task.get_name()]
    async with raw_client(clean_store) as raw:
        assert await raw.get(Keys("c1").decision(found.token or ""))


async def test_a_note_that_cannot_be_written_is_lost_and_its_claim_is_not(
    scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(*_: object) -> None:
        raise ConnectionError("gone")

    with monkeypatch.context() as without:
        without.setattr(notes_module, "exchange", refuse)
        [found] = (await scheduler.select(TWO)).selections
        claim = await scheduler.claims.get("mine")
    assert (claim.token, claim.decision) == (found.token, None)
    again = await scheduler.claims.fail("mine", found.token or "", found.alternates)
    assert (await decision_of(scheduler)).token == again.token


async def test_the_note_of_a_placement_is_not_shown_for_the_next_one(scheduler: Scheduler) -> None:
    """The next one has none, because this would take more than its share."""
    [found] = (await scheduler.select(TWO)).selections
    assert (await decision_of(scheduler)).token == found.token
    cell = next(iter(scheduler.cells))
    cell.decider._keeping = SimpleNamespace(begin=lambda: False, end=lambda: None, refused=0)  # type: ignore[assignment]
    again = await scheduler.claims.fail("mine", found.token or "", found.alternates)
    now = await scheduler.claims.get("mine")
    assert (now.token, now.decision) == (again.token, None)
    assert await cell.store.texts.get(f"decision:{found.token}")


async def test_a_resize_leaves_the_note_of_the_placement(clean_store: str) -> None:
    """It gives the placement another token. The note is under the first."""
    async with at_work(clean_store, 4) as work:
        claim = await work.active(TWO)
        before = await decision_of(work.scheduler)
        resized = await work.scheduler.claims.resize("mine", claim.token, {}, {"VCPU": 1})
        assert resized.token != claim.token
        assert await decision_of(work.scheduler) == before


async def test_a_move_that_fails_leaves_the_note_of_the_placement_that_stays(clean_store: str) -> None:
    async with at_work(clean_store, 4, 3) as work:
        claim = await work.active(TWO)
        before = await decision_of(work.scheduler)
        target = await work.scheduler.claims.move("mine", claim.token)
        assert (await decision_of(work.scheduler)).token == target.token
        await work.store.claims.fail("h1", "mine", target.token, by_host=True)
        await work.settle()
        assert await decision_of(work.scheduler) == before
