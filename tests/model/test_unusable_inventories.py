"""An inventory of which nothing can ever be claimed, although it has something, says why."""

import pytest

from redsched.model import HostReport, Inventory, Pool
from redsched.model.hosts import warnings_of


@pytest.mark.parametrize(
    ("inventory", "why"),
    [
        (Inventory(8, reserved=9), "reserved 9 is above total 8"),
        (Inventory(8, min_unit=4, max_unit=2), "min_unit 4 is above max_unit 2"),
        (Inventory(8, min_unit=9), "the smallest amount by min_unit and step_size, 9, is above the 8 that there are"),
        (Inventory(8, reserved=2, step_size=7), "the smallest amount by min_unit and step_size, 7, is above the 6"),
        (Inventory(9, min_unit=5, max_unit=7, step_size=4), "min_unit and step_size, 8, is above max_unit 7"),
        (Inventory(8, reserved=6, allocation_ratio=0.4), "allocation_ratio 0.4 of 2 is less than 1"),
    ],
)
def test_an_inventory_says_why_nothing_of_it_can_be_claimed(inventory: Inventory, why: str) -> None:
    assert why in inventory.unusable


@pytest.mark.parametrize(
    "inventory",
    [
        Inventory(0),
        Inventory(0, reserved=512),
        Inventory(8, reserved=8),
        Inventory(8, min_unit=8),
        Inventory(9, min_unit=5, max_unit=8, step_size=4),
        Inventory(2, allocation_ratio=0.5),
    ],
)
def test_one_that_is_empty_or_kept_back_on_purpose_or_can_be_claimed_says_nothing(inventory: Inventory) -> None:
    assert inventory.unusable == ""


def test_a_report_has_those_of_its_pools_too() -> None:
    pools = {"gpu0": Pool({"CUSTOM_GPU_MILLI": Inventory(1000, min_unit=2000)})}
    report = HostReport("h1", {"VCPU": Inventory(8, reserved=9), "DISK_GB": Inventory(1)}, pools=pools)
    found = warnings_of(report.slots())
    assert [one.partition(":")[0] for one in found] == ["VCPU", "gpu0/CUSTOM_GPU_MILLI"]
    assert found[0] == "VCPU: reserved 9 is above total 8"
