"""Hosts that are down are fenced: written off once the command has proved that their machine is off, and not before."""

import asyncio
import dataclasses
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from redsched.errors import InvalidRequest
from redsched.model import ClaimStatus, EndReason, FromWhy, Request
from redsched.operate.observe.recorder import Recorder
from redsched.scheduler import Scheduler
from redsched.scheduler.hosts.fencing import FenceCommand, FenceFailed, Fencer
from redsched.scheduler.results import Fenced
from redsched.settings import Settings
from redsched.store.commands.fencing import Held
from redsched.store.commands.homes import HomeCommands
from redsched.store.store import Store
from tests.scheduler.working import Work, at_work, empty
from tests.support.builders.cells import lapse, new_epoch, raw_client, report_of
from tests.support.builders.homes import open_twin
from tests.support.waiting import wait_until

Script = Callable[[str], str]
"""Writes the fence command, and returns its path."""


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Write a fence command that notes the host of each call in `calls`, and then runs some shell commands."""

    def write(body: str) -> str:
        path = tmp_path / "fence"
        path.write_text(f'#!/bin/sh\ncd {tmp_path}\necho "$1" >> calls\n{body}\n')
        path.chmod(0o755)
        return str(path)

    return write


def calls(folder: Path) -> list[str]:
    """Return the hosts of the calls of the fence command so far."""
    path = folder / "calls"
    return path.read_text().split() if path.exists() else []


def settings_of(fence: str, **more: Any) -> Settings:
    return Settings(fence=fence, write_off_after_s=0.001, **more)


class Fleet:
    """Hosts h0 to h4, of which some are down, and the fencers of a scheduler."""

    def __init__(self, work: Work, raw: Any) -> None:
        self.work, self.raw, self.cell = work, raw, work.scheduler.cells.named("c1")

    def fencer(self, settings: Settings) -> Fencer:
        return Fencer(self.cell, settings)

    async def die(self, *hosts: str) -> None:
        """Let the leases of hosts have ended a second ago: a scheduler only estimates the store's clock."""
        for host in hosts:
            await lapse(self.raw, self.work.store, host, 1000)

    async def lost(self) -> set[str]:
        """Return the hosts that are written off."""
        found = await self.work.store.hosts.read([f"h{number}" for number in range(5)])
        return {one.name for one in found if one.fields["epoch"] == "lost"}

    async def events(self, host: str = "h0") -> list[tuple[str, str]]:
        """Return kind and reason of the events of fencing a host."""
        await Recorder(self.work.store, Settings()).record()
        found = await self.work.scheduler.events.newest()
        kinds = ("fencing", "fence-failed", "lost", "repaired")
        mine = [one for one in found if one.facts.get("host") == host and one.kind in kinds]
        return [(one.kind, one.facts.get("reason", "")) for one in mine]

    async def problems(self) -> dict[str, Any]:
        """Return the problems of the status by kind."""
        return {one.kind: one for one in (await self.work.scheduler.status()).problems}


@pytest.fixture
async def fleet(clean_store: str) -> AsyncIterator[Fleet]:
    """Yield five hosts, of which h0 and h1 have a claim each, named like the host."""
    async with at_work(clean_store, *(8,) * 5) as work, raw_client(clean_store) as raw:
        for number in (0, 1):
            request = Request({"VCPU": 2}, hosts=frozenset({f"h{number}"}), claim_ids=(f"of-h{number}",))
            await work.active(request, number)
        yield Fleet(work, raw)


@asynccontextmanager
async def fencing(fencer: Fencer) -> AsyncIterator[None]:
    """Begin to fence the hosts that are due; wait at the end of the block until that has ended."""
    await fencer.run_once()
    yield
    await wait_until(lambda: not list(fencer._attempts), what="all attempts have ended")


async def test_a_host_whose_machine_is_off_is_written_off_and_its_claims_move(
    clean_store: str, script: Script, tmp_path: Path
) -> None:
    async with at_work(clean_store, 8, 8, 8) as work, raw_client(clean_store) as raw:
        await work.active(Request({"VCPU": 2}, claim_ids=("web",)))
        fleet = Fleet(work, raw)
        await fleet.die("h0")
        fencer = fleet.fencer(settings_of(script("exit 0")))
        async with fencing(fencer):
            pass
        assert calls(tmp_path) == ["h0"]
        work.hosts = work.hosts[1:]
        await empty(work, "h0")
        web = await work.scheduler.claims.get("web")
        assert (web.state, web.host != "h0") == (ClaimStatus.ACTIVE, True)
        (place,) = web.placements
        assert (place.from_host, place.from_why) == ("h0", FromWhy.WRITTEN_OFF)
        assert [kind for kind, _ in await fleet.events()] == ["fencing", "lost"]
        assert (await fleet.events())[1][1] == "fenced: the command proved that its machine was off"
        assert fencer.outcomes == {Fenced.WRITTEN_OFF: 1}
        moved = [one for one in await work.scheduler.events.newest() if one.kind == EndReason.MOVED]
        assert [one.facts["reason"] for one in moved] == ["host h0 was written off"]


async def test_a_host_that_another_cell_has_too_is_not_fenced(
    clean_store: str, fleet: Fleet, script: Script, tmp_path: Path
) -> None:
    """The command would end what the machine runs there."""
    async with Store.connect(clean_store, Settings(cells=("c1", "c2"))) as both:
        await open_twin(both.cell("c1"), both.cell("c2"), report_of("h0"))
        await fleet.die("h0", "h1")
        cell = dataclasses.replace(fleet.cell, store=both.cell("c1"))
        async with fencing(Fencer(cell, settings_of(script("exit 0")))):
            pass
    assert calls(tmp_path) == ["h1"]
    assert await fleet.lost() == {"h1"}


async def test_nothing_is_written_off_while_the_command_fails_and_the_status_says_so(
    fleet: Fleet, script: Script, tmp_path: Path
) -> None:
    """It is not called again at once, not even by another scheduler."""
    await fleet.die("h0")
    fence = script("echo powering off; echo no route to the BMC >&2; exit 3")
    fencer = fleet.fencer(settings_of(fence))
    async with fencing(fencer):
        pass
    assert (await fleet.lost(), fencer.outcomes) == (set(), {Fenced.FAILED: 1})
    assert str((await fleet.problems())["host-down"].advice).endswith("then write the host off")
    problem = (await fleet.problems())["fence-failed"]
    reason = "exit code 3: no route to the BMC"
    assert problem.detail.startswith("the fence command of host h0 has failed ")
    assert problem.detail.endswith(f" ago: {reason}")
    assert (problem.about, problem.commands) == (("h0",), ("redsched host write-off h0 --evacuate",))
    assert await fleet.events() == [("fencing", ""), ("fence-failed", reason)]
    await fencer.run_once()
    await fencer.stop()
    other = fleet.fencer(settings_of(fence))
    await other.run_once()
    assert calls(tmp_path) == ["h0"]
    await fleet.raw.hset(fleet.work.store.keys.fencing, "failed_ms.h0", "1")  # the pause is over
    async with fencing(other):
        pass
    assert calls(tmp_path) == ["h0", "h0"]
    problem = (await fleet.problems())["fence-failed"]
    assert problem.detail.startswith("the fence command of host h0 has failed 2 times in a row, the last time ")


class Gate:
    """A fence command that waits, so that things happen while it runs, and then succeeds."""

    BODY = 'touch "runs-$1"; while [ ! -e go ]; do sleep 0.02; done; exit 0'

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def runs(self, host: str = "h0") -> None:
        await wait_until((self._folder / f"runs-{host}").exists, what=f"the command runs for {host}")

    def go(self) -> None:
        (self._folder / "go").touch()


@pytest.fixture
def gate(tmp_path: Path) -> Gate:
    return Gate(tmp_path)


async def test_a_host_that_comes_back_while_the_command_runs_is_not_written_off(
    fleet: Fleet, script: Script, gate: Gate
) -> None:
    await fleet.die("h0")
    fencer = fleet.fencer(settings_of(script(gate.BODY)))
    async with fencing(fencer):
        await gate.runs()
        problems = await fleet.problems()
        assert problems["fencing"].about == ("h0",)
        assert "host-down" not in problems  # whose advice is to write it off
        await fleet.work.hosts[0].speak()
        assert "fencing" not in await fleet.problems()
        gate.go()
    assert (await fleet.lost(), fencer.outcomes) == (set(), {Fenced.RETURNED: 1})
    reason = "the host was heard of while the command ran: it is not written off"
    assert await fleet.events() == [("fencing", ""), ("fence-failed", reason)]
    assert await fleet.problems() == {}
    assert (await fleet.work.scheduler.claims.get("of-h0")).state is ClaimStatus.ACTIVE


async def test_an_epoch_that_begins_while_the_command_runs_makes_its_success_worthless(
    fleet: Fleet, script: Script, gate: Gate
) -> None:
    await fleet.die("h0")
    fencer = fleet.fencer(settings_of(script(gate.BODY)))
    async with fencing(fencer):
        await gate.runs()
        await new_epoch(fleet.work.store)
        gate.go()
    assert (await fleet.lost(), fencer.outcomes) == (set(), {Fenced.RETURNED: 1})


async def test_no_more_hosts_are_fenced_than_may_be_and_the_status_says_why(fleet: Fleet, script: Script) -> None:
    await fleet.die("h0", "h1")
    fencer = fleet.fencer(settings_of(script("exit 0"), fence_hosts=1, fence_percent=0))
    async with fencing(fencer):
        pass
    await fencer.run_once()
    assert (len(await fleet.lost()), fencer.waiting) == (1, 1)
    problem = (await fleet.problems())["fencing-held"]
    assert problem.detail == "no host is fenced: 1 host fenced lately, as many as may be"
    await fencer.stop()
    async with fencing(fleet.fencer(settings_of("true", fence_hosts=1, fence_percent=50))):
        pass
    assert (await fleet.lost(), "fencing-held" in await fleet.problems()) == ({"h0", "h1"}, False)


async def test_no_host_is_fenced_while_most_are_down(
    fleet: Fleet, script: Script, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the first of them is looked for in other cells: there may be thousands, each second."""
    looked_for, is_shared = list[str](), HomeCommands.is_shared

    async def noted(homes: HomeCommands, host: str) -> bool:
        looked_for.append(host)
        return await is_shared(homes, host)

    monkeypatch.setattr(HomeCommands, "is_shared", noted)
    await fleet.die("h0", "h1", "h2")
    fencer = fleet.fencer(settings_of(script("exit 0")))
    await fencer.run_once()
    assert (fencer.waiting, calls(tmp_path), len(looked_for)) == (2, [], 1)
    problem = (await fleet.problems())["fencing-held"]
    assert problem.detail == "no host is fenced: 3 of 5 hosts are down, which is likely to have one cause"
    await fleet.work.hosts[2].speak()
    async with fencing(fencer):
        pass
    assert await fleet.lost() == {"h0", "h1"}


async def test_no_host_is_fenced_while_the_cell_is_not_settled(fleet: Fleet, script: Script, tmp_path: Path) -> None:
    await fleet.die("h0")
    await new_epoch(fleet.work.store)
    fencer = fleet.fencer(settings_of(script("exit 0")))
    await fencer.run_once()
    assert (fencer.waiting, calls(tmp_path)) == (1, [])
    problem = (await fleet.problems())["fencing-held"]
    assert problem.detail == "no host is fenced: the cell is not settled"
    notes = await fleet.work.store.fencing.notes()
    assert notes.held is not None
    assert notes.held.reason is Held.UNSETTLED


async def test_a_store_that_was_wiped_has_no_host_fenced(fleet: Fleet, script: Script, tmp_path: Path) -> None:
    """Its hosts are unknown until they report, and are up then."""
    await fleet.die("h0")
    await fleet.raw.flushall()
    for number in range(1, 5):
        await fleet.work.hosts[number].speak()
    fencer = fleet.fencer(settings_of(script("exit 0")))
    await fencer.run_once()
    assert (fencer.waiting, calls(tmp_path)) == (0, [])


async def test_one_scheduler_fences_and_another_takes_over_when_it_dies(
    fleet: Fleet, script: Script, gate: Gate, tmp_path: Path
) -> None:
    """The command is called twice then. One success writes the host off, and the other one finds that done."""
    await fleet.die("h0")
    fence = settings_of(script(gate.BODY))
    first, second = fleet.fencer(fence), fleet.fencer(fence)
    async with fencing(first):
        await gate.runs()
        await second.run_once()
        assert calls(tmp_path) == ["h0"]
        await fleet.raw.delete(fleet.work.store.keys.duty("fence"))  # the first has not renewed it
        async with fencing(second):
            await wait_until(lambda: calls(tmp_path) == ["h0", "h0"], what="the second calls the command")
            await first.run_once()
            gate.go()
    assert (await fleet.lost(), len(calls(tmp_path))) == ({"h0"}, 2)
    assert [kind for kind, _ in await fleet.events()] == ["fencing", "fencing", "lost"]
    assert first.outcomes + second.outcomes == {Fenced.WRITTEN_OFF: 1}


async def test_a_scheduler_that_stops_ends_the_command_and_lets_another_one_fence(
    fleet: Fleet, script: Script, tmp_path: Path
) -> None:
    await fleet.die("h0")
    settings = settings_of(script("echo $$ > pid; exec sleep 600"), tick_s=0.01)
    fencer = fleet.fencer(settings)
    fencer.start()
    await wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip() != "")
    await fencer.stop()
    pid = int((tmp_path / "pid").read_text())

    def is_gone() -> bool:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        return False

    await wait_until(is_gone, what="the command has ended")
    assert not await fleet.raw.exists(fleet.work.store.keys.duty("fence"))
    assert await fleet.lost() == set()


async def test_a_scheduler_without_a_command_fences_nothing(fleet: Fleet) -> None:
    await fleet.die("h0")
    fencer = fleet.fencer(Settings(tick_s=0.01))
    fencer.start()
    await fencer.stop()
    assert not await fleet.raw.exists(fleet.work.store.keys.duty("fence"), fleet.work.store.keys.fencing)


async def test_a_scheduler_fences_in_the_background_and_announces_it(
    clean_store: str, script: Script, tmp_path: Path
) -> None:
    settings = settings_of(script("exit 0"), tick_s=0.05, pick_from=1)
    async with at_work(clean_store, 8, 8, settings=settings) as work, raw_client(clean_store) as raw:
        await work.active(Request({"VCPU": 2}, claim_ids=("web",)))
        await lapse(raw, work.store, "h0")
        work.hosts = work.hosts[1:]

        async def has_moved() -> bool:
            await work.work()
            return (await work.scheduler.claims.get("web")).host == "h1"

        await wait_until(has_moved, what="the claim runs elsewhere")
        assert work.scheduler.stats().fenced == {Fenced.WRITTEN_OFF: 1}
        (announced,) = await work.store.status.schedulers(0)
        assert announced.fences_after_s == 1


async def test_the_status_says_what_happens_to_a_host_that_stays_down(clean_store: str, script: Script) -> None:
    settings = Settings(fence=script("exit 0"), write_off_after_s=600, tick_s=3600, pick_from=1)
    async with at_work(clean_store, 8, 8, settings=settings) as work, raw_client(clean_store) as raw:
        fleet = Fleet(work, raw)
        await work.active(Request({"VCPU": 2}, claim_ids=("web",)))
        await fleet.die("h0")

        async def is_said() -> bool:
            return (await advice()).endswith("; it is fenced once down for 10 min")

        async def advice() -> str:
            return str((await fleet.problems())["host-down"].advice)

        await wait_until(is_said, what="the scheduler has announced that it fences")
        await work.scheduler.hosts.disable("h0")
        assert (await advice()).endswith("; its claims stay there until then")
        await work.scheduler.claims.release("web", force=True)
        assert (await advice()).endswith("; without claims, nothing waits for it")


async def test_a_command_that_hangs_has_proved_nothing(script: Script) -> None:
    with pytest.raises(FenceFailed, match=r"^no answer within 0\.2 s: it printed nothing$"):
        await FenceCommand(script("exec sleep 600"), 0.2).run("h0")


async def test_a_command_that_is_gone_has_proved_nothing(tmp_path: Path) -> None:
    with pytest.raises(FenceFailed, match=r"fence cannot be run: .*No such file"):
        await FenceCommand(f"{tmp_path}/fence", 60).run("h0")


async def test_a_reason_is_the_last_line_of_the_output_without_control_characters(script: Script) -> None:
    with pytest.raises(FenceFailed, match=r"^exit code 1: no  route$"):
        await FenceCommand(script(r"yes | head -c 100000; printf 'no \033route\n\n'; exit 1"), 60).run("h0")


async def test_the_command_has_arguments_of_its_own_and_no_settings_of_redsched(
    tmp_path: Path, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("redsched_redis_password_file", "/etc/secret")
    monkeypatch.setenv("BMC_USER", "alice")
    await FenceCommand(f"{script('env > env; echo $# $2 > arguments')} --bmc 'a b'", 60).run("h0")
    assert (tmp_path / "arguments").read_text().split() == ["3", "a", "b"]
    names = {line.partition("=")[0] for line in (tmp_path / "env").read_text().splitlines()}
    assert "BMC_USER" in names
    assert not [name for name in names if name.upper().startswith("REDSCHED_")]


@pytest.mark.parametrize(("command", "rule"), [(" ", "fence is blank"), ("'a", "No closing quotation")])
def test_a_text_that_is_no_command_is_refused_with_the_settings(command: str, rule: str) -> None:
    with pytest.raises(ValidationError, match=rule):
        Settings(fence=command)


async def test_a_scheduler_with_a_command_that_does_not_exist_does_not_start(clean_store: str) -> None:
    with pytest.raises(InvalidRequest, match="fence '/nowhere/fence' does not exist: correct REDSCHED_FENCE"):
        async with Scheduler.connect(clean_store, Settings(fence="/nowhere/fence h")):
            pass
    async with asyncio.timeout(60), Scheduler.connect(clean_store, Settings(fence="/nowhere/fence"), on_demand=True):
        pass


async def test_the_status_says_that_a_fenced_host_is_off_and_for_what_its_claims_wait(
    fleet: Fleet, script: Script
) -> None:
    for number in range(1, 5):
        await fleet.work.scheduler.select(Request({"VCPU": 4}, hosts=frozenset({f"h{number}"})))
    await fleet.work.active(Request({"VCPU": 5}, claim_ids=("big",)))
    await fleet.die("h0")
    async with fencing(fleet.fencer(settings_of(script("exit 0")))):
        pass
    problem = (await fleet.problems())["host-lost"]
    assert problem.detail.startswith(
        "1 host is fenced, its machine proved to be off, and still has 2 claims (big, of-h0), which wait for another "
        "place: h0. big: none of 5 hosts can take 5 VCPU"
    )
    assert problem.commands == ("redsched host show h0",)
    assert (await fleet.work.scheduler.hosts.get("h0")).status_reason.startswith("fenced: ")


@pytest.mark.parametrize("is_fenced", [True, False])
async def test_a_host_that_has_returned_is_named_until_an_operator_decides(
    fleet: Fleet, script: Script, is_fenced: bool
) -> None:
    hosts = fleet.work.scheduler.hosts
    await fleet.die("h0")
    if is_fenced:
        async with fencing(fleet.fencer(settings_of(script("exit 0")))):
            pass
    else:
        await hosts.write_off("h0")
    assert "host-returned" not in await fleet.problems()
    await fleet.work.hosts[0].speak()
    problem = (await fleet.problems())["host-returned"]
    how = "fenced" if is_fenced else "written off"
    assert problem.detail == f"1 host was {how} and is back, but takes no claims: h0"
    assert (problem.about, problem.commands) == (("h0",), ("redsched host enable h0",))
    await hosts.disable("h0")
    assert await fleet.problems() == {}
    await hosts.write_off("h0", force=True)
    await fleet.work.hosts[0].speak()
    assert await fleet.problems() == {}  # it was disabled before
