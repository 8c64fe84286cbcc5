"""Natural order: ci-2 before ci-10, in every list."""

import asyncio
from dataclasses import replace
from itertools import permutations

import pytest

from redsched.cli.output.formats import natural
from redsched.model import HostReport
from redsched.scheduler import Scheduler
from tests.cli.conftest import REPORTS, Redsched
from tests.support.builders.cells import usual_settings

BOTH_LINKS = True


async def _report(url: str, report: HostReport) -> None:
    async with Scheduler.connect(url, usual_settings()) as scheduler:
        await scheduler.hosts.report(report)


NAMES = ("2", "10", "a", "a0", "a00", "a2", "a2b", "a2b3", "a2b10", "a10", "b1", "ci-2", "ci-10")


def test_numbers_in_names_count_as_numbers() -> None:
    assert sorted(sorted(NAMES, reverse=True), key=natural) == list(NAMES)
    assert all(
        sorted(some, key=natural) == ["ci-2", "ci-10", "ci-x"] for some in permutations(["ci-10", "ci-x", "ci-2"])
    )


@pytest.fixture
def fleet(redsched: Redsched, store: str) -> Redsched:
    """Return the command on a store with h1, h2 and h10, each with a claim, and with other things of such names."""
    asyncio.run(_report(store, replace(REPORTS[0], name="h10")))
    for number in (10, 9, 1):
        redsched("select", "VCPU=1", "--id", f"c{number}", "--host", f"h{number if number != 9 else 10}").check()
        redsched("aggregate", "set", f"a{number}", "--metadata", "k=v", "--host", "h10", "--host", "h2").check()
        redsched("quota", "set", f"p{number}", "VCPU=1").check()
    return redsched


SORTED = {
    ("host",): ["h1", "h2", "h10"],
    ("claim",): ["c1", "c9", "c10"],
    ("aggregate",): ["a1", "a9", "a10"],
    ("quota",): ["p1", "p9", "p10"],
    ("host", "--sort", "host"): ["h1", "h2", "h10"],
    ("host", "--sort", "host:desc"): ["h10", "h2", "h1"],
}


def test_lists_are_in_natural_order(fleet: Redsched) -> None:
    for (noun, *options), names in SORTED.items():
        assert fleet(noun, "list", "-o", "name", *options).check().output.split() == names
        rows = fleet(noun, "list", *options).check().output.splitlines()[1:]
        assert [row.split("\t")[0] for row in rows] == names
    assert "hosts: h2 h10" in fleet("aggregate", "show", "a1").check().output
