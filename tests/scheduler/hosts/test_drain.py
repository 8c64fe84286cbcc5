"""Hosts that are being emptied, by a drain with moves or an evacuation. Their claims keep their constraints."""

from dataclasses import replace

import pytest

from redsched.errors import InvalidRequest
from redsched.model import (
    AtDeadline,
    Claim,
    ClaimStatus,
    EndReason,
    FromWhy,
    GangMember,
    GroupPolicy,
    HostStatus,
    Quota,
    Request,
)
from redsched.model.filters import EventFilter
from redsched.operate.observe.recorder import Recorder
from redsched.scheduler import Scheduler
from redsched.scheduler.hosts.drain import next_move_at_ms
from redsched.settings import Settings
from redsched.store.codec.claim_codec import counted_by
from tests.scheduler.working import QUICK, Work, at_work, empty
from tests.support.builders.cells import raw_client
from tests.support.builders.counted_claims import group
from tests.support.waiting import wait_until


async def test_a_drained_host_is_emptied(clean_store: str) -> None:
    """Each of its claims is moved once, although three schedulers work on it; no new claim is placed on it."""
    async with (
        at_work(clean_store, 8, 8, 8) as work,
        Scheduler.connect(clean_store, QUICK),
        Scheduler.connect(clean_store, QUICK),
    ):
        one = Request({"VCPU": 1}, hosts=frozenset({"h0", "h1", "h2"}))
        for number in range(6):
            there = Request({"VCPU": 1}, claim_ids=(f"id{number}",), weights={})
            await work.scheduler.select(there)
        await work.work()
        before = await work.held()
        await work.scheduler.hosts.drain("h0", move=True)
        await empty(work, "h0")
        await work.settle()
        after = await work.held()
        assert "h0" in before
        assert sum(map(len, after.values())) == 6
        for number in range(6):
            claim = await work.scheduler.claims.get(f"id{number}")
            assert (claim.state, claim.host != "h0") == (ClaimStatus.ACTIVE, True)
        assert (await work.scheduler.select(one)).selections[0].host != "h0"
        assert (await work.scheduler.hosts.get("h0")).draining == "move"
        await work.scheduler.hosts.enable("h0")
        assert (await work.scheduler.hosts.get("h0")).draining == ""
        await work.is_sound()


async def test_a_plain_drain_moves_nothing(clean_store: str) -> None:
    async with at_work(clean_store, 8, 8) as work:
        claim = await work.active(Request({"VCPU": 1}))
        await work.scheduler.hosts.drain("h0")
        await work.settle()
        assert await work.held() == {"h0": [claim.claim_id]}


async def test_a_dead_host_is_evacuated_and_stops_what_it_had_when_it_comes_back(clean_store: str) -> None:
    """Anti-affinity leaves only the third host. The returned host then runs new claims as usual."""
    async with at_work(clean_store, 8, 6, 4) as work:
        await group(work.store, policy=GroupPolicy.ANTI_AFFINITY)
        one = await work.active(Request({"VCPU": 1}, server_group="web", claim_ids=("one",)))
        await work.active(Request({"VCPU": 1}, server_group="web", claim_ids=("two",)), host=1)
        dead = work.hosts[0]
        work.hosts.remove(dead)
        await work.scheduler.hosts.write_off("h0", evacuate=True, force=True)
        await work.settle()
        now = await work.scheduler.claims.get("one")
        assert (now.host, now.claim_id, now.state) == ("h2", "one", ClaimStatus.ACTIVE)
        assert not await work.store.hosts.claim_ids("h0")
        assert (await work.scheduler.hosts.get("h0")).draining == "evacuate"
        assert [one.id for one in dead.held.values()] == ["one"]
        await dead.speak()
        await dead.work()
        assert dead.held == {}
        assert await work.store.hosts.claim_ids("h0") == set()
        assert (await work.scheduler.hosts.get("h0")).draining == ""
        assert (await work.scheduler.claims.get("one")).token == now.token
        assert one.token != now.token
        await work.scheduler.hosts.enable("h0")
        work.hosts.insert(0, dead)
        await work.active(Request({"VCPU": 8}))
        await work.is_sound()


async def test_what_was_ending_on_a_dead_host_has_ended_when_it_is_evacuated(clean_store: str) -> None:
    """No agent will stop the work: quota, group and host are freed, and each claim ends with the reason that it had."""
    async with at_work(clean_store, 16, 8) as work:
        claims = work.scheduler.claims
        await work.scheduler.select(Request({"VCPU": 6}, hosts=frozenset({"h1"})))
        await group(work.store, policy=GroupPolicy.ANTI_AFFINITY)
        await work.scheduler.quotas.put(Quota("web", {"VCPU": 6}))
        await work.active(Request({"VCPU": 3}, claim_ids=("gone",), project="web", server_group="web"))
        shelved = await work.active(Request({"VCPU": 1}, claim_ids=("shelved",), project="web"))
        moved = await work.active(Request({"VCPU": 1}, claim_ids=("moved",)))
        await work.scheduler.claims.move("moved", moved.token)
        await work.work([1])
        await work.sweep()
        assert not await claims.release("gone")
        await claims.shelve("shelved", shelved.token)
        dead = work.hosts.pop(0)
        await work.store.hosts.write_off(
            dead.name, evacuate=True, force=True
        )  # the scheduler that wrote the host off died before it ended these claims
        await work.settle()
        assert not await work.store.hosts.claim_ids("h0")
        assert (await claims.get("gone")).end_reason is EndReason.RELEASED
        assert (await claims.get("shelved")).end_reason is EndReason.SHELVED
        now = await claims.get("moved")
        assert (now.host, now.state, now.claim_id) == ("h1", ClaimStatus.ACTIVE, "moved")

        async def is_free() -> bool:
            await work.sweep()
            return (await work.scheduler.quotas.get("web")).used.get("VCPU", 0) == 0

        await wait_until(is_free, what="the quota is free")
        await work.scheduler.hosts.remove("h0", force=True)
        assert await work.store.hosts.draining(0, "") == {}
        again = Request({"VCPU": 1}, server_group="web", hosts=frozenset({"h1"}))
        assert (await work.scheduler.select(again)).selections[0].host == "h1"
        await work.is_sound()


async def test_what_is_not_active_yet_is_not_moved_off_a_host_that_works(clean_store: str) -> None:
    async with at_work(clean_store, 8, 8) as work:
        await work.scheduler.select(Request({"VCPU": 1}, claim_ids=("mine",)))
        await work.scheduler.hosts.drain("h0", move=True)
        await work.sweep()
        assert await work.held() == {"h0": ["mine"]}
        await work.work()
        await empty(work, "h0")
        assert (await work.scheduler.claims.get("mine")).host == "h1"


async def test_what_finds_no_place_is_shown_with_the_reason_and_tried_again(clean_store: str) -> None:
    async with at_work(clean_store, 8, 4) as work:
        await work.active(Request({"VCPU": 2}, claim_ids=("small",)))
        large = await work.active(Request({"VCPU": 6}, claim_ids=("large",)))
        await work.scheduler.hosts.drain("h0", move=True)
        await work.settle()
        assert await work.store.hosts.claim_ids("h0") == {"large"}
        [unmovable] = (await work.scheduler.hosts.get("h0")).unmovable
        assert unmovable.claim_id == "large"
        assert "6 VCPU" in unmovable.reason
        async with raw_client(clean_store) as raw:
            await raw.delete(work.store.keys.request(large.digest))
        assert "does not have the request" in (await work.scheduler.hosts.get("h0")).unmovable[0].reason


async def unmovable(work: Work) -> list[str]:
    return [one.claim_id for one in (await work.scheduler.hosts.get("h0")).unmovable]


async def test_nothing_is_unmovable_while_another_claim_is_on_its_way(clean_store: str) -> None:
    """That one counts at both hosts, so what has no place now may have one when it has arrived."""
    async with at_work(clean_store, 8, 4) as work:
        await work.active(Request({"VCPU": 2}, claim_ids=("small",)))
        await work.active(Request({"VCPU": 6}, claim_ids=("large",)))
        await work.scheduler.hosts.drain("h0", move=True)
        await work.sweep()
        assert await work.held() == {"h0": ["large", "small"], "h1": ["small"]}
        assert await unmovable(work) == []
        await work.settle()
        assert await unmovable(work) == ["large"]


async def test_a_claim_is_not_unmovable_before_it_is_to_be_moved(clean_store: str) -> None:
    async with at_work(clean_store, 8, 4) as work:
        await work.scheduler.select(Request({"VCPU": 6}, claim_ids=("large",)))
        await work.scheduler.hosts.drain("h0", move=True)
        assert await unmovable(work) == []
        await work.work()
        assert await unmovable(work) == ["large"]


async def test_a_group_is_not_unmovable_before_all_of_it_is_active(clean_store: str) -> None:
    """It moves as a whole then."""
    async with at_work(clean_store, 8, 8) as work:
        await group(work.store, policy=GroupPolicy.AFFINITY)
        joins = Request({"VCPU": 2}, server_group="web", hosts=frozenset({"h0", "h1"}))
        await work.active(replace(joins, claim_ids=("one",)))
        await work.scheduler.select(replace(joins, claim_ids=("two",)))
        await work.scheduler.hosts.drain("h0", move=True)
        assert await unmovable(work) == []
        await work.work()
        await empty(work, "h0")


async def test_what_could_not_be_moved_moves_when_there_is_room(clean_store: str) -> None:
    """The delay between attempts grows, so not every sweep tries the move."""
    async with at_work(clean_store, 8, 4, 6) as work:
        other = (await work.scheduler.select(Request({"VCPU": 2}, hosts=frozenset({"h2"})))).selections[0]
        await work.active(Request({"VCPU": 6}, claim_ids=("large",)))
        await work.scheduler.hosts.drain("h0", move=True)
        tries = []
        read_request = work.store.texts.get

        async def counted(name: str) -> str | None:
            tries.append(name)
            return await read_request(name)

        work.store.texts.get = counted  # type: ignore[method-assign]
        for _ in range(5):
            await work.sweep()
        assert 1 <= len(tries) < 5
        await work.scheduler.claims.release(other.claim_id or "")
        await empty(work, "h0")
        assert (await work.scheduler.claims.get("large")).host == "h2"


async def _failed_move_at(work: Work, url: str, at_ms: int) -> None:
    """Set the time at which the last move of claim `mine` failed."""
    async with raw_client(url) as raw:
        await raw.hset(work.store.keys.claim("mine"), "move_failed_at_ms", at_ms)


async def test_a_move_that_fails_at_its_target_is_repeated_with_growing_pauses(clean_store: str) -> None:
    """The claim stores its failures, so all schedulers wait; the host shows them and the time of the next move."""
    async with at_work(clean_store, 8, 8) as work:
        await work.active(Request({"VCPU": 1}, claim_ids=("mine",)))
        await work.scheduler.hosts.drain("h0", move=True)
        pauses = []
        for number in range(1, 4):
            await work.sweep()
            target = (await work.scheduler.claims.get("mine")).target
            assert target is not None
            await work.store.claims.fail("h1", "mine", target.token, by_host=True, reason=f"no disks {number}")
            [failed] = (await work.scheduler.hosts.get("h0")).failed_moves
            assert (failed.claim_id, failed.count, failed.reason) == ("mine", number, f"no disks {number}")
            pauses.append(failed.next_at_ms - (await work.scheduler.claims.get("mine")).move_failed_at_ms)
            await _failed_move_at(work, clean_store, (await work.store.tick()).now_ms + 50_000)
            await work.sweep()
            assert (await work.scheduler.claims.get("mine")).target is None
            await _failed_move_at(work, clean_store, 1)
        assert pauses == [1000, 2000, 4000]
        await empty(work, "h0")
        mine = await work.scheduler.claims.get("mine")
        assert (mine.host, mine.state, mine.failed_moves) == ("h1", ClaimStatus.ACTIVE, 0)
        await work.is_sound()


@pytest.mark.parametrize(("failures", "pause_ms"), [(0, 0), (1, 1000), (6, 32_000), (7, 60_000), (1000, 60_000)])
async def test_the_pause_before_the_next_move_has_a_limit(failures: int, pause_ms: int) -> None:
    failed_at_ms = 5000 if failures else 0
    claim = Claim(
        "a", "c1", "h0", ClaimStatus.ACTIVE, "1-a.1", {}, failed_moves=failures, move_failed_at_ms=failed_at_ms
    )
    assert next_move_at_ms(claim) == failed_at_ms + pause_ms


async def _reasons(work: Work, claim_id: str) -> list[tuple[str, str, str | None]]:
    """Return kind, host and reason of each event of a claim."""
    await Recorder(work.store, Settings()).record()
    events = (await work.scheduler.events.list(1000, "", EventFilter(claim=claim_id))).items
    return [(one.kind, one.facts["host"], one.facts.get("reason")) for one in events]


async def _came(work: Work) -> tuple[str, FromWhy | None]:
    """Return from which host the claim `mine` has come, and why."""
    (place,) = (await work.scheduler.claims.get("mine")).placements
    assert (place.placed_at_ms is None) == (place.from_host == "")
    return place.from_host, place.from_why


async def test_the_events_of_a_move_give_the_reason_its_host_was_left(clean_store: str) -> None:
    """The claim is moved by hand, then by a drain, then by an evacuation."""
    async with at_work(clean_store, 8, 7, 6, 5) as work:
        claim = await work.active(Request({"VCPU": 1}, claim_ids=("mine",)))
        assert await _came(work) == ("", None)
        await work.scheduler.claims.move("mine", claim.token, hosts=("h1",))
        await work.settle()
        assert await _came(work) == ("h0", FromWhy.MOVED)
        await work.scheduler.hosts.disable("h0")
        await work.scheduler.hosts.drain("h1", move=True)
        await empty(work, "h1")
        assert await _came(work) == ("h1", FromWhy.DRAINED)
        work.hosts.pop(2)
        await work.scheduler.hosts.write_off("h2", evacuate=True, force=True)
        await work.settle()
        assert await _came(work) == ("h2", FromWhy.WRITTEN_OFF)
        told = await _reasons(work, "mine")
        drained, lost = "host h1 is being drained", "host h2 was written off"
        assert [one for one in told if one[0] in ("claimed", "moved")] == [
            ("claimed", "h0", None),
            ("claimed", "h1", None),
            ("moved", "h0", None),
            ("claimed", "h2", drained),
            ("moved", "h1", drained),
            ("claimed", "h3", lost),
            ("moved", "h2", lost),
        ]


async def test_what_had_not_come_up_on_an_evacuated_host_gives_the_reason_it_goes_elsewhere(clean_store: str) -> None:
    async with at_work(clean_store, 8, 7) as work:
        await work.scheduler.select(Request({"VCPU": 1}, claim_ids=("mine",)))
        work.hosts.pop(0)
        await work.scheduler.hosts.write_off("h0", evacuate=True, force=True)
        await work.settle()
        assert ("failed", "h0", "host h0 was written off") in await _reasons(work, "mine")


async def test_what_had_not_come_up_on_a_drained_host_gives_the_reason_it_goes_elsewhere(clean_store: str) -> None:
    """The reason reads as for a move off the host; once the host is enabled again, none is given."""
    async with at_work(clean_store, 8, 7) as work:
        await work.scheduler.select(Request({"VCPU": 1}, claim_ids=("drained",)))
        await work.scheduler.select(Request({"VCPU": 1}, claim_ids=("enabled",), hosts=frozenset({"h0"})))
        await work.scheduler.hosts.drain("h0", move=True)
        for claim_id in ("drained", "enabled"):
            claim = await work.scheduler.claims.get(claim_id)
            await work.store.claims.requeue("h0", claim_id, claim.token, counted_by(claim))
            await work.scheduler.hosts.enable("h0")
        assert ("failed", "h0", "host h0 is being drained") in await _reasons(work, "drained")
        assert ("failed", "h0", None) in await _reasons(work, "enabled")


async def _after_the_deadline(work: Work, url: str) -> None:
    """Make the deadline of the drain of h0 pass."""
    async with raw_client(url) as raw:
        assert int(await raw.hget(work.store.keys.host("h0"), "drain_deadline_ms")) > (await work.store.tick()).now_ms
        await raw.hset(work.store.keys.host("h0"), "drain_deadline_ms", 1)


async def test_what_is_left_at_the_deadline_is_stopped_and_its_owner_sees_why(clean_store: str) -> None:
    """A move that is under way still completes; a claim that is not active yet is released too."""
    async with at_work(clean_store, 9, 4, 6) as work:
        await work.active(Request({"VCPU": 2}, claim_ids=("small",)))
        await work.active(Request({"VCPU": 6}, claim_ids=("large",)))
        await work.scheduler.select(Request({"VCPU": 1}, claim_ids=("starting",), hosts=frozenset({"h0"})))
        await work.scheduler.select(Request({"VCPU": 6}, claim_ids=("other",), hosts=frozenset({"h2"})))
        await work.scheduler.hosts.drain("h0", True, 60, AtDeadline.STOP)
        await work.sweep()
        found = await work.scheduler.hosts.get("h0")
        assert (found.draining, found.drain_then, await work.store.hosts.claim_ids("h1")) == ("move", "stop", {"small"})
        await _after_the_deadline(work, clean_store)
        assert (await work.scheduler.hosts.get("h0")).draining == "stop"
        await work.sweep()
        assert (await work.scheduler.claims.get("large")).state is ClaimStatus.ENDING
        await empty(work, "h0")
        for claim_id in ("large", "starting"):
            ended = await work.scheduler.claims.get(claim_id)
            assert (ended.state, ended.end_reason) == (ClaimStatus.ENDED, EndReason.RELEASED)
            assert ended.reason
            assert "host h0 was drained" in ended.reason.text
            assert (await _reasons(work, claim_id))[-1] == ("released", "h0", ended.reason.text)
        moved = await work.scheduler.claims.get("small")
        assert (moved.state, moved.host) == (ClaimStatus.ACTIVE, "h1")
        await work.is_sound()


async def test_a_member_of_a_complete_gang_that_is_stopped_was_released_and_has_not_failed(clean_store: str) -> None:
    """The claim still names its gang, but the other member of a complete gang is not affected."""
    async with at_work(clean_store, 4, 8) as work:
        here, there = (Request({"VCPU": 1}, hosts=frozenset((host,))) for host in ("h0", "h1"))
        await work.scheduler.select(
            Request(members=(GangMember("a", here), GangMember("b", there)), claim_ids=("a", "b"))
        )
        await work.work()
        assert not await work.store.gangs.members("a")
        await work.scheduler.hosts.drain("h0", True, 60, AtDeadline.STOP)
        await _after_the_deadline(work, clean_store)
        await work.sweep()
        await empty(work, "h0")
        ended = await work.scheduler.claims.get("a")
        assert (ended.state, ended.end_reason) == (ClaimStatus.ENDED, EndReason.RELEASED)
        assert (await work.scheduler.claims.get("b")).state is ClaimStatus.ACTIVE


async def test_what_is_left_at_the_deadline_is_kept(clean_store: str) -> None:
    """Nothing more is moved, although there is capacity now, until the host is drained again."""
    async with at_work(clean_store, 8, 4, 6) as work:
        await work.active(Request({"VCPU": 6}, claim_ids=("large",)))
        other = (await work.scheduler.select(Request({"VCPU": 1}, hosts=frozenset({"h2"})))).selections[0]
        await work.scheduler.hosts.drain("h0", True, 60)
        await work.sweep()
        await _after_the_deadline(work, clean_store)
        await work.scheduler.claims.release(other.claim_id or "")
        for _ in range(3):
            await work.sweep()
        found = await work.scheduler.hosts.get("h0")
        assert (found.status, found.draining, found.drain_deadline_ms) == (HostStatus.DRAINING, "", 1)
        large = await work.scheduler.claims.get("large")
        assert (large.state, large.host, large.target) == (ClaimStatus.ACTIVE, "h0", None)
        await work.scheduler.hosts.drain("h0", True)
        await empty(work, "h0")
        await work.scheduler.hosts.enable("h0")
        assert (await work.scheduler.hosts.get("h0")).drain_deadline_ms is None


async def test_what_is_on_its_way_to_a_host_that_stops_all_stays_where_it_was(clean_store: str) -> None:
    """Only the move is cancelled."""
    async with at_work(clean_store, 8, 8) as work:
        claim = await work.active(Request({"VCPU": 1}, claim_ids=("mine",)))
        await work.scheduler.claims.move("mine", claim.token, hosts=("h1",))
        await work.scheduler.hosts.drain("h1", True, 60, AtDeadline.STOP)
        async with raw_client(clean_store) as raw:
            await raw.hset(work.store.keys.host("h1"), "drain_deadline_ms", 1)
        await work.sweep()
        mine = await work.scheduler.claims.get("mine")
        assert (mine.host, mine.state, mine.target) == ("h0", ClaimStatus.ACTIVE, None)
        assert await work.held() == {"h0": ["mine"]}


async def test_a_gang_that_is_not_active_yet_ends_as_a_whole_with_a_member_that_is_stopped(clean_store: str) -> None:
    async with at_work(clean_store, 4, 4) as work:
        members = (GangMember("a", Request({"VCPU": 3})), GangMember("b", Request({"VCPU": 3})))
        found = await work.scheduler.select(Request(members=members))
        on = {one.host: one.claim_id or "" for one in found.selections}
        await work.scheduler.hosts.drain("h0", True, 60, AtDeadline.STOP)
        await _after_the_deadline(work, clean_store)
        await work.sweep()
        await work.settle()
        for claim_id in on.values():
            assert (await work.scheduler.claims.get(claim_id)).state is ClaimStatus.ENDED
        await work.is_sound()


async def test_a_deadline_is_of_a_drain_with_moves(clean_store: str) -> None:
    async with at_work(clean_store, 8) as work:
        for asked in ((False, 60, None), (True, 0, AtDeadline.STOP)):
            with pytest.raises(InvalidRequest, match="deadline"):
                await work.scheduler.hosts.drain("h0", *asked)
        assert (await work.scheduler.hosts.get("h0")).status is HostStatus.ENABLED


async def test_an_active_gang_in_an_affinity_group_leaves_a_drained_host_together(clean_store: str) -> None:
    """Members with different requests keep their own amounts, and stay together."""
    async with at_work(clean_store, 9, 8, 8) as work:
        await group(work.store, policy=GroupPolicy.AFFINITY)
        members = (
            GangMember("db", Request({"VCPU": 4}, server_group="web")),
            GangMember("app", Request({"VCPU": 1}, server_group="web", count=2)),
        )
        found = await work.scheduler.select(Request(members=members))
        assert {one.host for one in found.selections} == {"h0"}
        await work.work()
        await work.scheduler.hosts.drain("h0", move=True)
        await empty(work, "h0")
        await work.settle()
        claims = [await work.scheduler.claims.get(one.claim_id or "") for one in found.selections]
        assert {one.state for one in claims} == {ClaimStatus.ACTIVE}
        assert len({one.host for one in claims}) == 1
        assert [one.slots["VCPU"] for one in claims] == [4, 1, 1]
        await work.is_sound()


async def test_a_target_that_dies_while_it_starts_the_work_does_not_hold_up_a_drain(clean_store: str) -> None:
    """The dead host can never confirm the end of its placement; the claim still moves to a third host."""
    async with at_work(clean_store, 8, 8, 8) as work, raw_client(clean_store) as raw:
        claim = await work.active(Request({"VCPU": 1}, claim_ids=("mine",)))
        target = await work.scheduler.claims.move("mine", claim.token)
        work.hosts = [host for host in work.hosts if host.name != target.host]
        await work.store.claims.accept(target.host, "mine", target.token, 3600)
        await raw.hset(work.store.keys.claim("mine"), f"placement.{target.token}.expires_at_ms", 1)
        await raw.zadd(work.store.keys.deadlines, {"mine": 1})
        await work.store.claims.reconcile(["mine"])
        await work.scheduler.hosts.drain("h0", move=True)

        async def is_empty() -> bool:
            await work.sweep()
            for host in work.hosts:
                await host.work()
            return not await work.store.hosts.claim_ids("h0")

        await wait_until(is_empty, timeout=30, what="h0 is empty")
        now = await work.scheduler.claims.get("mine")
        assert (now.state, now.host in {"h0", target.host}) == (ClaimStatus.ACTIVE, False)
