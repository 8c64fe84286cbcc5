"""The figures of docs/comparison.md on recorded verdicts are those of the records."""

import re

from tests.oracle import test_candidates, test_filters, test_weighers
from tests.oracle.cases.weighers import OPTIONS


def figures() -> dict[str, list[int]]:
    """Return the numbers in the table of records, by its first column."""
    [section] = re.findall(
        r"## How parity is tested\n(.*?)\n## ", test_filters.DOCS.joinpath("comparison.md").read_text(), re.S
    )
    rows = [line.strip("| ").split("|") for line in section.splitlines() if line.startswith("| `")]
    return {
        row[0].strip(" `"): [int(one.replace(",", "")) for one in re.findall(r"[0-9][0-9,]*", "|".join(row[1:]))]
        for row in rows
    }


def test_the_figures_of_filters() -> None:
    blocks = test_filters.record()["blocks"]
    verdicts = sum(len("".join(one["verdicts"])) for one in blocks)
    filters = len({one["filter"] for one in blocks})
    assert figures()["filters.json"] == [verdicts, filters, len(test_filters.disagreements())]


def test_the_figures_of_weighers() -> None:
    weights = sum(len(one["weights"]) for one in test_weighers.record()["fleets"])
    assert figures()["weighers.json"] == [weights, len(OPTIONS), test_weighers.differing_weights()]


def test_the_figures_of_candidates() -> None:
    worlds = test_candidates.record()["worlds"]
    pairs = sum(len(one["hosts"]) * len(one["queries"]) for one in worlds)
    assert figures()["candidates.json"] == [pairs, len(test_candidates.disagreements())]


def test_the_versions_of_the_records_are_those_to_install() -> None:
    nova, placement = test_filters.record()["nova"], test_candidates.record()["placement"]
    assert test_weighers.record()["nova"] == nova
    text = test_filters.DOCS.joinpath("comparison.md").read_text()
    assert f"pip install nova=={nova} openstack-placement=={placement}" in text
