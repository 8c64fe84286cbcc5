"""What every reading command prints on terminals of 80 and 200 columns, with few hosts and with many."""

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from redsched import aio
from redsched.cli.commands import NOUNS
from redsched.model import Aggregate, GroupPolicy, HostReport, Inventory, Quota, Request, ServerGroup, SharedPool
from redsched.scheduler import Scheduler
from redsched.store.embedded.server import PrivateServer
from tests.cli.parts import run
from tests.cli.screens import drawn
from tests.cli.terminals import lines_of
from tests.support.builders.cells import usual_settings

HOST = "compute-{:05}.rack-{:03}.europe-north-1.example"
FIRST = HOST.format(0, 0)
CLAIM = "website-of-the-shop-{}"
SIZES = (10, 600, pytest.param(10_000, marks=pytest.mark.long))
"""600 hosts are more than a page of a list and than the table of `top` have."""
WIDTHS = (80, 200)
AT_ONCE = 500
LISTS = {
    "host list": ("hosts", "name"),
    "claim list": ("claims", "claim_id"),
    "quota list": ("quotas", "project"),
    "aggregate list": ("aggregates", "name"),
    "server-group list": ("server_groups", "name"),
    "shared-pool list": ("shared_pools", "name"),
}
"""Commands that list names, with the part of their JSON that has them."""
OTHERS = (
    f"host show {FIRST}",
    f"claim show {CLAIM.format(0)}",
    "events --limit 20",
    "status",
    "capacity",
    "capacity --by zone",
    "capacity --by project",
    "explain VCPU=2",
    "explain VCPU=9000",
    "plan capacity VCPU=2 --n-plus-one zone",
    f"plan drain {FIRST}",
    f"plan without {FIRST}",
    f"plan rebalance --for drain --empty {FIRST}",
    "audit",
    "function show",
)
ELSEWHERE = {"token list", "context list"}
"""Lists of files, which have as many rows however many hosts there are: see test_listings.py."""


@dataclass(frozen=True)
class Fleet:
    """A store with so many hosts."""

    url: str
    hosts: int


@pytest.fixture(scope="module", params=SIZES)
def fleet(request: pytest.FixtureRequest) -> Iterator[Fleet]:
    """Yield a fleet with long names, claims, and one declared object of each kind."""
    with PrivateServer.start() as server:
        asyncio.run(_fill(server.url, request.param))
        yield Fleet(server.url, request.param)


async def _fill(url: str, hosts: int) -> None:
    async with Scheduler.connect(url, usual_settings()) as scheduler:
        await scheduler.init()
        for first in range(0, hosts, AT_ONCE):
            numbers = range(first, min(first + AT_ONCE, hosts))
            await aio.gather(scheduler.hosts.report(_report(number)) for number in numbers)
        await scheduler.aggregates.put(
            Aggregate("machines-with-local-disks-of-the-second-generation", hosts=frozenset({FIRST}))
        )
        await scheduler.server_groups.put(ServerGroup("databases-of-the-shop", GroupPolicy.SOFT_ANTI_AFFINITY))
        await scheduler.shared_pools.put(SharedPool("licences-of-the-database", {"CUSTOM_SEAT": Inventory(5)}))
        await scheduler.quotas.put(Quota("website-of-the-shop", {"VCPU": 100}))
        amounts, ids = {"VCPU": 2, "MEMORY_MB": 4096}, tuple(CLAIM.format(number) for number in range(8))
        await scheduler.select(
            Request(amounts, hosts=frozenset({FIRST}), claim_ids=ids[:1], project="website-of-the-shop", lease_s=3600)
        )
        await scheduler.select(
            Request(amounts, count=7, claim_ids=ids[1:], project="website-of-the-shop", lease_s=3600)
        )


def _report(number: int) -> HostReport:
    inventories = {"VCPU": Inventory(64), "MEMORY_MB": Inventory(262_144), "DISK_GB": Inventory(2000)}
    return HostReport(HOST.format(number, number // 40), inventories, zone=f"az{number % 4}", lease_s=3600)


def check_width(lines: list[str], columns: int, words: str) -> None:
    """Check that no line is wider than the terminal, unless it has a single word, which is never cut."""
    wide = [line for line in lines if len(line) > columns and len(line.split()) > 1]
    assert wide == [], words
    assert "…" not in "".join(lines), words


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("words", LISTS)
def test_a_list_shows_each_name_whole(fleet: Fleet, words: str, columns: int) -> None:
    """Its first page, and how to go on if there is more."""
    lines = lines_of(fleet.url, *words.split(), columns=columns)
    check_width(lines, columns, words)
    part, field = LISTS[words]
    page = json.loads(run(*words.split(), "--json", environment={"REDSCHED_REDIS_URL": fleet.url}).check().output)
    shown = " ".join(lines).split()
    assert page[part]
    assert [one[field] for one in page[part] if one[field] not in shown] == []
    assert (f"there are more: --after {page['next']}" in lines) == (page["next"] is not None)
    assert (page["next"] is not None) == (words == "host list" and fleet.hosts > 100)


@pytest.mark.parametrize("columns", WIDTHS)
def test_every_other_screen_fits(fleet: Fleet, columns: int) -> None:
    for words in OTHERS:
        fails = words in ("status", "explain VCPU=9000")  # no scheduler runs
        lines = lines_of(fleet.url, *words.split(), columns=columns, fails=fails)
        assert lines, words
        check_width(lines, columns, words)


def test_numbers_are_those_of_the_fleet(fleet: Fleet) -> None:
    status = " ".join(" ".join(lines_of(fleet.url, "status", fails=True)).split())
    assert f"hosts {fleet.hosts}: {fleet.hosts} up" in status
    assert "8 starting" in status
    explained = lines_of(fleet.url, "explain", "VCPU=9000", fails=True)
    assert f"0 of {fleet.hosts} hosts fit" in explained
    assert [line.split() for line in explained if line.startswith("VCPU")] == [["VCPU", str(fleet.hosts)]]


def test_every_list_is_here() -> None:
    lists = {f"{name} list" for name, noun in NOUNS.items() if "list" in noun.verbs}
    assert lists == LISTS.keys() | ELSEWHERE


@pytest.mark.parametrize("columns", WIDTHS)
def test_top_shows_each_name_whole(fleet: Fleet, columns: int) -> None:
    """It lists the first hosts, and finds every other one by a filter."""
    last = HOST.format(fleet.hosts - 1, (fleet.hosts - 1) // 40)
    with drawn({"REDSCHED_REDIS_URL": fleet.url}, "top", columns=columns) as terminal:
        more = ["the first 500"] if fleet.hosts > 500 else []
        text = terminal.until_seen(f"{fleet.hosts} hosts by fullest", FIRST, "8 claims", *more)
        assert max(map(len, text.splitlines())) <= columns
        assert more or "the first 500" not in text
        terminal.press(f"/{last}")
        terminal.until_seen(f" {last} ", f"1 of {fleet.hosts} hosts")
