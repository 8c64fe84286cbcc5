"""GET /v1/changes with tokens: a tenant follows its own claims, and no stream outlives its token."""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from redsched.api.access.changes import ClaimProjects
from redsched.model.records.changes import Change
from redsched.serve.supervisor import Workers
from tests.api.access.parts import WEB, Callers, bearer, put_host, settings_of, token_file
from tests.api.parts import declare_new
from tests.support.waiting import patience_s, wait_until

NOTICED_S = patience_s(20)
EXPIRED = "the token 'web' has expired: ask an operator for another one"


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
    """If the token expires before its stream has begun, as on a slow machine, one that lives longer is tried."""
    async with worker(clean_store, token_file(tmp_path)) as api:
        for life_s in (4, 15, 60):
            until_s = await expiring(api, tmp_path, life_s)
            async with api.client.stream("GET", "/v1/changes", headers=bearer("web")) as answer:
                if answer.status_code != 200:
                    continue
                async with asyncio.timeout(life_s + NOTICED_S):
                    assert [one async for one in data(answer)] == []
            assert time.time() >= until_s
            return
    raise AssertionError("each token had expired before its stream began")


async def expiring(api: Callers, folder: Path, life_s: float) -> float:
    """Have the worker know a token that expires in so many seconds; return when it does."""

    async def refusal() -> str:
        answer = await api.send("web", "GET", "/v1/claims")
        return "" if answer.status_code == 200 else str(answer.json()["detail"])

    async def is_unknown() -> bool:
        return (await refusal()) not in ("", EXPIRED)

    async def is_known() -> bool:
        return (await refusal()) in ("", EXPIRED)

    token_file(folder, web={})
    await wait_until(is_unknown, what="the former token is revoked")
    until_s = time.time() + life_s
    token_file(folder, web={**WEB, "expires": datetime.fromtimestamp(until_s, UTC).isoformat()})
    await wait_until(is_known, what="the worker has read the file")
    return until_s


async def test_the_project_of_an_id_that_is_used_again_in_another_epoch_is_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The new epoch has not come as far as the one before: its change is the later one all the same."""
    owner = "web"

    async def found(cells: object, claim_id: str) -> tuple[None, SimpleNamespace]:
        return None, SimpleNamespace(project=owner)

    monkeypatch.setattr("redsched.api.access.changes.find_claim", found)
    projects = ClaimProjects(SimpleNamespace(cells=None))  # type: ignore[arg-type] # all of it that is used
    before = Change("c1", 90, "host", "h1", 9, "claimed", {"claim": "a"}, "c1:1-a:90")
    after = Change("c1", 20, "host", "h1", 3, "claimed", {"claim": "a"}, "c1:2-b:20")
    assert await projects.of(before) == "web"
    owner = "db"
    assert await projects.of(before) == "web"
    assert await projects.of(after) == "db"
