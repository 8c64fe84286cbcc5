"""The scheduling models that are compared: each places what fits and counts nothing twice, on a real store."""

import asyncio
import json
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.models.checks import differences, over_commitments, wrong_refusals
from benchmarks.models.hosts import Hosts
from benchmarks.models.placement_service import PROVIDER, PlacementService, prepare as prepare_placement
from benchmarks.models.processes import run
from benchmarks.models.published import PREFIX, publish_fleet, redis_client, refresh
from benchmarks.models.registry import MODELS
from benchmarks.models.rpc import Caller, CallFailed, Message, serving
from benchmarks.models.scheduling import Record, schedule
from benchmarks.models.views import make_views
from benchmarks.models.work import Setup, make_asks, make_fleet
from redsched.store.embedded.server import PrivateServer

HOSTS, REQUESTS = 4, 60


def setup_of(server: PrivateServer, folder: Path, model: str, fill: float, schedulers: int = 3) -> Setup:
    asks = make_asks(REQUESTS, 7)
    return Setup(
        model,
        server.url,
        str(folder),
        make_fleet(HOSTS, asks, fill),
        asks,
        schedulers=schedulers,
        host_delay_s=0.002,
        concurrency=4,
    )


async def run_here(setup: Setup, checks: bool | None = None) -> tuple[list[Record], Message]:
    """Run a model in this process; return what the schedulers answered, and the hosts' books."""
    model = MODELS[setup.model]
    await model.prepare(setup)
    async with AsyncExitStack() as stack:
        publisher = await stack.enter_async_context(model.publishing(setup))
        hosts = Hosts(setup, publisher, model.hosts_decide if checks is None else checks)
        await stack.enter_async_context(hosts.serving(setup.hosts_socket))
        for number in range(model.services(setup)):
            assert model.serving
            await stack.enter_async_context(model.serving(setup, number))
        caller = await stack.enter_async_context(Caller.connect(setup.hosts_socket))
        working = [schedule(setup, model, number) for number in range(setup.schedulers)]
        _, done = await asyncio.gather(caller.call("start"), asyncio.gather(*working))
        return [record for one in done for record in one.records], await caller.call("books")


def found_by_all_checks(setup: Setup, records: Sequence[Record], books: Message) -> list[str]:
    return over_commitments(setup, records, books) + differences(setup, records, books)


@pytest.mark.parametrize("name", MODELS)
async def test_everything_is_placed_once_where_everything_fits(
    name: str, fresh_server: PrivateServer, tmp_path: Path
) -> None:
    setup = setup_of(fresh_server, tmp_path, name, fill=0.4)
    records, books = await run_here(setup)
    assert [record.host for record in records if not record.host] == []
    assert {record.ask.claim_id for record in records} == {ask.claim_id for ask in setup.asks}
    assert found_by_all_checks(setup, records, books) == []


@pytest.mark.parametrize("name", MODELS)
async def test_a_full_fleet_is_not_over_committed(name: str, fresh_server: PrivateServer, tmp_path: Path) -> None:
    """More is requested than fits, by schedulers that compete."""
    setup = setup_of(fresh_server, tmp_path, name, fill=1.2)
    records, books = await run_here(setup)
    assert len(records) == REQUESTS
    assert any(not record.host for record in records)
    assert found_by_all_checks(setup, records, books) == []


@pytest.mark.parametrize("name", ["placement", "redsched"])
async def test_claims_in_a_central_place_are_refused_only_where_nothing_fits(
    name: str, fresh_server: PrivateServer, tmp_path: Path
) -> None:
    setup = setup_of(fresh_server, tmp_path, name, fill=1.2)
    records, _ = await run_here(setup)
    assert wrong_refusals(setup, records) == []


async def test_schedulers_that_hosts_do_not_check_over_commit_and_it_shows(
    fresh_server: PrivateServer, tmp_path: Path
) -> None:
    """The planted error: hosts accept every claim of schedulers that know only their own.

    Both the books and the count of the answers find it.
    """
    setup = replace(setup_of(fresh_server, tmp_path, "caching", fill=1.2), cache_s=60.0)
    records, books = await run_here(setup, checks=False)
    assert books["over"] != []
    assert over_commitments(setup, records, {**books, "over": []}) != []
    assert differences(setup, records, books) == []


async def test_a_copy_that_is_not_refreshed_is_refused_by_hosts(fresh_server: PrivateServer, tmp_path: Path) -> None:
    """Each refusal is a retry, until the alternates are used up."""
    setup = replace(setup_of(fresh_server, tmp_path, "caching", fill=0.99), cache_s=60.0)
    records, _ = await run_here(setup)
    assert sum(record.retries for record in records) > 0
    assert max(record.retries for record in records) <= 2


async def test_a_view_keeps_its_own_consumption_until_the_host_publishes_a_later_state(
    fresh_server: PrivateServer, tmp_path: Path
) -> None:
    setup = setup_of(fresh_server, tmp_path, "filter", fill=0.5)
    await publish_fleet(setup)
    views = make_views(setup.hosts)
    first = views[setup.hosts[0].name]
    async with redis_client(setup) as client:
        await refresh(client, views)
        first.consume({"VCPU": 3})
        await refresh(client, views)
        assert first.used["VCPU"] == 3
        later = {"used.VCPU": "1", "updated_s": repr(first.updated_s + 1)}
        await client.hset(PREFIX + first.name, mapping=later)
        await refresh(client, views)
        assert first.used["VCPU"] == 1


async def test_a_changed_generation_is_a_conflict_and_the_write_is_repeated(
    fresh_server: PrivateServer, tmp_path: Path
) -> None:
    """Ten allocations at once on one provider: all are written, and its usage is their sum."""
    setup = setup_of(fresh_server, tmp_path, "placement", fill=0.4)
    await prepare_placement(setup)
    host = setup.hosts[0].name
    async with redis_client(setup) as client:
        service = PlacementService(client, setup)
        replies = await asyncio.gather(*(service.allocate(f"c{number}", host, {"VCPU": 1}) for number in range(5)))
        assert {reply["outcome"] for reply in replies} == {"ok"}
        assert sum(reply["conflicts"] for reply in replies) > 0
        assert await client.hget(PROVIDER + host, "used.VCPU") == "5"
        assert await client.hget(PROVIDER + host, "generation") == "5"


async def test_a_full_provider_is_no_candidate_and_takes_nothing(fresh_server: PrivateServer, tmp_path: Path) -> None:
    setup = setup_of(fresh_server, tmp_path, "placement", fill=0.4)
    await prepare_placement(setup)
    first = setup.hosts[0]
    async with redis_client(setup) as client:
        service = PlacementService(client, setup)
        assert (await service.allocate("all", first.name, dict(first.capacity)))["outcome"] == "ok"
        assert (await service.allocate("more", first.name, {"VCPU": 1}))["outcome"] == "full"
        assert list(await service.candidates({"VCPU": 1})) == [spec.name for spec in setup.hosts[1:]]


async def test_an_error_in_the_other_process_reaches_the_caller(tmp_path: Path) -> None:
    async def handle(message: Message) -> Message:
        raise ValueError(f"unknown {message['op']}")

    path = str(tmp_path / "s.sock")
    async with serving(path, handle), Caller.connect(path) as caller:
        with pytest.raises(CallFailed, match="unknown claim"):
            await caller.call("claim")


def test_a_run_in_processes_of_their_own_gives_a_row() -> None:
    asks = make_asks(12, 1)
    row = run(Setup("redsched", "", "", make_fleet(3, asks, 0.5), asks, schedulers=2, host_delay_s=0.001))
    assert (row.model, row.schedulers, row.hosts, row.requests) == ("redsched", 2, 3, 12)
    assert (row.decided, row.placed, row.wrong_refusals, row.over_commitments) == (12, 12, 0, 0)
    assert row.problems == []
    assert row.cpu_us.keys() == {"schedulers", "store"}
    assert row.p99_ms >= row.p50_ms > 0


def test_the_command_prints_tables_and_writes_the_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from benchmarks.models.__main__ import main

    told = ["--quick", "--models", "filter", "--schedulers", "1", "--requests", "10", "--hosts", "2"]
    monkeypatch.setattr("sys.argv", ["models", *told, "--json", str(tmp_path / "found.json")])
    assert main() == 0
    printed = capsys.readouterr()
    assert "22.6" in printed.out
    assert "no host was over-committed" in printed.err
    found: dict[str, Any] = json.loads((tmp_path / "found.json").read_text())
    assert [(row["model"], row["decided"]) for row in found["rows"]] == [("filter", 10)]
    assert [(row["schedulers"], row["decided"]) for row in found["original"]] == [(1, 31), (4, 31)]
