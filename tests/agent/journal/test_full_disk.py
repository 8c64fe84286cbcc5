"""A journal on a full disk: the agent exits with an error and accepts nothing, and a later one continues."""

import asyncio
import os
import resource
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from redsched.agent.journal.file import JournalBroken
from redsched.agent.journal.journal import open_journal
from redsched.model import ClaimStatus
from tests.agent.conftest import World, held_work
from tests.support.waiting import patience_s, wait_until

FLEET = "hosts: [{name: h1, lease_s: 30, inventories: {VCPU: {total: 8}, MEMORY_MB: {total: 8192}}}]"


@pytest.fixture
def processes() -> Iterator[list["subprocess.Popen[str]"]]:
    """Yield a list for processes of `redsched agent`, which are killed after the test."""
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.communicate()


def environment(world: World) -> Mapping[str, str]:
    settings = {
        "REDIS_URL": world.url,
        "JOURNAL": str(world.folder / "journal.sqlite"),
        "HOOK": world.hook,
        "POLL_S": "0.01",
        "LEASE_S": "30",
    }
    return os.environ | {f"REDSCHED_{name}": value for name, value in settings.items()}


async def start(world: World, processes: list["subprocess.Popen[str]"]) -> "subprocess.Popen[str]":
    (world.folder / "fleet.yaml").write_text(FLEET)
    command = [sys.executable, "-m", "redsched.cli", "agent", "--fleet", str(world.folder / "fleet.yaml")]
    process = await asyncio.to_thread(
        lambda: subprocess.Popen(command, env=environment(world), text=True, stderr=subprocess.PIPE)
    )
    processes.append(process)

    async def is_open() -> bool:
        host = await world.host()
        return bool(host) and host.get("epoch") == (await world.cell.tick()).epoch

    await wait_until(is_open, timeout=120)
    return process


async def test_an_agent_whose_disk_is_full_ends_and_a_later_one_continues(
    world: World, processes: list["subprocess.Popen[str]"]
) -> None:
    process = await start(world, processes)
    await world.place("before")
    await world.reaches("before", ClaimStatus.ACTIVE)
    fill_up(process.pid, world.folder)

    await world.place("after", lease_s=600)
    _, said = await asyncio.to_thread(lambda: process.communicate(timeout=patience_s(40)))
    assert process.returncode == 5
    assert "cannot be written" in said
    assert "see to its disk and start the agent again" in said
    claim = await world.claim("after")
    assert claim is not None
    assert claim.state is ClaimStatus.CLAIMED, "the store was told nothing that the journal could not keep"
    assert [call.split()[1] for call in world.calls()] == ["before"]

    await start(world, processes)
    await world.reaches("after", ClaimStatus.ACTIVE)
    assert [call.split()[:2] for call in world.calls()] == [["start", "before"], ["start", "after"]]


def fill_up(pid: int, folder: Path) -> None:
    """Limit all files of this process to the size of the journal's, so that its next write fails."""
    size = (folder / "journal.sqlite-wal").stat().st_size
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, size))


async def test_what_a_full_disk_did_not_take_is_not_called_durable(tmp_path: Path) -> None:
    journal = open_journal(tmp_path / "j.sqlite")
    pages = journal._connection.execute("PRAGMA page_count").fetchone()[0]
    journal._connection.execute(f"PRAGMA max_page_count = {pages}")
    kept = 0

    async def write_on() -> None:
        nonlocal kept
        while True:
            await journal.write_held("h1", held_work(f"a{kept}", f"t{kept}", {"VCPU": 1}))
            kept += 1

    with pytest.raises(JournalBroken, match="database or disk is full; see to its disk"):
        await write_on()
    assert journal.failed.is_set()
    await journal.close()
    journal = open_journal(tmp_path / "j.sqlite")
    assert journal.pages["h1"].held.keys() == {f"t{number}" for number in range(kept)}, "whole, and nothing else"
    await journal.write_held("h1", held_work("later", "t", {"VCPU": 1}))
    await journal.close()


async def test_at_the_start_too_it_is_the_disk_that_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error does not ask to move the journal away, which would not help."""
    await open_journal(tmp_path / "j.sqlite").close()
    connect = sqlite3.connect

    def on_a_full_disk(*arguments: object, **named: object) -> sqlite3.Connection:
        connection = connect(*arguments, **named)  # type: ignore[call-overload]
        connection.execute("PRAGMA query_only = 1")
        return connection  # type: ignore[no-any-return]

    monkeypatch.setattr(sqlite3, "connect", on_a_full_disk)
    with pytest.raises(JournalBroken, match=r"cannot be written: .*; see to its disk"):
        open_journal(tmp_path / "j.sqlite")
