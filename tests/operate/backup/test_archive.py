"""Importing an exported cell restores it; unreadable archives, and imports over data that must stay, are refused."""

import itertools
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from unittest.mock import AsyncMock

import pytest

from redsched.errors import ClaimState, InvalidRequest, StoreUnavailable
from redsched.model import (
    Aggregate,
    Candidate,
    ClaimStatus,
    EndReason,
    HostReport,
    HostStatus,
    Inventory,
    Pool,
    Quota,
    Request,
)
from redsched.operate.backup.archive import Archive, archive_lines, read
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.cell import CellStore
from redsched.store.codec.replies import Member
from tests.support.builders.cells import raw_client
from tests.support.builders.counted_claims import SEAT, given, group, pool
from tests.support.builders.placements import held_claim

QUIET = Settings(events_keep_s=0, check_s=0, pick_from=1)
FULL = HostReport(
    "h1",
    {"VCPU": Inventory(8, 1, 2.0, 1, 4, 1), "MEMORY_MB": Inventory(8192)},
    zone="az1",
    labels={"rack": "r1"},
    traits=frozenset({"HW_CPU_X86_AVX2"}),
    metrics={"cpu.percent": 1.5},
    external={"VCPU": 1},
    lease_s=3600,
    pools={
        "numa0": Pool({"PCPU": Inventory(4)}, traits=frozenset({"HW_NUMA_ROOT"})),
        "gpu0": Pool({"CUSTOM_GPU_MILLI": Inventory(1000)}, "numa0", frozenset({"CUSTOM_GPU_T4"})),
    },
)
SMALL = HostReport("h2", {"VCPU": Inventory(4)}, zone="az2", lease_s=3600)


@pytest.fixture
async def living(clean_store: str) -> AsyncIterator[Scheduler]:
    """Yield a scheduler over two hosts, one declared object of each kind, and claims in several states, one shelved."""
    async with Scheduler.connect(clean_store, QUIET) as opened:
        await opened.init()
        store = store_of(opened)
        for report in (FULL, SMALL):
            await opened.hosts.report(report)
        await group(store, count_by=("label:rack",))
        await pool(store)
        await store.declared.put_aggregate(Aggregate("ssd", {"disk": "nvme"}, frozenset({"h1"})))
        await store.declared.put_quota(Quota("web", {"VCPU": 100}))
        await given(store, Member("grouped", (Candidate("h1", {"VCPU": 1, SEAT: 2}),), "web"))
        for name in ("kept", "shelved", "gone"):
            await opened.select(Request({"VCPU": 1}, claim_ids=(name,), hosts=frozenset({"h1"}), project="ci"))
        async with raw_client(clean_store) as raw:
            await raw.hset(store.keys.claim("kept"), "alternates", "2")
        await store.texts.restore("alternates:kept", "h2 h1")
        claims = await store.claims.read(["kept", "shelved"])
        await store.claims.accept("h1", "kept", claims["kept"].token, 60)
        await store.claims.confirm("h1", "kept", claims["kept"].token)
        await store.claims.shelve("h1", "shelved", claims["shelved"].token)
        await opened.claims.release("gone")
        await opened.hosts.drain("h2")
        yield opened


def store_of(scheduler: Scheduler) -> CellStore:
    return scheduler.cells.named("c1").store


def content(archive: Archive) -> dict[str, Any]:
    """Return the archive's lines by kind and name, without its head and the deadlines, which an import renews."""
    lines = [json.loads(line) for line in list(archive_lines(archive))[1:]]
    for line in lines:
        line.get("fields", {}).pop("expires_at_ms", None)
    return {f"{line['kind']} {line.get('name', line.get('id', line.get('project', '')))}": line for line in lines}


async def wiped(scheduler: Scheduler, url: str) -> None:
    async with raw_client(url) as raw:
        await raw.flushall()
    await scheduler.claims.list()  # The list call brings the replica up to the empty store.


async def test_what_is_exported_is_what_was_reported_and_declared(living: Scheduler) -> None:
    archive = await living.export()
    assert archive.head.consistent
    assert archive.hosts == (FULL, SMALL)
    assert archive.statuses == {"h1": HostStatus.ENABLED, "h2": HostStatus.DRAINING}
    assert archive.aggregates == (Aggregate("ssd", {"disk": "nvme"}, frozenset({"h1"})),)
    assert [one.project for one in archive.quotas] == ["web"]
    assert archive.claims.keys() == {"grouped", "kept", "shelved"}
    digest = archive.claims["kept"]["digest"]
    assert Request.from_canonical(archive.requests[digest]).project == "ci"
    assert archive.alternates == {"kept": "h2 h1"}


async def test_lines_are_read_back_as_they_were_written(living: Scheduler) -> None:
    archive = await living.export()
    assert content(read(archive_lines(archive))) == content(archive)


async def test_a_cell_comes_back_into_an_empty_store(living: Scheduler, clean_store: str) -> None:
    """Everything is restored; hosts are closed until they attest, and their journals are merged with the archive."""
    before = await living.export()
    old = (await store_of(living).claims.read(["kept"]))["kept"]
    await wiped(living, clean_store)
    found = await living.import_(read(archive_lines(before)))
    assert (found.counts["hosts"], found.counts["claims"], found.notes) == (2, 3, ())
    assert content(await living.export()) == content(before)
    store = store_of(living)
    clock = await store.tick()
    assert not clock.settled
    assert clock.epoch > before.head.epoch
    assert (await living.audit()).problems == ()
    for name in ("h1", "h2"):
        held = [held_claim("kept", old.token, ClaimStatus.ACTIVE, old.slots)] if name == "h1" else []
        assert (await store.hosts.attest(name, clock.epoch, None, held)).outcome == "OK"
    assert (await store.tick()).settled
    claims = await store.claims.read(["grouped", "kept", "shelved"])
    assert {name: one.state for name, one in claims.items()} == {
        "grouped": ClaimStatus.CLAIMED,
        "kept": ClaimStatus.ACTIVE,
        "shelved": ClaimStatus.ENDED,
    }
    assert claims["shelved"].end_reason is EndReason.SHELVED
    assert list(await store.claims.shelved_ids()) == ["shelved"]
    assert (await living.audit()).problems == ()


async def test_only_an_empty_cell_takes_a_whole_one(living: Scheduler) -> None:
    archive = await living.export()
    before = content(archive)
    with pytest.raises(ClaimState, match="--declared"):
        await living.import_(archive)
    assert content(await living.export()) == before


async def test_what_people_declared_comes_back_into_a_living_cell(living: Scheduler, clean_store: str) -> None:
    """The cell was wiped, and at first only one of its two hosts has reported again."""
    before = await living.export()
    await wiped(living, clean_store)
    store = store_of(living)
    await living.hosts.report(SMALL)
    found = await living.import_(before, declared_only=True)
    assert found.counts["statuses"] == 1
    assert len(found.notes) == 1
    assert "h1" in found.notes[0]
    await living.hosts.report(FULL)
    assert (await living.import_(before, declared_only=True)).notes == ()
    after = content(await living.export())
    declared = {name: line for name, line in content(before).items() if not name.startswith(("claim", "request"))}
    assert after == declared
    assert (await store.claims.read(["kept"])) == {}


async def test_a_host_that_attested_meanwhile_keeps_its_word(living: Scheduler, clean_store: str) -> None:
    archive = await living.export()
    await wiped(living, clean_store)
    await living.hosts.report(FULL)
    store = store_of(living)
    answer = await store.repair.restore({"kept": archive.claims["kept"]})
    assert answer.outcome == "IN_USE"
    assert await store.claims.read(["kept"]) == {}


def spoilt(given_lines: list[str], number: int, /, **changed: Any) -> list[str]:
    """Return the lines with fields of line `number` replaced; None removes a field."""
    said = {**json.loads(given_lines[number]), **changed}
    line = json.dumps({name: value for name, value in said.items() if value is not None})
    return [*given_lines[:number], line, *given_lines[number + 1 :]]


async def test_what_cannot_be_read_is_refused_by_its_line(living: Scheduler) -> None:
    lines = list(archive_lines(await living.export()))
    at = {json.loads(line)["kind"]: number for number, line in enumerate(lines)}
    claim = json.loads(lines[at["claim"]])["fields"]
    bad: list[tuple[list[str], int, str]] = [
        ([*lines[:2], "{", *lines[3:]], 3, "JSON"),
        ([*lines[:2], "[]", *lines[3:]], 3, "object"),
        (spoilt(lines, 1, kind="flavour"), 2, "flavour"),
        (lines[1:], 1, "head"),
        ([*lines, lines[0]], len(lines) + 1, "head"),
        ([*lines, lines[1]], len(lines) + 1, "twice"),
        (spoilt(lines, 0, format=99), 1, "99"),
        (spoilt(lines, 0, seq="x"), 1, "seq"),
        (spoilt(lines, at["host"], status="asleep"), at["host"] + 1, "asleep"),
        (spoilt(lines, at["host"], inventories={"VCPU": {"total": -1}}), at["host"] + 1, "total"),
        (spoilt(lines, at["host"], colour="red"), at["host"] + 1, "colour"),
        (spoilt(lines, at["server-group"], policy="near"), at["server-group"] + 1, "near"),
        (spoilt(lines, at["claim"], fields={**claim, "amount.VCPU": "many"}), at["claim"] + 1, "many"),
        (spoilt(lines, at["claim"], fields={**claim, "state": "asleep"}), at["claim"] + 1, "asleep"),
        (spoilt(lines, at["claim"], fields={**claim, "token": "x"}), at["claim"] + 1, "token"),
        (spoilt(lines, at["claim"], fields={}), at["claim"] + 1, "host"),
        (spoilt(lines, at["claim"], fields=None), at["claim"] + 1, "fields"),
        (spoilt(lines, at["claim"], alternates="h2"), at["claim"] + 1, "a list of hosts"),
        (spoilt(lines, at["claim"], alternates=[5]), at["claim"] + 1, "a list of hosts"),
        (spoilt(lines, at["claim"], alternates=["h 2"]), at["claim"] + 1, "h 2"),
        (spoilt(lines, at["request"], digest="0" * 32), at["request"] + 1, "digest"),
    ]
    for spoilt_lines, number, word in bad:
        with pytest.raises(InvalidRequest) as refused:
            read(spoilt_lines)
        assert refused.value.detail.startswith(f"line {number}: "), (word, refused.value.detail)
        assert word in refused.value.detail


async def test_a_file_that_was_cut_off_is_not_taken_for_a_whole_one(living: Scheduler) -> None:
    lines = list(archive_lines(await living.export()))
    with pytest.raises(InvalidRequest, match="truncated"):
        read(lines[:-1])
    with pytest.raises(InvalidRequest, match="empty"):
        read([])
    without_host = [line for line in lines if '"name": "h1"' not in line]
    without_host = spoilt(without_host, 0, lines=len(without_host) - 1)
    with pytest.raises(InvalidRequest, match="h1"):
        read(without_host)


async def test_a_cell_that_goes_back_while_it_is_read_is_not_exported(
    living: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new epoch may count as far as the one before: then equal numbers do not say that nothing has changed."""
    cell = living.cells.named("c1").store
    present = await cell.tick()
    epochs = (replace(present, epoch=f"{number}-a") for number in itertools.count(1))
    monkeypatch.setattr(CellStore, "tick", AsyncMock(side_effect=epochs))
    with pytest.raises(StoreUnavailable, match="while it was read: export it again"):
        await living.export("c1")
