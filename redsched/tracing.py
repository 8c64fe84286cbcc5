"""Spans of OpenTelemetry, with the extra `otel`: of requests, decisions, claim calls, work on hosts, and hooks.

Off until `start` or `use`: without them nothing is imported, and a span costs one comparison.

A host's work is in the trace of the request that caused it, because both know the id of that request: the API gives a
request without an id its traceparent (W3C Trace Context) as its id; of any other id, the trace's id is a digest.
"""

import hashlib
import re
import sys
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from redsched import extras
from redsched.release import release

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer

NAME = "redsched"
ERROR_FROM = 500
"""The first status of a response that makes its span an error."""

STOP_S = 3.0
"""How long the end of a process waits for the last spans to be sent: the collector may be away."""

_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_OFF: AbstractContextManager[Any] = nullcontext()
_tracer: "Tracer | None" = None
_trace_id: ContextVar[int] = ContextVar("redsched_trace_id", default=0)
"""The id of the trace that the next span without a parent begins; 0: a random one."""


def start(service: str) -> None:
    """Make spans from now on and send them by OTLP over HTTP, as the OTEL_* variables say. Call it after any fork.

    `service`: the service's name unless OTEL_SERVICE_NAME has one. Raises InvalidRequest if the extra is missing.
    """
    with extras.required():
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    provider = new_provider(service)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    use()


def new_provider(service: str) -> Any:
    """Return a TracerProvider of the SDK that begins traces with the ids that requests have."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.id_generator import RandomIdGenerator

    class Ids(RandomIdGenerator):
        """Begins a trace under the id that is wanted."""

        def generate_trace_id(self) -> int:
            return _trace_id.get() or super().generate_trace_id()

    own = Resource.create({"service.name": service, "service.version": release()})
    return TracerProvider(
        resource=own.merge(OTELResourceDetector().detect()), id_generator=Ids(), shutdown_on_exit=False
    )


def use() -> None:
    """Make spans with the tracer provider of this process from now on: that of `start`, or of the program's own.

    Raises InvalidRequest if OpenTelemetry is not installed.
    """
    global _tracer
    with extras.required():
        from opentelemetry import trace
    _tracer = trace.get_tracer(NAME, release())


def stop() -> None:
    """Stop making spans, and wait up to STOP_S until the last ones are sent. Call it after `start`."""
    global _tracer
    if _tracer is not None:
        from opentelemetry import trace

        _tracer = None
        shutdown = trace.get_tracer_provider().shutdown  # type: ignore[attr-defined] # that of the SDK has it
        sending = threading.Thread(target=shutdown, daemon=True)
        sending.start()
        sending.join(STOP_S)


def span(name: str, **attributes: str | int) -> AbstractContextManager[Any]:
    """Return a context in which a span is current: a child of that of its caller. An exception makes it an error."""
    if _tracer is None:
        return _OFF
    return _tracer.start_as_current_span(name, attributes=_named(attributes))


def span_of(request_id: str, name: str, **attributes: str | int) -> AbstractContextManager[Any]:
    """Return the same for a span in the trace of a request, which another process may have begun."""
    if _tracer is None:
        return _OFF
    attributes["request_id"] = request_id
    return _tracer.start_as_current_span(name, _parent(request_id, ""), attributes=_named(attributes))


def traceparent() -> str:
    """Return the traceparent of the current span of this process, whoever made it; '' for none. Imports nothing."""
    trace = sys.modules.get("opentelemetry.trace")
    found = trace.get_current_span().get_span_context() if trace is not None else None
    if found is None or not found.is_valid:
        return ""
    return f"00-{found.trace_id:032x}-{found.span_id:016x}-{int(found.trace_flags):02x}"


class RequestSpan:
    """The span of a request of the API, current from its creation to `end`."""

    def __init__(self, tracer: "Tracer", method: str, path: str, sent_traceparent: str, request_id: str) -> None:
        from opentelemetry import context, trace

        parent, attributes = _parent(request_id, sent_traceparent), {"http.request.method": method, "url.path": path}
        self._span = tracer.start_span(method, parent, trace.SpanKind.SERVER, attributes)
        self._method = method
        self._token = context.attach(trace.set_span_in_context(self._span))
        self.request_id = request_id or traceparent()
        """The id that the request came with, or else its traceparent."""
        self._span.set_attribute("redsched.request_id", self.request_id)

    def end(self, status: int, route: str) -> None:
        """End it. `status` is 0 if there was no response, and `route` has the names of parameters: /v1/hosts/{host}."""
        from opentelemetry import context, trace

        if route:
            self._span.update_name(f"{self._method} {route}")
            self._span.set_attribute("http.route", route)
        if status:
            self._span.set_attribute("http.response.status_code", status)
        if not status or status >= ERROR_FROM:
            self._span.set_status(trace.StatusCode.ERROR)
        self._span.end()
        context.detach(self._token)


def begin_request(method: str, path: str, sent_traceparent: str, request_id: str) -> RequestSpan | None:
    """Begin the span of a request; None if no spans are made. A traceparent that is not valid is ignored."""
    return None if _tracer is None else RequestSpan(_tracer, method, path, sent_traceparent, request_id)


def _parent(request_id: str, sent_traceparent: str) -> "Context":
    """Return the context of a traceparent, or that of a request id, which may be one."""
    from opentelemetry import trace
    from opentelemetry.context import Context

    _trace_id.set(0)
    remote = _span_context(sent_traceparent) or _span_context(request_id)
    if remote is not None:
        return trace.set_span_in_context(remote, Context())
    if request_id:
        _trace_id.set(int.from_bytes(hashlib.sha256(request_id.encode()).digest()[:16]) or 1)
    return Context()


def _span_context(text: str) -> "Span | None":
    found = _TRACEPARENT.fullmatch(text)
    if found is None:
        return None
    from opentelemetry import trace

    trace_id, span_id, flags = (int(part, 16) for part in found.groups())
    context = trace.SpanContext(trace_id, span_id, is_remote=True, trace_flags=trace.TraceFlags(flags & 1))
    return trace.NonRecordingSpan(context) if context.is_valid else None


def _named(attributes: Mapping[str, str | int]) -> dict[str, str | int]:
    return {f"redsched.{name}": value for name, value in attributes.items() if value != ""}
