"""GET /v1/changes with tokens: a tenant follows its own claims, and no stream outlives its token."""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx

from redsched.server.supervisor import Workers
from tests.api.access.parts import WEB, Callers, bearer, put_host, settings_of, token_file
from tests.api.parts import declare_new

NOTICED_S = 20


@asynccontextmanager
async def worker(url: str, file: Path) -> AsyncIterator[Callers]:
    """Yield the callers of one worker process over a new store."""
    await declare_new(settings_of(url, file))
    with Workers("127.0.0.1", 0, 1) as workers:
        workers.start({"REDSCHED_REDIS_URL": url, "REDSCHED_AUTH": os.fspath(file)})
        async with httpx.AsyncClient(base_url=workers.url, timeout=NOTICED_S) as client:
            yield Callers(client)


async def data(answer: httpx.Response) -> AsyncIterator[dict[str, Any]]:
    """Yield the data of the events of a stream."""
    async for line in answer.aiter_lines():
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


async def test_a_tenant_follows_the_changes_of_its_own_claims(clean_store: str, tmp_path: Path) -> None:
    """Whatever else happens, and with nothing of what else has changed on the claim's host."""
    async with worker(clean_store, token_file(tmp_path)) as api:
        await put_host(api, "h1")
        async with api.client.stream("GET", "/v1/changes", headers=bearer("web")) as answer:
            stream = data(answer)
            await api.claim("db-1", "db")
            await api.claim("web-1", "web")
            await api.done("operator", "DELETE", "/v1/claims/db-1")
            await api.done("operator", "DELETE", "/v1/claims/web-1")
            # The same id again, for another project: those who saw it before see nothing of it.
            await api.claim("web-2", "web")
            found = [await anext(stream) for _ in range(3)]
    assert [(one["op"], one["fields"]["claim"]) for one in found] == [
        ("claimed", "web-1"),
        ("released", "web-1"),
        ("claimed", "web-2"),
    ]
    for one in found:
        assert [name for name in one["fields"] if name != "claim" and not name.startswith(("held.", "end"))] == []


async def test_a_stream_ends_when_its_token_is_revoked(clean_store: str, tmp_path: Path) -> None:
    async with worker(clean_store, token_file(tmp_path)) as api:
        for who in ("web", "reader"):
            token_file(tmp_path)
            async with api.client.stream("GET", "/v1/changes", headers=bearer(who)) as answer:
                assert answer.status_code == 200
                token_file(tmp_path, **{who: {}})
                async with asyncio.timeout(NOTICED_S):
                    assert [one async for one in data(answer)] == []
            assert (await api.send(who, "GET", "/v1/changes")).status_code == 401


async def test_a_stream_ends_when_its_token_expires(clean_store: str, tmp_path: Path) -> None:
    soon = datetime.fromtimestamp(time.time() + 4, UTC).isoformat()
    file, mine = token_file(tmp_path, web={**WEB, "expires": soon}), bearer("web")
    async with worker(clean_store, file) as api, api.client.stream("GET", "/v1/changes", headers=mine) as answer:
        assert answer.status_code == 200
        async with asyncio.timeout(NOTICED_S):
            assert [one async for one in data(answer)] == []
