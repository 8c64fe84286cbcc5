"""Verbs on hosts over REST: each names the cell, if its caller does."""

import httpx
import pytest

from redsched.cli.remote import RemoteFleet
from redsched.client import AsyncClient
from redsched.model import HostStatus


@pytest.mark.parametrize(("cell", "query"), [("", ""), ("c2", "cell=c2")])
async def test_each_verb_names_the_cell(cell: str, query: str) -> None:
    sent: list[tuple[str, str, str]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append((request.method, request.url.path, request.url.query.decode()))
        return httpx.Response(204)

    client = AsyncClient("http://localhost", transport=httpx.MockTransport(answer))
    async with RemoteFleet.connect(client) as fleet:
        for status in HostStatus:
            await fleet.hosts.set_status("h1", status, cell=cell)
        await fleet.hosts.lost("h1", cell=cell)
        await fleet.hosts.forget("h1", cell=cell)
    verbs = [("POST", f"/v1/hosts/h1/{one}", query) for one in ("enable", "disable", "drain", "write-off")]
    assert sorted(sent) == sorted([*verbs, ("DELETE", "/v1/hosts/h1", query)])
