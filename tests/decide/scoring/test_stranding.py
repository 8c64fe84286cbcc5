"""Scarce classes beside which nothing is left, on single hosts and in decisions, and what is learned about them."""

from random import Random

import pytest

from redsched.cache.columns import Columns
from redsched.decide.decider import Decider
from redsched.decide.scoring.stranding import PRIOR_PLACES, Scarce
from redsched.model import Group, Request
from redsched.model.workload import ScarceDemand, Workload
from redsched.settings import Settings
from tests.support.builders.columns import columns_of
from tests.support.builders.weighed import raw_of, weigher

GPUS = Settings(gpu_beside={"VCPU": 8.0})
OTHERS = Settings(scarce={"FPGA": {"VCPU": 4.0}, "CUSTOM_SSD_GB": {"MEMORY_MB": 2.0}}, spare_up_to=0)
"""For what is left beside scarce classes; which hosts are spared is in test_spared.py."""


def gpus(*left: int, vcpu: int = 64) -> dict[str, str]:
    """Return a host whose GPUs have this much left."""
    fields = {"capacity.VCPU": str(vcpu)}
    for number, rest in enumerate(left):
        slot = f"gpu{number}/CUSTOM_GPU_MILLI"
        fields |= {f"capacity.{slot}": "1000", f"claimed.{slot}": str(1000 - rest)}
    return fields


def having(**capacity: int) -> dict[str, str]:
    """Return a host with amounts of its own."""
    return {f"capacity.{name}": str(amount) for name, amount in capacity.items()}


def boards(number: int, **capacity: int) -> dict[str, str]:
    """Return a host with FPGAs, each in a pool, beside its own amounts."""
    return having(**capacity) | {f"capacity.board{one}/FPGA": "1" for one in range(number)}


def share(amount: int, vcpu: int = 1) -> Request:
    return Request({"VCPU": vcpu}, groups=(Group("0", {"CUSTOM_GPU_MILLI": amount}),))


def gpu_stranding(columns: Columns, request: Request, settings: Settings = GPUS) -> dict[str, float]:
    return raw_of(weigher("gpu_stranding", settings), columns, request)


def stranding(columns: Columns, request: Request, settings: Settings = OTHERS) -> dict[str, float]:
    return raw_of(weigher("stranding", settings), columns, request)


def test_a_request_without_gpus_strands_those_whose_cpus_it_takes() -> None:
    columns = columns_of(tight=gpus(1000, 1000, vcpu=16), ample=gpus(1000, 1000, vcpu=64), none={"capacity.VCPU": "64"})
    # 8 VCPU serve one GPU: it is stranded on the host that has none to spare.
    assert gpu_stranding(columns, Request({"VCPU": 8})) == {"ample": 0.5, "none": 0.5, "tight": 0.0}


def test_a_request_that_takes_few_cpus_with_its_gpu_frees_stranded_ones() -> None:
    columns = columns_of(short=gpus(1000, 1000, vcpu=8), ample=gpus(1000, 1000, vcpu=64))
    found = gpu_stranding(columns, share(1000, vcpu=4))
    # Before, one GPU was stranded; afterwards, half a GPU is, beside the 4 VCPU that are left.
    assert found == {"ample": 0.5, "short": 0.75}


def test_the_scarcest_class_decides() -> None:
    settings = Settings(gpu_beside={"VCPU": 8.0, "MEMORY_MB": 1000.0})
    columns = columns_of(h1=gpus(1000, 1000) | {"capacity.MEMORY_MB": "2000"})
    request = Request({"VCPU": 1, "MEMORY_MB": 1000})
    assert gpu_stranding(columns, request, settings) == {"h1": 0.0}


def test_a_class_that_a_host_lacks_strands_nothing_there() -> None:
    """Its requests go elsewhere, or take the class from a shared pool: no host is worse for it."""
    settings = Settings(gpu_beside={"VCPU": 8.0, "DISK_GB": 100.0})
    columns = columns_of(diskless=gpus(1000, vcpu=16), full=gpus(1000, vcpu=16) | having(DISK_GB=100))
    request = Request({"VCPU": 1, "DISK_GB": 100})
    assert gpu_stranding(columns, request, settings) == {"diskless": 0.5, "full": 0.0}
    assert gpu_stranding(columns, Request({"VCPU": 16}), settings) == {"diskless": 0.25, "full": 0.25}


def test_devices_in_pools_are_kept_usable_like_gpus() -> None:
    columns = columns_of(tight=boards(2, VCPU=8), ample=boards(2, VCPU=64), none=having(VCPU=8))
    # 4 VCPU serve one FPGA, which is what such a request can waste.
    assert stranding(columns, Request({"VCPU": 4})) == {"ample": 0.5, "none": 0.5, "tight": 0.0}
    assert stranding(columns, Request({"VCPU": 4, "FPGA": 1})) == {"ample": 0.5, "none": 0.5, "tight": 0.5}
    # With 8 VCPU, it takes those of a second FPGA, of two that it could waste.
    assert stranding(columns, Request({"VCPU": 8, "FPGA": 1}))["tight"] == 0.25


def test_a_plain_amount_is_kept_usable_as_well() -> None:
    columns = columns_of(tight=having(CUSTOM_SSD_GB=100, MEMORY_MB=200), ample=having(CUSTOM_SSD_GB=100, MEMORY_MB=900))
    assert stranding(columns, Request({"MEMORY_MB": 50})) == {"ample": 0.5, "tight": 0.0}
    # 100 of memory with 30 GB: 20 GB lack theirs afterwards, of 50 that it could waste.
    assert stranding(columns, Request({"MEMORY_MB": 100, "CUSTOM_SSD_GB": 30}))["tight"] == pytest.approx(0.3)


def test_several_scarce_classes_add_up_to_the_worst_of_one() -> None:
    both = columns_of(h1=boards(1, VCPU=4, CUSTOM_SSD_GB=100, MEMORY_MB=200))
    assert stranding(both, Request({"VCPU": 3, "MEMORY_MB": 1})) == {"h1": 0.0}
    # A quarter of what the request could strand of each.
    some = columns_of(h1=boards(1, VCPU=7, CUSTOM_SSD_GB=100, MEMORY_MB=230))
    assert stranding(some, Request({"VCPU": 4, "MEMORY_MB": 40})) == {"h1": 0.5 - (1 / 4 + 1 / 4) / 2}


def test_without_scarce_classes_all_hosts_are_equal() -> None:
    columns = columns_of(a=boards(1, VCPU=4), b=having(VCPU=4))
    assert stranding(columns, Request({"VCPU": 4}), Settings(spare_up_to=0)) == {"a": 0.0, "b": 0.0}


def test_a_decision_leaves_the_host_with_devices_to_requests_for_them() -> None:
    up = {"version": "1", "epoch": "1-a", "status": "enabled", "alive": "1"}
    columns = columns_of(board=boards(1, VCPU=5) | up, plain=having(VCPU=16) | up)
    policies = {"mine": {"pack": 1.0, "stranding": 2.0}}
    decider = Decider(columns, OTHERS.model_copy(update={"policies": policies}))

    def chosen(policy: str) -> str:
        decision = decider.decide(Request({"VCPU": 4}, policy=policy), Random(1))
        return decision.places[0].candidates[0].host

    assert (chosen("pack"), chosen("mine")) == ("board", "plain")


def test_the_workload_outweighs_the_settings_in_time() -> None:
    usual = Scarce("FPGA", {"VCPU": 8.0, "MEMORY_MB": 100.0})
    assert usual.of(Workload()).amounts == {"VCPU": 8.0, "MEMORY_MB": 100.0}
    asked = {"FPGA": 2 * PRIOR_PLACES, "VCPU": 8 * PRIOR_PLACES}  # by as many places as the settings count for
    learned = usual.of(Workload({}, {"FPGA": ScarceDemand(PRIOR_PLACES, asked)}))
    assert learned.amounts == {"VCPU": 6.0, "MEMORY_MB": 50.0}
    other = {"CUSTOM_SSD_GB": ScarceDemand(9.0, {"CUSTOM_SSD_GB": 9.0})}
    assert usual.of(Workload({}, other)).amounts["VCPU"] == 8.0
    edited_by_hand = {"FPGA": ScarceDemand(9.0, {})}
    assert usual.of(Workload({}, edited_by_hand)).amounts["VCPU"] == 8.0
    countless = {"FPGA": ScarceDemand(1e30, {"FPGA": 1e30, "VCPU": 1e30})}
    assert usual.of(Workload({}, countless)).amounts == {"VCPU": 1.0}


def test_scores_follow_what_was_asked_for() -> None:
    columns, one = columns_of(h1=boards(2, VCPU=8)), weigher("stranding", OTHERS)
    assert raw_of(one, columns, Request({"VCPU": 4})) == {"h1": 0.0}
    before = one.depends(columns)
    columns.workload = Workload({}, {"FPGA": ScarceDemand(1e9, {"FPGA": 1e9, "VCPU": 1e9})})
    assert one.depends(columns) != before
    assert raw_of(one, columns, Request({"VCPU": 4}))["h1"] == pytest.approx(0.5)
