"""Headroom weighers: their values over pools, parts of requests, and shared pools."""

import pytest

from redsched.cache.columns import Columns
from redsched.decide.scoring.demand import demand, room
from redsched.model import CpuPolicy, Group, Numa, NumaCell, PciDevices, Request
from tests.support.builders.columns import columns_of
from tests.support.builders.weighed import raw_of, weigher

REQUEST = Request({"VCPU": 2, "MEMORY_MB": 100})


def halves() -> Columns:
    return columns_of(
        h1={"capacity.VCPU": "8", "claimed.VCPU": "1", "external.VCPU": "1", "capacity.MEMORY_MB": "400"},
        h2={"capacity.VCPU": "2", "capacity.MEMORY_MB": "100"},
    )


def test_spread_is_the_mean_free_fraction_after_placing_and_pack_its_opposite() -> None:
    assert raw_of(weigher("spread"), halves(), REQUEST) == {"h1": (4 / 8 + 300 / 400) / 2, "h2": 0.0}
    assert raw_of(weigher("pack"), halves(), REQUEST) == {"h1": 1 - 0.625, "h2": 1.0}


def test_best_fit_takes_an_uneven_rest_for_worse_than_an_even_one_that_pack_takes_for_equal() -> None:
    columns = columns_of(
        even={"capacity.VCPU": "10", "capacity.MEMORY_MB": "1000", "claimed.VCPU": "3", "claimed.MEMORY_MB": "400"},
        uneven={"capacity.VCPU": "10", "capacity.MEMORY_MB": "1000", "claimed.VCPU": "8", "claimed.MEMORY_MB": "0"},
    )
    request = Request({"VCPU": 2, "MEMORY_MB": 100})
    assert raw_of(weigher("pack"), columns, request) == pytest.approx({"even": 0.5, "uneven": 0.55})
    found = raw_of(weigher("best_fit"), columns, request)
    assert found == pytest.approx({"even": 0.5, "uneven": 1 - (0.81 / 2) ** 0.5})


def test_dot_product_prefers_much_free_of_what_is_asked_for_most() -> None:
    columns = columns_of(
        cpus={"capacity.VCPU": "10", "capacity.MEMORY_MB": "1000", "claimed.MEMORY_MB": "800"},
        memory={"capacity.VCPU": "10", "capacity.MEMORY_MB": "1000", "claimed.VCPU": "5"},
    )
    found = raw_of(weigher("dot_product"), columns, Request({"VCPU": 4, "MEMORY_MB": 100}))
    assert found == pytest.approx({"cpus": (0.4 * 1 + 0.1 * 0.2) / 2, "memory": (0.4 * 0.5 + 0.1 * 1) / 2})


def test_balance_is_evenness_of_what_is_used_after_placing() -> None:
    full = {"capacity.VCPU": "10", "capacity.MEMORY_MB": "1000"}
    columns = columns_of(
        even=full | {"claimed.VCPU": "4", "claimed.MEMORY_MB": "500"},
        uneven=full | {"claimed.VCPU": "9", "claimed.MEMORY_MB": "0"},
        worse=full | {"capacity.DISK_GB": "10", "claimed.VCPU": "9"},
    )
    found = raw_of(weigher("balance"), columns, Request({"VCPU": 1}))
    # Used fractions: 0.5 and 0.5; 1 and 0; 1, 0 and 0.
    assert found == pytest.approx({"even": 1.0, "uneven": 0.0, "worse": 1 - 2 * (2 / 9) ** 0.5})


def test_demand_adds_up_all_parts_of_a_request() -> None:
    request = Request(
        {"VCPU": 1, "DISK_GB": 10},
        groups=(Group("a", {"CUSTOM_GPU_MILLI": 500}), Group("b", {"CUSTOM_GPU_MILLI": 250, "VCPU": 1})),
        numa=Numa((NumaCell(4, 1024, 1), NumaCell(2, 1024, 2)), CpuPolicy.MIXED, 2048),
        pci=(PciDevices("CUSTOM_PCI_8086_1572", 2),),
    )
    assert demand(request) == {
        "VCPU": 1 + 1 + 3,
        "DISK_GB": 10,
        "CUSTOM_GPU_MILLI": 750,
        "PCPU": 3,
        "CUSTOM_HUGE_PAGES_2048KB": 1024,
        "CUSTOM_PCI_8086_1572": 2,
    }


NODES = {
    "capacity.numa0/PCPU": "8",
    "claimed.numa0/PCPU": "4",
    "capacity.numa1/PCPU": "8",
    "external.numa1/PCPU": "1",
    "capacity.numa0/MEMORY_MB": "1000",
    "capacity.numa1/MEMORY_MB": "1000",
}


def test_room_is_that_of_the_host_and_its_pools_together() -> None:
    columns = columns_of(h1=NODES | {"capacity.PCPU": "2"}, h2={"capacity.PCPU": "3"})
    assert [tuple(map(int, room(columns, "PCPU", row))) for row in (0, 1)] == [(18, 13), (3, 3)]


def test_a_request_without_resources_of_its_own_is_weighed_by_its_parts() -> None:
    columns = columns_of(h1=NODES)
    pinned = Request(numa=Numa((NumaCell(2, 100), NumaCell(2, 100)), CpuPolicy.DEDICATED))
    grouped = Request(groups=(Group("1", {"PCPU": 4, "MEMORY_MB": 200}),))
    expected = ((11 - 4) / 16 + (2000 - 200) / 2000) / 2
    assert raw_of(weigher("spread"), columns, pinned) == {"h1": expected}
    assert raw_of(weigher("spread"), columns, grouped) == {"h1": expected}


def test_what_a_shared_pool_gives_leaves_the_host_as_it_is() -> None:
    columns = columns_of(
        own={"capacity.VCPU": "10", "capacity.DISK_GB": "100"},
        full={"capacity.VCPU": "10", "capacity.DISK_GB": "100", "claimed.DISK_GB": "90"},
        without={"capacity.VCPU": "10"},
    )
    columns.declared.put("pool", "san", {"version": "1", "capacity.DISK_GB": "1000"})
    request = Request({"VCPU": 5, "DISK_GB": 50})
    assert raw_of(weigher("spread"), columns, request) == {"own": 0.5, "full": 0.75, "without": 0.75}
    assert raw_of(weigher("pack"), columns, request) == {"own": 0.5, "full": 0.25, "without": 0.25}
    assert raw_of(weigher("dot_product"), columns, request) == {"own": 0.5, "full": 0.25, "without": 0.25}
    assert raw_of(weigher("best_fit"), columns, request)["without"] == 1 - ((0.25 + 1) / 2) ** 0.5
