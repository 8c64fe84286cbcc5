"""The summary of a cell in the store: it is replaced as a whole, and never written into another epoch."""

from typing import Any

from redsched.store.cell import CellStore
from redsched.store.codec.outcomes import Outcome
from redsched.store.codec.summary import CellSummary, Room
from tests.support.builders.cells import new_epoch, nothing_written, open_host


async def test_a_summary_is_replaced_with_all_its_fields(cell: CellStore, raw: Any) -> None:
    epoch = (await cell.tick()).epoch
    rooms = {(zone, "VCPU"): Room(9, 5, {4: 2}, {}) for zone in ("", "az.1")}
    rooms["az.1", "MEMORY_MB"] = Room(90, 50, {32: 1}, {1: 50, 4: 20})
    traits = {f"CUSTOM_{number}": number for number in range(1, 1500)}
    full = CellSummary(
        epoch, 7, "5-0", 0, 3, dict.fromkeys(("down", "unattested", "disabled", "draining"), 0), rooms,
        {"CUSTOM_SEAT": 4}, traits, {"ssd": 2}, frozenset({"traits"}),
    )  # fmt: skip
    for one in (full, CellSummary(epoch, 8)):
        assert (await cell.summary.write(one)).outcome is Outcome.OK
        _, found = await cell.summary.read()
        assert found is not None
        assert found.at_ms > 0
        assert found.fields() == one.fields() | {"at_ms": str(found.at_ms)}
    assert await raw.pttl(cell.keys.summary) > 0


async def test_a_summary_of_an_earlier_epoch_is_neither_written_nor_read(cell: CellStore, raw: Any) -> None:
    await open_host(cell)
    former = (await cell.tick()).epoch
    await cell.summary.write(CellSummary(former))
    assert (await cell.summary.read())[1]
    await new_epoch(cell)
    clock, found = await cell.summary.read()
    assert (clock is not None and clock.epoch > former, found) == (True, None)
    async with nothing_written(raw):
        assert (await cell.summary.write(CellSummary(former))).outcome is Outcome.WRONG_EPOCH


async def test_a_summary_that_was_edited_by_hand_says_nothing(cell: CellStore, raw: Any) -> None:
    await cell.summary.write(CellSummary((await cell.tick()).epoch))
    await raw.hset(cell.keys.summary, "hosts", "many")
    assert (await cell.summary.read())[1] is None
