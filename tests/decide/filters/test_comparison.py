"""Equivalents of Nova's filters: the rows of docs/comparison.md that no other test shows as a user sees them."""

from random import Random

import pytest

from redsched.cache.columns import Columns
from redsched.decide.decider import Decider
from redsched.decide.result import Decision
from redsched.model import CpuPolicy, Numa, NumaCell, PciDevices, Request
from redsched.settings import Settings
from tests.support.builders.columns import columns_of

HOST = {"version": "1", "epoch": "1-a", "status": "enabled", "alive": "1", "zone": "az1", "capacity.VCPU": "8"}
DEFAULTS = Settings()


def decide(columns: Columns, request: Request, settings: Settings = DEFAULTS) -> Decision:
    return Decider(columns, settings).decide(request, Random(0))


def fitting(columns: Columns, request: Request, settings: Settings = DEFAULTS) -> list[str]:
    """Return the hosts on which a request may be placed."""
    return sorted({one.host for place in decide(columns, request, settings).places for one in place.candidates})


def pooled(*pools: str, **amounts: int) -> dict[str, str]:
    """Return a host with these pools ("gpu0", or "nic0 in numa0") and these amounts (`numa0__PCPU=4`)."""
    trees = {name: parent or "/" for name, _, parent in (pool.partition(" in ") for pool in pools)}
    nodes = {f"trait.{name}/HW_NUMA_ROOT": "1" for name in trees if name.startswith("numa")}
    slots = {f"capacity.{slot.replace('__', '/')}": str(amount) for slot, amount in amounts.items()}
    return HOST | {f"pool.{name}": parent for name, parent in trees.items()} | nodes | slots


def test_a_request_without_conditions_may_go_to_every_host_in_service() -> None:
    columns = columns_of(
        a=HOST | {"zone": "az7", "label.rack": "r1", "trait.CUSTOM_X": "1", "aggregate.any": "1", "claims": "99"},
        b=HOST | {"starting": "99", "failures": "9", "label.ip": "10.0.0.1"},
        c=pooled("numa0", "gpu0 in numa0", gpu0__CUSTOM_GPU_MILLI=1000),
        down=HOST | {"alive": "0"},
        disabled=HOST | {"status": "disabled"},
        draining=HOST | {"status": "draining"},
    )
    columns.declared.put("aggregate", "any", {"version": "1", "meta.colour": "red"})
    assert fitting(columns, Request({"VCPU": 1})) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"cpu.model": "<in> EPYC"}, ["b"]),
        ({"cpu.cores": ">= 32"}, ["b"]),
        ({"cpu.flags": "<all-in> aes mmx"}, ["a"]),
        ({"kind": "<or> gpu <or> fpga"}, ["a"]),
        ({"cpu.cores": ">= 16", "kind": "plain"}, ["b"]),
    ],
)
def test_capabilities_of_a_host_are_labels_with_the_operators_of_extra_specs(
    condition: dict[str, str], expected: list[str]
) -> None:
    columns = columns_of(
        a=HOST | {"label.cpu.cores": "16", "label.cpu.flags": "sse,aes,mmx", "label.kind": "gpu"},
        b=HOST | {"label.cpu.cores": "64", "label.cpu.model": "AMD EPYC 9354", "label.kind": "plain"},
    )
    assert fitting(columns, Request({"VCPU": 1}, labels=condition)) == expected


def test_what_extra_specs_say_of_numbers_in_use_is_a_query() -> None:
    columns = columns_of(a=HOST | {"claims": "11"}, b=HOST | {"claims": "2", "claimed.VCPU": "7"}, c=HOST)
    query = ("and", ("<=", "$claims", 10), (">=", "$free.VCPU", 4))
    assert fitting(columns, Request({"VCPU": 1}, query=query)) == ["c"]


def test_which_images_a_host_runs_is_said_by_labels() -> None:
    """Labels name architecture, hypervisor and hypervisor version; a host with several lists them in one label."""
    columns = columns_of(
        arm=HOST | {"label.arch": "aarch64", "label.hypervisor": "qemu", "label.hypervisor_version": "8002000"},
        old=HOST | {"label.arch": "x86_64,i686", "label.hypervisor": "qemu", "label.hypervisor_version": "6002000"},
        new=HOST | {"label.arch": "x86_64,i686", "label.hypervisor": "qemu", "label.hypervisor_version": "8002000"},
        silent=HOST,
    )
    wanted = {"arch": "<all-in> i686", "hypervisor": "qemu"}
    assert fitting(columns, Request({"VCPU": 1}, labels=wanted)) == ["new", "old"]
    assert fitting(columns, Request({"VCPU": 1}, labels=wanted | {"hypervisor_version": ">= 7000000"})) == ["new"]


def test_architecture_hypervisor_and_mode_are_supported_in_combination() -> None:
    both = "i686/kvm/hvm,i686/lxc/exe"
    columns = columns_of(
        both=HOST | {"label.supported_instances": both},
        kvm=HOST | {"label.supported_instances": "x86_64/kvm/hvm"},
        silent=HOST,
    )

    def supporting(pattern: str) -> list[str]:
        return fitting(columns, Request({"VCPU": 1}, labels={"supported_instances": f"<like> {pattern}"}))

    assert supporting("i686/kvm/hvm") == ["both"]
    assert supporting("*/kvm/*") == ["both", "kvm"]
    assert supporting("*/kvm/exe") == []


def test_hosts_that_lack_a_metric_which_must_be_there_take_nothing() -> None:
    columns = columns_of(a=HOST | {"metric.power": "200"}, b=HOST)
    settings = Settings(metrics_weights={"power": -1.0}, metrics_required=True)
    assert fitting(columns, Request({"VCPU": 1}), settings) == ["a"]
    assert fitting(columns, Request({"VCPU": 1}), Settings(metrics_weights={"power": -1.0})) == ["a", "b"]


def test_each_cell_of_a_guest_takes_a_numa_node_of_its_own() -> None:
    """The node provides memory or huge pages, and dedicated CPUs; a guest without cells may use any host."""
    huge = "CUSTOM_HUGE_PAGES_2048KB"
    two = {"numa0__PCPU": 4, "numa1__PCPU": 4, f"numa0__{huge}": 512, f"numa1__{huge}": 512}
    columns = columns_of(
        two=pooled("numa0", "numa1", **two),
        one=pooled("numa0", numa0__PCPU=99, **{f"numa0__{huge}": 9999}),
        bare=pooled(PCPU=99, **{huge: 9999}),
    )
    cells = Numa((NumaCell(3, 1024), NumaCell(2, 1024)), CpuPolicy.DEDICATED, 2048)
    [place] = decide(columns, Request(numa=cells)).places
    assert {one.host for one in place.candidates} == {"two"}
    assert sorted(place.chosen.amounts.values()) == [2, 3, 512, 512]
    assert {slot.partition("/")[0] for slot in place.chosen.amounts} == {"numa0", "numa1"}
    assert fitting(columns, Request(numa=Numa((NumaCell(5, 1024),), CpuPolicy.DEDICATED, 2048))) == ["one"]
    assert fitting(columns, Request({"VCPU": 1})) == ["bare", "one", "two"]


def test_devices_are_asked_for_by_class_number_and_traits() -> None:
    columns = columns_of(
        a=pooled("pf0", "pf1", pf0__SRIOV_NET_VF=1, pf1__SRIOV_NET_VF=1) | {"trait.pf0/CUSTOM_PHYSNET_A": "1"},
        b=pooled("pf0", pf0__SRIOV_NET_VF=4),
    )
    assert fitting(columns, Request(pci=(PciDevices("SRIOV_NET_VF", 2),))) == ["a", "b"]
    assert fitting(columns, Request(pci=(PciDevices("SRIOV_NET_VF", 3),))) == ["b"]
    on_a = PciDevices("SRIOV_NET_VF", 1, required=frozenset({"CUSTOM_PHYSNET_A"}))
    [place] = decide(columns, Request({"VCPU": 1}, pci=(on_a,))).places
    assert [(one.host, one.amounts) for one in place.candidates] == [("a", {"VCPU": 1, "pf0/SRIOV_NET_VF": 1})]


def group(columns: Columns, policy: str, **more: str) -> Columns:
    """Declare group g, with one member on host a."""
    fields = {"version": "1", "policy": policy, "members": "1", "count.host=a": "1", "count.zone=az1": "1"}
    columns.declared.put("server-group", "g", fields | more)
    return columns


def test_members_of_an_affinity_group_go_where_the_others_are() -> None:
    columns = group(columns_of(a=HOST, b=HOST), "affinity")
    assert fitting(columns, Request({"VCPU": 1}, server_group="g")) == ["a"]
    assert fitting(columns, Request({"VCPU": 8}, server_group="g")) == ["a"]
    assert not fitting(columns, Request({"VCPU": 5}, server_group="g", count=2))


def test_members_of_an_anti_affinity_group_go_where_few_enough_others_are() -> None:
    columns = columns_of(a=HOST, b=HOST)
    assert fitting(group(columns, "anti-affinity"), Request({"VCPU": 1}, server_group="g")) == ["b"]
    two = group(columns, "anti-affinity", max_per_host="2")
    assert fitting(two, Request({"VCPU": 1}, server_group="g")) == ["a", "b"]
    assert not fitting(two, Request({"VCPU": 1}, server_group="g", count=4))


def test_so_many_members_of_a_group_share_one_value_of_a_label() -> None:
    columns = columns_of(
        a=HOST | {"label.rack": "r1"}, b=HOST | {"label.rack": "r1"}, c=HOST | {"label.rack": "r2"}, d=HOST
    )
    counted = {"by": "label:rack", "max_per_host": "2", "members": "2", "count.label:rack=r1": "2"}
    group(columns, "anti-affinity", **counted)
    assert fitting(columns, Request({"VCPU": 1}, server_group="g")) == ["c"]
