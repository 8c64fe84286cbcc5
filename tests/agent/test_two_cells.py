"""An agent whose host is in another cell: it is refused, says why, and goes on once the host is removed there."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from redsched.agent import agent
from redsched.agent.run import run
from redsched.aio import end
from redsched.settings import Settings
from redsched.store.access.roles import StoreRole
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
