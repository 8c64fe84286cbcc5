"""Recorded weights of Nova's weighers: redsched gives every host the same, multipliers of aggregates included."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.cases.weighers import OPTIONS, Fleet
from tests.oracle.differences.weighers import DIFFERENCES
from tests.oracle.redsched_weighers import weights

RECORDED = Path(__file__).parent / "recorded" / "weighers.json"
DOCS = Path(__file__).parents[2] / "docs" / "comparison.md"


@cache
def record() -> dict[str, Any]:
    """Return the record of Nova's weighers."""
    found: dict[str, Any] = json.loads(RECORDED.read_text())
    return found


def fleets(weigher: str) -> Iterator[tuple[Fleet, list[float]]]:
    """Yield the fleets of a weigher with Nova's weights."""
    for one in record()["fleets"]:
        if one["weigher"] == weigher:
            yield Fleet(**{key: value for key, value in one.items() if key != "weights"}), one["weights"]


def differing(weigher: str) -> Iterator[tuple[Fleet, int]]:
    """Yield each fleet with the number of its hosts to which redsched gives another weight."""
    for fleet, theirs in fleets(weigher):
        yield (
            fleet,
            sum(one != pytest.approx(other, abs=1e-6) for one, other in zip(weights(fleet), theirs, strict=True)),
        )


def differing_weights() -> int:
    """Return how many weights of the record differ."""
    return sum(count for weigher in OPTIONS for _, count in differing(weigher))


@pytest.mark.parametrize("weigher", OPTIONS)
def test_weights_are_novas_or_differ_as_documented(weigher: str) -> None:
    excepted, says = DIFFERENCES.get(weigher, (lambda _fleet: False, ""))
    found = list(differing(weigher))
    assert [fleet for fleet, count in found if count and not excepted(fleet)] == []
    assert bool(says) == any(count for _, count in found), "a difference is named that there is not"
    assert says in " ".join(DOCS.read_text().split())


@pytest.mark.parametrize("weigher", OPTIONS)
def test_the_record_tells_hosts_apart(weigher: str) -> None:
    assert sum(len(set(theirs)) > 1 for _, theirs in fleets(weigher)) >= 5
