"""An agent does not start while its journal has claims of hosts that it does not represent."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from redsched.agent.journal.journal import open_journal
from redsched.agent.run import run
from redsched.errors import InvalidRequest, Unavailable
from redsched.model import ClaimStatus, HostReport, Inventory
from redsched.settings import Settings
from tests.agent.journal.test_journal import placing

NOWHERE = "redis://127.0.0.1:1"
"""No store: an agent that may start is refused there."""
SETTINGS = Settings(cells=("c1", "c2"))


async def journal_of(path: Path, host: str, claims: int = 1, cell: str = "c1") -> None:
    """Write a journal of an agent whose host has this many claims."""
    journal = open_journal(path)
    journal.represent({host: cell})
    for number in range(claims):
        journal.write_held(host, replace(placing(f"job-{number}", number + 7), state=ClaimStatus.ACTIVE))
    await journal.close()


def start(path: Path | None, *hosts: str, cell: str = "c1") -> "asyncio.Task[None]":
    reports = [HostReport(host, {"VCPU": Inventory(8)}, cell=cell) for host in hosts]
    return asyncio.create_task(run(SETTINGS, NOWHERE, reports, path))


async def test_a_renamed_host_is_refused_and_told_how_to_go_on(tmp_path: Path) -> None:
    path = tmp_path / "agent.sqlite"
    await journal_of(path, "node-a")
    with pytest.raises(InvalidRequest) as refused:
        await start(path, "node-b")
    assert str(refused.value) == (
        f"the journal {path} has 1 claim of host node-a, which this agent does not represent: job-0. To keep them, "
        "start it as host node-a. To end them, do so, and `redsched host drain node-a`. If their work no longer runs "
        "on this machine, move the journal away, and `redsched host write-off node-a`"
    )


async def test_of_many_claims_some_are_named(tmp_path: Path) -> None:
    await journal_of(tmp_path / "j.sqlite", "node-a", claims=7)
    with pytest.raises(InvalidRequest, match=r"has 7 claims of .*: job-0, job-1, job-2, job-3, job-4 and 2 more\. To"):
        await start(tmp_path / "j.sqlite", "node-b", "node-c")


async def test_a_host_whose_cell_was_changed_is_refused(tmp_path: Path) -> None:
    """Its claims would be attested in both cells."""
    path = tmp_path / "j.sqlite"
    await journal_of(path, "node-a")
    with pytest.raises(InvalidRequest, match="has 1 claim of host node-a in cell c1, which this agent does not"):
        await start(path, "node-a", cell="c2")
    with pytest.raises(Unavailable):
        await start(path, "node-a")


async def test_a_host_without_claims_may_have_another_name_or_cell(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    await journal_of(path, "node-a", claims=0)
    for host, cell in (("node-a", "c2"), ("node-b", "c1")):
        with pytest.raises(Unavailable):
            await start(path, host, cell=cell)


async def test_a_host_takes_nothing_of_its_former_cell_along(tmp_path: Path) -> None:
    """A higher epoch of that cell would start a new one in the next cell, and an ended claim could end one there."""
    path = tmp_path / "j.sqlite"
    journal = open_journal(path)
    journal.represent({"node-a": "c1", "node-b": "c1"})
    for host in ("node-a", "node-b"):
        work = placing("job", 7)
        await journal.write_held(host, work)
        await journal.write_left_epoch(host, "8-a")
        await journal.write_attested(host, "9-a")
        await journal.write_ended(host, work, "released")
    await journal.close()
    for _ in range(2):
        journal = open_journal(path)
        journal.represent({"node-a": "c2", "node-b": "c1"})
        moved, stayed = journal.pages["node-a"], journal.pages["node-b"]
        assert (moved.left_epoch, moved.attested_epoch, await journal.ended("node-a")) == ("", "", [])
        assert (journal.ended_token("node-a", "job"), journal.has_ended("node-a", work.placed, work.token)) == (
            "",
            False,
        )
        assert (stayed.left_epoch, stayed.attested_epoch) == ("8-a", "9-a")
        assert len(await journal.ended("node-b")) == 1
        await journal.close()


async def test_journals_beside_the_own_one_that_have_claims_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By default a journal is named after its host, so that a renamed agent begins with another one."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    folder = tmp_path / "redsched"
    folder.mkdir()
    await journal_of(folder / "node-a.sqlite", "node-a", claims=2)
    (folder / "else.sqlite").write_bytes(b"not a journal")
    await journal_of(folder / "node-c.sqlite", "node-c")
    used = open_journal(folder / "node-c.sqlite")
    with capture_logs() as logs, pytest.raises(Unavailable):
        await start(None, "node-b")
    await used.close()
    named = [
        (one["host"], one["placements"]) for one in logs if one["event"].startswith("a journal that no agent uses")
    ]
    assert named == [("node-a", 2)]
