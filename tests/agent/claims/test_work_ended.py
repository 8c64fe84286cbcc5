"""Work that ends by itself: real processes are killed, and the claim ends, is replaced or stays, by its `on_exit`."""

import asyncio
import contextlib
import dataclasses
import json
import os
import signal
import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from redsched.agent.claims.work_monitor import WorkMonitor, describe_end, is_watched
from redsched.agent.collectors.base import Named
from redsched.agent.journal.journal import open_journal
from redsched.agent.journal.schema import JournalEntry, WorkEnd
from redsched.agent.machine.processes import start_mark
from redsched.model import Claim, ClaimStatus, EndReason, OnExit
from redsched.model.claims import exit_status_in
from redsched.operate.observe.recorder import Recorder
from redsched.settings import Settings
from tests.agent.conftest import World
from tests.support.waiting import wait_until

ACTIVE, ENDED = ClaimStatus.ACTIVE, ClaimStatus.ENDED
WORK = "setsid sleep 600 </dev/null >/dev/null 2>&1 & echo $! > {folder}/$REDSCHED_CLAIM_ID.pid; echo pids: $!"
NO_PID = 999_999_999


class Workshop:
    """A world whose hook starts real work and names its pid."""

    def __init__(self, world: World) -> None:
        self.world = world
        world.on("start", WORK.format(folder=world.folder))

    async def start(self, work_watch_s: float = 0.05) -> "asyncio.Task[None]":
        """Start an agent that checks its work often."""
        return await self.world.start(hook=self.world.hook, work_watch_s=work_watch_s)

    async def run(self, claim_id: str, on_exit: OnExit = OnExit.RELEASE) -> None:
        await self.world.place(claim_id, on_exit=on_exit)
        await self.world.reaches(claim_id, ACTIVE)

    def pid(self, claim_id: str) -> int:
        return int((self.world.folder / f"{claim_id}.pid").read_text())

    def kill(self, claim_id: str) -> None:
        os.kill(self.pid(claim_id), signal.SIGKILL)

    async def said(self, claim_id: str) -> list[str]:
        """Return the changes of a claim in the feed, in order."""
        changes = await self.world.cell.feed.read("0-0", 1000)
        return [one.op for one in changes if one.fields.get("claim") == claim_id]

    async def has_ended_by_itself(self, claim_id: str) -> Claim:
        """Wait until the claim shows that its work has ended."""
        found: Claim | None = None

        async def shows_it() -> bool:
            nonlocal found
            found = await self.world.claim(claim_id)
            return found is not None and found.work_ended_at_ms is not None

        await wait_until(shows_it, timeout=30, what=f"the work of {claim_id} has ended")
        assert found is not None
        return found


@pytest.fixture
async def shop(world: World) -> AsyncIterator[Workshop]:
    made = Workshop(world)
    yield made
    await world.close()
    for path in world.folder.glob("*.pid"):
        _kill(int(path.read_text()))


@pytest.fixture
def pid() -> int:
    """Return the pid of a running process."""
    return os.getpid()


def _kill(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def edited(journal: Path) -> Iterator[sqlite3.Connection]:
    """Open a journal that no agent uses."""
    with contextlib.closing(sqlite3.connect(journal)) as file, file:
        yield file


# -- release


async def test_a_killed_process_ends_its_claim(shop: Workshop) -> None:
    await shop.start()
    await shop.run("a")
    await shop.run("b")
    shop.kill("a")
    claim = await shop.world.reaches("a", ENDED)
    assert claim.end_reason is EndReason.WORK_ENDED
    assert shop.world.calls("stop") == [f"stop a {claim.token}"], "the hook has cleaned up"
    reason = await shop.world.reason("a")
    assert reason is not None
    assert reason.text == f"work-ended: no process {shop.pid('a')} is left"
    assert (reason.host, reason.token) == ("h1", claim.token)
    assert (await shop.said("a"))[-1] == "work-ended"
    assert (await shop.world.host())["claimed.VCPU"] == "2", "those of b"
    assert (await shop.world.claim("b") or claim).state is ACTIVE


# Runs until its file `go` is written, and leaves what it has as its exit status.
WITH_STATUS = """
W={folder}/$REDSCHED_CLAIM_ID
setsid sh -c "while [ ! -s $W.go ]; do sleep 0.02; done; mv $W.go $W.status" </dev/null >/dev/null 2>&1 &
echo $! > $W.pid; echo pids: $!; echo status_file: $W.status
"""


@pytest.mark.parametrize("on_exit", [OnExit.RELEASE, OnExit.REPLACE, OnExit.KEEP])
@pytest.mark.parametrize("status", [0, 3])
async def test_the_reason_has_the_exit_status_that_work_left(shop: Workshop, on_exit: OnExit, status: int) -> None:
    """Work that succeeded is not started again. The journal has the name of the file for the next agent."""
    shop.world.on("start", WITH_STATUS.format(folder=shop.world.folder))
    agent = await shop.start()
    await shop.run("a", on_exit)
    await shop.world.stop(agent)
    await shop.start()
    (shop.world.folder / "a.go").write_text(f"{status}\n")
    state = {OnExit.RELEASE: ENDED, OnExit.KEEP: ACTIVE}.get(on_exit, ClaimStatus.PENDING if status else ENDED)
    if on_exit is OnExit.KEEP:
        await shop.has_ended_by_itself("a")
    claim = await shop.world.reaches("a", state)
    if state is ENDED:
        assert claim.end_reason is EndReason.WORK_ENDED
    reason = await shop.world.reason("a")
    assert reason is not None
    assert reason.text == f"work-ended: exit status {status}, no process {shop.pid('a')} is left"
    assert exit_status_in(reason.text) == status


@pytest.mark.parametrize("text", ["", "256", "-1", "3.5", "x", "1" * 17, "\xff", None])
def test_a_file_without_an_exit_status_is_ignored(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "status"
    if text is not None:
        path.write_text(text)
    found = describe_end(Named(started={NO_PID: ""}, status_file=str(path)))
    assert found == f"work-ended: no process {NO_PID} is left"
    assert exit_status_in(found) is None


async def test_the_event_says_what_was_seen(shop: Workshop) -> None:
    await shop.start()
    await shop.run("a")
    shop.kill("a")
    await shop.world.reaches("a", ENDED)
    await Recorder(shop.world.cell, Settings()).record()
    event = (await shop.world.cell.events.read_before("", 1))[0].fields
    assert (event["kind"], event["end_reason"], event["claim"]) == ("work-ended", "work-ended", "a")
    assert event["reason"] == f"work-ended: no process {shop.pid('a')} is left"


async def test_work_that_never_came_up_ends_its_claim(shop: Workshop) -> None:
    """The hook names a process that ended before the agent could check it."""
    shop.world.on("start", f"echo pids: {NO_PID}")
    await shop.start()
    await shop.world.place("a")
    assert (await shop.world.reaches("a", ENDED)).end_reason is EndReason.WORK_ENDED


async def test_what_the_stop_hook_cannot_clean_up_stays_taken(shop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("redsched.agent.claims.context.FIRST_RETRY_S", 0.05)
    shop.world.on("stop", "exit 1")
    await shop.start()
    await shop.run("a")
    shop.kill("a")
    await wait_until(lambda: len(shop.world.calls("stop")) >= 2)
    assert (await shop.world.host())["claimed.VCPU"] == "2"
    shop.world.on("stop", "exit 0")
    assert (await shop.world.reaches("a", ENDED)).end_reason is EndReason.WORK_ENDED


async def test_work_that_ended_while_no_agent_ran_ends_its_claim(shop: Workshop) -> None:
    agent = await shop.start()
    await shop.run("a")
    await shop.world.stop(agent)
    shop.kill("a")
    await shop.start()
    assert (await shop.world.reaches("a", ENDED)).end_reason is EndReason.WORK_ENDED


async def test_a_pid_that_was_reused_while_no_agent_ran_is_distinguished(shop: Workshop) -> None:
    """The journal has another start time for this pid, so the process is not the claim's work, and is left alone."""
    agent = await shop.start()
    await shop.run("a")
    await shop.run("b")
    await shop.world.stop(agent)
    with edited(shop.world.folder / "journal.sqlite") as file:
        (text,) = file.execute("SELECT named FROM placement WHERE id = 'a'").fetchone()
        named = json.loads(text)
        (mark,) = named["started"].values()
        named["started"] = {str(shop.pid("a")): mark + "0"}
        file.execute("UPDATE placement SET named = ? WHERE id = 'a'", (json.dumps(named),))
    await shop.start()
    assert (await shop.world.reaches("a", ENDED)).end_reason is EndReason.WORK_ENDED
    os.kill(shop.pid("a"), 0)
    other = await shop.world.claim("b")
    assert other is not None
    assert other.state is ACTIVE, "its pid and start are those of the journal"


async def test_a_release_continues_after_an_agent_died_in_its_middle(shop: Workshop) -> None:
    """The agent had journaled the end, and its stop hook never returned."""
    shop.world.on("stop", "sleep 600")
    agent = await shop.start()
    await shop.run("a")
    shop.kill("a")
    await wait_until(lambda: shop.world.calls("stop") != [])
    await shop.world.stop(agent)
    shop.world.on("stop", "exit 0")
    await shop.start(work_watch_s=3600)
    assert (await shop.world.reaches("a", ENDED)).end_reason is EndReason.WORK_ENDED
    assert await shop.world.reason("a")


# -- replace and keep


async def test_to_be_replaced_it_fails_on_its_host(shop: Workshop) -> None:
    await shop.start()
    await shop.run("a", OnExit.REPLACE)
    shop.kill("a")
    claim = await shop.world.reaches("a", ClaimStatus.PENDING)
    assert (claim.end_reason, claim.restarts) == (EndReason.FAILED, 1)
    assert (await shop.said("a"))[-2:] == ["work-ended", "failed"]
    assert len(shop.world.calls("stop")) == 1
    assert (await shop.world.host())["failures"] == "1"
    reason = await shop.world.reason("a")
    assert reason is not None
    assert reason.text.startswith("work-ended: no process")


async def test_kept_it_stays_active_and_shows_when_its_work_ended(shop: Workshop) -> None:
    agent = await shop.start()
    await shop.run("a", OnExit.KEEP)
    shop.kill("a")
    claim = await shop.has_ended_by_itself("a")
    assert (claim.state, claim.on_exit) == (ACTIVE, OnExit.KEEP)
    assert await shop.world.reason("a")
    assert shop.world.calls("stop") == []
    await shop.world.stop(agent)
    page = open_journal(shop.world.folder / "journal.sqlite")
    (held,) = page.pages["h1"].held.values()
    await page.close()
    assert held.work_end is not None
    assert not is_watched(held), "it is said once, also by the next agent"
    assert (await shop.said("a")).count("work-ended") == 1
    await shop.start()
    await shop.world.cell.claims.release("h1", "a")
    assert (await shop.world.reaches("a", ENDED)).end_reason is EndReason.RELEASED


async def test_what_is_kept_still_shows_it_when_the_store_has_forgotten(shop: Workshop) -> None:
    await shop.start()
    await shop.run("a", OnExit.KEEP)
    shop.kill("a")
    before = await shop.has_ended_by_itself("a")
    shop.world.flush()
    after = await shop.has_ended_by_itself("a")
    assert (after.state, after.on_exit) == (ACTIVE, OnExit.KEEP)
    assert after.work_ended_at_ms == before.work_ended_at_ms


# -- which work is watched, and when it counts as gone


def test_several_pids_are_gone_when_all_of_them_are(pid: int) -> None:
    mark = start_mark(pid)
    assert describe_end(Named(started={NO_PID: "", pid: mark})) == ""
    several = {NO_PID - number: "" for number in range(7)}
    assert describe_end(Named(started=several)).endswith("999999995 and 2 more is left")


def test_a_pid_and_a_cgroup_are_gone_when_both_are(tmp_path: Path, pid: int) -> None:
    events = tmp_path / "a.slice" / "cgroup.events"
    events.parent.mkdir()
    events.write_text("populated 1\n")
    dead, alive = {NO_PID: ""}, {pid: start_mark(pid)}
    assert describe_end(Named(cgroup="a.slice", started=dead), tmp_path) == ""
    events.write_text("populated 0\n")
    assert describe_end(Named(cgroup="a.slice", started=alive), tmp_path) == ""
    assert describe_end(Named(cgroup="a.slice"), tmp_path) == "work-ended: cgroup a.slice is gone or empty"
    both = describe_end(Named(cgroup="a.slice", started=dead), tmp_path)
    assert both == f"work-ended: no process {NO_PID} is left, cgroup a.slice is gone or empty"


RUNNING = JournalEntry(
    "a", "1-a.7", "1-a.7", "1-a.7", {"amount.VCPU": "2"}, ACTIVE, is_running=True, named=Named(cgroup="a.slice")
)
KEPT = {"on_exit": "keep"}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, True),
        ({"named": None}, False),
        ({"named": Named(domain="vm-7")}, False),
        ({"named": Named(cgroup="a.slice", is_watched=False)}, False),
        ({"state": ClaimStatus.STARTING}, False),
        ({"state": ClaimStatus.ENDING}, False),
        ({"record": {"resizing_to.VCPU": "4"}}, False),
        ({"record": {"digest": "local"}}, False),
        ({"record": KEPT}, True),
        ({"record": KEPT, "work_end": WorkEnd("gone", 1)}, False),
        ({"work_end": WorkEnd("gone", 1)}, True),
    ],
    ids=str,
)
def test_which_work_is_watched(changed: dict[str, Any], expected: bool) -> None:
    assert is_watched(dataclasses.replace(RUNNING, **changed)) is expected


class NotedWorks:
    """The claims of a host, and a record of the work that was found to have ended."""

    def __init__(self, *held: JournalEntry) -> None:
        self.held = list(held)
        self.told: list[str] = []

    def idle_placements(self) -> list[JournalEntry]:
        return self.held

    def find_ended(self, work: JournalEntry, text: str) -> None:
        self.told.append(f"{work.id}: {text}")


def watch_of(works: NotedWorks, cgroups: Path) -> WorkMonitor:
    hosts = {"h1": SimpleNamespace()}
    return WorkMonitor(cast(Any, hosts), cast(Any, {"h1": works}), 3600, cgroups)


async def test_work_is_gone_when_two_looks_in_a_row_find_nothing(tmp_path: Path) -> None:
    """A service that its manager restarts thus has time to come up again."""
    works, events = NotedWorks(RUNNING), tmp_path / "a.slice" / "cgroup.events"
    watch = watch_of(works, tmp_path)
    events.parent.mkdir()
    for populated in (1, 0, 1, 0):
        events.write_text(f"populated {populated}\n")
        await watch.check()
        assert works.told == []
    await watch.check()
    assert works.told == ["a: work-ended: cgroup a.slice is gone or empty"]


async def test_one_look_suffices_for_work_that_has_left_its_exit_status(tmp_path: Path) -> None:
    (tmp_path / "status").write_text("3")
    named = Named(cgroup="a.slice", status_file=str(tmp_path / "status"))
    works = NotedWorks(dataclasses.replace(RUNNING, named=named))
    await watch_of(works, tmp_path).check()
    assert works.told == ["a: work-ended: exit status 3, cgroup a.slice is gone or empty"]


async def test_a_claim_that_changed_between_two_looks_is_examined_again(tmp_path: Path) -> None:
    """The hook may have named other work in between."""
    works = NotedWorks(RUNNING)
    watch = watch_of(works, tmp_path)
    await watch.check()
    works.held = [dataclasses.replace(RUNNING, token="1-a.8")]
    await watch.check()
    assert works.told == []
    await watch.check()
    assert works.told != []
