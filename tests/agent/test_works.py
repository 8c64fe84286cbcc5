"""Which hints are followed, and that a claim is acted on once at a time."""

import asyncio
import dataclasses
from types import SimpleNamespace
from typing import cast

from redsched.agent.journal_schema import HeldWork
from redsched.agent.work_ended import WorkEndedSteps
from redsched.agent.works import Works
from redsched.model import Claim, ClaimStatus
from redsched.store import InboxEntry
from tests.support.waiting import wait_until

E1, E2 = "1790000000000-aaaaaaaa", "1790000000001-bbbbbbbb"
CLAIM = Claim("a", "c1", "h1", ClaimStatus.CLAIMED, f"{E1}.7", {"VCPU": 1})


class NotedSteps:
    """Notes what it is to do; each step goes on until the test lets it, or it is cancelled."""

    def __init__(self, held: dict[str, HeldWork] | None = None) -> None:
        self.host = SimpleNamespace(name="h1", epoch=E2)
        self.held = held or {}
        self.begun: list[str] = []
        self.may_end = asyncio.Event()

    async def _note(self, what: str) -> None:
        self.begun.append(what)
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            self.begun.append(f"broken off: {what}")
            raise

    async def take_up(self, work: HeldWork, entry_id: str = "") -> None:
        await self._note(f"take up {work.token[-1]}")

    async def end(self, work: HeldWork, entry_id: str = "") -> None:
        await self._note("end")

    async def discard(self, entry: InboxEntry) -> None:
        await self._note("discard")

    async def ask_about(self, work: HeldWork) -> None:
        await self._note("ask about")

    async def lose(self, work: HeldWork) -> None:
        await self._note("lose")


def works_of(steps: NotedSteps, missed: list[str] | None = None) -> Works:
    return Works(cast(WorkEndedSteps, steps), lambda: (missed if missed is not None else []).append("missed"))


def hint(op: str = "claim", epoch: str = E2, token: str = CLAIM.token) -> InboxEntry:
    return InboxEntry("1-1", 1, epoch, op, "a", token)


async def begun(steps: NotedSteps, *expected: str) -> None:
    await wait_until(lambda: len(steps.begun) >= len(expected))
    assert steps.begun == list(expected)


async def test_a_hint_is_followed_whatever_the_epoch_of_its_token() -> None:
    steps = NotedSteps()
    works = works_of(steps)
    works.read_inbox([hint()], {"a": CLAIM})
    await begun(steps, "take up 7")
    await works.close()


async def test_hints_of_another_epoch_are_not_followed() -> None:
    steps = NotedSteps()
    works = works_of(steps)
    works.read_inbox([hint(epoch=E1), hint("end", epoch=E1)], {"a": CLAIM})
    works.read_inbox([hint()], {"a": CLAIM})
    await begun(steps, "take up 7")
    await works.close()


async def test_a_hint_whose_claim_has_ended_is_taken_out() -> None:
    for claims in ({}, {"a": Claim("a", "c1", "h1", ClaimStatus.ENDED, CLAIM.token, {})}):
        steps = NotedSteps()
        works = works_of(steps)
        works.read_inbox([hint()], claims)
        await begun(steps, "discard")
        await works.close()


async def test_the_same_hint_again_starts_nothing_twice() -> None:
    steps = NotedSteps()
    works = works_of(steps)
    for _ in range(3):
        works.read_inbox([hint()], {"a": CLAIM})
        works.compare({"a"}, {"a": CLAIM})
    await begun(steps, "take up 7")
    steps.may_end.set()
    await wait_until(lambda: not works._doing)
    assert steps.begun == ["take up 7"]


async def test_an_end_breaks_off_a_start_and_is_not_broken_off_itself() -> None:
    steps, missed = NotedSteps(), list[str]()
    works = works_of(steps, missed)
    works.read_inbox([hint()], {"a": CLAIM})
    await begun(steps, "take up 7")
    works.read_inbox([hint("end")], {"a": CLAIM})
    works.read_inbox([hint(token=f"{E2}.8")], {"a": CLAIM})
    await begun(steps, "take up 7", "broken off: take up 7", "end")
    steps.may_end.set()
    await wait_until(lambda: missed == ["missed"], what="the inbox is to be read again for what came meanwhile")


async def test_what_only_the_journal_holds_is_asked_about_and_nothing_while_not_open() -> None:
    steps = NotedSteps({"a": HeldWork("a", CLAIM.token, {}, ClaimStatus.ACTIVE)})
    works = works_of(steps)
    steps.host.epoch = ""
    works.compare(set(), {})
    assert works._doing == {}
    steps.host.epoch = E2
    works.compare(set(), {})
    await begun(steps, "ask about")
    await works.close()


async def test_a_claim_that_both_sides_know_to_run_needs_nothing() -> None:
    active = Claim("a", "c1", "h1", ClaimStatus.ACTIVE, CLAIM.token, {"VCPU": 1})
    works = works_of(NotedSteps({"a": HeldWork("a", CLAIM.token, {}, ClaimStatus.ACTIVE)}))
    works.compare({"a"}, {"a": active})
    assert works._doing == {}


async def test_what_is_half_done_goes_on() -> None:
    for state, step in ((ClaimStatus.STARTING, "take up 7"), (ClaimStatus.ENDING, "end")):
        steps = NotedSteps({"a": HeldWork("a", CLAIM.token, {}, state)})
        works = works_of(steps)
        works.compare({"a"}, {"a": Claim("a", "c1", "h1", ClaimStatus.ACTIVE, CLAIM.token, {"VCPU": 1})})
        await begun(steps, step)
        await works.close()


async def test_only_what_the_journal_holds_is_dropped() -> None:
    steps = NotedSteps({"a": HeldWork("a", CLAIM.token, {}, ClaimStatus.ACTIVE)})
    works = works_of(steps)
    works.drop(["a", "b"])
    await begun(steps, "lose")
    await works.close()


async def test_a_task_broken_off_before_its_first_step_leaves_nothing() -> None:
    steps = NotedSteps()
    works = works_of(steps)
    works.read_inbox([hint()], {"a": CLAIM})
    await works.close()
    assert steps.begun == []


async def test_orders_by_an_older_token_than_the_journals_are_taken_out_and_not_followed() -> None:
    for op in ("claim", "resize", "end"):
        steps = NotedSteps({"a": HeldWork("a", f"{E2}.8", {}, ClaimStatus.ACTIVE)})
        works = works_of(steps)
        works.read_inbox([hint(op)], {"a": CLAIM})
        works.compare({"a"}, {"a": CLAIM})
        await begun(steps, "discard")
        await works.close()


async def test_a_hint_to_resize_is_followed_by_its_newer_token() -> None:
    steps = NotedSteps({"a": HeldWork("a", f"{E1}.6", {}, ClaimStatus.ACTIVE)})
    works = works_of(steps)
    works.read_inbox([hint("resize")], {"a": CLAIM})
    await begun(steps, "take up 7")
    await works.close()


async def test_a_start_is_not_broken_off_for_a_resize() -> None:
    steps, missed = NotedSteps(), list[str]()
    works = works_of(steps, missed)
    works.read_inbox([hint()], {"a": CLAIM})
    await begun(steps, "take up 7")
    resized = Claim("a", "c1", "h1", ClaimStatus.STARTING, f"{E1}.8", {"VCPU": 2}, wanted={"VCPU": 2})
    works.read_inbox([hint("resize", token=f"{E1}.8")], {"a": resized})
    steps.may_end.set()
    await wait_until(lambda: missed == ["missed"], what="the inbox is to be read again")
    assert steps.begun == ["take up 7"]


async def test_a_resize_that_either_side_has_half_done_goes_on() -> None:
    journal = HeldWork("a", CLAIM.token, {"VCPU": 1}, ClaimStatus.ACTIVE)
    store = Claim("a", "c1", "h1", ClaimStatus.ACTIVE, CLAIM.token, {"VCPU": 1})
    wanted = {"VCPU": 1}
    for held, claim in (
        (dataclasses.replace(journal, wanted=wanted), store),
        (journal, dataclasses.replace(store, wanted=wanted)),
    ):
        steps = NotedSteps({"a": held})
        works = works_of(steps)
        works.compare({"a"}, {"a": claim})
        await begun(steps, "take up 7")
        await works.close()
