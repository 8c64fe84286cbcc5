"""How many more of a request fit: as many as decisions would place one after the other, and why not one more."""

from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from redsched.errors import NotFound
from redsched.model import (
    NUMA_NODE,
    Aggregate,
    Group,
    GroupPolicy,
    HostReport,
    Inventory,
    Numa,
    NumaCell,
    Pool,
    Request,
    ServerGroup,
    SharedPool,
)
from redsched.operate.plans import capacity as counting
from redsched.operate.plans.cell_copy import CellCopy, free_by_class
from redsched.settings import Settings
from tests.operate.plans.parts import MILLI, Plans, archive, copy, host

ONE = Request({"VCPU": 2, "MEMORY_MB": 1024})
GPU = Request({"VCPU": 1}, groups=(Group("gpu", {MILLI: 600}),))
FAST = "CUSTOM_FAST"
PAIR = Request({"VCPU": 1}, groups=(Group("a", {MILLI: 500}), Group("b", {MILLI: 500})), group_policy="isolate")
REQUESTS = (ONE, GPU, PAIR, replace(ONE, count=2), Request({"VCPU": 3}, zones=frozenset({"az1"})))
FLEET = [
    host("a", 2, "az1", VCPU=10, MEMORY_MB=8192),
    host("b", 1, "az2", VCPU=5, MEMORY_MB=2048),
    host("c", 0, "az2", VCPU=64, MEMORY_MB=3000),
]


def one_by_one(of: CellCopy, request: Request) -> int:
    """Return how many of a request decisions place one after the other."""
    times = 0
    while len((decision := of.decide(request)).places) == request.places:
        times += 1
        for place in decision.places:
            of.take(place)
    return times


@pytest.mark.parametrize("request_", REQUESTS)
@given(
    sizes=st.lists(st.tuples(st.integers(1, 12), st.integers(0, 3), st.sampled_from(["az1", "az2"])), max_size=5),
    taken=st.lists(st.sampled_from([ONE, GPU, PAIR]), max_size=6),
)
def test_as_many_fit_as_decisions_place(
    request_: Request, sizes: list[tuple[int, int, str]], taken: list[Request]
) -> None:
    """On hosts that are partly in use, with and without pools, alone and several together."""
    hosts = [
        host(f"h{number}", gpus, zone, VCPU=vcpu, MEMORY_MB=4096) for number, (vcpu, gpus, zone) in enumerate(sizes)
    ]
    used = copy(archive(hosts))
    for one in taken:
        if places := used.decide(one).places:
            used.take(places[0])
    before = free_by_class(used.columns)
    found = counting.capacity(used, request_)
    assert free_by_class(used.columns) == before
    assert found.places == one_by_one(used, request_)
    assert sum(found.zones.values()) == found.places * request_.places
    assert not found.at_least


def test_the_answer_says_where_and_what_runs_out() -> None:
    found = Plans(archive(FLEET)).capacity(ONE)
    assert (found.places, found.zones) == (5 + 2 + 2, {"az1": 5, "az2": 4})
    assert {one.reason: one.hosts for one in found.reasons} == {"MEMORY_MB": 2, "VCPU": 1}
    assert [(one.resource_class, one.free, one.after) for one in found.classes] == [
        ("MEMORY_MB", 13240, 13240 - 9 * 1024),
        ("VCPU", 79, 79 - 18),
    ]


def test_a_limit_on_claims_of_a_host_counts() -> None:
    """Other rules than amounts stop earlier, also where the amounts would allow very many."""
    tight = Settings(max_claims_per_host=3)
    assert Plans(archive(FLEET), tight).capacity(Request({"VCPU": 1})).places == 9
    assert Plans(archive(FLEET), tight).capacity(GPU).places == 2 + 1
    for request, places in ((ONE, 9), (GPU, 3)):  # what starts is active some time
        assert Plans(archive(FLEET), Settings(max_starting_per_host=1)).capacity(request).places == places


def test_groups_spreads_and_shared_pools_relate_hosts() -> None:
    group = ServerGroup("web", GroupPolicy.ANTI_AFFINITY)
    apart = replace(ONE, server_group="web")
    assert Plans(archive(FLEET, groups=(group,))).capacity(apart).places == 3
    taken = archive(FLEET, {"web-1": ("a", apart)}, groups=(group,))
    assert Plans(taken).capacity(apart).places == 2
    seats = SharedPool("lic", {"CUSTOM_SEAT": Inventory(4)})
    assert Plans(archive(FLEET, pools=(seats,))).capacity(Request({"VCPU": 1, "CUSTOM_SEAT": 1})).places == 4
    equal = archive([host(name, 2, VCPU=8) for name in "abc"], pools=(seats,))
    assert Plans(equal).capacity(replace(GPU, resources={"VCPU": 1, "CUSTOM_SEAT": 1})).places == 4


def test_beyond_the_limit_there_are_at_least_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "MAX_PLACES", 5)
    for request in (ONE, replace(ONE, spread=())):
        found = Plans(archive(FLEET)).capacity(request)
        assert (found.places, found.at_least) == (5, True)
    tired = replace(Plans(archive(FLEET)), limit_s=0.0).capacity(ONE)
    assert (tired.places, tired.at_least) == (0, True)


def test_what_is_not_declared_is_refused() -> None:
    with pytest.raises(NotFound, match="server group 'nobody' is not declared: declare it first"):
        Plans(archive(FLEET)).capacity(replace(ONE, server_group="nobody"))


@given(
    marks=st.lists(st.tuples(st.booleans(), st.sampled_from([0, 1, 2])), min_size=2, max_size=5),
    asked=st.sampled_from([GPU, Request({MILLI: 1000}, required=frozenset({FAST}))]),
)
def test_hosts_with_equal_pools_may_differ_in_traits_and_limits(marks: list[tuple[bool, int]], asked: Request) -> None:
    """A trait may be the host's or a pool's; and aggregates limit the claims."""
    gpu = {MILLI: Inventory(1000)}
    pools = {"gpu0": Pool(gpu, traits=frozenset({FAST})), "gpu1": Pool(gpu), "gpu2": Pool(gpu)}
    fleet = [
        replace(host(f"h{number}", VCPU=8), pools=pools, traits=frozenset({FAST} if fast else ()))
        for number, (fast, _) in enumerate(marks)
    ]
    limits = tuple(
        Aggregate(
            f"most{most}",
            {"max_claims_per_host": str(most)},
            frozenset(f"h{number}" for number, (_, one) in enumerate(marks) if one == most),
        )
        for most in (1, 2)
    )
    one = archive(fleet, aggregates=limits)
    assert Plans(one).capacity(asked).places == one_by_one(copy(one), asked)


def test_hosts_with_equal_amounts_may_differ_in_how_much_is_real() -> None:
    """4 KB pages are not overcommitted: of the same capacity, one host has half."""

    def with_node(name: str, total: int, ratio: float) -> HostReport:
        memory = Inventory(total, max_unit=2048, allocation_ratio=ratio)
        node = Pool({"VCPU": Inventory(16), "MEMORY_MB": memory}, traits=frozenset({NUMA_NODE}))
        return replace(host(name), pools={"numa0": node})

    fleet = archive([with_node("a", 4096, 1.0), with_node("b", 2048, 2.0)])
    asked = Request(numa=Numa((NumaCell(1, 1024),), page_size_kb=4))
    assert Plans(fleet).capacity(asked).places == one_by_one(copy(fleet), asked) == 4 + 2
