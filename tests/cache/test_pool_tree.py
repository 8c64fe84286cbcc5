"""Pool trees: they are built only from the fields that describe the structure of a host."""

from redsched.cache.pool_tree import PoolTree, pool_tree_of, tree_after

FIELDS = {
    "pool.numa0": "/",
    "pool.numa1": "/",
    "pool.gpu10": "numa1",
    "pool.gpu2": "numa0",
    "pool.slice0": "gpu2",
    "pool.disk": "/",
    "trait.numa0/HW_NUMA_ROOT": "1",
    "trait.numa1/HW_NUMA_ROOT": "1",
    "trait.gpu2/CUSTOM_T4": "1",
    "capacity.gpu2/CUSTOM_GPU_MILLI": "1000",
    "capacity.gpu2/VGPU": "0",
}


def tree_of(fields: dict[str, str]) -> str:
    return tree_after("", fields)


def layout(fields: dict[str, str]) -> PoolTree:
    return pool_tree_of(tree_of(fields))


def test_pools_have_their_parents_classes_and_traits_in_natural_order() -> None:
    found = layout(FIELDS)
    assert found.pools == ("disk", "gpu2", "gpu10", "numa0", "numa1", "slice0")
    assert found.parent == {"disk": "", "gpu2": "numa0", "gpu10": "numa1", "numa0": "", "numa1": "", "slice0": "gpu2"}
    assert found.classes["gpu2"] == {"CUSTOM_GPU_MILLI", "VGPU"}
    assert found.traits["gpu2"] == {"CUSTOM_T4"}
    assert (found.classes["disk"], found.traits["disk"]) == (frozenset(), frozenset())


def test_above_a_pool_lie_its_ancestors_and_the_host() -> None:
    found = layout(FIELDS)
    assert found.above("slice0") == ("gpu2", "numa0", "")
    assert found.above("disk") == ("",)
    assert found.above("") == ()


def test_a_pool_is_near_the_node_that_it_is_or_lies_in() -> None:
    found = layout(FIELDS)
    assert [found.numa_node(pool) for pool in ("numa0", "slice0", "gpu10", "disk", "")] == [
        *("numa0", "numa0", "numa1"),
        *(None, None),
    ]


def test_a_host_without_pools_has_an_empty_layout() -> None:
    found = layout(
        {"capacity.VCPU": "8", "trait.HW_CPU_X86_AVX2": "1", "label.rack": "pool.a/b", "claimed.a/VCPU": "1"}
    )
    assert found == pool_tree_of("")
    assert found.pools == ()


def test_what_is_in_a_pool_changes_no_tree_and_how_it_is_built_does() -> None:
    tree = tree_of(FIELDS)
    for amount in ("claimed.gpu2/VGPU", "external.gpu2/VGPU", "total.gpu2/VGPU", "capacity.gpu2/VGPU"):
        assert tree_after(tree, {amount: "7"}) == tree
    assert tree_after(tree, {"capacity.gpu2/PGPU": "1"}) == tree_of(FIELDS | {"capacity.gpu2/PGPU": "1"})
    for field in FIELDS:
        without = {name: text for name, text in FIELDS.items() if name != field}
        assert tree_after(tree, {field: ""}) == tree_of(without) != tree


def test_the_order_of_fields_is_nothing() -> None:
    assert tree_of(dict(reversed(FIELDS.items()))) == tree_of(FIELDS)
    assert layout(dict(reversed(FIELDS.items()))) is layout(FIELDS)


def test_a_pool_whose_way_to_the_host_nobody_can_follow_is_left_out() -> None:
    """Its field was damaged by hand: it makes a cycle, or names an unknown parent or an invalid name."""
    for text in ("slice0", "gpu2", "nowhere", "a b", "a=b", "a/b"):
        assert set(layout(FIELDS | {"pool.gpu2": text}).pools) == {"disk", "gpu10", "numa0", "numa1"}, text


def test_a_field_that_is_no_name_disturbs_no_other() -> None:
    odd = {"pool.a b": "/", "capacity.a=b/VCPU": "1", "trait.gpu2/A B": "1", "pool.": "/", "trait.gpu2/CUSTOM_NO": "0"}
    assert tree_of(FIELDS | odd) == tree_of(FIELDS)
