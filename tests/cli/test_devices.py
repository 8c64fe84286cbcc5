"""Devices on the command line: `host show` names them, and `agent --forget-device` forgets one."""

import asyncio
from pathlib import Path

import pytest

from redsched.agent.journal.journal import open_journal
from redsched.model import HostReport, Inventory, Pool
from redsched.scheduler import Scheduler
from tests.cli.conftest import Redsched
from tests.cli.parts import run
from tests.support.builders.cells import usual_settings


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Return the path of a journal in which pool gpu0 of host sim-00001 is a device."""

    async def write() -> None:
        journal = open_journal(tmp_path / "journal")
        await journal.write_devices("sim-00001", {"gpu0": "GPU-aaaa"})
        await journal.close()

    asyncio.run(write())
    return tmp_path / "journal"


def test_a_device_is_forgotten_without_a_store(journal: Path) -> None:
    """It starts no agent: that would need the store, and run until it is ended."""
    environment = {"REDSCHED_JOURNAL": str(journal)}
    words = ("agent", "--fleet", "1", "--forget-device", "gpu0")
    assert run(*words, environment=environment).check().output == "pool gpu0 is not device GPU-aaaa any more\n"
    run(*words, environment=environment).check_failed(2, "no device of pool 'gpu0'", "sim-00001: none")


def test_the_table_of_pools_has_their_devices(redsched: Redsched, store: str) -> None:
    pools = {"gpu0": Pool({"CUSTOM_GPU_MILLI": Inventory(1000)}, device="GPU-aaaa"), "gpu1": Pool(device="GPU-bbbb")}

    async def report() -> None:
        async with Scheduler.connect(store, usual_settings()) as scheduler:
            await scheduler.hosts.report(HostReport("box", {"VCPU": Inventory(4)}, pools=pools))

    asyncio.run(report())
    lines = redsched("host", "show", "box").check().output.splitlines()
    table = [line.split("\t") for line in lines[lines.index("POOL\tPARENT\tTRAITS\tDEVICE") :][:3]]
    assert [(row[0], row[-1]) for row in table[1:]] == [("gpu0", "GPU-aaaa"), ("gpu1", "GPU-bbbb")]
