"""The steps of a claim, against a store whose replies the test chooses."""

import asyncio
import dataclasses
import sqlite3
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import TypeVar, cast

import pytest

from redsched.agent.backoff import StoreBackoff
from redsched.agent.claims.context import LifecycleContext
from redsched.agent.claims.steps import ClaimSteps
from redsched.agent.collectors.base import StaticCollector
from redsched.agent.hooks.base import HookFailed, HookNotRun, HookRequest
from redsched.agent.host_session import Host
from redsched.agent.journal.file import JournalBroken
from redsched.agent.journal.journal import open_journal
from redsched.agent.journal.schema import JournalEntry
from redsched.agent.monitor import HostMonitor
from redsched.aio import end
from redsched.model import Claim, ClaimStatus, EndReason, HostReport, Inventory, Placement, Pool
from redsched.settings import Settings
from redsched.store.cell import CellCall, CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.replies import ScriptResult
from tests.agent.conftest import H1, LEASE_S, held_work
from tests.support.waiting import wait_until

R = TypeVar("R")
E1, E2 = "1790000000000-aaaaaaaa", "1790000000001-bbbbbbbb"
WORK = held_work("a", f"{E1}.7", {"VCPU": 2})


class ScriptedCell:
    """Answers each call with the next reply given for it, or else with OK in epoch E1."""

    name = "c1"

    def __init__(self) -> None:
        self.answers: dict[str, list[tuple[Outcome, str]]] = {}
        self.asked: list[str] = []
        """The scripts that were called, without reads."""
        self.claims = self.hosts = self
        self.stored: dict[str, Claim] = {}
        self.objects: list[tuple[str, Sequence[str]]] = []

    async def call(self, call: CellCall[R], objects: Sequence[str] = ()) -> R:
        return await call.run(cast(CellStore, self), objects)

    async def read(self, _: object) -> dict[str, Claim]:
        return self.stored

    def __getattr__(self, script: str) -> object:
        async def call(*arguments: object, **named: object) -> object:
            if script in ("fail", "gone"):
                self.objects.append((script, cast("Sequence[str]", named.get("objects", arguments[-1]))))
            self.asked.append(script)
            outcome, epoch = self.answers[script].pop(0) if self.answers.get(script) else (Outcome.OK, E1)
            return ScriptResult(outcome, epoch, 1000)

        return call


class NotedHook:
    """Records its calls. `fails`: the errors that the next calls of a verb raise, before they succeed."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.fails: dict[str, list[HookFailed]] = {}

    async def run(self, order: HookRequest) -> bytes:
        self.calls.append(order.verb.value)
        if self.fails.get(order.verb.value):
            raise self.fails[order.verb.value].pop(0)
        return b""


class Bench:
    """One host, open in E1."""

    def __init__(self, folder: Path) -> None:
        self.journal = open_journal(folder / "j.sqlite")
        self.scripted, self.hook, self.closed = ScriptedCell(), NotedHook(), 0
        cell = cast(CellStore, self.scripted)
        settings = Settings(lease_s=LEASE_S)
        self.host = Host(
            cell,
            HostMonitor(StaticCollector(H1), self.journal),
            self.journal,
            settings,
            "n",
            lambda *_: None,
            self._closed,
        )
        self.host.monitor.report = H1
        self.host._open(E1, ())
        self.journal.write_attested("h1", E1)
        self.steps = ClaimSteps(LifecycleContext(self.host, StoreBackoff(), self.hook, asyncio.Semaphore(1)))

    def _closed(self, _: Host) -> None:
        self.closed += 1

    async def hold(self, **changes: object) -> JournalEntry:
        work = dataclasses.replace(WORK, **changes)  # type: ignore[arg-type]
        await self.journal.write_held("h1", work)
        return work

    @property
    def held(self) -> dict[str, JournalEntry]:
        """Return its placements by claim id; tests that use this have one placement of each claim."""
        return {work.id: work for work in self.journal.pages["h1"].held.values()}

    async def ended(self) -> list[tuple[str, str]]:
        """Return id and token of the placements that ended here."""
        return [(one.id, one.token) for one in await self.journal.ended("h1")]


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    made = Bench(tmp_path)
    yield made
    await made.journal.close()


async def test_taking_up_ends_with_an_active_claim(bench: Bench) -> None:
    await bench.steps.lifecycle.bring_up(WORK)
    assert bench.scripted.asked == ["accept", "confirm"]
    assert bench.hook.calls == ["start"]
    assert bench.held["a"].state is ClaimStatus.ACTIVE


async def test_nothing_is_accepted_that_the_journal_could_not_keep(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second attempt fails too, although the placement is in the journal's pages in memory."""

    def full(_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(bench.journal, "_transaction", full)
    for _ in range(2):
        with pytest.raises(JournalBroken):
            await bench.steps.lifecycle.bring_up(WORK)
    assert bench.scripted.asked == []


@pytest.mark.parametrize("outcome", [Outcome.ENDED, Outcome.STALE, Outcome.UNKNOWN])
async def test_nothing_is_started_or_remembered_of_a_claim_that_had_ended(bench: Bench, outcome: Outcome) -> None:
    bench.scripted.answers["accept"] = [(outcome, E1)]
    await bench.steps.lifecycle.bring_up(WORK)
    assert (bench.hook.calls, bench.held, await bench.ended()) == ([], {}, [])


async def test_what_an_earlier_process_may_have_started_is_stopped_when_its_claim_has_ended(bench: Bench) -> None:
    work = await bench.hold(state=ClaimStatus.STARTING)
    bench.scripted.answers["accept"] = [(Outcome.ENDED, E1)]
    await bench.steps.lifecycle.bring_up(work)
    assert bench.hook.calls == ["stop"]
    assert await bench.ended() == [("a", WORK.token)]


@pytest.mark.parametrize(
    ("end_reason", "gang", "was_active"),
    [(EndReason.FAILED, "a", False), (EndReason.FAILED, "", True), (EndReason.RELEASED, "a", True)],
)
async def test_work_that_is_asked_back_had_been_active_unless_it_falls_with_its_gang(
    bench: Bench, end_reason: EndReason, gang: str, was_active: bool
) -> None:
    """The store's claim decides; in a complete gang, a claim no longer names the gang when it ends."""
    work = await bench.hold(state=ClaimStatus.ACTIVE, record={**WORK.record, "gang": "a"})
    placement = Placement(work.placed, work.token, work.root, "h1", ClaimStatus.ENDING, {}, end_reason)
    bench.scripted.stored["a"] = Claim(
        "a", "c1", "h1", ClaimStatus.ENDING, work.token, {}, gang=gang, placements=(placement,)
    )
    bench.scripted.answers["confirm"] = [(Outcome.ENDING, E1)]
    await bench.steps.lifecycle.bring_up(work)
    assert bench.scripted.asked == ["accept", "confirm", "gone"]
    assert [one.was_active for one in await bench.journal.ended("h1")] == [was_active]


async def test_the_journal_keeps_why_the_store_ends_a_placement(bench: Bench) -> None:
    work = await bench.hold(state=ClaimStatus.ACTIVE)
    bench.scripted.answers["gone"] = [(Outcome.NOT_ATTESTED, E2)]
    ending = asyncio.create_task(bench.steps.ending.end(work, end_reason=EndReason.EXPIRED))
    await wait_until(lambda: "gone" in bench.scripted.asked, what="the host reports that the work is gone")
    assert bench.held["a"].record["end_reason"] == "expired"
    await end(ending)


async def test_the_journal_keeps_that_work_has_failed_which_is_not_gone_yet(bench: Bench) -> None:
    """Neither its start nor the clean-up after it succeeds: the store has it `ending`, and may lose that."""
    bench.hook.fails = {"start": [HookFailed("no", "no")], "stop": [HookFailed("no", "no")]}
    bench.scripted.answers |= {"fail": [(Outcome.ENDING, E1)], "gone": [(Outcome.NOT_ATTESTED, E2)]}
    taking_up = asyncio.create_task(bench.steps.lifecycle.bring_up(WORK))
    await wait_until(lambda: "gone" in bench.scripted.asked, what="the host reports that the work is gone")
    assert bench.scripted.asked == ["accept", "fail", "gone"]
    assert bench.held["a"].record["end_reason"] == "failed"
    await end(taking_up)


async def test_work_that_runs_is_not_started_again(bench: Bench) -> None:
    await bench.hold(state=ClaimStatus.STARTING, is_running=True)
    bench.scripted.answers["accept"] = [(Outcome.ALREADY_DONE, E1)]
    await bench.steps.lifecycle.bring_up(WORK)
    assert bench.hook.calls == []
    assert bench.scripted.asked == ["accept", "confirm"]


@pytest.mark.parametrize(
    "word", [(Outcome.UNKNOWN, E2), (Outcome.ENDED, E2), (Outcome.NOT_ATTESTED, E2), (Outcome.NOT_ATTESTED, E1)]
)
async def test_no_word_of_an_epoch_not_attested_to_stops_work(bench: Bench, word: tuple[Outcome, str]) -> None:
    """A wiped store knows no claim, which is no reason to stop work."""
    work = await bench.hold(state=ClaimStatus.ACTIVE, is_running=True)
    bench.scripted.answers["renew"] = [word, (Outcome.ALREADY_DONE, E2)]
    asking = asyncio.create_task(bench.steps.lifecycle.renew_missing(work))
    await wait_until(lambda: bench.closed > 0, what="the host is to attest")
    assert bench.host.epoch == ""
    assert not asking.done()
    bench.host._open(E2, ())
    await asking
    assert bench.hook.calls == []
    assert "a" in bench.held


async def test_a_word_of_an_epoch_that_was_left_counts_for_nothing(bench: Bench) -> None:
    bench.host._open(E2, ())
    work = await bench.hold(state=ClaimStatus.ACTIVE)
    bench.scripted.answers["renew"] = [(Outcome.ENDED, E1), (Outcome.ALREADY_DONE, E2)]
    await bench.steps.lifecycle.renew_missing(work)
    assert bench.hook.calls == []
    assert bench.host.epoch == E2
    assert bench.closed == 1, "the next heartbeat is to find out whether the store is an old copy"


@pytest.mark.parametrize("answer", [Outcome.OK, Outcome.ENDED, Outcome.ALREADY_DONE])
async def test_what_may_have_begun_is_stopped_although_the_store_has_freed_it(bench: Bench, answer: Outcome) -> None:
    """The store does not wait for a host that was written off, but the host still stops the work."""
    bench.hook.fails = {"start": [HookFailed("no")], "stop": [HookFailed("no")]}
    bench.scripted.answers["fail"] = [(answer, E1)]
    await bench.steps.lifecycle.bring_up(WORK)
    assert bench.hook.calls == ["start", "stop", "stop"]
    assert await bench.ended() == [("a", WORK.token)]


@pytest.mark.parametrize(
    ("state", "calls"), [(ClaimStatus.CLAIMED, ["start"]), (ClaimStatus.STARTING, ["start", "stop"])]
)
async def test_a_start_that_never_began_is_stopped_only_if_an_earlier_one_may_have(
    bench: Bench, state: ClaimStatus, calls: list[str]
) -> None:
    bench.hook.fails = {"start": [HookNotRun("no such command")]}
    await bench.steps.lifecycle.bring_up(await bench.hold(state=state))
    assert bench.hook.calls == calls
    assert bench.scripted.asked == ["accept", "fail"]
    assert await bench.ended() == [("a", WORK.token)]


async def test_an_end_is_durable_before_the_hook_stops_anything(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    work = await bench.hold(state=ClaimStatus.ACTIVE)
    transaction = bench.journal._transaction

    def noted(statements: list[tuple[str, tuple[object, ...]]]) -> None:
        transaction(statements)
        seen.extend(
            f"{state} after {bench.hook.calls}" for _, values in statements for state in values if state == "ending"
        )

    monkeypatch.setattr(bench.journal, "_transaction", noted)
    await bench.steps.ending.end(work)
    assert seen == ["ending after []"]
    assert bench.hook.calls == ["stop"]
    assert bench.scripted.asked == ["gone"]
    assert await bench.ended() == [("a", WORK.token)]


GPU_HOST = HostReport(
    "h1",
    {"VCPU": Inventory(8)},
    pools={
        "numa0": Pool({"PCPU": Inventory(4)}),
        "gpu0": Pool({"CUSTOM_GPU_MILLI": Inventory(1000)}, parent="numa0"),
        "gpu1": Pool({"CUSTOM_GPU_MILLI": Inventory(1000)}, parent="numa0"),
    },
)


@pytest.mark.parametrize(
    ("amounts", "calls"),
    [
        ({"gpu0/CUSTOM_GPU_MILLI": 400}, ["start"]),
        ({"gpu0/CUSTOM_GPU_MILLI": 401}, []),  # another claim holds 600 of them
        ({"gpu1/CUSTOM_GPU_MILLI": 1000, "numa0/PCPU": 4}, ["start"]),
        ({"numa0/PCPU": 5}, []),
        ({"PCPU": 1}, []),  # the host has none outside its pools
        ({"gpu2/CUSTOM_GPU_MILLI": 1}, []),
        ({"VCPU": 1, "pool:lic/CUSTOM_SEAT": 7}, ["start"]),
    ],
)
async def test_the_host_starts_only_what_each_of_its_pools_can_hold(
    bench: Bench, amounts: dict[str, int], calls: list[str]
) -> None:
    bench.host.monitor.collector = StaticCollector(GPU_HOST)
    bench.host.settings = Settings(lease_s=2)  # it waits for half of that, in vain, for the other claim to end
    await bench.journal.write_held("h1", held_work("other", f"{E1}.6", {"gpu0/CUSTOM_GPU_MILLI": 600}))
    await bench.steps.lifecycle.bring_up(held_work("a", f"{E1}.7", amounts))
    assert bench.hook.calls == calls
    assert bench.scripted.asked == ["accept", "confirm" if calls else "fail"]


@pytest.mark.parametrize("state", [ClaimStatus.CLAIMED, ClaimStatus.STARTING, ClaimStatus.ACTIVE, ClaimStatus.ENDING])
async def test_an_order_by_an_older_token_than_the_journals_is_discarded(bench: Bench, state: ClaimStatus) -> None:
    work = await bench.hold(state=state)
    bench.scripted.answers["accept"] = [(Outcome.STALE, E1)]
    await bench.steps.lifecycle.bring_up(held_work("a", f"{E1}.6", {"VCPU": 8}, placed=WORK.placed), "1-1")
    assert bench.scripted.asked == ["accept"], "which takes its notification out"
    assert (bench.hook.calls, bench.held) == ([], {"a": work})


async def test_a_store_that_insists_on_an_older_token_has_lost_writes(bench: Bench) -> None:
    work = await bench.hold(state=ClaimStatus.ACTIVE)
    await bench.steps.lifecycle.bring_up(held_work("a", f"{E1}.6", {"VCPU": 8}, placed=WORK.placed))
    assert bench.scripted.asked == ["accept", "raise_epoch"]
    assert (bench.hook.calls, bench.held) == ([], {"a": work})


async def test_a_placement_that_ended_here_by_a_later_token_is_not_begun(bench: Bench) -> None:
    bench.journal.write_ended("h1", held_work("a", f"{E1}.9", placed=WORK.placed))
    await bench.steps.lifecycle.bring_up(WORK)
    assert bench.scripted.asked == ["accept", "raise_epoch"]
    assert (bench.hook.calls, bench.held) == ([], {})


async def test_the_store_receives_what_the_claim_counts_in(bench: Bench) -> None:
    """The script then needs no second call with the keys of group and pools."""
    amounts = {"VCPU": 2, "pool:lic/CUSTOM_SEAT": 1}
    work = held_work("a", f"{E1}.7", amounts, state=ClaimStatus.ACTIVE, is_running=True, group="db")
    await bench.journal.write_held("h1", work)
    await bench.steps.ending.end(work)
    bench.hook.fails = {"start": [HookFailed("no")]}
    await bench.steps.lifecycle.bring_up(held_work("b", f"{E1}.8", amounts, group="db"))
    told = [(script, {"server-group:db", "pool:lic"} <= set(objects)) for script, objects in bench.scripted.objects]
    assert told == [("gone", True), ("fail", True)]
