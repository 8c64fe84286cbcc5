"""The journal: what it calls durable survives a crash, and it never issues a number twice."""

import asyncio
import contextlib
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from redsched.agent.collectors.base import Named
from redsched.agent.journal import journal as journal_module
from redsched.agent.journal.file import JournalBroken
from redsched.agent.journal.journal import BLOCK, REMEMBER_MS, Journal, open_journal
from redsched.agent.journal.schema import SET_META, TABLES, JournalEntry, to_row
from redsched.errors import OtherAgent
from redsched.model import ClaimStatus
from redsched.origin import Origin
from redsched.store.codec.replies import EndedPlacement
from tests.agent.conftest import held_work
from tests.support.clocks import Clocks

E1, E2 = "1790000000000-aaaaaaaa", "1790000000001-bbbbbbbb"
WORK = held_work(
    "c1.a",
    f"{E1}.7",
    {"VCPU": 2, "MEMORY_MB": 4096},
    {"VCPU": 1, "MEMORY_MB": 4096},
    placed=f"{E1}.5",
    root=f"{E1}.3",
    state=ClaimStatus.STARTING,
    is_running=True,
    project="web",
    consumer="x",
    digest="d" * 32,
    named=Named("vm", "a.slice", {17: 1.25}),
    group="db",
    gang="c1.first",
    before={"VCPU": 2, "MEMORY_MB": 2048},
    moves={"host": "h9", "token": f"{E1}.3"},
)


def placing(claim_id: str, number: int = 7) -> JournalEntry:
    return held_work(claim_id, f"{E1}.{number}", {"VCPU": 1})


async def reopened(path: Path, act: Callable[[Journal], Any]) -> Journal:
    """Open the journal, act on it, close it, open it again."""
    first = open_journal(path)
    result = act(first)
    if asyncio.iscoroutine(result):
        await result
    await first.close()
    return open_journal(path)


async def test_what_was_written_is_there_again(tmp_path: Path) -> None:
    def act(journal: Journal) -> None:
        journal.write_held("h1", WORK)
        journal.write_attested("h1", E1)
        journal.write_external("h1", {"MEMORY_MB": 64})
        journal.write_left_epoch("h2", E1)

    journal = await reopened(tmp_path / "deep" / "j.sqlite", act)
    page = journal.pages["h1"]
    assert page.held == {WORK.placed: WORK}
    assert (page.attested_epoch, page.left_epoch, page.external) == (E1, "", {"MEMORY_MB": 64})
    assert (journal.pages["h2"].left_epoch, journal.pages["h2"].attested_epoch) == (E1, "")
    await journal.close()


async def test_a_change_replaces_and_forgetting_removes(tmp_path: Path) -> None:
    changed = held_work(WORK.id, f"{E1}.8", {"VCPU": 1}, placed=WORK.placed)

    def act(journal: Journal) -> None:
        journal.write_held("h1", WORK)
        journal.write_held("h1", changed)
        journal.write_held("h2", WORK)
        journal.write_forgotten("h2", WORK.placed)

    journal = await reopened(tmp_path / "j.sqlite", act)
    assert journal.pages["h1"].held == {WORK.placed: changed}
    assert journal.pages["h2"].held == {}
    assert await journal.ended("h2") == []
    await journal.close()


async def test_a_host_holds_two_placements_of_one_claim(tmp_path: Path) -> None:
    """A claim that moves to other pools of the host has two: each has its own entry, and its own end."""
    second = held_work(WORK.id, f"{E1}.9", {"numa1/VCPU": 2}, root=WORK.root, state=ClaimStatus.STARTING)

    def act(journal: Journal) -> None:
        journal.write_held("h1", WORK)
        journal.write_held("h1", second)

    journal = await reopened(tmp_path / "j.sqlite", act)
    assert journal.pages["h1"].held == {WORK.placed: WORK, second.placed: second}
    journal.write_ended("h1", second)
    assert journal.pages["h1"].held == {WORK.placed: WORK}
    journal.write_ended("h1", WORK)
    assert {one.placed for one in await journal.ended("h1")} == {second.placed, WORK.placed}
    assert journal.ended_token("h1", WORK.id) == second.token, "the newest, whichever ended last"
    await journal.close()


async def test_texts_are_kept_for_as_long_as_a_placement_refers_to_them(tmp_path: Path) -> None:
    work = replace(WORK, record={**WORK.record, "alternates": "1"})
    texts, other = {f"request:{WORK.digest}", f"alternates:{WORK.id}"}, {"request:another", "alternates:another"}

    def act(journal: Journal) -> None:
        journal.write_held("h1", work)
        journal.write_held("h2", placing("c1.b"))
        for name in texts | other:
            journal.write_text(name, f"text of {name}")

    journal = await reopened(tmp_path / "j.sqlite", act)
    assert journal.texts == {name: f"text of {name}" for name in texts | other}
    journal.prune()
    assert journal.texts == {name: f"text of {name}" for name in texts}
    await journal.close()
    journal = open_journal(tmp_path / "j.sqlite")
    assert journal.texts == {name: f"text of {name}" for name in texts}
    await journal.close()


async def test_an_ended_placement_leaves_a_tombstone(tmp_path: Path) -> None:
    def act(journal: Journal) -> None:
        journal.write_held("h1", WORK)
        journal.write_ended("h1", WORK, "released")

    journal = await reopened(tmp_path / "j.sqlite", act)
    assert journal.pages["h1"].held == {}
    [ended] = await journal.ended("h1")
    assert ended == EndedPlacement(WORK.id, WORK.token, WORK.placed, "released", False, ended.ended_ago_ms)
    assert ended.ended_ago_ms is not None
    assert await journal.ended("h2") == []
    await journal.close()


@pytest.mark.parametrize(
    ("work", "was_active"),
    [
        (replace(WORK, state=ClaimStatus.ACTIVE), True),
        (replace(WORK, state=ClaimStatus.ENDING, was_active=True), True),
        (replace(WORK, state=ClaimStatus.ENDING), False),
    ],
)
async def test_what_is_ending_and_its_tombstone_say_whether_it_had_been_active(
    tmp_path: Path, work: JournalEntry, was_active: bool
) -> None:
    path = tmp_path / "j.sqlite"
    journal = await reopened(path, lambda journal: journal.write_held("h1", work))
    assert journal.pages["h1"].held == {work.placed: work}
    await journal.close()
    journal = await reopened(path, lambda journal: journal.write_ended("h1", work))
    assert [one.was_active for one in await journal.ended("h1")] == [was_active]
    await journal.close()


async def test_a_read_sees_what_was_written_before_it(tmp_path: Path) -> None:
    journal = open_journal(tmp_path / "j.sqlite")
    for number in range(20):
        journal.write_ended("h1", placing(f"a{number}", number))
        assert len(await journal.ended("h1")) == number + 1
    await journal.close()


async def test_tombstones_stay_until_they_are_old_and_their_host_has_attested_since(tmp_path: Path) -> None:
    clocks = Clocks()
    journal = open_journal(tmp_path / "j.sqlite", clocks.read)
    journal.write_attested("h1", E1)
    journal.write_ended("h1", placing("old", 1))
    clocks.wait(REMEMBER_MS + 1)
    journal.prune()
    assert [one.id for one in await journal.ended("h1")] == ["old"], "no attestation has told it yet"
    journal.write_left_epoch("h1", E1)
    journal.prune()
    assert [one.id for one in await journal.ended("h1")] == ["old"], "the new epoch has not been told yet"
    journal.write_ended("h1", placing("attested", 2))
    journal.write_attested("h1", E2)
    journal.write_ended("h1", placing("new", 3))
    journal.prune()
    assert [one.id for one in await journal.ended("h1")] == ["attested", "new"]
    clocks.wait(REMEMBER_MS)
    journal.prune()
    assert [one.id for one in await journal.ended("h1")] == ["attested", "new"], "neither is old enough"
    clocks.wait(1)
    journal.prune()
    assert [one.id for one in await journal.ended("h1")] == ["new"]
    await journal.close()


async def test_tombstones_have_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_module, "MAX_TOMBSTONES", 3)
    clocks = Clocks()
    journal = open_journal(tmp_path / "j.sqlite", clocks.read)
    for number in range(6):
        journal.write_ended("h1", placing(f"a{number}", number))
        clocks.wait(1)
    journal.prune()
    assert [one.id for one in await journal.ended("h1")] == ["a3", "a4", "a5"]
    await journal.close()


async def test_numbers_grow_over_restarts_and_blocks(tmp_path: Path) -> None:
    journal = open_journal(tmp_path / "j.sqlite")
    first = [await journal.next_number() for _ in range(BLOCK + 5)]
    identity = journal.id
    await journal.close()
    journal = open_journal(tmp_path / "j.sqlite")
    assert journal.id == identity
    assert first == sorted(set(first))
    assert await journal.next_number() > first[-1]
    await journal.close()


async def test_no_number_is_given_out_before_its_block_is_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, events = open_journal(tmp_path / "j.sqlite"), list[str]()
    transaction = journal._transaction

    def noted(statements: list[Any]) -> None:
        transaction(statements)
        events.append("durable")

    monkeypatch.setattr(journal, "_transaction", noted)
    for _ in range(BLOCK):
        await journal.next_number()
    assert events == [], "the first block was reserved when the journal was opened"
    await journal.next_number()
    assert events == ["durable"]
    await journal.close()


async def test_numbers_asked_for_together_differ(tmp_path: Path) -> None:
    journal = open_journal(tmp_path / "j.sqlite")
    numbers = await asyncio.gather(*(journal.next_number() for _ in range(3 * BLOCK)))
    assert len(set(numbers)) == 3 * BLOCK
    await journal.close()


async def test_writes_of_many_hosts_share_transactions(tmp_path: Path) -> None:
    journal = open_journal(tmp_path / "j.sqlite")
    transactions = 0

    def count(statement: str) -> None:
        nonlocal transactions
        transactions += statement.startswith("COMMIT")

    journal._connection.set_trace_callback(count)
    await asyncio.gather(*(_write_one(journal, number) for number in range(1000)))
    assert 1 <= transactions <= 5
    await journal.close()


async def _write_one(journal: Journal, number: int) -> None:
    await journal.write_held(f"h{number}", WORK)


async def test_one_waiter_that_is_cancelled_does_not_disturb_the_others(tmp_path: Path) -> None:
    journal = open_journal(tmp_path / "j.sqlite")
    impatient = asyncio.ensure_future(_write_one(journal, 1))
    patient = asyncio.ensure_future(_write_one(journal, 2))
    await asyncio.sleep(0)
    impatient.cancel()
    await patient
    with pytest.raises(asyncio.CancelledError):
        await impatient
    await journal.close()


WRITER = """
import asyncio, pathlib, sys
from redsched.agent.journal.journal import open_journal
from redsched.agent.journal.schema import JournalEntry

async def write():
    journal = open_journal(pathlib.Path(sys.argv[1]))
    for number in range(10**9):
        report = await journal.next_number()
        await journal.write_held("h1", JournalEntry(f"a{number}", f"t{number}", "t", "t", {"amount.VCPU": str(number)}))
        print(number, report, flush=True)

asyncio.run(write())
"""


async def test_a_writer_that_is_killed_has_lost_nothing_that_it_called_durable(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    ceilings = [0]
    for _ in range(3):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220 - its lines are all there is to wait for
        assert writer.stdout is not None
        for _ in range(50):
            writer.stdout.readline()
        os.kill(writer.pid, signal.SIGKILL)
        said = writer.communicate()[0].splitlines()
        number, report = map(int, said[-1].split()) if said and len(said[-1].split()) == 2 else (49, 0)
        journal = open_journal(path)
        assert [journal.pages["h1"].held[f"t{one}"].amounts for one in range(number + 1)] == [
            {"VCPU": one} for one in range(number + 1)
        ]
        ceilings.append(await journal.next_number())
        assert ceilings[-1] > max(report, ceilings[-2])
        await journal.close()


async def test_a_close_that_is_cancelled_closes_the_file(tmp_path: Path) -> None:
    """Also if it is cancelled repeatedly, as a task is that does not end at once because the disk is slow."""
    journal, disk = open_journal(tmp_path / "j.sqlite"), threading.Event()
    writing = asyncio.get_running_loop().run_in_executor(journal._thread, disk.wait)
    closing = asyncio.create_task(journal.close())
    for _ in range(3):
        await asyncio.sleep(0)
        closing.cancel()
    await asyncio.sleep(0)
    disk.set()
    await writing
    with pytest.raises(asyncio.CancelledError):
        await closing
    await open_journal(tmp_path / "j.sqlite").close()


async def test_two_processes_cannot_share_a_journal(tmp_path: Path) -> None:
    journal = open_journal(tmp_path / "j.sqlite")
    with pytest.raises(OtherAgent, match="in use by another agent"):
        open_journal(tmp_path / "j.sqlite")
    await journal.close()


@pytest.mark.parametrize("content", [b"this is no database at all, but some text" * 50, b"SQLite format 3\x00" * 300])
async def test_a_file_that_is_no_journal_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "j.sqlite"
    path.write_bytes(content)
    with pytest.raises(JournalBroken, match="move it away"):
        open_journal(path)
    assert path.read_bytes() == content


async def test_a_place_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(JournalBroken, match="REDSCHED_JOURNAL"):
        open_journal(tmp_path / "file" / "j.sqlite")


async def test_a_journal_of_another_schema_is_refused(tmp_path: Path) -> None:
    await (await reopened(tmp_path / "j.sqlite", lambda _: None)).close()
    with sqlite3.connect(tmp_path / "j.sqlite") as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE name = 'schema'")
    connection.close()
    with pytest.raises(JournalBroken, match="schema 99"):
        open_journal(tmp_path / "j.sqlite")


SCHEMA_3 = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE claim (host TEXT, id TEXT, token TEXT NOT NULL, PRIMARY KEY (host, id)) WITHOUT ROWID;
INSERT INTO meta VALUES ('schema', '3'), ('id', 'j7'), ('ceiling', '3000');
INSERT INTO claim VALUES ('h1', 'a', '1790000000000-aaaaaaaa.7');
"""


async def test_a_journal_of_an_older_schema_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "j.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA_3)
    with pytest.raises(JournalBroken, match=r"has schema 3, .* only schema 8: start the release that wrote it"):
        open_journal(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        assert names == {"meta", "claim"}
        assert connection.execute("SELECT id FROM claim").fetchall() == [("a",)]


async def test_a_journal_of_the_schema_before_is_upgraded(tmp_path: Path) -> None:
    path, work = tmp_path / "j.sqlite", held_work("a", f"{E1}.12", {"VCPU": 1})
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.executescript(TABLES.replace(" origin TEXT NOT NULL DEFAULT '',", ""))
        connection.execute(SET_META, ("schema", "7"))
        row = to_row("h1", work)[:-1]
        connection.execute(f"INSERT INTO placement VALUES ({', '.join('?' * len(row))})", row)
        connection.commit()
    caused = replace(work, origin=Origin("ci", "r1"))
    for held in (work, caused):
        journal = open_journal(path)
        assert journal.pages["h1"].held == {f"{E1}.12": held}
        await journal.write_held("h1", caused)
        await journal.close()


async def test_a_placement_has_ended_when_it_has_by_this_token_or_a_later_one(tmp_path: Path) -> None:
    """A resize changes the token. Other placements of the claim on that host are unaffected, older or newer."""
    resized = held_work("a", f"{E1}.12", {"VCPU": 1}, placed=f"{E1}.10")
    journal = await reopened(tmp_path / "j.sqlite", lambda journal: journal.write_ended("h1", resized))
    tokens = (f"{E1}.10", f"{E1}.12", f"{E1}.13", f"{E2}.1")
    assert [journal.has_ended("h1", f"{E1}.10", token) for token in tokens] == [True, True, False, False]
    assert not journal.has_ended("h1", f"{E1}.9", f"{E1}.9")
    assert not journal.has_ended("h2", f"{E1}.10", f"{E1}.10")
    assert journal.ended_token("h1", "a") == f"{E1}.12"
    await journal.close()


async def test_a_journal_that_cannot_be_written_any_more_says_so_to_everyone(tmp_path: Path) -> None:
    journal = open_journal(tmp_path / "j.sqlite")
    journal._connection.execute("PRAGMA query_only = 1")
    first, second = journal.write_held("h1", WORK), journal.write_held("h2", WORK)
    for write in (first, second):
        with pytest.raises(JournalBroken, match="cannot be written"):
            await write
    assert journal.failed.is_set()
    with pytest.raises(JournalBroken):
        journal.write_held("h3", WORK)
    await journal.close()


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_a_journal_is_for_its_user_alone(tmp_path: Path) -> None:
    """It names projects and work, and whoever writes it decides what the host restores."""
    path = tmp_path / "state" / "redsched" / "h1.sqlite"
    before = os.umask(0)
    try:
        journal = await reopened(path, lambda first: first.write_attested("h1", E1))
        assert {mode_of(file) for file in path.parent.iterdir()} == {0o600}
        assert len(list(path.parent.iterdir())) > 1, "the WAL is there too"
        assert mode_of(path.parent) == 0o700
    finally:
        os.umask(before)
    await journal.close()


async def test_a_journal_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    """An earlier release left such files, in such a folder; one that a kill left behind has a WAL, too."""
    path = tmp_path / "redsched" / "h1.sqlite"
    journal = await reopened(path, lambda first: first.write_attested("h1", E1))
    await journal.close()
    files = [path, *(path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))]
    for file in files:
        file.touch()
        file.chmod(0o644)
    path.parent.chmod(0o755)
    journal = open_journal(path)
    assert {mode_of(file) for file in path.parent.iterdir()} == {0o600}
    assert mode_of(path.parent) == 0o700
    assert journal.pages["h1"].attested_epoch == E1
    await journal.close()


async def test_a_folder_of_others_keeps_its_mode(tmp_path: Path) -> None:
    """REDSCHED_JOURNAL may name a file in /tmp."""
    tmp_path.chmod(0o755)  # noqa: ASYNC240 - nothing else runs
    await open_journal(tmp_path / "h1.sqlite").close()
    assert (mode_of(tmp_path), mode_of(tmp_path / "h1.sqlite")) == (0o755, 0o600)
