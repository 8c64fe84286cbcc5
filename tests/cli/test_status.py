"""`redsched status`: the screen in 80 columns, its exit code, and its JSON."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import redis

from tests.cli.conftest import Redsched
from tests.cli.parts import announce

BOTH_LINKS = True


COLUMNS = 80


@pytest.fixture
def raw(store: str) -> Iterator["redis.Redis"]:
    """Yield a client with full access."""
    with redis.Redis.from_url(store, protocol=2, decode_responses=True) as client:
        yield client


def epoch_of(raw: "redis.Redis") -> str:
    """Return the epoch of the cell."""
    return str(raw.hget("rs:{c1}:meta", "epoch"))


def add_hosts_down(raw: "redis.Redis", number: int) -> None:
    """Add hosts with long names whose leases have ended."""
    epoch = epoch_of(raw)
    for one in range(number):
        name = f"compute-node-{one:05}.rack-17.example.org"
        raw.hset(
            f"rs:{{c1}}:host:{name}",
            mapping={
                "version": 1,
                "epoch": epoch,
                "since": epoch,
                "status": "enabled",
                "alive_until_ms": 1,
                "claims": 3,
            },
        )
        raw.zadd("rs:{c1}:hosts", {name: 1})


def test_a_healthy_store(redsched: Redsched, raw: "redis.Redis") -> None:
    announce(raw)
    redsched("select", "VCPU=1", "--id", "web").check()
    lines = redsched("status").check().output.splitlines()
    assert lines[0] == "healthy: 2 hosts up, 1 claim"
    epoch = epoch_of(raw)
    began = datetime.fromtimestamp(int(epoch.split("-")[0]) // 1000, UTC).isoformat()[:19]
    assert re.fullmatch(rf"  epoch       {epoch} since {began}Z \(\d+ s\), settled", lines[3])
    for line in (
        "cell c1",
        "  hosts       2: 2 up",
        "  agents      none",
        "  claims      0 active, 1 starting, 0 ending, 0 pending, 0 shelved",
        "  schedulers  1.2.3 on node, process 0, 0 s behind",
        "  audit       none yet",
    ):
        assert line in lines


@pytest.mark.usefixtures("needs_store")
def test_problems_come_first_with_commands_on_lines_of_their_own(redsched: Redsched) -> None:
    ran = redsched("status")
    assert (ran.exit_code, ran.errors) == (1, "")
    assert ran.output.splitlines()[:5] == [
        "not healthy: 1 problem",
        "",
        "! cell c1: no scheduler runs: leases do not expire, and nothing is moved or",
        "  placed again",
        "  start one: an API, or `redsched up`:",
    ]
    assert ran.output.splitlines()[5] == "    redsched api"


@pytest.mark.parametrize("number", [10, 250])
def test_the_screen_fits_80_columns_and_is_short(redsched: Redsched, raw: "redis.Redis", number: int) -> None:
    announce(raw, number)
    add_hosts_down(raw, number)
    ran = redsched("status")
    assert ran.exit_code == 1
    lines = ran.output.splitlines()
    assert max(map(len, lines)) <= COLUMNS, lines
    assert len(lines) < 40
    assert f"{number} hosts are down, with {3 * number} claims" in ran.output
    assert "    redsched host list --status down" in lines
    assert "write-off" not in ran.output
    assert f"and {number - 5} more" in ran.output


@pytest.mark.usefixtures("needs_store")
def test_json_has_the_same(redsched: Redsched, raw: "redis.Redis") -> None:
    add_hosts_down(raw, 150)
    ran = redsched("status", "--json")
    assert ran.exit_code == 1
    found = ran.json()
    assert found.keys() == {"healthy", "problems", "cells", "servers", "durability"}
    assert found["healthy"] is False
    problems = {one["kind"]: one for one in found["problems"]}
    assert set(problems) == {"no-scheduler", "host-down"}
    assert (problems["host-down"]["count"], len(problems["host-down"]["about"])) == (150, 100)
    (cell,) = found["cells"]
    assert (cell["hosts"]["total"], cell["hosts"]["up"], cell["hosts"]["down"]) == (152, 2, 150)
    assert cell["claims"] == {"active": 450, "starting": 0, "ending": 0, "pending": 0, "shelved": 0}
    announce(raw)
    raw.delete("rs:{c1}:hosts")
    assert redsched("status", "--json").check().json()["healthy"] is True


@pytest.mark.usefixtures("needs_store")
def test_without_a_cell_it_says_what_to_do(redsched: Redsched, raw: "redis.Redis") -> None:
    raw.flushdb()
    redsched("status").check_failed(5, "cell c1 does not exist", "redsched init")


@pytest.mark.parametrize(
    ("down", "command"),
    [
        (2, "    redsched host write-off compute-node-00000.rack-17.example.org --evacuate"),
        (3, "    redsched host list --status down"),
    ],
)
def test_many_hosts_that_are_down_are_not_advised_one_by_one(
    redsched: Redsched, raw: "redis.Redis", down: int, command: str
) -> None:
    announce(raw)
    add_hosts_down(raw, down)
    lines = redsched("status").output.splitlines()
    assert [line for line in lines if line.startswith("    redsched ")] == [command]


def test_hosts_that_take_no_claims_are_not_counted_beside_those_that_are_up(redsched: Redsched) -> None:
    redsched("host", "disable", "h1").check()
    lines = redsched("status").output.splitlines()
    assert "  hosts       2: 2 up; of them 1 disabled" in lines
