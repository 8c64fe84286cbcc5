"""Differences in candidates: what the cases are, and which of them each difference explains.

Placement is compared with redsched's candidate for each host.
"""

from collections.abc import Callable
from typing import Any

from tests.oracle.cases.candidates import Query, World

Disagreement = tuple[World, Query, dict[str, Any], str]
"""A world, a query, a host, and what is the case there: OURS, PLACEMENTS or OTHER."""

OURS, PLACEMENTS, OTHER = "only redsched has one", "only Placement has one", "redsched has one that Placement has not"


def case_of(theirs: list[str], ours: str) -> str | None:
    """Return what differs; None if redsched's candidate is among Placement's, or there is none."""
    if not theirs or not ours:
        return None if bool(theirs) == bool(ours) else PLACEMENTS if theirs else OURS
    return None if ours in theirs else OTHER


def _root_traits(host: dict[str, Any]) -> set[str]:
    return set(host["places"][""]["traits"])


def _wants_trait_of_root(_world: World, query: Query, host: dict[str, Any]) -> bool:
    wanted = {*query.get("required", ()), *(trait for names in query.get("any_of", ()) for trait in names)}
    return bool(wanted & _root_traits(host))


def _forbids_trait_of_root(_world: World, query: Query, host: dict[str, Any]) -> bool:
    return bool(_root_traits(host).intersection(query.get("forbidden", ())))


def _isolates_bare_group(_world: World, query: Query, _host: dict[str, Any]) -> bool:
    return query.get("group_policy") == "isolate" and any(not group["resources"] for group in query["groups"])


def _isolates_shared_class(_world: World, query: Query, _host: dict[str, Any]) -> bool:
    if query.get("group_policy") != "isolate":
        return False
    parts = [query["resources"], *(group["resources"] for group in query["groups"])]
    return any(sum(name in part for part in parts) > 1 for name in set().union(*parts))


def _may_share(world: World, query: Query) -> bool:
    return any(query["resources"].keys() & pool["inventories"].keys() for pool in world.shared.values())


DIFFERENCES: dict[str, tuple[tuple[str, ...], Callable[[World, Query, dict[str, Any]], bool], str]] = {
    "traits of the host itself": (
        (OURS, OTHER),
        _wants_trait_of_root,
        "Traits of the host itself also count, even if nothing is taken from its root.",
    ),
    "forbidden traits of the host itself": (
        (PLACEMENTS,),
        _forbids_trait_of_root,
        "A host that has the trait itself is refused, even if nothing would be taken from its root.",
    ),
    "isolated groups without resources": (
        (OURS, OTHER),
        _isolates_bare_group,
        "groups without resources may choose a place that another group uses",
    ),
    "isolated groups that share a class": (
        (OURS, OTHER),
        _isolates_shared_class,
        "Placement 16 adds up amounts of different candidates, and so may refuse a host that fits.",
    ),
    "member_of with shared pools": (
        (OURS, OTHER),
        lambda world, query, _: "member_of" in query and _may_share(world, query),
        "a shared pool may be in other aggregates",
    ),
    "in_tree with shared pools": (
        (OURS, OTHER),
        lambda world, query, _: "in_tree" in query and _may_share(world, query),
        "Shared pools may provide resources too; in Placement they are not in the tree.",
    ),
}


def explains(name: str, disagreement: Disagreement) -> bool:
    """Return whether a difference explains a disagreement."""
    world, query, host, case = disagreement
    cases, applies, _ = DIFFERENCES[name]
    return case in cases and applies(world, query, host)
