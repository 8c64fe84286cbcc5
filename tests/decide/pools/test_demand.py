"""The parts into which a request is split for the assignment of pools."""

from dataclasses import replace

import pytest

from redsched.decide.pools import cell_demands, needs_of
from redsched.decide.pools.demand import Part, Sort
from redsched.decide.scoring.demand import taken_by
from redsched.model import CpuPolicy, GangMember, Group, Numa, NumaAffinity, NumaCell, PciDevices, Request

T = frozenset({"CUSTOM_T"})
CELL = NumaCell(4, 8192)


@pytest.mark.parametrize(
    ("numa", "demands"),
    [
        (Numa((CELL,)), {"VCPU": 4, "MEMORY_MB": 8192}),
        (Numa((CELL,), CpuPolicy.DEDICATED), {"PCPU": 4, "MEMORY_MB": 8192}),
        (Numa((NumaCell(4, 8192, 1),), CpuPolicy.MIXED), {"PCPU": 1, "VCPU": 3, "MEMORY_MB": 8192}),
        (Numa((CELL,), page_size_kb=2048), {"VCPU": 4, "CUSTOM_HUGE_PAGES_2048KB": 4096}),
    ],
)
def test_a_cell_takes_cpus_by_its_policy_and_memory_or_pages(numa: Numa, demands: dict[str, int]) -> None:
    assert dict(cell_demands(numa, numa.cells[0])) == demands


def test_what_all_places_take_is_summed_by_class() -> None:
    """The sum covers all parts times their counts, and all members of a gang."""
    one = Request({"VCPU": 2}, groups=(Group("a", {"VCPU": 1}),), numa=Numa((CELL, CELL)), pci=(PciDevices("VGPU", 3),))
    assert taken_by(one) == {"VCPU": 11, "MEMORY_MB": 16384, "VGPU": 3}
    gang = Request({}, members=(GangMember("a", replace(one, count=2)), GangMember("b", Request({"VCPU": 1}))))
    assert taken_by(gang) == {"VCPU": 23, "MEMORY_MB": 32768, "VGPU": 6}


def test_equal_parts_are_one_with_a_count() -> None:
    request = Request(
        {"VCPU": 2},
        groups=(Group("a", {"PCPU": 1}), Group("b", {"PCPU": 1}), Group("c", {"PCPU": 2})),
        numa=Numa((CELL, CELL)),
        pci=(PciDevices("CUSTOM_VF", 2), PciDevices("CUSTOM_VF", 3)),
    )
    cell = (("MEMORY_MB", 8192), ("VCPU", 4))
    assert needs_of(request).parts == (
        Part(Sort.CELL, cell, apart=True, count=2),
        Part(Sort.GROUP, (("PCPU", 1),), count=2),
        Part(Sort.GROUP, (("PCPU", 2),)),
        Part(Sort.DEVICE, (("CUSTOM_VF", 1),), affinity=NumaAffinity.LEGACY, count=5),
        Part(Sort.SPREAD, (("VCPU", 2),)),
    )


def test_groups_that_same_subtree_names_keep_their_names_and_are_not_one() -> None:
    groups = (Group("a", {"PCPU": 1}), Group("b", {"PCPU": 1}), Group("c", {}, T))
    needs = needs_of(Request(groups=groups, same_subtree=(frozenset({"a", "c"}),), group_policy="isolate"))
    assert [(part.name, part.apart) for part in needs.parts] == [("a", True), ("", True), ("c", False)]
    assert needs.subtrees == (frozenset({0, 2}),)


def test_devices_without_guest_cells_are_near_enough_anywhere() -> None:
    request = Request(pci=(PciDevices("CUSTOM_VF", numa_policy=NumaAffinity.REQUIRED),))
    assert needs_of(request).parts[0].affinity is None


def test_wants_are_the_required_traits_one_by_one_and_each_any_of_once() -> None:
    either = frozenset({"CUSTOM_A", "CUSTOM_B"})
    needs = needs_of(Request({"VCPU": 1}, required=T, any_of=(either, either)))
    assert needs.wants == (T, either)
    assert needs.is_simple
