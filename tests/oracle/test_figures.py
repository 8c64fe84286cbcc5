"""The figures of docs/comparison.md on recorded verdicts are those of the records."""

import re
from collections import Counter

from tests.oracle import test_candidates, test_filters, test_weighers
from tests.oracle.cases.filters import Block
from tests.oracle.cases.weighers import OPTIONS
from tests.oracle.redsched_side import filter_verdicts


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


def test_the_figures_of_errors_and_of_filters_with_few_verdicts() -> None:
    errors, verdicts, ours = Counter[str](), Counter[str](), Counter[str]()
    for one in test_filters.record()["blocks"]:
        theirs = "".join(one["verdicts"])
        verdicts[one["filter"]] += len(theirs)
        if "e" in theirs:
            errors[one["filter"]] += theirs.count("e")
            mine = "".join(filter_verdicts(Block(**{key: one[key] for key in one if key != "verdicts"})))
            ours.update(b for a, b in zip(theirs, mine, strict=True) if a == "e")
    text = " ".join(test_filters.DOCS.joinpath("comparison.md").read_text().split())
    (first, second, third), names = sorted(errors.values(), reverse=True), sorted(errors, key=lambda one: -errors[one])
    assert (
        f"{errors.total():,} verdicts of `filters.json` are errors in Nova: {first} of {names[0]}, {second} of" in text
    )
    assert f"{second} of {names[1]} and {third} of {names[2]}." in text
    agreed = f"the {ours['r'] + ours['0']:,} of them for which redsched refuses the request ({ours['r']}) or the host "
    assert f"{agreed}({ours['0']}) count as agreement; the other {ours['1']} count as different." in text
    few = {name: count for name, count in verdicts.items() if count < 70}
    assert len(few) == 3
    assert all(f"{name} {count}" in text for name, count in few.items())


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
