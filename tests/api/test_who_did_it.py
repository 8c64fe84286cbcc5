"""Who did it: the actor and the request id, from REST to claims, events and hooks."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest

from redsched import origin
from redsched.model import ClaimStatus
from redsched.origin import Origin
from redsched.settings import Settings
from redsched.store.client.pipeline import PipelineExecutor
from redsched.store.client.scripts import load_all
from redsched.store.store import Store
from tests.agent.conftest import World
from tests.api.parts import client_of, put_host
from tests.support.waiting import wait_until

BODY = {"resources": {"VCPU": 1}}
HOOK = """#!/bin/sh
echo "$1 $REDSCHED_ACTOR $REDSCHED_REQUEST_ID" >> {folder}/calls
"""


def caused_by(request_id: str) -> dict[str, str]:
    return {"X-Request-Id": request_id}


@pytest.fixture
async def world(empty_api: httpx.AsyncClient, clean_store: str, tmp_path: Path) -> AsyncIterator[World]:
    """Yield an agent's world on the store of the API."""
    async with Store.connect(clean_store, Settings()) as store:
        made = World(clean_store, store.cell("c1"), tmp_path)
        yield made
        await made.close()


async def event_of(api: httpx.AsyncClient, **wanted: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = []

    async def is_recorded() -> bool:
        found[:] = (await api.get("/v1/events", params=wanted)).json()["events"]
        return bool(found)

    await wait_until(is_recorded, what=f"an event {wanted}")
    return found[0]


async def test_a_request_id_runs_from_rest_to_the_hook(empty_api: httpx.AsyncClient, world: World) -> None:
    (world.folder / "hook.sh").write_text(HOOK.format(folder=world.folder))
    (world.folder / "hook.sh").chmod(0o755)
    # An agent that compares with the store may find the end before the notification, which alone says who asked.
    await world.start(hook=world.hook, compare_s=600)
    made = await empty_api.post("/v1/selections", json={**BODY, "claim_ids": ["web"]}, headers=caused_by("make-1"))
    assert (made.status_code, made.headers["x-request-id"]) == (201, "make-1"), made.text
    await world.reaches("web", ClaimStatus.ACTIVE)
    assert world.calls() == ["start  make-1"], "without authentication there is no actor"
    shown = (await empty_api.get("/v1/claims/web")).json()
    assert (shown["actor"], shown["request_id"]) == ("", "make-1")
    assert (await event_of(empty_api, claim="web", kind="claimed"))["request_id"] == "make-1"
    active = await event_of(empty_api, claim="web", kind="active")
    assert (active["actor"], active["request_id"]) == ("agent:h1", "make-1")

    await empty_api.delete("/v1/claims/web", headers=caused_by("end-2"))
    await wait_until(lambda: world.calls("stop") == ["stop  end-2"], what="the hook knows which request stops the work")
    assert (await event_of(empty_api, claim="web", kind="ending"))["request_id"] == "end-2"
    released = await event_of(empty_api, request_id="end-2", actor="agent:h1", claim="web")
    assert (released["kind"], released["actor"]) == ("released", "agent:h1")
    ended = (await empty_api.get("/v1/claims/web")).json()
    assert (ended["state"], ended["request_id"]) == ("ended", "make-1"), "the claim keeps who made it"


async def test_the_layer_that_knows_the_caller_names_the_actor(clean_store: str) -> None:
    async with client_of(Settings(redis_url=clean_store), is_new=True) as api:
        await put_host(api, "h1")
        token = origin.enter(Origin("", "local"))
        app: Any = api._transport.app  # type: ignore[attr-defined]
        inner = app.middleware_stack._app

        async def gate(*asgi: Any) -> None:
            origin.enter(Origin("ci", origin.current().request_id))
            await inner(*asgi)

        app.middleware_stack._app = gate
        try:
            made = await api.post("/v1/selections", json={**BODY, "claim_ids": ["a"]}, headers=caused_by("r1"))
            assert made.status_code == 201, made.text
            assert origin.current() == Origin("", "local"), "nothing is left of it in the server's own context"
        finally:
            app.middleware_stack._app = inner
            origin.leave(token)
        shown = (await api.get("/v1/claims/a")).json()
        assert (shown["actor"], shown["request_id"]) == ("ci", "r1")


async def test_requests_that_share_calls_keep_their_own_ids(clean_store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    members: list[int] = []
    origins: set[Origin] = set()
    send, place = PipelineExecutor.send, load_all()["claim"].arguments.names.index("members")

    async def watched(self: PipelineExecutor, connection: Any, batch: Sequence[Any]) -> None:
        origins.add(origin.current())
        members.extend(int(call.command[3 + call.command[2] + place]) for call in batch if call.script.name == "claim")
        await send(self, connection, batch)

    monkeypatch.setattr(PipelineExecutor, "send", watched)
    async with client_of(Settings(redis_url=clean_store), is_new=True) as api:
        await put_host(api, "h1", external={}, inventories={"VCPU": {"total": 100}})
        sent = [f"request-{number}" for number in range(60)]
        answers = await asyncio.gather(*(api.post("/v1/selections", json=BODY, headers=caused_by(one)) for one in sent))
        assert {one.status_code for one in answers} == {201}
        claims = [one.json()["selections"][0]["claim_id"] for one in answers]
        shown = [(await api.get(f"/v1/claims/{one}")).json() for one in claims]
        assert [one["request_id"] for one in shown] == sent
        assert [one.headers["x-request-id"] for one in answers] == sent
        event = await event_of(api, request_id=sent[-1])
        assert (event["claim"], event["kind"]) == (claims[-1], "claimed")
    assert max(members) > 1, "some requests shared a call"
    assert origins == {origin.UNKNOWN}, "no request's origin stays with the task that sends the calls of all"
