"""An agent whose host is in another cell: it is refused, says why, and goes on once the host is removed there."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from redsched.agent import agent
from redsched.agent.run import run
from redsched.aio import end
from redsched.errors import StoreUnavailable
from redsched.settings import Settings
from redsched.store.access.roles import StoreRole
from redsched.store.cell import CellStore
from redsched.store.commands.homes import HomeCommands
from redsched.store.store import Store
from tests.agent.conftest import H1, quick
from tests.support.builders.cells import open_host
from tests.support.store_users import url_as
from tests.support.waiting import wait_until


@pytest.mark.parametrize("role", [None, StoreRole.AGENT])
async def test_it_goes_on_once_its_host_is_removed_from_the_other_cell(
    clean_store: str, role: StoreRole | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user for agents of its own cell cannot read the other one, but may bind the name of its host."""
    monkeypatch.setattr(agent, "AGAIN_S", 0.05)
    ready = asyncio.Event()
    async with Store.connect(clean_store, Settings(cells=("c1", "c2"))) as store:
        c1, c2 = store.cell("c1"), store.cell("c2")
        for cell in (c1, c2):
            await cell.init()
        await open_host(c1, "h1")
        url = clean_store if role is None else url_as(clean_store, role, ["h1"], cells=("c2",))
        with capture_logs() as logs:
            here = replace(H1, cell="c2")
            task = asyncio.create_task(run(quick(cells=("c2",)), url, [here], tmp_path / "journal.sqlite", ready))
            refused = "host h1 is in cell c1, and a name is in one cell at a time"
            await wait_until(lambda: any(refused in one.get("error", "") for one in logs), what="it says why")
        assert (ready.is_set(), await c2.hosts.names()) == (False, [])
        await c1.hosts.forget("h1", force=True)
        await wait_until(ready.is_set, what="the host is open in c2")
        await end(task)
        assert await c2.hosts.names() == ["h1"]


async def test_a_host_that_another_cell_has_got_since_is_not_down(
    clean_store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its reports are refused, but its work goes on: were it down, an operator might place its claims elsewhere."""
    monkeypatch.setattr(agent, "AGAIN_S", 0.05)
    ready = asyncio.Event()
    async with Store.connect(clean_store, Settings(cells=("c1", "c2"))) as store:
        c1, c2 = store.cell("c1"), store.cell("c2")
        await c2.init()
        settings = quick(cells=("c1", "c2"), report_s=0.05)
        with capture_logs() as logs:
            task = asyncio.create_task(
                run(settings, clean_store, [replace(H1, cell="c2")], tmp_path / "journal.sqlite", ready)
            )
            await wait_until(ready.is_set, what="the host is open in c2")
            await c1.homes.bind("h1", former="c2")
            await wait_until(lambda: any("is in cell c1" in one.get("error", "") for one in logs), what="it is refused")
        refused = await until_ms(c2)

        async def is_renewed() -> bool:
            return await until_ms(c2) > refused

        await wait_until(is_renewed, what="its lease is renewed")
        await end(task)


async def test_a_host_is_not_down_while_the_server_with_the_key_of_its_name_is_away(
    clean_store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That key belongs to no cell, so the server of the host's own cell may well be there."""

    async def is_away(_homes: HomeCommands, _host: str) -> None:
        tried.set()
        raise StoreUnavailable("the server of the key is away")

    tried, ready = asyncio.Event(), asyncio.Event()
    async with Store.connect(clean_store, Settings(cells=("c1", "c2"))) as store:
        c2 = store.cell("c2")
        await c2.init()
        settings = quick(cells=("c1", "c2"), report_s=0.05)
        hosts = [replace(H1, cell="c2")]
        task = asyncio.create_task(run(settings, clean_store, hosts, tmp_path / "journal.sqlite", ready))
        await wait_until(ready.is_set, what="the host is open in c2")
        monkeypatch.setattr(HomeCommands, "take", is_away)
        await wait_until(tried.is_set, what="a report fails")
        failed = await until_ms(c2)

        async def is_renewed() -> bool:
            return await until_ms(c2) > failed

        await wait_until(is_renewed, what="its lease is renewed")
        await end(task)


async def until_ms(cell: CellStore) -> int:
    return int((await cell.hosts.read(["h1"]))[0].fields["alive_until_ms"])
