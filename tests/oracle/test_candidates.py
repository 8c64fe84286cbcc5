"""Recorded candidates of Placement: redsched's candidate for each host is among them, or differs as documented."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.cases.candidates import World
from tests.oracle.differences.candidates import DIFFERENCES, Disagreement, case_of, explains
from tests.oracle.redsched_candidates import candidates

RECORDED = Path(__file__).parent / "recorded" / "candidates.json"
DOCS = Path(__file__).parents[2] / "docs" / "comparison.md"


@cache
def record() -> dict[str, Any]:
    """Return the record of Placement's candidates."""
    found: dict[str, Any] = json.loads(RECORDED.read_text())
    return found


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
