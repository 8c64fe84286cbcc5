"""What stays unused within GPUs, what that means for hosts, and the workload that decides it."""

import pytest

from redsched.cache.columns import Columns
from redsched.decide.scoring.gpu import GpuDemands, unusable_part
from redsched.decide.scoring.stranding import PRIOR_PLACES, Scarce
from redsched.model import Group, Request
from redsched.model.workload import ScarceDemand, Workload
from redsched.settings import Settings
from tests.support.builders.columns import columns_of
from tests.support.builders.weighed import raw_of, weigher

HALVES = Settings(gpu_shares={500: 1.0, 1000: 1.0}, gpu_beside={"VCPU": 8.0})
GPU = "CUSTOM_GPU_MILLI"
UNUSED = unusable_part(HALVES.gpu_shares)
OFTEN_WHOLE = Workload({1000: 10_000.0}, {GPU: ScarceDemand(10_000.0, {GPU: 1e7, "VCPU": 80_000.0})})


def gpus(*left: int, vcpu: int = 64) -> dict[str, str]:
    """Return a host whose GPUs have this much left."""
    fields = {"capacity.VCPU": str(vcpu)}
    for number, rest in enumerate(left):
        slot = f"gpu{number}/CUSTOM_GPU_MILLI"
        fields |= {f"capacity.{slot}": "1000", f"claimed.{slot}": str(1000 - rest)}
    return fields


def share(*amounts: int, vcpu: int = 1) -> Request:
    return Request({"VCPU": vcpu}, groups=tuple(Group(str(n), {"CUSTOM_GPU_MILLI": a}) for n, a in enumerate(amounts)))


def raw(columns: Columns, request: Request, name: str = "gpu_fragmentation") -> dict[str, float]:
    return raw_of(weigher(name, HALVES), columns, request)


def test_what_no_request_can_take_stays_unused() -> None:
    # Less than the smallest share is lost for sure, and a half is used up soon.
    assert UNUSED[499] == 499
    assert UNUSED[500] == pytest.approx(500 / 2**16)
    # A whole GPU is used up by a whole request, or by two halves.
    assert UNUSED[1000] < 1.0
    assert UNUSED[999] == pytest.approx(499, abs=1)
    # Beyond a whole GPU, it is what is above it.
    assert UNUSED[1499] == pytest.approx(UNUSED[499] + UNUSED[1000])


def test_hosts_are_ordered_by_what_they_lose() -> None:
    columns = columns_of(breaks=gpus(1000, 1000), uses=gpus(300, 1000))
    found = raw(columns, share(300))
    assert found["uses"] > 0.5 > found["breaks"]


def test_each_part_goes_to_the_gpu_where_it_loses_least() -> None:
    grown = (UNUSED[0] - UNUSED[400]) + (UNUSED[600] - UNUSED[1000])
    assert raw(columns_of(h1=gpus(1000, 400)), share(400, 400)) == {"h1": pytest.approx(0.5 - grown / 2000)}


def test_unnumbered_shares_are_taken_by_whole_gpus() -> None:
    columns = columns_of(h1=gpus(1000, 1000, 1000))
    grown = 2 * (UNUSED[0] - UNUSED[1000]) + UNUSED[500] - UNUSED[1000]
    assert raw(columns, Request({"CUSTOM_GPU_MILLI": 2500})) == {"h1": pytest.approx(0.5 - grown / 5000)}


def test_a_pool_of_several_gpus_loses_what_is_above_whole_ones() -> None:
    columns = columns_of(h1={"capacity.VCPU": "64", "capacity.gpu0/CUSTOM_GPU_MILLI": "8000"})
    assert raw(columns, share(700)) == {"h1": pytest.approx(0.5 - (UNUSED[300] - UNUSED[1000]) / 2000)}


def test_requests_without_shares_and_shares_that_fit_no_gpu_lose_nothing() -> None:
    columns = columns_of(h1=gpus(300), h2={"capacity.VCPU": "64"})
    assert raw(columns, Request({"VCPU": 1})) == {"h1": 0.5, "h2": 0.5}
    assert raw(columns, share(600)) == {"h1": 0.5, "h2": 0.5}
    assert raw(columns, share(4000)) == {"h1": 0.5, "h2": 0.5}


def test_both_weighers_count_in_gpus_of_the_same_request() -> None:
    """So a policy's multipliers compare a GPU that is lost to small shares with one that is stranded."""
    columns = columns_of(h1=gpus(1000, 1000, vcpu=16))
    request = share(600, vcpu=16)  # the other GPU, and the rest of this one, are stranded
    assert raw(columns, request)["h1"] == pytest.approx(0.5 - (UNUSED[400] - UNUSED[1000]) / 4000)
    assert raw(columns, request, "gpu_stranding") == {"h1": 0.5 - 1400 / 4000}


def test_the_settings_count_as_some_requests_beside_the_real_ones() -> None:
    columns, demands = columns_of(h1=gpus(1000)), GpuDemands({500: 1.0}, Scarce(GPU, {"VCPU": 8.0}, 1000))
    assert demands.of(columns).beside.amounts == {"VCPU": 8.0}
    # Half as many shares again were asked for, all of them whole GPUs.
    columns.workload = Workload({1000: PRIOR_PLACES / 2})
    assert demands.of(columns).unusable[500] == pytest.approx(500 * (1 / 3) ** 16)


def test_scores_follow_the_workload() -> None:
    columns, one = columns_of(h1=gpus(1000)), weigher("gpu_fragmentation", HALVES)
    before, depended = raw_of(one, columns, share(500)), one.depends(columns)
    columns.workload = OFTEN_WHOLE
    assert one.depends(columns) != depended
    # A half is worth little now, so breaking a whole GPU costs more.
    assert raw_of(one, columns, share(500))["h1"] < before["h1"]
