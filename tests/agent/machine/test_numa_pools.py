"""NUMA nodes and their huge pages as pools, read from made-up sysfs trees."""

from pathlib import Path

import pytest

from redsched.agent.machine.numa import HugePages, read_nodes
from redsched.agent.machine.numa_pools import NumaPools
from redsched.agent.machine.usage import Usage
from redsched.errors import InvalidRequest
from redsched.model import NUMA_NODE, Inventory, Pool
from redsched.settings import Settings
from tests.support.fleets.sys_tree import SysTree

NOTHING = Usage(0, 0.0, complete=True, cgroups=frozenset(), pids=frozenset())
MIB = 2**20


@pytest.fixture
def tree(tmp_path: Path) -> SysTree:
    """Return two nodes: 8 CPUs with 10,000 MB, of which 4096 are huge pages, and 4 CPUs with 5000 MB."""
    made = SysTree(tmp_path / "sys")
    pages = {2048: (1024, 1000), 1048576: (2, 0), 64: (0, 0)}
    made.node(0, "0-3,8-11", 10_000, 4_000, cached_mb=500, reclaimable_mb=100, pages=pages)
    made.node(1, "4-7", 5_000, 5_000)
    return made


def pools(tree: SysTree, dedicated: set[int] = frozenset(), **settings: object) -> NumaPools:  # type: ignore[assignment]
    made = Settings.model_validate({"reserved_memory_mb": 0} | settings)
    return NumaPools(made, frozenset(dedicated), tree.root, tree.root / "proc", tree.root / "cgroup")


def test_nodes_are_read_with_their_huge_pages_apart(tree: SysTree) -> None:
    first, second = read_nodes(tree.root)
    assert (first.number, set(first.cpus)) == (0, {0, 1, 2, 3, 8, 9, 10, 11})
    assert first.huge_pages == (HugePages(2048, 1024, 1000), HugePages(1048576, 2, 0))
    assert first.memory_bytes == (10_000 - 2048 - 2048) * MIB
    assert first.used_bytes == (10_000 - 2048 - 2048 - 4_000 - 500 - 100) * MIB
    assert (second.memory_bytes, second.used_bytes, second.huge_pages) == (5_000 * MIB, 0, ())


def test_each_node_becomes_a_pool_with_what_it_has(tree: SysTree) -> None:
    made = pools(tree, dedicated={2, 3, 4, 5, 6, 7}, ratio_vcpu=2.0, ratio_memory=1.5).observe(NOTHING, 0).pools
    assert made == {
        "numa0": Pool(
            {
                "VCPU": Inventory(6, allocation_ratio=2.0),
                "PCPU": Inventory(2),
                "MEMORY_MB": Inventory(5_904, allocation_ratio=1.5),
                "CUSTOM_HUGE_PAGES_2048KB": Inventory(1024),
                "CUSTOM_HUGE_PAGES_1048576KB": Inventory(2),
            },
            traits=frozenset({NUMA_NODE}),
        ),
        "numa1": Pool(
            {"PCPU": Inventory(4), "MEMORY_MB": Inventory(5_000, allocation_ratio=1.5)}, traits=frozenset({NUMA_NODE})
        ),
    }, "a node has no VCPU when all of its CPUs are dedicated"


def test_a_node_has_the_socket_of_its_cpus_as_a_trait(tmp_path: Path) -> None:
    tree = SysTree(tmp_path)
    tree.node(0, "0-1", 1_000, 1_000, sockets={0: 0, 1: 0})
    tree.node(1, "2-3", 1_000, 1_000, sockets={2: 0, 3: 1})
    tree.node(2, "4", 1_000, 1_000, sockets={4: 1})
    tree.node(3, "5", 1_000, 1_000)
    sockets = [sorted(pool.traits - {NUMA_NODE}) for pool in pools(tree).observe(NOTHING, 0).pools.values()]
    assert sockets == [["CUSTOM_SOCKET_0"], [], ["CUSTOM_SOCKET_1"], []]


def test_what_is_kept_back_is_kept_back_of_each_node_in_proportion(tree: SysTree) -> None:
    made = pools(tree, reserved_vcpu=4, reserved_memory_mb=1_001).observe(NOTHING, 0).pools
    reserved = {(name, one): inv.reserved for name, pool in made.items() for one, inv in pool.inventories.items()}
    assert (reserved["numa0", "VCPU"], reserved["numa1", "VCPU"]) == (3, 1)
    assert (reserved["numa0", "MEMORY_MB"], reserved["numa1", "MEMORY_MB"]) == (542, 459)
    assert reserved["numa0", "CUSTOM_HUGE_PAGES_2048KB"] == 0


def test_what_no_claim_explains_is_found_on_each_node(tree: SysTree) -> None:
    tree.write(
        "proc/7/numa_maps", "1 default anon=51200 N0=51200 kernelpagesize_kB=4\n2 huge N0=9 kernelpagesize_kB=2048"
    )
    works = Usage(0, 0.0, complete=True, cgroups=frozenset(), pids=frozenset({7}))
    part = pools(tree, reserved_memory_mb=1_001).observe(works, 3)
    assert part.unexplained == {
        "numa0/VCPU": 2,
        "numa0/MEMORY_MB": 1_304 - 200 - 542,
        "numa0/CUSTOM_HUGE_PAGES_2048KB": 24 - 9,
        "numa0/CUSTOM_HUGE_PAGES_1048576KB": 2,
        "numa1/VCPU": 1,
        "numa1/MEMORY_MB": 0,
    }
    assert part.trusted == part.unexplained.keys()


def test_only_what_can_be_attributed_to_a_node_is_trusted(tree: SysTree) -> None:
    tree.write("cgroup/job/memory.numa_stat", "anon N0=4096 N1=0\nshmem N0=0 N1=0")
    in_cgroup = Usage(0, 0.0, complete=True, cgroups=frozenset({"job"}), pids=frozenset())
    assert pools(tree).observe(in_cgroup, 0).trusted == {
        "numa0/VCPU",
        "numa0/MEMORY_MB",
        "numa1/VCPU",
        "numa1/MEMORY_MB",
    }, "without the hugetlb controller nothing tells whose huge pages are whose"
    unnamed = Usage(0, 0.0, complete=False, cgroups=frozenset(), pids=frozenset())
    assert pools(tree).observe(unnamed, 0).trusted == frozenset()


def test_a_machine_without_nodes_is_reported_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="unset REDSCHED_NUMA_POOLS"):
        pools(SysTree(tmp_path))


def test_nodes_without_memory_or_cpus_have_none(tree: SysTree) -> None:
    tree.node(2, "", 2_000, 2_000)
    tree.node(3, "12", 0, 0)
    made = pools(tree).observe(NOTHING, 0).pools
    assert made["numa2"].inventories.keys() == {"MEMORY_MB"}
    assert made["numa3"].inventories.keys() == {"VCPU"}


def test_the_nodes_of_this_machine_can_be_read() -> None:
    for node in read_nodes():
        assert node.memory_bytes >= node.used_bytes >= 0
        assert node.cpus or node.memory_bytes
