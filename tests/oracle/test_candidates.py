"""Recorded candidates of Placement: redsched's candidate for each host is among them, or differs as documented."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.cases.candidates import Query, World
from tests.oracle.redsched_candidates import candidates

RECORDED = Path(__file__).parent / "recorded" / "candidates.json"
DOCS = Path(__file__).parents[2] / "docs" / "comparison.md"

Disagreement = tuple[World, Query, dict[str, Any], str]
"""A world, a query, a host, and what is the case there: OURS, PLACEMENTS or OTHER."""

OURS, PLACEMENTS, OTHER = "only redsched has one", "only Placement has one", "redsched has one that Placement has not"


@cache
def record() -> dict[str, Any]:
    """Return the record of Placement's candidates."""
    found: dict[str, Any] = json.loads(RECORDED.read_text())
    return found


def case_of(theirs: list[str], ours: str) -> str | None:
    """Return what differs; None if redsched's candidate is among Placement's, or there is none."""
    if not theirs or not ours:
        return None if bool(theirs) == bool(ours) else PLACEMENTS if theirs else OURS
    return None if ours in theirs else OTHER


@cache
def disagreements() -> tuple[Disagreement, ...]:
    """Play all worlds against redsched, and return what differs."""
    found: list[Disagreement] = []
    for one in record()["worlds"]:
        world = World(**{key: value for key, value in one.items() if key != "candidates"})
        for query, theirs, ours in zip(world.queries, one["candidates"], candidates(world), strict=True):
            # A query that Placement refuses, with a trait both required and forbidden, has no candidates.
            of_hosts = theirs if isinstance(theirs, list) else [[]] * len(ours)
            for host, *pair in zip(world.hosts, of_hosts, ours, strict=True):
                if case := case_of(*pair):
                    found.append((world, query, host, case))
    return tuple(found)


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


def test_every_candidate_that_differs_is_a_documented_difference() -> None:
    unexplained = [one for one in disagreements() if not any(explains(name, one) for name in DIFFERENCES)]
    assert unexplained == []


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_documented_difference_is_one(name: str) -> None:
    """There is a case that only this difference explains, so that it cannot be named in vain."""
    alone = (one for one in disagreements() if [each for each in DIFFERENCES if explains(each, one)] == [name])
    assert next(alone, None) is not None


@pytest.mark.parametrize("name", DIFFERENCES)
def test_a_difference_stands_in_the_documentation(name: str) -> None:
    assert DIFFERENCES[name][2] in " ".join(DOCS.read_text().split())


def test_many_queries_have_candidates() -> None:
    answers = [one for world in record()["worlds"] for one in world["candidates"] if isinstance(one, list)]
    assert sum(any(one) for one in answers) > len(answers) / 4
