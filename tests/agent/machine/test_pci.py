"""PCI devices as pools, read from made-up sysfs trees."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from redsched.agent.collectors.component import Part
from redsched.agent.machine.pci import PciDevice, read_devices
from redsched.agent.machine.pci_pools import pci_pools
from redsched.agent.machine.pci_spec import DeviceSpec, read_specs
from redsched.errors import InvalidRequest
from redsched.model import Inventory, Pool
from redsched.model.validation import check_name
from tests.support.fleets.sys_tree import SysTree

ROOT = Path(__file__).parents[3]
NIC = {"vendor_id": "8086", "product_id": "1572", "resource_class": "CUSTOM_NIC_X"}
VF = {"vendor_id": "8086", "product_id": "154c", "resource_class": "SRIOV_NET_VF"}
NODES = ("numa0", "numa1")


@pytest.fixture
def tree(tmp_path: Path) -> SysTree:
    """Return two accelerators on each of two nodes and one on none; a NIC with three virtual functions, one without."""
    made = SysTree(tmp_path)
    for address, numa in {"17:00.0": 0, "18:00.0": 0, "af:00.0": 1, "b0:00.0": 1, "d8:00.0": -1}.items():
        made.device(f"0000:{address}", "8086", "0d5c", numa)
    made.device("0000:3b:00.0", "8086", "1572", 0)
    for function in range(3):
        made.device(f"0000:3b:02.{function}", "8086", "154c", 0, physical="0000:3b:00.0")
    made.device("0000:3b:00.1", "8086", "1572", 0)
    return made


def offered(tree: SysTree, *entries: dict[str, Any], nodes: tuple[str, ...] = NODES) -> Part:
    return pci_pools(read_devices(tree.root), read_specs(entries), nodes)


def test_devices_are_read_with_their_node_and_their_physical_function(tree: SysTree) -> None:
    (tree.root / "bus/pci/devices/0000:ff:00.0").mkdir()  # a device that was unplugged during the read
    devices = {one.address: one for one in read_devices(tree.root)}
    assert devices["0000:d8:00.0"] == PciDevice("0000:d8:00.0", "8086", "0d5c", -1, "", "020000")
    assert devices["0000:3b:02.1"] == PciDevice("0000:3b:02.1", "8086", "154c", 0, "0000:3b:00.0", "020000")
    assert "0000:ff:00.0" not in devices
    assert list(devices) == sorted(devices)


def test_a_driver_makes_no_difference(tree: SysTree) -> None:
    before = offered(tree, {"vendor_id": "8086"}).pools
    (tree.root / "bus/pci/devices/0000:17:00.0/driver").symlink_to("../../../bus/pci/drivers/vfio-pci")
    (tree.root / "bus/pci/devices/0000:18:00.0/driver").symlink_to("../../../bus/pci/drivers/gone")
    assert offered(tree, {"vendor_id": "8086"}).pools == before != {}


def test_a_machine_without_pci_has_no_devices(tmp_path: Path) -> None:
    assert read_devices(tmp_path) == []


def test_nothing_is_offered_that_is_not_named(tree: SysTree) -> None:
    assert offered(tree).pools == {}
    assert offered(tree, {"vendor_id": "dead"}).pools == {}


def test_like_devices_of_a_node_are_one_pool(tree: SysTree) -> None:
    part = offered(tree, {"product_id": "0d5c", "resource_class": "CUSTOM_ACCELERATOR"})
    assert part.pools == {
        "pci-numa0-CUSTOM_ACCELERATOR": Pool({"CUSTOM_ACCELERATOR": Inventory(2)}, "numa0"),
        "pci-numa1-CUSTOM_ACCELERATOR": Pool({"CUSTOM_ACCELERATOR": Inventory(2)}, "numa1"),
        "pci-CUSTOM_ACCELERATOR": Pool({"CUSTOM_ACCELERATOR": Inventory(1)}, ""),
    }


def test_without_numa_pools_devices_lie_in_the_host(tree: SysTree) -> None:
    part = offered(tree, {"product_id": "0d5c", "resource_class": "CUSTOM_ACCELERATOR"}, VF, nodes=())
    assert part.pools == {
        "pci-CUSTOM_ACCELERATOR": Pool({"CUSTOM_ACCELERATOR": Inventory(5)}),
        "pci-0000-3b-00.0": Pool({"SRIOV_NET_VF": Inventory(3)}),
    }


def test_without_a_class_it_is_novas(tree: SysTree) -> None:
    part = offered(tree, {"address": "0000:17:00.0"})
    assert part.pools["pci-numa0-CUSTOM_PCI_8086_0D5C"].inventories == {"CUSTOM_PCI_8086_0D5C": Inventory(1)}


def test_virtual_functions_are_the_inventory_of_their_physical_functions_pool(tree: SysTree) -> None:
    part = offered(tree, VF | {"traits": ["CUSTOM_PHYSNET_A"]})
    expected = Pool({"SRIOV_NET_VF": Inventory(3)}, "numa0", frozenset({"CUSTOM_PHYSNET_A"}))
    assert part.pools == {"pci-0000-3b-00.0": expected}


def test_a_physical_function_is_not_given_away_whole_while_its_virtual_ones_are(tree: SysTree) -> None:
    part = offered(tree, VF, NIC)
    assert part.pools == {
        "pci-0000-3b-00.0": Pool({"SRIOV_NET_VF": Inventory(3)}, "numa0"),
        "pci-numa0-CUSTOM_NIC_X": Pool({"CUSTOM_NIC_X": Inventory(1)}, "numa0"),
    }, "of the two NICs only the one without virtual functions"
    assert offered(tree, NIC).pools["pci-numa0-CUSTOM_NIC_X"].inventories == {"CUSTOM_NIC_X": Inventory(2)}


def test_the_address_of_a_physical_function_stands_for_its_virtual_ones(tree: SysTree) -> None:
    part = offered(tree, {"address": "0000:3B:00.0", "resource_class": "CUSTOM_VF"})
    assert part.pools == {"pci-0000-3b-00.0": Pool({"CUSTOM_VF": Inventory(3)}, "numa0")}


def test_the_first_entry_that_fits_counts(tree: SysTree) -> None:
    special = {"address": "0000:17:*", "resource_class": "CUSTOM_SPECIAL"}
    part = offered(tree, special, {"product_id": "0d5c", "resource_class": "CUSTOM_OTHER"})
    assert part.pools["pci-numa0-CUSTOM_SPECIAL"].inventories == {"CUSTOM_SPECIAL": Inventory(1)}
    assert part.pools["pci-numa0-CUSTOM_OTHER"].inventories == {"CUSTOM_OTHER": Inventory(1)}


def test_other_traits_are_another_pool_and_names_stay_names(tree: SysTree) -> None:
    long = "CUSTOM_" + "X" * 57
    entries: list[dict[str, Any]] = [
        {"address": "0000:17:00.0", "resource_class": long, "traits": ["CUSTOM_A"]},
        {"address": "0000:18:00.0", "resource_class": long, "traits": ["CUSTOM_B"]},
        {"address": "0000:af:00.0", "resource_class": long},
    ]
    part = offered(tree, *entries)
    assert len(part.pools) == 3
    for name in part.pools:
        check_name("pool", name)
    assert {next(iter(pool.traits), "") for pool in part.pools.values()} == {"CUSTOM_A", "CUSTOM_B", ""}
    assert offered(tree, *reversed(entries)).pools == part.pools, "names do not follow the order of the entries"


def test_a_pool_keeps_its_name_when_a_device_goes_away(tree: SysTree) -> None:
    entry = {"product_id": "0d5c", "resource_class": "CUSTOM_ACCELERATOR"}
    for path in (tree.root / "bus/pci/devices/0000:17:00.0").iterdir():
        path.unlink()
    assert offered(tree, entry).pools["pci-numa0-CUSTOM_ACCELERATOR"].inventories == {
        "CUSTOM_ACCELERATOR": Inventory(1)
    }


def test_virtual_functions_of_different_classes_share_the_pool_but_not_of_different_traits(tree: SysTree) -> None:
    first = {"address": "0000:3b:02.0", "resource_class": "CUSTOM_FAST"}
    part = offered(tree, first, VF)
    assert part.pools["pci-0000-3b-00.0"].inventories == {"CUSTOM_FAST": Inventory(1), "SRIOV_NET_VF": Inventory(2)}
    with pytest.raises(InvalidRequest, match=r"0000:3b:00.0 different traits \(CUSTOM_A; none\)"):
        offered(tree, first | {"traits": ["CUSTOM_A"]}, VF)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({}, "it would offer every device"),
        ({"resource_class": "CUSTOM_X"}, "it would offer every device"),
        ({"vendor_id": "8086", "devname": "eth0"}, "unknown key 'devname': use vendor_id, product_id, address"),
        ({"vendor_id": 8086}, "vendor_id must be text, not 8086: put it in quotes"),
        ({"vendor_id": "808"}, "vendor_id '808' is not an id"),
        ({"product_id": "intel"}, "product_id 'intel' is not an id"),
        ({"address": "eth0"}, "address 'eth0' is not a PCI address"),
        ({"address": {"bus": "3b"}}, "address must be text"),
        ({"vendor_id": "8086", "resource_class": "NIC"}, "unknown resource class 'NIC'"),
        ({"vendor_id": "8086", "traits": "CUSTOM_A"}, "traits must be a list"),
        ({"vendor_id": "8086", "traits": ["FAST"]}, "unknown trait 'FAST'"),
    ],
)
def test_what_is_wrong_with_an_entry_is_reported(entry: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_specs([{"vendor_id": "0x8086"}, entry])
    assert str(caught.value).startswith("pci_devices, entry 2: ")
    assert expected in str(caught.value)


def test_the_entries_of_the_documentation_can_be_read() -> None:
    (example,) = re.findall(r"```json\n(\[.*?\])\n```", (ROOT / "docs" / "agent.md").read_text(), re.DOTALL)
    accelerator, function = read_specs(json.loads(example))
    assert accelerator == DeviceSpec("8086", "0d5c", resource_class="CUSTOM_ACCELERATOR")
    assert function == DeviceSpec("8086", "154c", "0000:3b:*", "SRIOV_NET_VF", frozenset({"CUSTOM_PHYSNET_A"}))


def test_the_devices_of_this_machine_can_be_read() -> None:
    for device in read_devices():
        assert len(device.vendor) == len(device.product) == 4
