"""External usage: what is reported of it, and which changes are worth a report."""

import dataclasses

import pytest

from redsched.agent.collectors.base import Observation
from redsched.agent.external import METRIC_STEP, is_worth_sending, remember, with_external
from redsched.model import HostReport, Inventory, Pool

REPORT = HostReport(
    "h1",
    {"VCPU": Inventory(8), "MEMORY_MB": Inventory(4096), "DISK_GB": Inventory(100)},
    external={"VCPU": 2},
    metrics={"cpu.percent": 10.0},
)
ALL = frozenset(REPORT.inventories)


def test_what_can_be_trusted_is_remembered_and_the_rest_stays_as_it_was() -> None:
    look = Observation(REPORT, {"MEMORY_MB": 640, "DISK_GB": 50}, frozenset({"MEMORY_MB"}))
    assert remember(look, {"DISK_GB": 7}) == {"MEMORY_MB": 640, "DISK_GB": 7}


def test_external_is_the_larger_of_declared_and_measured() -> None:
    assert with_external(REPORT, {"VCPU": 1, "MEMORY_MB": 64}).external == {"VCPU": 2, "MEMORY_MB": 64}
    assert with_external(REPORT, {"VCPU": 3}).external == {"VCPU": 3}


def test_what_is_not_in_the_inventories_is_not_reported() -> None:
    assert "PCPU" not in with_external(REPORT, {"PCPU": 3}).external


def test_pools_have_external_usage_of_their_own() -> None:
    pools = {"numa0": Pool({"MEMORY_MB": Inventory(4096)}), "gpu0": Pool({"CUSTOM_GPU_MILLI": Inventory(1000)})}
    report = dataclasses.replace(REPORT, pools=pools, external={"gpu0/CUSTOM_GPU_MILLI": 50})
    look = Observation(report, {"numa0/MEMORY_MB": 65, "gpu0/CUSTOM_GPU_MILLI": 7}, frozenset(report.slots()))
    known = remember(look, {})
    assert known["numa0/MEMORY_MB"] == 128, "in steps of 64, as the host's own"
    assert with_external(report, known).external == {"numa0/MEMORY_MB": 128, "gpu0/CUSTOM_GPU_MILLI": 50}
    assert with_external(REPORT, known).external == {"VCPU": 2}, "a pool that is gone has none"


@pytest.mark.parametrize(
    ("before", "measured", "after"),
    [(0, 1, 64), (64, 64, 64), (64, 65, 128), (128, 64, 128), (128, 1, 128), (192, 64, 64), (64, 0, 64), (128, 0, 0)],
)
def test_memory_goes_up_by_steps_and_down_by_two(before: int, measured: int, after: int) -> None:
    look = Observation(REPORT, {"MEMORY_MB": measured}, ALL)
    assert remember(look, {"MEMORY_MB": before})["MEMORY_MB"] == after


def test_a_metric_that_jitters_is_no_change_and_one_that_moved_is() -> None:
    near = dataclasses.replace(REPORT, metrics={"cpu.percent": 10.0 + METRIC_STEP - 0.1})
    far = dataclasses.replace(REPORT, metrics={"cpu.percent": 10.0 + METRIC_STEP})
    assert not is_worth_sending(near, REPORT)
    assert is_worth_sending(far, REPORT)
    assert is_worth_sending(dataclasses.replace(REPORT, metrics={}), REPORT)


def test_everything_else_is_worth_sending_however_small() -> None:
    assert not is_worth_sending(REPORT, REPORT)
    assert is_worth_sending(dataclasses.replace(REPORT, external={"VCPU": 3}), REPORT)
    assert is_worth_sending(dataclasses.replace(REPORT, labels={"rack": "r2"}), REPORT)
