"""Nova's weighers: each alone chooses the host that Nova's would, with either sign and by aggregate multipliers."""

from random import Random

import pytest

from redsched.cache.columns import Columns
from redsched.decide.decider import Decider
from redsched.model import PciDevices, Request
from redsched.settings import Settings
from tests.support.builders.columns import columns_of
from tests.support.builders.weighed import aggregate

HOST = {"version": "1", "epoch": "1-a", "status": "enabled", "alive": "1", "zone": "az1", "capacity.VCPU": "100"}
SETTINGS = Settings(metrics_weights={"power": -1.0}, image_props_weights={"os_distro": 2.0})

MORE_AND_LESS: dict[str, tuple[dict[str, str], dict[str, str]]] = {
    "ram": ({"capacity.MEMORY_MB": "900"}, {"capacity.MEMORY_MB": "500"}),
    "cpu": ({"claimed.VCPU": "10"}, {"claimed.VCPU": "50"}),
    "disk": ({"capacity.DISK_GB": "90"}, {"capacity.DISK_GB": "50"}),
    "metrics": ({"metric.power": "100"}, {"metric.power": "400"}),
    "io_ops": ({"starting": "5"}, {"starting": "1"}),
    "pci": ({"capacity.SRIOV_NET_VF": "1"}, {"capacity.SRIOV_NET_VF": "60"}),
    "num_instances": ({"claims": "7"}, {"claims": "3"}),
    "hypervisor_version": ({"label.hypervisor_version": "8.2.0"}, {"label.hypervisor_version": "6.2.0"}),
    "image_props": ({"label.os_distro": "debian"}, {"label.os_distro": "fedora"}),
    "soft_affinity": ({"label.members": "2"}, {"label.members": "1"}),
    "soft_anti_affinity": ({"label.members": "1"}, {"label.members": "2"}),
    "build_failure": ({"failures": "0"}, {"failures": "2"}),
}
"""By weigher: the fields of the host that it prefers, and those of the other host."""

SOFT = {"soft_affinity": "soft-affinity", "soft_anti_affinity": "soft-anti-affinity"}


def fleet(name: str) -> Columns:
    """Return hosts `better` and `worse`; for soft groups with as many members as their label says."""
    better, worse = MORE_AND_LESS[name]
    columns = columns_of(better=HOST | better | {"aggregate.odd": "1"}, worse=HOST | worse | {"aggregate.odd": "1"})
    if name in SOFT:
        counts = {f"count.host={host}": one["label.members"] for host, one in (("better", better), ("worse", worse))}
        columns.declared.put("server-group", "g", {"version": "1", "policy": SOFT[name], "members": "3"} | counts)
    return columns


def chosen(columns: Columns, name: str, multiplier: float) -> str:
    """Return the chosen host if this weigher alone counts."""
    silent = {"spread": 0.0, "failures": 0.0} | dict.fromkeys(SOFT, 0.0)
    request = Request(
        {"VCPU": 1},
        pci=(PciDevices("SRIOV_NET_VF"),) if name == "pci" else (),
        properties={"os_distro": "debian"},
        server_group="g" if name in SOFT else "",
        weights=silent | {name: multiplier},
    )
    return Decider(columns, SETTINGS).decide(request, Random(0)).places[0].chosen.host


@pytest.mark.parametrize("name", MORE_AND_LESS)
def test_a_weigher_chooses_the_better_host_and_with_the_other_sign_the_worse(name: str) -> None:
    assert chosen(fleet(name), name, 2.0) == "better"
    assert chosen(fleet(name), name, -2.0) == "worse"


@pytest.mark.parametrize("name", MORE_AND_LESS)
def test_an_aggregate_turns_a_weigher_round_for_its_hosts(name: str) -> None:
    columns = fleet(name)
    aggregate(columns, "odd", {f"{name}_weight_multiplier": "-3.0"})
    assert chosen(columns, name, 2.0) == "worse"
