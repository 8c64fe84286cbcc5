"""`redsched aggregate`, `server-group` and `shared-pool`: created, changed in part, shown, listed, deleted."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from redsched import aio
from redsched.cli.fleet import Fleet
from redsched.cli.verbs.declared import AGGREGATES
from redsched.model.conditions import IfMatch
from redsched.model.records.declared import AggregateView
from redsched.scheduler import Scheduler
from tests.cli.conftest import Redsched
from tests.support.builders.cells import usual_settings

BOTH_LINKS = True


def test_an_aggregate_from_set_to_delete(redsched: Redsched) -> None:
    """What the command does not name stays; a key without a value is removed, and so is a host by --not-host."""
    assert redsched("aggregate", "list").check().output == "no aggregates\n"
    made = redsched("aggregate", "set", "ssd", "--metadata", "disk=nvme", "--metadata", "old=1", "--host", "h1")
    assert made.check().output == "aggregate ssd is declared\n"
    changed = redsched("aggregate", "set", "ssd", "--metadata", "old=", "--host", "h2", "--json").check().json()
    assert changed == {"name": "ssd", "metadata": {"disk": "nvme"}, "hosts": ["h1", "h2"]}
    assert redsched("aggregate", "set", "ssd", "--not-host", "h1").check().output == "aggregate ssd is changed\n"
    assert redsched("aggregate", "show", "ssd").check().output == "ssd  1 host\nmetadata: disk=nvme\nhosts: h2\n"
    assert redsched("aggregate", "list").check().output.splitlines()[1].split() == ["ssd", "1", "disk=nvme"]
    assert "aggregates: ssd" in redsched("host", "show", "h2").check().output
    redsched("aggregate", "delete", "ssd").check_failed(3, "ssd", "`redsched aggregate delete ssd --force`")
    assert redsched("aggregate", "delete", "ssd", "--force").check().output == "aggregate ssd is deleted\n"
    redsched("aggregate", "show", "ssd").check_failed(4, "ssd")


@pytest.mark.parametrize("metadata", [{"disk": "nvme"}, {}], ids=["it exists", "each creates it"])
async def test_hosts_that_several_people_add_at_once_are_all_members(
    redsched: Redsched, store: str, metadata: dict[str, str]
) -> None:
    """Each reads the aggregate, and writes it with one more host: the later one must not undo the earlier one."""
    for key, value in metadata.items():
        redsched("aggregate", "set", "ssd", "--metadata", f"{key}={value}").check()

    both, puts = asyncio.Barrier(2), 0

    async def put(fleet: Fleet, name: str, body: dict[str, Any], tags: IfMatch) -> tuple[AggregateView, bool]:
        nonlocal puts
        puts += 1
        if puts <= 2:
            await both.wait()  # each has read it before the other one writes it
        return await AGGREGATES.put(fleet, name, body, tags)

    slowly = replace(AGGREGATES, put=put)

    async def add(host: str) -> None:
        async with Scheduler.connect(store, usual_settings()) as scheduler:
            await slowly.change(scheduler, "ssd", "", lambda base: {"hosts": sorted({*base.get("hosts", ()), host})})

    await aio.gather(add(host) for host in ("h1", "h2"))
    shown = redsched("aggregate", "show", "ssd", "--json").check().json()
    assert (shown["hosts"], shown["metadata"]) == (["h1", "h2"], metadata)
    assert puts > 2


def test_a_server_group_from_set_to_delete(redsched: Redsched) -> None:
    redsched("server-group", "set", "web", "--policy", "anti-affinity", "--count-by", "label:rack").check()
    redsched("select", "VCPU=1", "--server-group", "web", "--host", "h2").check()
    shown = redsched("server-group", "show", "web").check().output
    assert "web  anti-affinity by host, at most 1  1 member" in shown
    assert [line.split() for line in shown.splitlines()[2:]] == [
        ["host", "h2", "1"],
        ["zone", "az2", "1"],
        ["label:rack", "r4", "1"],
    ]
    assert (
        redsched("server-group", "set", "web", "--max-per-host", "2").check().output == "server group web is changed\n"
    )
    [listed] = redsched("server-group", "list", "--json").check().json()["server_groups"]
    assert (listed["policy"], listed["max_per_host"], listed["members"]) == ("anti-affinity", 2, 1)
    redsched("server-group", "set", "web", "--by", "zone").check_failed(3, "1 members")
    redsched("server-group", "delete", "web").check_failed(3, "1 members", "force")
    redsched("server-group", "delete", "web", "--force").check()


def test_a_pool_from_a_file_to_delete(redsched: Redsched, tmp_path: Path) -> None:
    """A file describes the whole pool; options change a part of it."""
    file = tmp_path / "seats.yaml"
    file.write_text("inventories: {CUSTOM_SEAT: {total: 10, reserved: 2}}\naggregates: [licensed]\n")
    redsched("shared-pool", "set", "seats", "--request", str(file)).check()
    redsched("shared-pool", "set", "seats", "CUSTOM_SEAT=20", "--trait", "CUSTOM_FAST").check()
    found = redsched("shared-pool", "show", "seats", "--json").check().json()
    slot = found["slots"]["CUSTOM_SEAT"]
    assert (slot["total"], slot["reserved"], found["traits"], found["aggregates"]) == (
        20,
        2,
        ["CUSTOM_FAST"],
        ["licensed"],
    )
    assert "seats  cell c1  for licensed" in redsched("shared-pool", "show", "seats").check().output
    assert redsched("shared-pool", "list").check().output.splitlines()[1].split() == [
        "seats",
        "c1",
        "CUSTOM_SEAT=18",
        "licensed",
    ]
    assert redsched("shared-pool", "delete", "seats").check().output == "shared pool seats is deleted\n"


BAD: dict[str, tuple[int, tuple[str, ...], str]] = {
    "aggregate of an unknown host": (4, ("aggregate", "set", "a", "--host", "h9"), "h9"),
    "metadata without a key": (2, ("aggregate", "set", "a", "--metadata", "x"), "NAME=VALUE"),
    "aggregate not a name": (2, ("aggregate", "show", "a b"), "a b"),
    "group without a policy": (2, ("server-group", "set", "a"), "policy"),
    "group by nonsense": (2, ("server-group", "set", "a", "--policy", "affinity", "--by", "rack"), "rack"),
    "pool without inventories": (2, ("shared-pool", "set", "a"), "inventories"),
    "pool of an unknown class": (2, ("shared-pool", "set", "a", "SEATS=1"), "SEATS"),
    "pool in an unknown cell": (4, ("shared-pool", "set", "a", "CUSTOM_SEAT=1", "--cell", "c9"), "c9"),
    "unknown pool": (4, ("shared-pool", "delete", "a"), "'a'"),
    "unknown verb": (2, ("shared-pool", "make", "a"), "make"),
}


@pytest.mark.parametrize(("exit_code", "arguments", "word"), BAD.values(), ids=BAD)
def test_what_is_wrong_is_reported_in_one_line(
    redsched: Redsched, exit_code: int, arguments: tuple[str, ...], word: str
) -> None:
    redsched(*arguments).check_failed(exit_code, word)
