"""An agent process: several hosts, one real journal, and the machines' hook at a URL of the suite."""

import asyncio
import resource
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import structlog

from redsched.agent.run import run
from redsched.errors import RedschedError
from redsched.model import HostReport, Inventory, Pool
from redsched.settings import Settings
from tests.faults.suite.processes.speech import Ear, go_by, say, shift_clock
from tests.support.store_clock import go_by_stores

VCPU, MEMORY_MB, GPU_MILLI, GPUS = 4, 4096, 500, 2
ZONES = 3
ROOM_LEFT = 8192
"""Smaller than any journal that has been written to."""


def hosts_of(names: Sequence[str], lease_s: int, cell: str, zones_on: int = 0, lost_gpus: int = 0) -> list[HostReport]:
    """Return the hosts of those names. They are equal except for their zones and the GPUs of every second one.

    `zones_on`: how many zones further than usual each is. The first `lost_gpus` of each have fallen off the bus, and
    the driver counts the others from 0.
    """
    inventories = {"VCPU": Inventory(VCPU), "MEMORY_MB": Inventory(MEMORY_MB)}
    zones = [f"az{(number + zones_on) % ZONES}" for number, _ in enumerate(names)]
    return [
        HostReport(
            name,
            inventories,
            pools=_gpus(name, lost_gpus) if number % 2 else {},
            cell=cell,
            zone=zone,
            lease_s=lease_s,
        )
        for number, (name, zone) in enumerate(zip(names, zones, strict=True))
    ]


def _gpus(host: str, lost: int) -> dict[str, Pool]:
    return {
        f"gpu{number}": Pool({"CUSTOM_GPU_MILLI": Inventory(GPU_MILLI)}, device=f"GPU-{host}-{card}")
        for number, card in enumerate(range(lost, GPUS))
    }


def fill_disk() -> None:
    """Stop all writes to the journal. This limits the process: no disk has to be filled, and no root is needed.

    A write beyond the first bytes of a file fails with EFBIG, which sqlite reports like a full disk.
    """
    resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM_LEFT, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


async def main() -> None:
    """Serve until the input or the agent ends."""
    ear = Ear()
    await ear.open()
    words = await ear.hear()
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))
    shift_clock(words["clock_shift_s"])
    go_by_stores(pytest.MonkeyPatch())
    go_by(words["ways"])
    settings = Settings(**words["settings"])
    journal = Path(words["journal"])
    if words["disk_is_full"]:
        fill_disk()
    ready = asyncio.Event()
    cell, changes = settings.cells[0], (words["zones_on"], words["lost_gpus"])
    hosts = hosts_of(words["hosts"], settings.lease_s, cell, *changes)
    agent = asyncio.create_task(run(settings, words["url"], hosts, journal, ready))
    agent.add_done_callback(_ended)
    telling = asyncio.create_task(_tell(ready))
    while True:
        word = asyncio.create_task(ear.hear())
        await asyncio.wait([word, agent], return_when=asyncio.FIRST_COMPLETED)
        if agent.done():
            telling.cancel()
            return
        if word.result()["do"] == "fill disk":
            fill_disk()
            say("full")


async def _tell(ready: asyncio.Event) -> None:
    await ready.wait()
    say("ready")


def _ended(task: "asyncio.Task[None]") -> None:
    error = None if task.cancelled() else task.exception()
    if isinstance(error, RedschedError):
        say("ended", problem=error.problem, detail=error.detail)
    else:
        say("defect", error=repr(error))


if __name__ == "__main__":
    asyncio.run(main())
