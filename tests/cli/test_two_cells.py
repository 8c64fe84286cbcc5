"""The commands over two cells: a host and a claim are found wherever they are."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import redis

from redsched.model import HostReport, Inventory
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.store import Store
from tests.cli.parts import Ran, run
from tests.support.builders.cells import new_epoch
from tests.support.builders.homes import open_twin
from tests.support.builders.placements import held_claim

REPORTS = [
    HostReport("h1", {"VCPU": Inventory(8)}, lease_s=3600),
    HostReport("h2", {"VCPU": Inventory(16)}, cell="c2", lease_s=3600),
]


async def report(url: str, reports: Sequence[HostReport] = REPORTS) -> None:
    async with Scheduler.connect(url, Settings(cells=("c1", "c2"))) as scheduler:
        for one in reports:
            await scheduler.hosts.report(one)


async def report_again(url: str, host: str, cell: str) -> None:
    """Open a host of cell c1 in another cell too."""
    async with Store.connect(url, Settings(cells=("c1", "c2"))) as store:
        twin = HostReport(host, {"VCPU": Inventory(8)}, cell=cell, lease_s=3600)
        await open_twin(store.cell("c1"), store.cell(cell), twin)


async def bring_back(url: str, claim_id: str) -> None:
    """Have h1 attest to a claim that its cell does not know."""
    async with Scheduler.connect(url, Settings(cells=("c1", "c2"))) as scheduler:
        store = scheduler.cells.named("c1").store
        await store.hosts.attest("h1", await new_epoch(store), held=[held_claim(claim_id, "1-a.1")])


def test_a_claim_in_the_second_cell_from_init_to_release(store: str) -> None:
    def redsched(*arguments: str) -> Ran:
        return run(*arguments, environment={"REDSCHED_REDIS_URL": store, "REDSCHED_CELLS": "c1,c2"}).check()

    with redis.Redis.from_url(store, protocol=2) as client:
        client.flushall()
    assert redsched("init").output == "cell c1 is declared\ncell c2 is declared\n"
    asyncio.run(report(store))
    large = ("select", "VCPU=12", "--id", "mine", "--json")
    [found] = redsched(*large).json()["selections"]
    assert (found["cell"], found["host"]) == ("c2", "h2")
    assert redsched(*large).json()["selections"] == [found]
    assert redsched("claim", "show", "mine", "--json").json()["cell"] == "c2"
    redsched("select", "VCPU=1", "--host", "h1", "--id", "other")
    assert [one["claim_id"] for one in redsched("claim", "list", "--json").json()["claims"]] == ["other", "mine"]
    assert [one["cell"] for one in redsched("host", "list", "--json").json()["hosts"]] == ["c1", "c2"]
    assert redsched("audit", "--json").json() == {"hosts": 2, "claims": 2, "problems": [], "broken_rules": []}
    assert redsched("claim", "release", "mine").output == "mine is released\n"
    assert redsched("host", "remove", "h2", "--force", "--yes").output == "h2 is removed\n"


def test_an_audit_shows_an_id_with_claims_in_two_cells_and_releases_one(store: str) -> None:
    def redsched(*arguments: str) -> Ran:
        return run(*arguments, environment={"REDSCHED_REDIS_URL": store, "REDSCHED_CELLS": "c1,c2"})

    with redis.Redis.from_url(store, protocol=2) as client:
        client.flushall()
    redsched("init").check()
    asyncio.run(report(store))
    redsched("select", "VCPU=12", "--id", "mine").check()
    asyncio.run(bring_back(store, "mine"))
    found = redsched("audit")
    assert (found.exit_code, found.errors) == (1, "")
    assert "active in c1, claimed in c2" in found.output
    assert "in c2 alone" in found.output
    repair = redsched("audit", "--repair", "--json")
    [repaired] = repair.json()["problems"]
    assert (repair.exit_code, repaired["thing"], repaired["repaired"]) == (0, "mine", True)
    assert redsched("claim", "show", "mine", "--json").check().json()["cell"] == "c2"
    assert "all is well" in redsched("audit").check().output


def test_commands_about_a_host_in_two_cells_name_one(store: str) -> None:
    def redsched(*arguments: str) -> Ran:
        return run(*arguments, environment={"REDSCHED_REDIS_URL": store, "REDSCHED_CELLS": "c1,c2"})

    with redis.Redis.from_url(store, protocol=2) as client:
        client.flushall()
    redsched("init").check()
    asyncio.run(report(store))
    asyncio.run(report_again(store, "h1", "c2"))
    for verb in ("show", "drain", "enable", "disable", "write-off", "remove"):
        redsched("host", verb, "h1").check_failed(
            3, "host h1 is in cell c1 and cell c2: add `--cell c1` or `--cell c2`"
        )
    assert redsched("host", "show", "h1", "--cell", "c2").check().output.startswith("h1  cell c2  ")
    for verb in ("drain", "enable", "disable"):
        redsched("host", verb, "h1", "--cell", "c2").check()
    shown = redsched("host", "list", "--json").check().json()["hosts"]
    assert [(one["name"], one["cell"], one["status"]) for one in shown] == [
        ("h1", "c1", "enabled"),
        ("h1", "c2", "disabled"),
        ("h2", "c2", "enabled"),
    ]
    audited = redsched("audit")
    assert (audited.exit_code, audited.errors) == (1, "")
    assert "live in c1 with 0 claims" in audited.output
    redsched("host", "write-off", "h1", "--cell", "c2", "--force", "--yes").check()
    redsched("host", "remove", "h1", "--cell", "c2", "--force", "--yes").check()
    assert redsched("host", "show", "h1", "--json").check().json()["cell"] == "c1"


def test_unknown_zones_and_the_best_hosts_are_those_of_both_cells(store: str) -> None:
    def redsched(*arguments: str) -> Ran:
        return run(*arguments, environment={"REDSCHED_REDIS_URL": store, "REDSCHED_CELLS": "c1,c2"})

    with redis.Redis.from_url(store, protocol=2) as client:
        client.flushall()
    redsched("init").check()
    asyncio.run(report(store, [replace(one, zone=f"az{number}") for number, one in enumerate(REPORTS, 1)]))
    redsched("select", "VCPU=1", "--zone", "az9").check_failed(3, "unknown zone 'az9': the hosts are in az1, az2")
    found = redsched("explain", "VCPU=2", "--zone", "az2", "--json").check().json()
    assert (found["fits"], found["unknown_zones"], found["zones"]) == (1, [], [])
    best = redsched("explain", "VCPU=2", "--json").check().json()["ranked"]
    assert [(one["host"], one["score"]) for one in best] == [("h2", 14 / 16), ("h1", 6 / 8)]
