"""The workload of a cell in the store: sums over all schedulers, which change in steps and fade."""

from typing import Any

from redsched.store.cell import CellStore
from redsched.store.commands.workload import MOST, STEP, parsed


async def test_counts_become_sums_step_by_step(cell: CellStore, raw: Any) -> None:
    first = await cell.workload.add(STEP - 1, {250: 3, 1000: 5}, {"VCPU": 40})
    assert (first.shares, first.beside) == ({}, {})
    second = await cell.workload.add(1, {250: 1}, {"MEMORY_MB": 7})
    assert (second.shares, second.beside) == ({250: 4, 1000: 5}, {"VCPU": 40, "MEMORY_MB": 7})
    assert await raw.hgetall(cell.keys.workload) == {
        "requests": str(STEP), "share.250": "4", "share.1000": "5", "beside.VCPU": "40", "beside.MEMORY_MB": "7",
    }  # fmt: skip
    read = await cell.workload.read()
    assert (read.shares, read.beside) == (second.shares, second.beside)


async def test_a_scheduler_with_nothing_to_add_learns_the_sums(cell: CellStore) -> None:
    await cell.workload.add(STEP, {500: 8}, {})
    await cell.workload.add(1, {500: 1}, {})
    assert (await cell.workload.read()).shares == {500: 8}


async def test_old_requests_fade(cell: CellStore, raw: Any) -> None:
    await cell.workload.add(MOST, {250: 1, 1000: 100}, {"VCPU": 3})
    after = await cell.workload.add(STEP, {500: 11}, {})
    assert (after.shares, after.beside) == ({1000: 50, 500: 5}, {"VCPU": 1})
    assert await raw.hget(cell.keys.workload, "requests") == str((MOST + STEP) // 2)
    assert not await raw.hexists(cell.keys.workload, "share.250")


async def test_sums_that_were_edited_by_hand_are_left_out(cell: CellStore, raw: Any) -> None:
    await raw.hset(cell.keys.workload, mapping={"share.many": "1", "share.2000": "1", "share.5": "x", "share.7": "2"})
    assert (await cell.workload.read()).shares == {7: 2}


def test_no_workload_is_no_sums() -> None:
    assert (parsed([]).shares, parsed([]).gpu_milli) == ({}, 0)
