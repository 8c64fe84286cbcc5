"""A request that waits over REST, and the host that is reserved for it meanwhile."""

import asyncio
import contextlib

import httpx

from tests.api.parts import check_problem, put_host
from tests.support.waiting import wait_until

LARGE = {"resources": {"VCPU": 16}, "queue_timeout_s": 60, "reserve": True}


async def test_the_reservation_is_shown_and_ends_with_the_connection(api: httpx.AsyncClient) -> None:
    await put_host(api, "h2", inventories={"VCPU": {"total": 16}}, external={})
    assert (await api.post("/v1/selections", json={"resources": {"VCPU": 2}, "hosts": ["h2"]})).status_code == 201
    waiting = asyncio.create_task(api.post("/v1/selections", json=LARGE))

    async def kept() -> dict[str, int]:
        host = (await api.get("/v1/hosts/h2")).json()
        assert bool(host["reservation"]) == (host["reservation_until_ms"] is not None) == bool(host["kept"])
        return dict(host["kept"])

    async def is_reserved() -> bool:
        return await kept() == {"VCPU": 16}

    async def is_free() -> bool:
        return await kept() == {}

    await wait_until(is_reserved, what="h2 is reserved")
    refused = await api.post("/v1/selections", json={"resources": {"VCPU": 2}, "hosts": ["h2"]})
    check_problem(refused, 409, "no-valid-host")
    waiting.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await waiting
    await wait_until(is_free, what="nothing is reserved")
    assert (await api.post("/v1/selections", json={"resources": {"VCPU": 2}, "hosts": ["h2"]})).status_code == 201


async def test_requests_that_cannot_reserve(api: httpx.AsyncClient) -> None:
    for change, word in (({"queue_timeout_s": 0}, "queue_timeout_s"), ({"count": 2}, "one place")):
        refused = await api.post("/v1/selections", json={**LARGE, **change})
        check_problem(refused, 422, "invalid-request")
        assert word in refused.text
