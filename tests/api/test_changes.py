"""GET /v1/changes over a real socket: changes arrive as they happen, readers resume, and gaps are reported."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from redsched.serve.supervisor import Workers
from tests.api.parts import check_problem, put_host, select
from tests.support.waiting import patience_s

Event = dict[str, Any]


@asynccontextmanager
async def client(url: str, **environment: str) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client of one worker process over the store at `url`."""
    with Workers("127.0.0.1", 0, 1) as workers:
        workers.start({"REDSCHED_REDIS_URL": url, **environment})
        async with httpx.AsyncClient(base_url=workers.url, timeout=patience_s(20)) as found:
            yield found


async def events(answer: httpx.Response) -> AsyncIterator[Event]:
    """Yield the events of a stream, each with its `event`, `id` and `data`."""
    found: Event = {}
    async for line in answer.aiter_lines():
        if line.startswith(":"):
            continue
        if not line and found:
            yield {**found, "data": json.loads(found["data"])}
            found = {}
        elif line:
            name, _, value = line.partition(": ")
            found[name] = value


async def next_claim(stream: AsyncIterator[Event]) -> Event:
    """Return the next event in which a host has claimed VCPU."""
    async for one in stream:
        if int(one["data"].get("fields", {}).get("claimed.VCPU", 0)):
            return one
    raise AssertionError("the stream ended")


async def test_changes_are_sent_as_they_happen(clean_store: str) -> None:
    async with client(clean_store) as api:
        await put_host(api, "h1")
        async with api.stream("GET", "/v1/changes") as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            stream = events(answer)
            claim = await select(api)
            found = await next_claim(stream)
            assert found["event"] == "change"
            epoch, _, seq = claim["token"].rpartition(".")
            assert (found["id"], found["data"]["seq"]) == (f"c1:{epoch}:{seq}", int(seq))
            assert found["data"]["fields"]["claimed.VCPU"] == "2"


async def test_a_reader_resumes_after_the_last_event_it_saw(clean_store: str) -> None:
    """Changes made while no reader was connected come first, and none comes twice."""
    async with client(clean_store) as api:
        await put_host(api, "h1")
        async with api.stream("GET", "/v1/changes") as answer:
            await select(api)
            last = (await next_claim(events(answer)))["id"]
        await select(api)
        async with api.stream("GET", "/v1/changes", headers={"Last-Event-ID": last}) as answer:
            found = await anext(events(answer))
            assert found["data"]["seq"] == int(last.rpartition(":")[2]) + 1


async def test_a_reader_of_two_cells_resumes_in_both(clean_store: str) -> None:
    """The last event was one of c2: what happened in c1 since comes all the same."""
    async with client(clean_store, REDSCHED_CELLS="c1,c2") as api:
        async with api.stream("GET", "/v1/changes") as answer:
            stream = events(answer)
            await put_host(api, "h1")
            await put_host(api, "h2", cell="c2")
            last = ""
            while '"name":"h2"' not in last:
                found = await anext(stream)
                last = json.dumps(found["data"], separators=(",", ":"))
        await api.post("/v1/hosts/h1/disable")
        async with api.stream("GET", "/v1/changes", headers={"Last-Event-ID": found["id"]}) as answer:
            async for one in events(answer):
                assert one["event"] == "change"
                if (one["data"]["name"], one["data"]["fields"].get("status")) == ("h1", "disabled"):
                    break


async def test_a_gap_is_reported(clean_store: str) -> None:
    """For an id that the feed does not contain, or of a release whose ids had no epoch, `reset` comes first."""
    async with client(clean_store) as api:
        epoch = (await put_host(api, "h1"))["epoch"]
        for last in (f"c1:{epoch}:9000000000000000", "c1:1"):
            async with api.stream("GET", "/v1/changes", headers={"Last-Event-ID": last}) as answer:
                found = await anext(events(answer))
                assert (found["event"], found["data"]) == ("reset", {"cell": "c1"})
                assert found["id"].startswith(f"c1:{epoch}:")


async def test_a_bad_last_event_id_is_a_problem(api: httpx.AsyncClient) -> None:
    for bad in ("x", "c1", "c1:x", "c1:-1", "a b:1", "c1:1,c2:1", "c1:1-a:1,c1:1-a:1"):
        check_problem(await api.get("/v1/changes", headers={"Last-Event-ID": bad}), 422, "invalid-request")


async def test_an_unknown_cell_is_reported_before_the_stream_begins(api: httpx.AsyncClient) -> None:
    check_problem(await api.get("/v1/changes", headers={"Last-Event-ID": "c9:1"}), 404, "not-found")


async def test_an_open_stream_does_not_keep_the_server_from_ending(clean_store: str) -> None:
    """The stream is closed properly: the reader gets its end, not a broken connection."""
    with Workers("127.0.0.1", 0, 1) as workers:
        workers.start({"REDSCHED_REDIS_URL": clean_store})
        async with (
            httpx.AsyncClient(base_url=workers.url, timeout=patience_s(20)) as api,
            api.stream("GET", "/v1/changes") as answer,
        ):
            workers.stop()
            assert [one async for one in events(answer)] == []
