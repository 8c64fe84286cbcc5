"""`redsched host list` on a terminal: a column for each class, free/total, as many as fit."""

import asyncio

import pytest

from redsched.cli.verbs.host_list import listing_of
from redsched.model import HostReport, Inventory, Pool, Request
from redsched.scheduler import Scheduler
from tests.cli.conftest import Redsched
from tests.cli.terminals import lines_of
from tests.support.builders.cells import usual_settings
from tests.support.builders.reservations import reserved

GPUS = {f"gpu{number}": Pool({"CUSTOM_GPU_MILLI": Inventory(1000)}) for number in range(4)}
BOX = HostReport(
    "box-1",
    {"VCPU": Inventory(64), "MEMORY_MB": Inventory(262_144), "DISK_GB": Inventory(2000), "CUSTOM_SEAT": Inventory(2)},
    pools=GPUS,
    lease_s=3600,
)


@pytest.fixture
def fleet(redsched: Redsched, store: str) -> str:
    """Return the URL of a store with h1, h2, and a box with four GPUs, of which one and a half are claimed."""

    async def fill() -> None:
        async with Scheduler.connect(store, usual_settings()) as scheduler:
            await scheduler.hosts.report(BOX)
            for milli in (1000, 500):
                await scheduler.select(Request({"VCPU": 1, "CUSTOM_GPU_MILLI": milli}))

    asyncio.run(fill())
    return store


def cells(lines: list[str], host: str) -> dict[str, str]:
    """Return the cells of a host's row by the heads."""
    [row] = [line for line in lines if line.startswith(f"{host} ")]
    return dict(zip(lines[0].split(), row.split(), strict=True))


def test_a_terminal_has_a_column_for_each_class(fleet: str) -> None:
    """GPUs come first, in whole ones; of a class that a host does not have, there is nothing."""
    lines = lines_of(fleet, "host", "list", columns=160)
    heads = lines[0].split()
    assert heads[heads.index("CLAIMS") + 1 :] == ["GPU", "VCPU", "MEMORY_MB", "SEAT", "DISK_GB"]
    box = cells(lines, "box-1")
    assert (box["GPU"], box["VCPU"], box["SEAT"], box["DISK_GB"]) == ("2.5/4", "62/64", "2/2", "2000/2000")
    assert cells(lines, "h2")["VCPU"] == "4/4"
    assert cells(lines, "h2")["GPU"] == "-"


def test_what_is_kept_for_a_request_that_waits_has_a_column_if_there_is_any(fleet: str, redsched: Redsched) -> None:
    assert "KEPT" not in lines_of(fleet, "host", "list", columns=160)[0]
    with reserved(fleet, "box-1", {"gpu0/CUSTOM_GPU_MILLI": 1000, "gpu1/CUSTOM_GPU_MILLI": 500, "VCPU": 8}):
        lines = lines_of(fleet, "host", "list", columns=160)
        wide = [line.split("\t") for line in redsched("host", "list", "-o", "wide").check().output.splitlines()]
    [row] = [line for line in lines if line.startswith("box-1 ")]
    assert " GPU=1.5 VCPU=8 " in f"{row} "
    at = wide[0].index("KEPT")
    assert {row[0]: row[at] for row in wide[1:]} == {"box-1": "GPU=1.5 VCPU=8", "h1": "-", "h2": "-"}


def test_columns_without_room_are_named(fleet: str) -> None:
    lines = lines_of(fleet, "host", "list", columns=44)
    assert "GPU" in lines[0]
    assert "DISK_GB" not in lines[0]
    assert any("no room for" in line and "DISK_GB" in line for line in lines)


def test_programs_get_all_classes_in_one_column(fleet: str, redsched: Redsched) -> None:
    heads, *rows = (line.split("\t") for line in redsched("host", "list").check().output.splitlines())
    assert heads[-1] == "FREE"
    [box] = [row for row in rows if row[0] == "box-1"]
    assert "VCPU=62" in box[-1]
    assert "GPU" not in heads


def test_without_hosts_there_are_no_classes() -> None:
    assert [one.head for one in listing_of([], wide=True).columns if "FREE" in one.head] == ["FREE"]
