"""The nearest misses of requests for pools: which hosts they are, and what is said of them."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from redsched.cache.columns import Columns
from redsched.decide.decider import Decider
from redsched.model import Claim, ClaimStatus, Group, PciDevices, Placement, Request
from redsched.model.records.explanations import Miss
from redsched.settings import Settings
from redsched.store.codec.keys import Kind
from tests.support.builders.columns import columns_of
from tests.support.fleets.gpu_lab import GPU, MACHINE, box, gpus, lab

DEFAULTS = Settings()
TWO_GROUPS = f"2000 {GPU} as 2 groups of 1000, because no place of it has more than 1000"


def nearest(columns: Columns, request: Request) -> Sequence[Miss]:
    return Decider(columns, DEFAULTS).explain(request).nearest


def names(columns: Columns, request: Request) -> list[str]:
    return [one.host for one in nearest(columns, request)]


# Which hosts


@pytest.mark.parametrize(
    "request_",
    [
        Request({GPU: 2000}),
        Request({"VCPU": 4, GPU: 2000}),
        gpus(4),
        gpus(4, resources={"VCPU": 8}),
        gpus(4, group_policy="isolate"),
        Request(pci=(PciDevices(GPU, 5),)),
    ],
)
def test_hosts_without_a_class_that_the_request_needs_are_not_near(request_: Request) -> None:
    """Neither when most machines have none of it, nor when all of them do."""
    used = dict.fromkeys(("gpu-1", "gpu-2"), (3,) if request_.groups else ())
    full = {name: range(4) for name in used} if request_.pci else used
    assert names(lab(full), request_) == ["gpu-1", "gpu-2"]
    assert names(lab({}), request_) == []


def test_a_class_that_a_shared_pool_gives_is_one_that_the_host_has() -> None:
    columns = columns_of(ci=MACHINE)
    columns.declared.put(Kind.POOL, "seats", {"version": "1", "capacity.CUSTOM_SEAT": "1"})
    assert names(columns, Request({"CUSTOM_SEAT": 2})) == ["ci"]
    of_others = {"version": "1", "capacity.CUSTOM_SEAT": "1", "aggregate.licensed": "1"}
    columns.declared.put(Kind.POOL, "seats", of_others)
    assert names(columns, Request({"CUSTOM_SEAT": 2})) == []


def test_hosts_are_near_by_how_much_of_the_request_fits_there() -> None:
    """Whether it asks for groups or for one amount; the rest of the request counts too."""
    columns = lab({"a": range(4), "b": (0, 1, 2), "c": (0,), "d": (0, 1)})
    assert names(columns, gpus(4)) == ["c", "d", "b"]
    assert names(columns, gpus(4, group_policy="isolate")) == ["c", "d", "b"]
    assert names(columns, Request({GPU: 4000})) == ["c", "d", "b"]
    columns.patch("c", {"version": "2"} | {f"claimed.numa{node}/VCPU": "16" for node in range(2)})
    assert names(columns, gpus(4, resources={"VCPU": 8})) == ["d", "b", "a"]


def test_what_is_left_in_places_too_small_for_a_group_does_not_count() -> None:
    columns = lab({"halves": (), "whole": (0, 1, 2)})
    columns.patch("halves", {"version": "2"} | {f"claimed.gpu{gpu}/{GPU}": "500" for gpu in range(4)})
    assert names(columns, gpus(2)) == ["whole", "halves"]


def test_only_places_with_the_traits_of_a_group_count() -> None:
    t4 = {f"trait.gpu{gpu}/CUSTOM_T4": "1" for gpu in range(4)}
    columns = columns_of(other=box(), t4=box((0, 1, 2)) | t4)
    groups = tuple(Group(f"g{number}", {GPU: 1000}, required=frozenset(("CUSTOM_T4",))) for number in range(2))
    assert names(columns, Request(groups=groups)) == ["t4", "other"]


# What is said of them


def test_the_needs_and_the_rest_of_groups_are_those_of_all_together() -> None:
    (miss,) = nearest(lab({"gpu-1": (3,)}), gpus(4))
    assert (miss.needs, miss.free, miss.changes) == ({GPU: 4000}, {GPU: 3000}, ("without group g3",))


def test_as_few_groups_as_possible_are_left_out() -> None:
    (miss,) = nearest(lab({"gpu-1": (0,)}), gpus(8))
    assert (miss.free, miss.changes) == ({GPU: 3000}, ("without groups g3, g4, g5, g6, g7",))


def test_if_only_the_places_are_wrong_the_amounts_are_those_of_all_groups() -> None:
    """The two GPUs that are free are in different NUMA nodes."""
    together = Request(
        groups=(*gpus(2).groups, Group("node", required=frozenset(("HW_NUMA_ROOT",)))),
        same_subtree=(frozenset(("g0", "g1", "node")),),
    )
    (miss,) = nearest(lab({"gpu-1": (0, 2)}), together)
    assert (miss.needs, miss.free) == ({GPU: 2000}, {GPU: 2000})
    assert miss.changes


def test_a_host_that_lacks_a_trait_lacks_no_amounts() -> None:
    (miss,) = nearest(lab({"gpu-1": ()}), gpus(1, required=frozenset(("CUSTOM_T4",))))
    assert (miss.needs, miss.free, miss.changes) == ({}, {}, ("without trait CUSTOM_T4",))


# An amount that no place has, in groups


@pytest.mark.parametrize(
    ("amount", "free", "expected"),
    [
        (2000, 3, TWO_GROUPS),
        (2000, 2, TWO_GROUPS),
        (1500, 2, f"1500 {GPU} as groups of 1000 and 500, because no place of it has more than 1000"),
        (3200, 4, f"3200 {GPU} as groups of 1000, 1000, 1000 and 200, because no place of it has more than 1000"),
        (2000, 1, f"1000 {GPU} less"),
        (5000, 4, f"4000 {GPU} less"),
    ],
)
def test_an_amount_that_no_place_has_may_be_given_in_groups(amount: int, free: int, expected: str) -> None:
    (miss,) = nearest(lab({"gpu-1": range(free, 4)}), Request({GPU: amount}))
    assert (miss.needs, miss.free, miss.changes) == ({GPU: amount}, {GPU: 1000}, (expected,))


def test_the_rest_of_the_request_is_changed_beside_the_groups() -> None:
    (miss,) = nearest(lab({"gpu-1": ()}), Request({GPU: 2000, "VCPU": 40}))
    assert miss.changes == (TWO_GROUPS, "24 VCPU less")


def test_groups_get_the_traits_that_only_pools_have() -> None:
    t4 = {f"trait.gpu{gpu}/CUSTOM_T4": "1" for gpu in range(4)}
    request = Request({GPU: 2000}, required=frozenset(("CUSTOM_T4",)))
    (miss,) = nearest(columns_of(gpu=box() | t4), request)
    assert miss.changes == (TWO_GROUPS,)


def test_what_one_place_gives_once_it_is_free_stays_one_amount() -> None:
    columns = lab({"gpu-1": range(4)})
    columns.patch("gpu-1", {"version": "2", f"claimed.gpu0/{GPU}": "600", f"claimed.gpu1/{GPU}": "600"})
    (miss,) = nearest(columns, Request({GPU: 800}))
    assert miss.changes == (f"400 {GPU} less",)


# The claims in the way


def held(number: int, gpu: int, project: str = "web") -> Claim:
    """Return a claim on one GPU of gpu-1."""
    amounts, token = {f"gpu{gpu}/{GPU}": 1000}, f"1-a.{number}"
    placement = Placement(token, token, token, "gpu-1", ClaimStatus.ACTIVE, amounts)
    return Claim(f"c{number}", "c1", "gpu-1", ClaimStatus.ACTIVE, token, amounts, project, placements=(placement,))


def in_the_way(columns: Columns, request: Request, *claims: Claim) -> Miss:
    """Return the nearest miss with the claims in the way; check that the columns are as before."""
    decider = Decider(columns, DEFAULTS)
    (miss,) = decider.explain(request).nearest
    before = [family[f"gpu3/{GPU}"].tolist() for family in (columns.claimed, columns.external)]
    found = decider.in_the_way(request, miss, claims, 0)
    assert [family[f"gpu3/{GPU}"].tolist() for family in (columns.claimed, columns.external)] == before
    return found


def test_the_claims_in_the_way_are_as_few_as_possible_with_their_projects() -> None:
    columns = lab({"gpu-1": (1, 2, 3)}, machines=0)
    claims = held(1, 1), held(2, 2, "db"), held(3, 3)
    found = in_the_way(columns, gpus(3), *claims)
    assert len(found.claims) == 2
    assert found.claims.items() <= {"c1": "web", "c2": "db", "c3": "web"}.items()
    assert (found.changes, found.both) == (("without groups g1, g2",), False)


def test_no_claim_is_in_the_way_where_all_of_them_would_not_do() -> None:
    columns = lab({"gpu-1": (3,)}, machines=0)
    assert in_the_way(columns, gpus(5), held(1, 3)).claims == {}
    assert Decider(columns, DEFAULTS).in_the_way(gpus(4), Miss("gone", {}, {}), (), 0).claims == {}


def test_an_amount_that_no_place_has_needs_groups_and_the_end_of_claims() -> None:
    columns = lab({"gpu-1": range(4)}, machines=0)
    found = in_the_way(columns, Request({GPU: 2000}), *(held(number, number) for number in range(4)))
    assert (found.changes, found.both, len(found.claims)) == ((TWO_GROUPS,), True, 2)
    alone = in_the_way(columns, replace(Request({GPU: 2000}), required=frozenset(("CUSTOM_T4",))), held(0, 0))
    assert (alone.claims, alone.both) == ({}, False)


def test_what_is_kept_for_another_request_is_not_given_up_by_claims() -> None:
    columns = columns_of(**{"gpu-1": box((0,)) | {"reservation": "r", f"kept.gpu0/{GPU}": "1000"}})
    assert in_the_way(columns, gpus(4), held(1, 0)).claims == {}
