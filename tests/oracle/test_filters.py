"""Recorded verdicts of Nova's filters: redsched passes the same hosts, but for the documented differences."""

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.cases.filters import Block
from tests.oracle.differences.filters import DIFFERENCES, Difference, explains, side_of
from tests.oracle.redsched_side import filter_verdicts

RECORDED = Path(__file__).parent / "recorded"
DOCS = Path(__file__).parents[2] / "docs"

Disagreement = tuple[Block, dict[str, Any], dict[str, Any], str]
"""A block, one of its requests and hosts, and which side passes it."""


@cache
def record() -> dict[str, Any]:
    """Return the record of Nova's filters."""
    found: dict[str, Any] = json.loads((RECORDED / "filters.json").read_text())
    return found


@cache
def disagreements() -> tuple[Disagreement, ...]:
    """Play all blocks against redsched, and return what differs."""
    found: list[Disagreement] = []
    for one in record()["blocks"]:
        block = Block(**{key: value for key, value in one.items() if key != "verdicts"})
        ours = filter_verdicts(block)
        for spec, theirs, mine in zip(block.specs, one["verdicts"], ours, strict=True):
            for host, *pair in zip(block.hosts, theirs, mine, strict=True):
                if side := side_of(*pair):
                    found.append((block, spec, host, side))
    return tuple(found)


def test_every_verdict_that_differs_is_a_documented_difference() -> None:
    unexplained = [one for one in disagreements() if not any(explains(each, *one) for each in DIFFERENCES)]
    assert unexplained == []


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda one: one.name)
def test_a_documented_difference_is_one(difference: Difference) -> None:
    """There is a verdict that only this difference explains, so that it cannot be named in vain."""
    alone = (one for one in disagreements() if [each for each in DIFFERENCES if explains(each, *one)] == [difference])
    assert next(alone, None) is not None


@pytest.mark.parametrize("difference", DIFFERENCES, ids=lambda one: one.name)
def test_a_difference_stands_in_the_documentation(difference: Difference) -> None:
    assert difference.says in " ".join((DOCS / difference.page).read_text().split())


def test_every_filter_of_nova_passes_and_refuses_hosts_in_the_record() -> None:
    seen = Counter[tuple[str, str]]()
    for one in record()["blocks"]:
        seen.update((one["filter"], verdict) for verdict in "".join(one["verdicts"]))
    names = {name for name, _ in seen}
    assert {name for name in names if not (seen[name, "1"] and seen[name, "0"])} == set()
    # The other three are AllHostsFilter, and the two whose hints name claims: these are resolved before deciding.
    assert len(names) == 19
