"""Verbs on hosts over REST: each names the cell, if its caller does."""

import httpx
import pytest

from redsched.client import AsyncClient


@pytest.mark.parametrize(("cell", "query"), [("", ""), ("c2", "cell=c2")])
async def test_each_verb_names_the_cell(cell: str, query: str) -> None:
    sent: list[tuple[str, str, str]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append((request.method, request.url.path, request.url.query.decode()))
        return httpx.Response(204)

    async with AsyncClient("http://localhost", transport=httpx.MockTransport(answer)) as fleet:
        hosts = fleet.hosts
        for verb in (hosts.enable, hosts.disable, hosts.drain, hosts.write_off, hosts.remove):
            await verb("h1", cell=cell)
    verbs = [("POST", f"/v1/hosts/h1/{one}", query) for one in ("enable", "disable", "drain", "write-off")]
    assert sorted(sent) == sorted([*verbs, ("DELETE", "/v1/hosts/h1", query)])
