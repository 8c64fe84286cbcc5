"""Spans of OpenTelemetry, from a request over REST to the hook on the host that takes its claim."""

import asyncio
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from redsched import tracing
from redsched.agent.run import run
from redsched.aio import end
from redsched.client import AsyncClient
from redsched.errors import InvalidRequest
from redsched.model import HostReport, Inventory, Request
from redsched.scheduler import Scheduler
from redsched.settings import Settings
from tests.support.processes.served_api import serving
from tests.support.waiting import patience_s, wait_until

HOOK = '#!/bin/sh\necho "$1 $TRACEPARENT" >> {log}\n'
CALLERS = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


class Spans:
    """The spans that have ended."""

    def __init__(self, exporter: InMemorySpanExporter) -> None:
        self._exporter = exporter

    def named(self, name: str) -> list[ReadableSpan]:
        """Return those of a name, in the order in which they ended."""
        return [one for one in self._exporter.get_finished_spans() if one.name == name]

    async def one(self, name: str) -> ReadableSpan:
        """Return the only span of this name, once it has ended."""
        await wait_until(lambda: bool(self.named(name)), what=name)
        [found] = self.named(name)
        return found


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[Spans]:
    """Have spans made by the provider that redsched makes, and collect them."""
    provider, exporter = tracing.new_provider("test"), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(tracing, "_tracer", provider.get_tracer("redsched"))
    yield Spans(exporter)
    provider.shutdown()


@asynccontextmanager
async def fleet(store: str, tmp_path: Path) -> AsyncIterator[tuple[str, Path]]:
    """Yield the URL of an API beside an agent of host h1, and the file to which the hook writes its traceparents."""
    hook, log = tmp_path / "hook.sh", tmp_path / "log"
    hook.write_text(HOOK.format(log=log))
    hook.chmod(0o755)
    settings = Settings(redis_url=store, pick_from=1, hook=str(hook), poll_s=0.01, collect_s=0.1)
    ready = asyncio.Event()
    async with Scheduler.connect(store, settings) as scheduler:
        await scheduler.init()
    report = HostReport("h1", {"VCPU": Inventory(4)}, lease_s=60)
    agent = asyncio.create_task(run(settings, store, [report], tmp_path / "journal.sqlite", ready))
    try:
        async with serving(settings) as url:
            await asyncio.wait_for(ready.wait(), patience_s(60))
            yield url, log
    finally:
        await end(agent)


async def select(url: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
    """Claim 1 VCPU and wait until it is active."""
    body = {"resources": {"VCPU": 1}, "until": "active", "claim_ids": ["mine"]}
    async with httpx.AsyncClient(base_url=url, timeout=patience_s(60)) as client:
        answer = await client.post("/v1/selections", json=body, headers=headers)
    assert answer.status_code == 201, answer.text
    return answer


def trace_of(span: ReadableSpan) -> str:
    assert span.context is not None
    return f"{span.context.trace_id:032x}"


def parent_of(span: ReadableSpan) -> int | None:
    return span.parent.span_id if span.parent is not None else None


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.span_id)


async def test_one_trace_goes_from_the_request_to_the_hook(clean_store: str, tmp_path: Path, spans: Spans) -> None:
    """The caller's span is the parent of the request's, and the hook gets its own span as TRACEPARENT."""
    async with fleet(clean_store, tmp_path) as (url, log):
        answer = await select(url, {"traceparent": CALLERS})
        server = await spans.one("POST /v1/selections")
        decide, claim = await spans.one("redsched.decide"), await spans.one("redsched.claim")
        work, hook, confirm = [await spans.one(f"redsched.{name}") for name in ("begin_work", "hook", "confirm")]
        everything = [server, decide, claim, work, hook, confirm]
        assert {trace_of(one) for one in everything} == {CALLERS[3:35]}
        assert f"{parent_of(server):016x}" == CALLERS[36:52]
        parents = [parent_of(one) for one in (decide, claim, work, hook, confirm)]
        assert parents == [id_of(server)] * 3 + [id_of(work)] * 2
        assert log.read_text() == f"start 00-{trace_of(hook)}-{id_of(hook):016x}-01\n"
        assert answer.headers["x-request-id"] == f"00-{trace_of(server)}-{id_of(server):016x}-01"
        assert hook.attributes is not None
        assert hook.attributes["redsched.claim_id"] == "mine"
        assert server.kind is trace.SpanKind.SERVER


@pytest.mark.parametrize(
    "sent",
    ["00-4bf9-1-01", CALLERS.upper(), f"00-{'0' * 32}-00f067aa0ba902b7-01", "ff" + CALLERS[2:], CALLERS + "\u00e9"],
    ids=["short", "upper case", "no trace id", "unknown version", "not ASCII"],
)
async def test_a_traceparent_that_is_not_valid_is_ignored(clean_store: str, spans: Spans, sent: str) -> None:
    async with (
        serving(Settings(redis_url=clean_store)) as url,
        httpx.AsyncClient(base_url=url, timeout=patience_s(20)) as client,
    ):
        await client.get("/v1/hosts", headers={b"traceparent": sent.encode("latin-1")})
    server = await spans.one("GET /v1/hosts")
    assert server.parent is None
    assert trace_of(server) != CALLERS[3:35]


async def test_a_request_with_an_id_of_its_own_keeps_it(clean_store: str, tmp_path: Path, spans: Spans) -> None:
    """Its trace is the same in every process that knows the id."""
    async with fleet(clean_store, tmp_path) as (url, _):
        answer = await select(url, {"X-Request-Id": "deploy-42"})
        server, hook = await spans.one("POST /v1/selections"), await spans.one("redsched.hook")
    assert answer.headers["x-request-id"] == "deploy-42"
    assert trace_of(server) == trace_of(hook)
    with tracing.span_of("deploy-42", "elsewhere"):
        pass
    assert trace_of(await spans.one("elsewhere")) == trace_of(server)


async def test_requests_after_one_with_an_id_have_traces_of_their_own(clean_store: str, spans: Spans) -> None:
    async with (
        serving(Settings(redis_url=clean_store)) as url,
        httpx.AsyncClient(base_url=url, timeout=patience_s(20)) as client,
    ):
        await client.get("/v1/hosts", headers={"X-Request-Id": "deploy-42"})
        for _ in range(2):
            await client.get("/v1/hosts")
    await wait_until(lambda: len(spans.named("GET /v1/hosts")) == 3)
    assert len({trace_of(one) for one in spans.named("GET /v1/hosts")}) == 3


async def test_routes_and_errors_are_named(clean_store: str, spans: Spans) -> None:
    """Names have the parameters of the route, not their values. What the caller did wrong is no error of the API."""
    async with Scheduler.connect(clean_store, Settings()) as scheduler:
        await scheduler.init()
    async with (
        serving(Settings(redis_url=clean_store)) as url,
        httpx.AsyncClient(base_url=url, timeout=patience_s(20)) as client,
    ):
        assert (await client.get("/v1/hosts/nobody")).status_code == 404
    found = await spans.one("GET /v1/hosts/{host}")
    assert found.attributes is not None
    assert found.attributes["http.response.status_code"] == 404
    assert found.status.is_unset


async def test_the_client_passes_on_the_span_of_its_caller(clean_store: str, spans: Spans) -> None:
    async with serving(Settings(redis_url=clean_store)) as url, AsyncClient(url) as client:
        with tracing.span("caller"):
            await client.about()
    caller, server = await spans.one("caller"), await spans.one("GET /v1")
    assert (trace_of(server), parent_of(server)) == (trace_of(caller), id_of(caller))


async def test_the_library_makes_spans_in_that_of_its_caller(clean_store: str, spans: Spans) -> None:
    async with Scheduler.connect(clean_store, Settings(pick_from=1)) as scheduler:
        await scheduler.init()
        await scheduler.hosts.report(HostReport("h1", {"VCPU": Inventory(4)}, lease_s=60))
        with tracing.span("caller"):
            await scheduler.select(Request({"VCPU": 1}))
    caller = await spans.one("caller")
    for name in ("redsched.decide", "redsched.claim"):
        assert parent_of(await spans.one(name)) == id_of(caller)


async def test_without_tracing_no_span_is_made(clean_store: str, tmp_path: Path) -> None:
    async with fleet(clean_store, tmp_path) as (url, log):
        answer = await select(url, {"traceparent": CALLERS})
        assert log.read_text() == "start \n"
        assert len(answer.headers["x-request-id"]) == 16


def test_without_the_extra_the_error_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    with pytest.raises(InvalidRequest, match=r"redsched\[otel\]"):
        tracing.start("test")
