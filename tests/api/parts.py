"""Shared parts of the route tests: hosts and claims to start with, bad bodies, and a dump of the store."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import httpx
import redis
from fastapi import FastAPI

from redsched.api.app import create_app
from redsched.serve.supervisor import Workers
from redsched.settings import Settings
from redsched.store.embedded.server import PrivateServer
from redsched.store.store import Store

REPORT: dict[str, Any] = {
    "zone": "az1",
    "labels": {"rack": "r4"},
    "traits": ["HW_CPU_X86_AVX2"],
    "metrics": {"cpu.percent": 12.5},
    "lease_s": 3600,
    "inventories": {"VCPU": {"total": 8}, "MEMORY_MB": {"total": 16_384, "reserved": 384}},
    "external": {"MEMORY_MB": 1000},
}
NEED = {"resources": {"VCPU": 2, "MEMORY_MB": 4096}}
STALE = "1-a.1"

BAD_JSON: dict[str, bytes] = {
    "empty": b"",
    "not JSON": b"{",
    "not UTF-8": b'{"resources": {"VCPU": 1}, "project": "\xff"}',
    "lone surrogate": b'{"resources": {"VCPU": 1}, "project": "\\ud800"}',
    "deep": b"[" * 3000,
    "NaN": b'{"resources": {"VCPU": NaN}}',
    "Infinity": b'{"resources": {"VCPU": Infinity}}',
    "huge number": b'{"resources": {"VCPU": ' + b"9" * 3900 + b"}}",
    "a list": b"[]",
    "a text": b'"x"',
    "null": b"null",
}


async def declare_new(settings: Settings) -> None:
    """Declare the cells new, as `redsched init` does, so that they do not wait for hosts to attest."""
    async with Store.connect(settings.redis_url, settings) as store:
        for name in settings.cells:
            await store.cell(name).init()


@contextmanager
def worker_over(server: PrivateServer, **environment: str) -> Iterator[str]:
    """Yield the URL of a worker over a new store, which does not wait for hosts to attest."""
    with redis.Redis(unix_socket_path=str(server.socket), protocol=2) as client:
        client.flushall()
    asyncio.run(declare_new(Settings(redis_url=server.url)))
    with Workers("127.0.0.1", 0, 1) as workers:
        workers.start({"REDSCHED_REDIS_URL": server.url, **environment})
        yield workers.url


_APPS: dict[str, FastAPI] = {}
"""Apps by their settings. FastAPI compiles an app's routes on its first requests, which is slower than most tests."""


def app_of(settings: Settings) -> FastAPI:
    """Return an app with these settings that is not started. All state of a store or a test is created at its start."""
    name = repr(settings)
    if name not in _APPS:
        _APPS[name] = create_app(settings)
    _APPS[name].state.closing = asyncio.Event()
    return _APPS[name]


@asynccontextmanager
async def client_of(settings: Settings, is_new: bool = False) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of an app with these settings, which runs as long as the block.

    `is_new`: its cells are declared new first, over its own connections.
    """
    app = app_of(settings)
    transport = httpx.ASGITransport(app, raise_app_exceptions=False)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=transport, base_url="http://localhost") as client,
    ):
        if is_new:
            await app.state.scheduler.init()
        yield client


async def put_host(api: httpx.AsyncClient, name: str, **changed: Any) -> dict[str, Any]:
    """Report a host and have it attest, as an agent without Redis does; return the last reply."""
    answer = (await api.put(f"/v1/hosts/{name}/report", json={**REPORT, **changed})).json()
    if not answer["attested"]:
        attesting = {**REPORT, **changed, "epoch": answer["epoch"]}
        answer = (await api.put(f"/v1/hosts/{name}/report", json=attesting)).json()
    assert answer["attested"] is True, answer
    return dict(answer)


async def select(api: httpx.AsyncClient, **changed: Any) -> dict[str, Any]:
    """Claim on one host, and return the selection."""
    answer = await api.post("/v1/selections", json={**NEED, **changed})
    assert answer.status_code == 201, answer.text
    return dict(answer.json()["selections"][0])


def held(url: str) -> dict[bytes, Any]:
    """Return all that the store holds, except what schedulers write by themselves: clock, events, duties, notes ..."""
    with redis.Redis.from_url(url, protocol=2) as client:
        own = (b":events", b":recorder", b":schedulers")
        keys = [key for key in client.scan_iter(count=1000) if not key.endswith(own)]
        pipeline = client.pipeline(transaction=False)
        kept = [key for key in keys if b":duty:" not in key and b":decision:" not in key]
        for key in kept:
            pipeline.hgetall(key) if key.endswith(b":meta") else pipeline.dump(key)
        found: dict[bytes, Any] = dict(zip(kept, pipeline.execute(), strict=True))
    for key in kept:
        if key.endswith(b":meta"):
            found[key] = {name: value for name, value in found[key].items() if name not in (b"now_ms", b"settled")}
    return found


def check_problem(answer: httpx.Response, status: int, slug: str) -> dict[str, Any]:
    """Check that a response is a complete problem of this status and type, and return it."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found = dict(answer.json())
    assert (found["type"], found["status"]) == (f"/problems/{slug}", status), found
    assert found["title"]
    assert found["detail"]
    assert "\n" not in found["detail"]
    return found
