"""An agent is killed as by a power cut: its service comes up elsewhere once the machine is proved to be off."""

import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from redsched.model import ClaimStatus, HostReport, Inventory, OnExit, Request
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.store import Store
from tests.cli.parts import running
from tests.support.builders.cells import lapse, raw_client
from tests.support.processes.lone_agent import LoneAgent
from tests.support.waiting import wait_until

HOSTS = ("h1", "h2")


def host(name: str) -> HostReport:
    return HostReport(name, {"VCPU": Inventory(8)}, lease_s=3600)


@pytest.fixture
async def agents(clean_store: str, tmp_path: Path) -> AsyncIterator[dict[str, LoneAgent]]:
    """Run an agent for each host in a process of its own."""
    async with Store.connect(clean_store) as store:
        await store.cell("c1").init()
    started = {name: LoneAgent(Settings(), clean_store, host(name), tmp_path / f"{name}.sqlite") for name in HOSTS}
    for one in started.values():
        one.wait_until_ready()
    yield started
    for one in started.values():
        one.kill()


async def placed(scheduler: Scheduler) -> str:
    """Start a service, and return its host."""
    request = Request({"VCPU": 1}, claim_ids=("web",), on_exit=OnExit.REPLACE, until="active")
    (selection,) = (await scheduler.select(request)).selections
    assert selection.host is not None
    return selection.host


async def is_down(raw: Any, scheduler: Scheduler, name: str) -> None:
    """End the lease of a host whose agent is gone. A last heartbeat may still have been on its way."""
    store = scheduler.cells.named("c1").store

    async def has_lapsed() -> bool:
        await lapse(raw, store, name)
        await store.hosts.mark_down([name])
        return bool(await raw.hget(store.keys.host(name), "alive") == "0")

    await wait_until(has_lapsed, what=f"{name} is down")


@pytest.mark.parametrize("is_off", [True, False])
async def test_a_service_moves_once_its_machine_is_off_and_not_before(
    clean_store: str, agents: dict[str, LoneAgent], tmp_path: Path, is_off: bool
) -> None:
    fence = tmp_path / "fence"
    fence.write_text(f'#!/bin/sh\necho "$1" >> {tmp_path}/calls\nexit {0 if is_off else 1}\n')
    fence.chmod(0o755)
    settings = Settings(fence=str(fence), write_off_after_s=0.001, tick_s=0.1)
    async with Scheduler.connect(clean_store, settings) as scheduler, raw_client(clean_store) as raw:
        first = await placed(scheduler)
        agents[first].kill()
        await is_down(raw, scheduler, first)
        [other] = {*HOSTS} - {first}

        async def has_ended() -> bool:
            claim = await scheduler.claims.get("web")
            if is_off:
                return (claim.host, claim.state) == (other, ClaimStatus.ACTIVE)
            events = await scheduler.events.newest()
            return "fence-failed" in {one.kind for one in events}

        await wait_until(has_ended, timeout=30, what="the command has had its effect")
        assert (tmp_path / "calls").read_text().split() == [first]
        if not is_off:
            claim = await scheduler.claims.get("web")
            assert (claim.host, claim.state) == (first, ClaimStatus.ACTIVE)


async def test_what_a_scheduler_proved_that_is_dead_writes_nothing_off_and_another_one_fences_again(
    clean_store: str, agents: dict[str, LoneAgent], tmp_path: Path
) -> None:
    """The worker of an API is killed while the command runs. The command goes on, and nobody sees that it succeeds."""
    fence = tmp_path / "fence"
    fence.write_text(
        f"#!/bin/sh\ncd {tmp_path}; echo $PPID >> workers\n"
        "[ $(wc -l < workers) = 1 ] && { while [ ! -e go ]; do sleep 0.05; done; touch gone; exit 0; }\n"
        "while [ ! -e end ]; do sleep 0.05; done\n"
    )
    fence.chmod(0o755)
    environment = {"REDSCHED_FENCE": str(fence), "REDSCHED_WRITE_OFF_AFTER_S": "0.001"}
    async with Scheduler.connect(clean_store, Settings()) as scheduler, raw_client(clean_store) as raw:
        first = await placed(scheduler)
        agents[first].kill()
        await is_down(raw, scheduler, first)
        with running("api", "--port", "0", environment={**environment, "REDSCHED_REDIS_URL": clean_store}):
            workers = tmp_path / "workers"

            async def called(times: int) -> bool:
                return workers.exists() and len(workers.read_text().split()) == times

            await wait_until(lambda: called(1), timeout=30, what="the command runs")
            os.kill(int(workers.read_text()), signal.SIGKILL)
            (tmp_path / "go").touch()
            await wait_until((tmp_path / "gone").exists, what="the first command has succeeded")
            await wait_until(lambda: called(2), timeout=30, what="another worker calls the command")
            assert await raw.hget(scheduler.cells.named("c1").store.keys.host(first), "epoch") != "lost"
            (tmp_path / "end").touch()

            async def has_moved() -> bool:
                return (await scheduler.claims.get("web")).host != first

            await wait_until(has_moved, timeout=30, what="the claim has moved")
        assert len(set(workers.read_text().split())) == 2
