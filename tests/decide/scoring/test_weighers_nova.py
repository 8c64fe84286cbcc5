"""Nova's thirteen weighers: the raw values of each, as in Nova, and their normalized values."""

import pytest

from redsched.decide.scoring.hosts import version_number
from redsched.model import PciDevices, Request
from redsched.settings import Settings
from tests.support.builders.columns import columns_of
from tests.support.builders.weighed import aggregate, raw_of, value_of, weigher


@pytest.mark.parametrize(("name", "of"), [("ram", "MEMORY_MB"), ("cpu", "VCPU"), ("disk", "DISK_GB")])
def test_ram_cpu_and_disk_are_what_is_free_of_the_host_and_its_pools(name: str, of: str) -> None:
    columns = columns_of(
        a={f"capacity.{of}": "100", f"claimed.{of}": "30", f"external.{of}": "20"},
        b={f"capacity.{of}": "10", f"capacity.numa0/{of}": "40", f"claimed.numa0/{of}": "5"},
        over={f"capacity.{of}": "10", f"external.{of}": "25"},
        none={},
    )
    assert raw_of(weigher(name), columns) == {"a": 50.0, "b": 45.0, "over": -15.0, "none": 0.0}
    # Nova's minval: the range begins at 0 free and not at the fullest host; less than 0 counts as 0.
    assert value_of(weigher(name), columns) == {"a": 1.0, "b": 0.9, "over": 0.0, "none": 0.0}


@pytest.mark.parametrize(("name", "of"), [("ram", "MEMORY_MB"), ("disk", "DISK_GB")])
def test_allocation_ratios_do_not_count_for_ram_and_disk(name: str, of: str) -> None:
    columns = columns_of(
        plain={f"capacity.{of}": "1000", f"claimed.{of}": "100", f"ratio.{of}": "1.0"},
        twice={f"capacity.{of}": "1600", f"claimed.{of}": "100", f"ratio.{of}": "2.0"},
        over={f"capacity.{of}": "1501", f"claimed.{of}": "1400", f"external.{of}": "1", f"ratio.{of}": "1.5"},
        pools={f"capacity.numa0/{of}": "300", f"ratio.numa0/{of}": "1.5", f"capacity.{of}": "10"},
        odd={f"capacity.{of}": "7", f"ratio.{of}": "none"},
    )
    expected = {"plain": 900.0, "twice": 700.0, "over": -400.0, "pools": 210.0, "odd": 7.0}
    assert raw_of(weigher(name), columns) == expected
    columns.patch("twice", {f"ratio.{of}": "1.0"})
    assert raw_of(weigher(name), columns) == expected | {"twice": 1500.0}


def test_allocation_ratios_count_for_cpu() -> None:
    columns = columns_of(plain={"capacity.VCPU": "10"}, more={"capacity.VCPU": "40", "ratio.VCPU": "4.0"})
    assert raw_of(weigher("cpu"), columns) == {"plain": 10.0, "more": 40.0}


@pytest.mark.parametrize(("name", "field"), [("io_ops", "starting"), ("num_instances", "claims")])
def test_io_ops_are_claims_that_start_and_num_instances_all(name: str, field: str) -> None:
    columns = columns_of(a={field: "4"}, b={field: "2"}, c={field: "3"})
    assert raw_of(weigher(name), columns) == {"a": 4.0, "b": 2.0, "c": 3.0}


def test_io_ops_are_stretched_from_none_at_all_and_num_instances_from_the_fewest() -> None:
    columns = columns_of(a={"starting": "4", "claims": "4"}, b={"starting": "2", "claims": "2"})
    assert value_of(weigher("io_ops"), columns) == {"a": 1.0, "b": 0.5}
    assert value_of(weigher("num_instances"), columns) == {"a": 1.0, "b": 0.0}


def test_build_failure_counts_against_a_host_by_its_positive_multiplier() -> None:
    columns = columns_of(a={"failures": "3"}, b={})
    one = weigher("build_failure")
    assert raw_of(one, columns) == {"a": 3.0, "b": 0.0}
    assert one.multiplied(columns, 0, 1_000_000.0) == -1_000_000.0


def test_pci_keeps_hosts_with_many_free_devices_for_those_who_need_them() -> None:
    columns = columns_of(
        nic={"capacity.pf0/SRIOV_NET_VF": "8", "claimed.pf0/SRIOV_NET_VF": "2", "capacity.CUSTOM_PCI_8086_1572": "4"},
        many={"capacity.pf0/SRIOV_NET_VF": "500"},
        fpga={"capacity.CUSTOM_FPGA": "5"},
        over={"capacity.pf0/SRIOV_NET_VF": "2", "external.pf0/SRIOV_NET_VF": "9", "capacity.CUSTOM_PCI_8086_1572": "4"},
        none={"capacity.VCPU": "4"},
    )
    found = raw_of(weigher("pci"), columns)
    assert found == {"nic": 90.0, "many": 1.0, "fpga": 100.0, "over": 96.0, "none": 100.0}


def test_pci_counts_the_devices_that_the_request_names_whatever_their_class() -> None:
    columns = columns_of(fpga={"capacity.CUSTOM_FPGA": "5"}, none={})
    found = raw_of(weigher("pci"), columns, Request(pci=(PciDevices("CUSTOM_FPGA"),)))
    assert found == {"fpga": 95.0, "none": 100.0}


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *(
            ("8002000", 8002000),
            ("8.2.0", 8002000),
            ("8.2", 8002000),
            ("6.5.3.1", 6005003001),
            ("12", 12),
            ("1e3", 1000),
        ),
        *((text, 0) for text in ("", "new", "8.x", "-1", "nan", "1.2.3.4.5", "1.2.")),
    ],
)
def test_a_version_is_read_as_nova_numbers_it(text: str, number: int) -> None:
    assert version_number(text) == number


def test_hypervisor_version_is_that_of_the_label() -> None:
    columns = columns_of(
        old={"label.hypervisor_version": "6.2.0"}, new={"label.hypervisor_version": "8002000"}, unknown={}
    )
    one = weigher("hypervisor_version")
    assert raw_of(one, columns) == {"old": 6002000.0, "new": 8002000.0, "unknown": 0.0}
    assert raw_of(one, columns_of(a={})) == {"a": 0.0}


def test_cross_cell_prefers_the_cell_that_moving_work_comes_from() -> None:
    columns, one = columns_of(a={}, b={}), weigher("cross_cell")
    assert raw_of(one, columns, Request({"VCPU": 1})) == {"a": 0.0, "b": 0.0}
    assert raw_of(one, columns, Request({"VCPU": 1}, exclude_hosts=frozenset({"a"}))) == {"a": 1.0, "b": 1.0}
    assert raw_of(one, columns, Request({"VCPU": 1}, exclude_hosts=frozenset({"x"}))) == {"a": 0.0, "b": 0.0}


def test_cross_cell_has_the_key_that_nova_gives_its_multiplier() -> None:
    columns = columns_of(a={"aggregate.fast": "1"}, b={})
    aggregate(columns, "fast", {"cross_cell_move_weight_multiplier": "5", "cross_cell_weight_multiplier": "7"})
    assert weigher("cross_cell").multiplied(columns, 0, 1.0) == 5.0


METRICS = Settings(metrics_weights={"cpu.percent": -1.0, "temperature": 0.5, "noise": 0.0})


def test_metrics_add_up_by_their_factors_and_a_host_without_one_is_unavailable() -> None:
    columns = columns_of(
        a={"metric.cpu.percent": "40", "metric.temperature": "30"},
        b={"metric.cpu.percent": "10"},
        c={"metric.cpu.percent": "inf", "metric.temperature": "1"},
    )
    assert raw_of(weigher("metrics", METRICS), columns) == {"a": -25.0, "b": -10000.0, "c": -10000.0}
    near = METRICS.model_copy(update={"metrics_unavailable": -100.0})
    assert raw_of(weigher("metrics", near), columns)["b"] == -100.0
    assert raw_of(weigher("metrics"), columns) == {"a": 0.0, "b": 0.0, "c": 0.0}


def test_image_props_are_the_properties_that_are_labels_of_the_host_too() -> None:
    columns = columns_of(
        both={"label.os_type": "windows", "label.hw_machine_type": "q35"},
        one={"label.os_type": "windows", "label.hw_machine_type": "pc"},
        none={"label.os_type": "linux"},
    )
    request = Request({"VCPU": 1}, properties={"os_type": "windows", "hw_machine_type": "q35", "os_distro": "x"})
    assert raw_of(weigher("image_props"), columns, request) == {"both": 2.0, "one": 1.0, "none": 0.0}
    named = Settings(image_props_weights={"hw_machine_type": -3.0})
    assert raw_of(weigher("image_props", named), columns, request) == {"both": -3.0, "one": 0.0, "none": 0.0}
    assert raw_of(weigher("image_props"), columns) == {"both": 0.0, "one": 0.0, "none": 0.0}
