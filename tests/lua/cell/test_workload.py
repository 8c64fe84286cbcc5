"""The workload of a cell in the store: sums over all schedulers, which change in steps and fade."""

from typing import Any

from redsched.model.workload import ScarceDemand, Workload
from redsched.store.cell import CellStore
from redsched.store.commands.workload import MOST, STEP, parsed


async def test_counts_become_sums_step_by_step(cell: CellStore, raw: Any) -> None:
    boards = ScarceDemand(8, {"FPGA": 9, "VCPU": 40})
    first = await cell.workload.add(STEP - 1, Workload({250: 3, 1000: 5}, {"FPGA": boards}))
    assert first.same_as(Workload())
    second = await cell.workload.add(1, Workload({250: 1}, {"FPGA": ScarceDemand(1, {"FPGA": 1, "MEMORY_MB": 7})}))
    amounts = {"FPGA": 10, "VCPU": 40, "MEMORY_MB": 7}
    assert second.same_as(Workload({250: 4, 1000: 5}, {"FPGA": ScarceDemand(9, amounts)}))
    assert await raw.hgetall(cell.keys.workload) == {
        "requests": str(STEP), "share.250": "4", "share.1000": "5", "places.FPGA": "9",
        "beside.FPGA.FPGA": "10", "beside.FPGA.VCPU": "40", "beside.FPGA.MEMORY_MB": "7",
    }  # fmt: skip
    assert (await cell.workload.read()).same_as(second)


async def test_a_scheduler_with_nothing_to_add_learns_the_sums(cell: CellStore) -> None:
    await cell.workload.add(STEP, Workload({500: 8}))
    await cell.workload.add(1, Workload({500: 1}))
    assert (await cell.workload.read()).shares == {500: 8}


async def test_old_requests_fade(cell: CellStore, raw: Any) -> None:
    await cell.workload.add(MOST, Workload({250: 1, 1000: 100}, {"FPGA": ScarceDemand(5, {"VCPU": 3})}))
    after = await cell.workload.add(STEP, Workload({500: 11}))
    assert after.same_as(Workload({1000: 50, 500: 5}, {"FPGA": ScarceDemand(2, {"VCPU": 1})}))
    assert await raw.hget(cell.keys.workload, "requests") == str((MOST + STEP) // 2)
    assert not await raw.hexists(cell.keys.workload, "share.250")


async def test_sums_that_were_edited_by_hand_are_left_out(cell: CellStore, raw: Any) -> None:
    await raw.hset(cell.keys.workload, mapping={"share.many": "1", "share.2000": "1", "share.5": "x", "share.7": "2"})
    assert (await cell.workload.read()).shares == {7: 2}


def test_no_workload_is_no_sums() -> None:
    assert parsed([]).same_as(Workload())
