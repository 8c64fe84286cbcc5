"""The requests that benchmarks/constraints.py measures: one kind of constraint each."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.fleet_of_pools import APART, AVX, FUNCTIONS, MODELS, SHARES, SOFT, WIDE
from redsched.model import (
    CpuPolicy,
    GangMember,
    Group,
    Numa,
    NumaAffinity,
    NumaCell,
    PciDevices,
    Relation,
    RelationType,
    Request,
    Spread,
)


@dataclass(frozen=True, slots=True)
class Case:
    """A kind of request. `request(0)` is the one that is repeated; every other number gives another shape."""

    name: str
    request: Callable[[int], Request]


def _amounts(number: int) -> Mapping[str, int]:
    return {"VCPU": 2, "MEMORY_MB": 4096 + number}


def _simple(number: int) -> Request:
    return Request(_amounts(number), required=frozenset({AVX}))


def _nova(number: int) -> Request:
    # Enable the two weighers that Nova disables by default too, which makes thirteen.
    return Request(
        {**_amounts(number), "DISK_GB": 20},
        required=frozenset({AVX}),
        exclude_hosts=frozenset({"h000001"}),
        properties={"os_type": "linux"},
        server_group=SOFT,
        policy="nova",
        weights={"num_instances": -0.5, "image_props": 0.5},
    )


def _apart(number: int) -> Request:
    return Request(_amounts(number), server_group=APART)


def _pci(number: int) -> Request:
    return Request(_amounts(number), pci=(PciDevices(FUNCTIONS),))


def _numa(number: int) -> Request:
    numa = Numa((NumaCell(4, 8192), NumaCell(4, 8192)), CpuPolicy.DEDICATED, 2048)
    return Request({"DISK_GB": 20 + number}, numa=numa)


def _numa_pci(number: int) -> Request:
    numa = Numa((NumaCell(4, 8192),), CpuPolicy.DEDICATED, 2048)
    near = PciDevices(FUNCTIONS, numa_policy=NumaAffinity.REQUIRED)
    return Request({"DISK_GB": 20 + number}, numa=numa, pci=(near,))


def _gpus(number: int) -> Request:
    model = frozenset(MODELS[:1])
    groups = tuple(Group(f"gpu{index}", {SHARES: share}, model) for index, share in enumerate((500, 300)))
    return Request(_amounts(number), groups=groups, group_policy="isolate")


def _gang_of_3(number: int) -> Request:
    gpu = Group("gpu", {SHARES: 1000}, frozenset(MODELS[:1]))
    members = (
        GangMember("db", Request({"VCPU": 8, "MEMORY_MB": 65_536 + number}, required=frozenset({AVX}))),
        GangMember("web", Request(_amounts(0))),
        GangMember("train", Request({"VCPU": 4, "MEMORY_MB": 16_384}, groups=(gpu,))),
    )
    names = tuple(one.name for one in members)
    return Request(
        members=members,
        relations=(Relation(RelationType.SAME_ZONE, names), Relation(RelationType.APART, names[:2])),
    )


def _gang_of_50(number: int) -> Request:
    worker = GangMember("worker", Request(_amounts(number), required=frozenset({AVX}), count=50))
    return Request(members=(worker,), relations=(Relation(RelationType.APART, ("worker",)),))


def _spread(number: int) -> Request:
    return Request(_amounts(number), server_group=WIDE, spread=(Spread("zone"),))


CASES = (
    Case("simple", _simple),
    Case("Nova's 13 weighers", _nova),
    Case("anti-affinity", _apart),
    Case("PCI: a virtual function", _pci),
    Case("GPUs: two shares", _gpus),
    Case("pinned NUMA, 2 cells", _numa),
    Case("NUMA and PCI near it", _numa_pci),
    Case("spread over zones", _spread),
    Case("gang of 3, related", _gang_of_3),
    Case("gang of 50, apart", _gang_of_50),
)
