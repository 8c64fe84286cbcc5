"""Which notifications are acted on, and that a placement has one task at a time."""

import asyncio
import dataclasses
from types import SimpleNamespace
from typing import cast

import pytest

from redsched.agent.claims.steps import ClaimSteps
from redsched.agent.claims.tasks import ClaimTasks
from redsched.agent.journal.schema import JournalEntry
from redsched.model import Claim, ClaimStatus, EndReason, Placement
from redsched.store.codec.replies import InboxEntry
from tests.agent.conftest import held_work
from tests.support.waiting import wait_until

E1, E2 = "1790000000000-aaaaaaaa", "1790000000001-bbbbbbbb"


def claim_of(*placements: Placement, claim_id: str = "a") -> Claim:
    """Return a claim with these placements, or an ended one."""
    if not placements:
        return Claim(claim_id, "c1", "h1", ClaimStatus.ENDED, f"{E1}.7", {})
    main = placements[0]
    return Claim(claim_id, "c1", main.host, main.state, main.token, main.slots, placements=placements)


def at(token: str, state: ClaimStatus = ClaimStatus.CLAIMED, placed: str = "", host: str = "h1") -> Placement:
    return Placement(placed or token, token, placed or token, host, state, {"VCPU": 1})


def held(*works: JournalEntry) -> dict[str, JournalEntry]:
    return {work.placed: work for work in works}


TOKEN = f"{E1}.7"
CLAIM = claim_of(at(TOKEN))
ACTIVE = claim_of(at(TOKEN, ClaimStatus.ACTIVE))
RUNNING = held_work("a", TOKEN, {"VCPU": 1}, state=ClaimStatus.ACTIVE)


class NotedSteps:
    """Records its steps; each runs until the test lets it end, or it is cancelled."""

    def __init__(self, held: dict[str, JournalEntry] | None = None) -> None:
        self.host = SimpleNamespace(name="h1", epoch=E2)
        self.held = held or {}
        self.context = self.lifecycle = self.ending = self
        self.begun: list[str] = []
        self.may_end = asyncio.Event()

    async def _note(self, what: str) -> None:
        self.begun.append(what)
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.begun.append(f"broken off: {what}")
            raise

    async def bring_up(self, work: JournalEntry, entry_id: str = "") -> None:
        await self._note(f"take up {work.token[-1]}")

    async def end(
        self, work: JournalEntry, entry_id: str = "", end_reason: EndReason | None = None, gang_failed: bool = False
    ) -> None:
        await self._note("end with its gang" if gang_failed else "end")

    async def discard(self, entry: InboxEntry) -> None:
        await self._note("discard")

    async def renew_missing(self, work: JournalEntry) -> None:
        await self._note("ask about")

    async def stop_freed(self, work: JournalEntry) -> None:
        await self._note("lose")


def works_of(steps: NotedSteps, missed: list[str] | None = None) -> ClaimTasks:
    return ClaimTasks(cast(ClaimSteps, steps), lambda: (missed if missed is not None else []).append("missed"))


def notification(op: str = "claim", epoch: str = E2, token: str = TOKEN) -> InboxEntry:
    return InboxEntry("1-1", 1, epoch, op, "a", token)


async def begun(steps: NotedSteps, *expected: str) -> None:
    await wait_until(lambda: len(steps.begun) >= len(expected))
    assert steps.begun == list(expected)


async def test_a_notification_is_followed_whatever_the_epoch_of_its_token() -> None:
    steps = NotedSteps()
    works = works_of(steps)
    works.read_inbox([notification()], {"a": CLAIM})
    await begun(steps, "take up 7")
    await works.close()


async def test_notifications_of_another_epoch_are_not_followed() -> None:
    steps = NotedSteps()
    works = works_of(steps)
    works.read_inbox([notification(epoch=E1), notification("end", epoch=E1)], {"a": CLAIM})
    works.read_inbox([notification()], {"a": CLAIM})
    await begun(steps, "take up 7")
    await works.close()


async def test_a_notification_whose_placement_is_not_here_by_that_token_is_taken_out() -> None:
    for claims in (
        {},
        {"a": claim_of()},
        {"a": claim_of(at(f"{E1}.8", placed=TOKEN))},
        {"a": claim_of(at(TOKEN, host="h2"))},
    ):
        steps = NotedSteps()
        works = works_of(steps)
        works.read_inbox([notification()], claims)
        await begun(steps, "discard")
        await works.close()


async def test_the_same_notification_again_starts_nothing_twice() -> None:
    steps = NotedSteps()
    works = works_of(steps)
    for _ in range(3):
        works.read_inbox([notification()], {"a": CLAIM})
        works.compare({"a"}, {"a": CLAIM})
    await begun(steps, "take up 7")
    steps.may_end.set()
    await wait_until(lambda: not works._running)
    assert steps.begun == ["take up 7"]


async def test_an_end_breaks_off_a_start_and_is_not_broken_off_itself() -> None:
    steps, missed = NotedSteps(), list[str]()
    works = works_of(steps, missed)
    works.read_inbox([notification()], {"a": CLAIM})
    await begun(steps, "take up 7")
    works.read_inbox([notification("end")], {"a": CLAIM})
    works.read_inbox([notification("resize", token=f"{E2}.8")], {"a": claim_of(at(f"{E2}.8", placed=TOKEN))})
    await begun(steps, "take up 7", "broken off: take up 7", "end")
    steps.may_end.set()
    await wait_until(lambda: missed == ["missed"], what="the inbox is to be read again for what came meanwhile")


async def test_what_only_the_journal_holds_is_asked_about_and_nothing_while_not_open() -> None:
    steps = NotedSteps(held(RUNNING))
    works = works_of(steps)
    steps.host.epoch = ""
    works.compare(set(), {})
    assert works._running == {}
    steps.host.epoch = E2
    works.compare(set(), {})
    await begun(steps, "ask about")
    await works.close()


async def test_a_claim_that_both_sides_know_to_run_needs_nothing() -> None:
    works = works_of(NotedSteps(held(RUNNING)))
    works.compare({"a"}, {"a": ACTIVE})
    assert works._running == {}


async def test_what_is_half_done_continues() -> None:
    for state, step in ((ClaimStatus.STARTING, "take up 7"), (ClaimStatus.ENDING, "end")):
        steps = NotedSteps(held(dataclasses.replace(RUNNING, state=state)))
        works = works_of(steps)
        works.compare({"a"}, {"a": ACTIVE})
        await begun(steps, step)
        await works.close()


async def test_only_what_the_journal_holds_is_dropped() -> None:
    steps = NotedSteps(held(RUNNING))
    works = works_of(steps)
    works.drop([TOKEN, f"{E1}.8"])
    await begun(steps, "lose")
    await works.close()


async def test_a_task_broken_off_before_its_first_step_leaves_nothing() -> None:
    steps = NotedSteps()
    works = works_of(steps)
    works.read_inbox([notification()], {"a": CLAIM})
    await works.close()
    assert steps.begun == []


async def test_orders_by_an_older_token_than_the_journals_are_taken_out_and_not_followed() -> None:
    for op in ("claim", "resize", "end"):
        steps = NotedSteps(held(dataclasses.replace(RUNNING, token=f"{E2}.8")))
        works = works_of(steps)
        works.read_inbox([notification(op)], {"a": CLAIM})
        works.compare({"a"}, {"a": CLAIM})
        await begun(steps, "discard")
        await works.close()


async def test_a_notification_to_resize_is_followed_by_its_newer_token() -> None:
    steps = NotedSteps(held(dataclasses.replace(RUNNING, token=f"{E1}.6", placed=f"{E1}.6")))
    works = works_of(steps)
    works.read_inbox([notification("resize")], {"a": claim_of(at(TOKEN, ClaimStatus.ACTIVE, placed=f"{E1}.6"))})
    await begun(steps, "take up 7")
    await works.close()


async def test_a_start_is_not_broken_off_for_a_resize() -> None:
    steps, missed = NotedSteps(), list[str]()
    works = works_of(steps, missed)
    works.read_inbox([notification()], {"a": CLAIM})
    await begun(steps, "take up 7")
    resized = dataclasses.replace(at(f"{E1}.8", ClaimStatus.STARTING, placed=TOKEN), resizing_to={"VCPU": 2})
    works.read_inbox([notification("resize", token=f"{E1}.8")], {"a": claim_of(resized)})
    steps.may_end.set()
    await wait_until(lambda: missed == ["missed"], what="the inbox is to be read again")
    assert steps.begun == ["take up 7"]


async def test_a_resize_that_either_side_has_half_done_continues() -> None:
    wanted = {"VCPU": 1}
    for work, claim in (
        (RUNNING.with_amounts(wanted, wanted, {}), ACTIVE),
        (RUNNING, claim_of(dataclasses.replace(at(TOKEN, ClaimStatus.ACTIVE), resizing_to=wanted))),
    ):
        steps = NotedSteps(held(work))
        works = works_of(steps)
        works.compare({"a"}, {"a": claim})
        await begun(steps, "take up 7")
        await works.close()


async def test_a_late_notification_never_stops_another_placement_of_its_claim() -> None:
    """Its token is from before a resize of a placement that still runs; the hook knows both by the same id."""
    steps = NotedSteps(held(dataclasses.replace(RUNNING, token=f"{E1}.9")))
    works = works_of(steps)
    works.read_inbox(
        [notification("end", token=f"{E1}.8")], {"a": claim_of(at(f"{E1}.9", ClaimStatus.ACTIVE, placed=TOKEN))}
    )
    await begun(steps, "discard")
    await works.close()


async def test_an_end_that_the_journal_does_not_know_is_stopped_all_the_same() -> None:
    steps = NotedSteps()
    works = works_of(steps)
    works.read_inbox([notification("end")], {"a": claim_of(at(TOKEN, ClaimStatus.ENDING))})
    await begun(steps, "end")
    await works.close()


async def test_two_placements_of_one_claim_go_their_own_ways() -> None:
    """In a move to other pools of the same host, the old placement runs while the new one starts."""
    steps = NotedSteps(held(RUNNING))
    works = works_of(steps)
    both = claim_of(at(TOKEN, ClaimStatus.ACTIVE), at(f"{E1}.8"))
    works.read_inbox([notification(token=f"{E1}.8")], {"a": both})
    await begun(steps, "take up 8")
    works.compare({"a"}, {"a": both})
    assert steps.begun == ["take up 8"], "nothing is asked of the one that runs"
    works.compare({"a"}, {"a": claim_of(at(f"{E1}.8", ClaimStatus.STARTING), at(TOKEN, ClaimStatus.ENDING))})
    await begun(steps, "take up 8", "end")
    await works.close()


async def test_a_placement_on_another_host_is_none_of_this_hosts() -> None:
    steps = NotedSteps()
    works = works_of(steps)
    works.compare({"a"}, {"a": claim_of(at(f"{E1}.8"), at(f"{E1}.9", ClaimStatus.ACTIVE, host="h2"))})
    await begun(steps, "take up 8")
    await works.close()


async def test_of_a_claim_that_is_still_here_a_placement_that_is_gone_is_asked_about() -> None:
    steps = NotedSteps(held(RUNNING, held_work("a", f"{E1}.8", state=ClaimStatus.ACTIVE)))
    works = works_of(steps)
    works.compare({"a"}, {"a": ACTIVE})
    await begun(steps, "ask about")
    await works.close()


@pytest.mark.parametrize(
    ("gang", "end_reason"), [("a", EndReason.FAILED), ("", EndReason.FAILED), ("a", EndReason.RELEASED)]
)
async def test_only_a_member_of_a_gang_that_has_failed_ends_with_its_gang(gang: str, end_reason: EndReason) -> None:
    """In a complete gang, a claim no longer names the gang when it ends."""
    steps = NotedSteps(held(RUNNING))
    works = works_of(steps)
    ending = dataclasses.replace(at(TOKEN, ClaimStatus.ENDING), end_reason=end_reason)
    claim = dataclasses.replace(claim_of(ending), gang=gang)
    works.compare({"a"}, {"a": claim})
    await wait_until(lambda: bool(steps.begun))
    assert steps.begun == ["end with its gang" if gang and end_reason is EndReason.FAILED else "end"]
    await works.close()
