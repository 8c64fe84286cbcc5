"""Every list, on terminals of 80 and 200 columns and through a pipe: whole names, and the forms of `-o`."""

import asyncio
import json
import os
import re
import signal
from pathlib import Path

import pytest
import redis
import yaml

from redsched.cli.watching import CLEAR
from redsched.model import HostReport, Inventory
from redsched.operate.observe.recorder import Recorder
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from redsched.store.embedded.server import PrivateServer
from redsched.store.store import Store
from tests.cli.conftest import Redsched
from tests.cli.parts import running
from tests.cli.terminals import lines_of
from tests.support.builders.cells import usual_settings
from tests.support.waiting import wait_until_sync

LONG_HOST = "compute-17.rack-4.europe-north-1.datacentre.internal.example"
LONG_PROJECT = "website-of-the-shop-in-the-north"
LONG_NAME = "machines-with-local-disks-of-the-second-generation-two-sockets"
LISTS = ("host", "claim", "quota", "aggregate", "server-group", "shared-pool", "events", "token")
RED, YELLOW = "\x1b[31m", "\x1b[33m"


def words_of(noun: str) -> tuple[str, ...]:
    return (noun, "--kind", "claimed") if noun == "events" else (noun, "list")


@pytest.fixture
def token_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the path of a token file with one token."""
    path = tmp_path / "tokens.yaml"
    monkeypatch.setenv("REDSCHED_AUTH", os.fspath(path))
    entry = {"id": LONG_NAME, "sha256": "0" * 64, "role": "agent", "hosts": [LONG_HOST], "expires": "2099-01-31"}
    path.write_text(json.dumps({"tokens": [entry]}))
    path.chmod(0o600)
    return path


@pytest.fixture
def full(redsched: Redsched, store: str, token_file: Path) -> Redsched:
    """Return a function that runs a command on a store in which everything has a long name."""
    traits = {"CUSTOM_NVME", "HW_CPU_X86_AVX512F"}
    inventories = {"VCPU": Inventory(64), "MEMORY_MB": Inventory(262_144), "DISK_GB": Inventory(2000)}
    report = HostReport(
        LONG_HOST, inventories, zone="europe-north-1a", labels={"rack": "r7"}, traits=frozenset(traits), lease_s=3600
    )
    asyncio.run(_report(store, report))
    redsched("aggregate", "set", LONG_NAME, "--metadata", "disk=nvme", "--host", LONG_HOST).check()
    redsched("server-group", "set", LONG_NAME, "--policy", "soft-anti-affinity").check()
    redsched("shared-pool", "set", LONG_NAME, "CUSTOM_SEAT=5").check()
    amounts = ("VCPU=2", "MEMORY_MB=4Gi", "DISK_GB=20")
    redsched("select", *amounts, "--host", LONG_HOST, "--project", LONG_PROJECT, "--consumer", LONG_PROJECT).check()
    redsched("quota", "set", LONG_PROJECT, "VCPU=1").check()
    asyncio.run(_record(store))
    return redsched


async def _report(url: str, report: HostReport) -> None:
    async with Scheduler.connect(url, usual_settings()) as scheduler:
        await scheduler.hosts.report(report)


async def _record(url: str) -> None:
    async with Store.connect(url) as opened:
        await Recorder(opened.cell("c1"), Settings()).record()


@pytest.mark.parametrize("columns", [80, 200])
def test_no_list_cuts_a_name_or_is_wider_than_the_terminal(full: Redsched, store: str, columns: int) -> None:
    """The events have claims and hosts as names, since their own ids are in no column."""
    claims = full("claim", "list", "-o", "name").check().output.split()
    for noun in LISTS:
        lines = lines_of(store, *words_of(noun), columns=columns)
        names = full(*words_of(noun), "-o", "name").check().output.split() if noun != "events" else claims
        assert names
        words = " ".join(lines).split()
        for name in (*names, *([LONG_HOST] if noun in ("claim", "events") else [])):
            assert name in words, (noun, lines)
        assert max(map(len, lines)) <= columns, (noun, lines)
        assert "…" not in "".join(lines)


def test_columns_without_room_are_left_out_and_named(full: Redsched, store: str) -> None:
    narrow, roomy = (lines_of(store, "claim", "list", columns=columns) for columns in (92, 250))
    assert narrow[0].split() == ["CLAIM", "HOST"]
    assert narrow[-1] == "no room for STATE, AMOUNTS, PROJECT, AGE, EXPIRES: -o wide shows all columns"
    assert roomy[0].split() == ["CLAIM", "STATE", "HOST", "AMOUNTS", "PROJECT", "AGE", "EXPIRES"]
    assert len(roomy) == 2
    heads, row = lines_of(store, "claim", "list", "-o", "wide")
    assert heads.split() == [*roomy[0].split()[:-2], "OWNER", "CONSUMER", "CLAIMED", "EXPIRES", "TOKEN", "CELL"]
    assert len(row) > 200
    assert full("claim", "list", "-o", "wide").check().output.splitlines()[0].split("\t") == heads.split()


def test_a_name_longer_than_a_line_is_whole(full: Redsched, store: str) -> None:
    """The terminal wraps it, so that it can be copied."""
    assert LONG_HOST in lines_of(store, "host", "list", columns=40)[1].split()
    assert LONG_HOST in " ".join(lines_of(store, "claim", "list", columns=40)).split()


def test_each_list_has_the_same_content_in_every_form(full: Redsched) -> None:
    for noun in LISTS:
        words = words_of(noun)
        content = full(*words, "--json").check().output
        assert full(*words, "-o", "json").check().output == content
        assert yaml.safe_load(full(*words, "-o", "yaml").check().output) == json.loads(content)
        assert len(full(*words, "-o", "name").check().output.splitlines()) >= 1
        heads, *rows = full(*words).check().output.splitlines()
        assert full(*words, "--no-headers").check().output.splitlines() == rows
        assert {len(line.split("\t")) for line in rows} == {len(heads.split("\t"))}
        assert not re.search(r"  |\s$", "".join((heads, *rows)), re.MULTILINE)


def test_names_are_for_xargs(redsched: Redsched) -> None:
    """The names alone are on stdout, even if there are more."""
    ran = redsched("host", "list", "-o", "name", "--limit", "1")
    assert (ran.output, ran.errors) == ("h1\n", "there are more: --after h1\n")
    assert redsched("claim", "list", "-o", "name").check().output == ""
    assert redsched("claim", "list", "--no-headers").check().output == ""
    redsched("claim", "list", "--json", "-o", "yaml").check_failed(2, "--json", "-o yaml", "one of them")
    redsched("claim", "list", "-o", "tree").check_failed(2, "-o", "tree")


def test_what_is_wrong_has_a_colour_on_a_terminal_alone(full: Redsched, store: str) -> None:
    full("host", "drain", "h1").check()
    full("host", "write-off", "h2", "--force", "--yes").check()
    colourful = {"TERM": "xterm-256color"}
    hosts = lines_of(store, "host", "list", columns=200, environment=colourful)
    assert any(YELLOW in line and "draining" in line for line in hosts)
    assert any(RED in line and "lost" in line for line in hosts)
    [up] = [line for line in hosts if " up " in line]
    assert "\x1b[3" not in up
    wide = lines_of(store, "host", "list", "-o", "wide", environment=colourful)
    assert any(f"{YELLOW}draining" in line for line in wide)
    over = lines_of(store, "quota", "list", columns=200, environment=colourful)
    assert any(f"{RED}2" in line for line in over)
    plain = lines_of(store, "host", "list", columns=200, environment=colourful | {"NO_COLOR": "1"})
    assert not any("\x1b[3" in line for line in plain)
    assert "\x1b" not in full("host", "list").check().output


def test_hosts_are_filtered_and_sorted(full: Redsched, store: str) -> None:
    def names(*options: str) -> list[str]:
        return full("host", "list", "-o", "name", *options).check().output.split()

    assert names("--trait", "CUSTOM_NVME") == names("--aggregate", LONG_NAME) == [LONG_HOST]
    assert names("--label", "rack=r4", "--label", "rack=r7") == [LONG_HOST, "h2"]
    assert names("--label", "rack=r4", "--trait", "CUSTOM_NVME") == names("--label", "row=1") == []
    assert names("--sort", "zone") == ["h1", "h2", LONG_HOST]
    assert names("--sort", "claims:desc", "--zone", "az2", "--zone", "europe-north-1a") == [LONG_HOST, "h2"]
    first = full("host", "list", "-o", "name", "--sort", "host:desc", "--limit", "2")
    assert (first.output.split(), first.errors) == (["h2", "h1"], "the first 2 of 3: --limit shows more\n")
    full("host", "list", "--sort", "size").check_failed(2, "'size'", "host, zone, status, claims")
    full("host", "list", "--sort", "zone", "--after", "h1").check_failed(2, "--sort", "--after")
    full("host", "list", "--label", "rack").check_failed(2, "'rack'", "NAME=VALUE")
    assert names("--status", "down") == []
    with redis.Redis.from_url(store, protocol=2) as client:
        [key] = [key for key in client.scan_iter("rs:{c1}:host*:h1") if client.hget(key, "alive")]
        client.hset(key, "alive", "0")
    assert names("--status", "down") == ["h1"]


def test_claims_are_sorted(full: Redsched) -> None:
    full("select", "VCPU=1", "--host", "h1", "--id", "a", "--project", "web").check()
    ids = full("claim", "list", "-o", "name", "--sort", "host:desc").check().output.split()
    assert (ids[0], len(ids)) == ("a", 2)
    youngest = full("claim", "list", "--json", "--sort", "age").check().json()["claims"]
    assert youngest[0]["claimed_at_ms"] >= youngest[1]["claimed_at_ms"]


def test_claims_show_when_their_leases_end_and_are_sorted_by_that(redsched: Redsched, store: str) -> None:
    """The claim that ends first is the first; one whose work runs has no lease, and is the last."""
    for name, lease in (("late", "600"), ("soon", "60"), ("runs", "60")):
        redsched("select", "VCPU=1", "--host", "h1", "--id", name, "--lease", lease).check()
    token = redsched("claim", "show", "runs", "--json").check().json()["token"]
    redsched("claim", "confirm", "runs", "--token", token).check()
    assert redsched("claim", "list", "-o", "name", "--sort", "expires").check().output.split() == [
        "soon",
        "late",
        "runs",
    ]
    rows = redsched("claim", "list", "-o", "wide", "--sort", "expires").check().output.splitlines()
    at = rows[0].split("\t").index("EXPIRES")
    expiring = [row.split("\t")[at] for row in rows[1:]]
    assert expiring[0] < expiring[1]
    assert expiring[2] == "-"
    lines = lines_of(store, "claim", "list", "--sort", "expires")
    assert lines[0].split()[-2:] == ["AGE", "EXPIRES"]
    assert " in " in lines[1]


def test_a_list_is_watched_until_the_command_ends(redsched: Redsched, store: str) -> None:
    """A claim that is placed later appears; SIGINT ends the command with exit code 0."""
    with running("claim", "list", "--watch", environment={"REDSCHED_REDIS_URL": store}) as watching:
        wait_until_sync(lambda: "no claims\n" in watching.lines)
        redsched("select", "VCPU=1", "--host", "h1", "--id", "later").check()
        wait_until_sync(lambda: "later\tclaimed\th1\tVCPU=1\t-\n" in watching.lines)
        ended = watching.end(signal.SIGINT)
    assert (ended.exit_code, ended.errors) == (0, "")
    cleared = lines_of(store, "claim", "list", "--watch", until=b"later", environment={"TERM": "xterm"})
    assert cleared[0].startswith(CLEAR)


async def test_a_watched_list_outlives_a_store_that_stands_still(fresh_server: PrivateServer) -> None:
    """Each reason is on stderr, once; the list is printed again when it can be read."""
    async with Scheduler.connect(fresh_server.url, usual_settings()) as scheduler:
        await scheduler.init()
        await scheduler.hosts.report(HostReport("h1", {"VCPU": Inventory(8)}, lease_s=3600))
    with running("host", "list", "--watch", "-o", "name", environment={"REDSCHED_REDIS_URL": fresh_server.url}) as it:
        wait_until_sync(lambda: "h1\n" in it.lines)
        fresh_server.pause()
        try:
            wait_until_sync(lambda: it.error_lines != [], 30)
            before = len(it.lines)
        finally:
            fresh_server.resume()
        wait_until_sync(lambda: len(it.lines) > before, 30)
        ended = it.end(signal.SIGINT)
    assert ended.exit_code == 0
    assert ended.errors.startswith("redsched: trying again: ")
    assert len(set(ended.errors.splitlines())) == ended.errors.count("\n")
    assert set(ended.output.split()) == {"h1"}
