"""Claims that a host's agent fails or does not accept run on another host: schedulers, agents and hooks together."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from redsched.errors import NotConfirmed
from redsched.model import ClaimStatus, HostReport, Inventory, Request
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from tests.agent.conftest import World
from tests.support.builders.cells import make_due, raw_client
from tests.support.waiting import patience_s, wait_until

LARGE = HostReport("h1", {"VCPU": Inventory(8)}, lease_s=600)
SMALL = HostReport("h2", {"VCPU": Inventory(4)}, lease_s=600)
QUICK = Settings(pick_from=1, tick_s=0.05)
ASKED = Request({"VCPU": 2}, claim_ids=("a",), alternates=1)


@pytest.fixture
async def scheduler(world: World) -> AsyncIterator[Scheduler]:
    """Yield a scheduler that prefers the larger host, and sweeps often."""
    async with Scheduler.connect(world.url, QUICK) as opened:
        yield opened


async def both_hosts(world: World, scheduler: Scheduler) -> None:
    """Start one agent for both hosts. Its hook saves its input, and fails to start work on h1."""
    told = f'cat > {world.folder}/told.$$; grep -q \'"host": "h1"\' {world.folder}/told.$$'
    world.on("start", f"if {told}; then echo no disk >&2; exit 3; fi")
    await world.start([LARGE, SMALL], hook=world.hook)
    await scheduler.explain(Request({"VCPU": 1}))


def told(folder: Path) -> list[tuple[str, list[str]]]:
    """Return host and alternates of each start, ordered by host."""
    words = [json.loads(path.read_text()) for path in folder.glob("told.*")]
    return sorted((one["host"], one["alternates"]) for one in words)


async def test_what_a_hook_fails_to_start_runs_on_the_alternate(world: World, scheduler: Scheduler) -> None:
    """The hook gets the alternates that are left, and has cleaned up before the next start."""
    await both_hosts(world, scheduler)
    [found] = (await scheduler.select(ASKED)).selections
    assert (found.host, found.alternates) == ("h1", ("h2",))
    active = await world.reaches("a", ClaimStatus.ACTIVE)
    assert (active.host, active.attempts) == ("h2", 1)
    assert told(world.folder) == [("h1", ["h2"]), ("h2", [])]
    assert [call.split()[0] for call in world.calls()] == ["start", "stop", "start"]
    assert ((await world.host("h1"))["claimed.VCPU"], (await world.host("h2"))["claimed.VCPU"]) == ("0", "2")


async def test_after_a_wipe_the_alternate_takes_it_too(world: World, scheduler: Scheduler) -> None:
    """Agents restore the list of alternates, as they restore requests; hooks still get it."""
    await world.start([LARGE, SMALL], hook=world.hook)
    await scheduler.explain(Request({"VCPU": 1}))
    await scheduler.select(ASKED)
    await world.reaches("a", ClaimStatus.ACTIVE)
    world.flush()

    async def is_restored() -> bool:
        return await world.cell.texts.get("alternates:a") == "h2"

    await wait_until(is_restored, timeout=30, what="the store has the alternates")
    restored = await world.reaches("a", ClaimStatus.ACTIVE)
    assert (restored.host, restored.alternates) == ("h1", ("h2",))


async def test_a_hook_does_not_get_the_alternates_of_an_earlier_claim(world: World, scheduler: Scheduler) -> None:
    """The journal keeps a list for up to a minute after the last placement that referred to it."""
    world.on("start", f"cat > {world.folder}/told.$$")
    await world.start([LARGE, SMALL], hook=world.hook)
    await scheduler.explain(Request({"VCPU": 1}))
    await scheduler.select(ASKED)
    await world.reaches("a", ClaimStatus.ACTIVE)
    await scheduler.claims.release("a")
    await world.reaches("a", ClaimStatus.ENDED)
    async with raw_client(world.url) as raw:
        await raw.delete(world.cell.keys.claim("a"))
    await scheduler.select(replace(ASKED, alternates=0))
    await world.reaches("a", ClaimStatus.ACTIVE)
    assert told(world.folder) == [("h1", []), ("h1", ["h2"])]


async def test_until_active_answers_with_the_host_whose_hook_succeeds(world: World, scheduler: Scheduler) -> None:
    await both_hosts(world, scheduler)
    async with asyncio.timeout(patience_s(40)):
        [found] = (await scheduler.select(Request({"VCPU": 2}, until="active", confirm_timeout_s=600))).selections
    assert (found.host, found.state) == ("h2", ClaimStatus.ACTIVE)


async def test_with_one_attempt_until_active_ends_with_what_the_hook_said(world: World, scheduler: Scheduler) -> None:
    await both_hosts(world, scheduler)
    async with asyncio.timeout(patience_s(40)):
        with pytest.raises(NotConfirmed, match="exit code 3; no disk"):
            await scheduler.select(Request({"VCPU": 2}, until="active", confirm_timeout_s=600, max_attempts=1))
    assert [call.split()[0] for call in world.calls()] == ["start", "stop"]


async def test_what_fails_the_double_check_runs_on_another_host(world: World) -> None:
    """The store shows a higher capacity for h2 than its agent finds there."""
    await world.start([LARGE, SMALL], hook=world.hook, collect_s=60)
    async with raw_client(world.url) as raw:
        await raw.hset(world.cell.keys.host("h2"), mapping={"capacity.VCPU": "100", "max.VCPU": "100"})
    async with Scheduler.connect(world.url, QUICK) as scheduler:
        [found] = (await scheduler.select(Request({"VCPU": 6}, claim_ids=("a",)))).selections
        assert found.host == "h2"
        assert (await world.reaches("a", ClaimStatus.ACTIVE)).host == "h1"
    assert [call.split()[0] for call in world.calls()] == ["start"]


async def test_what_no_agent_accepts_runs_on_another_host(world: World, scheduler: Scheduler) -> None:
    gone = await world.start([LARGE], "gone.sqlite", hook=world.hook)
    await world.start([SMALL], hook=world.hook)
    await scheduler.explain(Request({"VCPU": 1}))
    await world.stop(gone)
    [found] = (await scheduler.select(Request({"VCPU": 2}, claim_ids=("a",)))).selections
    assert found.host == "h1"
    async with raw_client(world.url) as raw:
        await make_due(raw, world.cell, "a")
    assert (await world.reaches("a", ClaimStatus.ACTIVE)).host == "h2"
    assert len(world.calls()) == 1
