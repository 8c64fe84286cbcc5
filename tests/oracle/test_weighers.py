"""Recorded weights of Nova's weighers: redsched gives every host the same, multipliers of aggregates included."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.oracle.cases.weighers import HERE, OPTIONS, Fleet
from tests.oracle.redsched_weighers import weights, weights_by_cell

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
        ours = weights_by_cell(fleet) if weigher == "CrossCellWeigher" else weights(fleet)
        yield fleet, sum(one != pytest.approx(other, abs=1e-6) for one, other in zip(ours, theirs, strict=True))


def differing_weights() -> int:
    """Return how many weights of the record differ."""
    return sum(count for weigher in OPTIONS for _, count in differing(weigher))


def has_no_multiplier_for_a_missing_metric(fleet: Fleet) -> bool:
    """Return whether a host lacks a metric and has a multiplier of 0."""
    named = {one.partition("=")[0] for one in fleet.metrics_conf["weight_setting"]}
    zero = {name for name, metadata in fleet.aggregates.items() if "0" in metadata.values()}
    is_off = not fleet.metrics_conf["weight_multiplier"]
    lacking = [host for host in fleet.hosts if not named <= host["metrics"].keys()]
    return any(is_off or zero.intersection(host.get("aggregates", ())) for host in lacking)


def is_in_one_cell(fleet: Fleet) -> bool:
    """Return whether all hosts are in the cell that work leaves."""
    return "from_cell" in fleet.spec and all(host["cell"] == HERE for host in fleet.hosts)


DIFFERENCES = {
    "MetricsWeigher": (
        has_no_multiplier_for_a_missing_metric,
        "A host that lacks one counts as unavailable even if its multiplier is 0; Nova then counts the metric as 0.",
    ),
    "CrossCellWeigher": (
        is_in_one_cell,
        "If all hosts that fit are in the old cell, they get 1, in Nova 0.",
    ),
}
"""By weigher: the fleets of which weights may differ, and what docs/comparison.md says of them."""


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
