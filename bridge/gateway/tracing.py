"""A span for each call, through OpenTelemetry, as part of its client's trace.

Loaded only where it is switched on: OpenTelemetry belongs to an extra. Its own environment
variables (`OTEL_…`) say where spans go and how many are taken.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.metadata import entry_points
from typing import Any, Final, Protocol

from opentelemetry import trace
from opentelemetry.context import Context, attach, detach, get_current
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from bridge.calls.observing import CallRecord
from bridge.errors import ConfigError
from bridge.gateway.spans import Attributes, LeanTracer
from bridge.version import VERSION

DISABLED: Final = "OTEL_SDK_DISABLED"
EXPORTER: Final = "OTEL_TRACES_EXPORTER"
EXPORTERS: Final = "opentelemetry_traces_exporter"
OTLP: Final = ("otlp_proto_http", "otlp_proto_grpc")
"""The entry points among which "otlp", the default, is the first that is installed."""

PARENT, STATE = "traceparent", "tracestate"
TRACEPARENT: Final = re.compile(
    "(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.{0,512})?"
)
NOWHERE: Final = Context()
[SPAN] = trace.set_span_in_context(trace.INVALID_SPAN, NOWHERE)
"""The key of the current span in a context: it has no public name, and what does use it,
`set_span_in_context`, takes as long as beginning the span.
"""

LONGEST_STATE: Final = 512  # W3C Trace Context, section 3.3.1.5
METHOD: Final = "tools/call"
WELL: Final = frozenset({"ok", "asked"})
"""How calls end that have not failed: a question to the client is no error."""

SERVER = trace.SpanKind.SERVER


def open_tracing(name: str, transport: str) -> Tracing:
    """Tracing that sends spans where the environment says; `name` is the service they are of.

    A program that has set up OpenTelemetry for itself keeps what it has set up.

    Raises:
        ConfigError: The exporter that the environment names is not installed, or refuses to work.
    """
    present = trace.get_tracer_provider()
    if isinstance(present, TracerProvider):
        return Tracing(present.get_tracer("bridge", VERSION), transport)

    if os.environ.get(DISABLED, "").strip().lower() == "true":
        return Tracing(trace.NoOpTracerProvider().get_tracer("bridge"), transport)

    exporter = _exporter(os.environ.get(EXPORTER, "") or "otlp")
    provider = TracerProvider(resource=_resource(name), shutdown_on_exit=False)
    processor: SpanProcessor = SpanProcessor()
    if exporter is not None:
        processor = BatchSpanProcessor(exporter)

    scope = InstrumentationScope("bridge", VERSION)
    tracer = LeanTracer(provider.resource, provider.sampler, processor, scope)
    return Tracing(tracer, transport, processor.shutdown)


def _resource(name: str) -> Resource:
    """What the spans are of: what the environment says, and else a service of this name."""
    found = Resource.create()
    if str(found.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
        return found.merge(Resource({SERVICE_NAME: name}))

    return found


def _exporter(name: str) -> SpanExporter | None:
    if name == "none":
        return None

    for wanted in OTLP if name == "otlp" else (name,):
        for entry in entry_points(group=EXPORTERS, name=wanted):
            try:
                exporter: SpanExporter = entry.load()()
            except Exception as exc:  # anybody's package
                raise ConfigError(f'serve.tracing: the exporter "{wanted}" failed: {exc}') from exc

            return exporter

    raise ConfigError(
        f'serve.tracing: there is no exporter "{name}": pip install "mcp-agent-bridge[otel]", or '
        f"name another in {EXPORTER}"
    )


class Tracer(Protocol):
    """What begins spans: OpenTelemetry's, or a `LeanTracer`."""

    def start_span(
        self, name: str, context: Context, kind: trace.SpanKind, attributes: Attributes
    ) -> trace.Span:
        """Begin a span below the one in `context`, if there is one."""
        ...


class Tracing:
    """Spans of calls, a `calls.observing.Tracer`; `transport` is "pipe" over stdio, else "tcp".

    Names are those of OpenTelemetry's conventions for MCP and GenAI; `bridge.…` are our own.
    `close` sends the last spans, and may take a while; it is for a thread.
    """

    def __init__(
        self,
        tracer: Tracer,
        transport: str,
        close: Callable[[], None] = lambda: None,
    ) -> None:
        self.close = close
        self._tracer = tracer
        self._transport = transport

    def begin(self, tool: str, meta: Mapping[str, Any]) -> CallSpan:
        """Begin a span, the client's being its parent if the client named one (SEP-414)."""
        context = _context(meta[PARENT], meta.get(STATE)) if PARENT in meta else NOWHERE
        name, attributes = _named(tool, self._transport)
        return CallSpan(self._tracer.start_span(name, context, SERVER, attributes), meta)


class CallSpan:
    """One call's span; what runs here while it lasts belongs under it."""

    __slots__ = ("_mark", "_meta", "_span")

    def __init__(self, span: trace.Span, meta: Mapping[str, Any]) -> None:
        self._span = span
        self._meta = meta
        self._mark = attach(Context({**get_current(), SPAN: span}))

    @property
    def meta(self) -> Mapping[str, Any]:
        """The client's `_meta`, with this span in the place of the client's own."""
        # As the tuple that it is: each of its properties is a call.
        trace_id, span_id, _, flags, state, is_valid = self._span.get_span_context()
        if not is_valid:
            return self._meta

        meta = {**self._meta, PARENT: _traceparent(trace_id, span_id, flags)}
        meta.pop(STATE, None)
        if state:
            meta[STATE] = state.to_header()

        return meta

    def end(self, record: CallRecord) -> None:
        """End the span with what became of the call."""
        detach(self._mark)
        span = self._span
        if span.is_recording():
            attributes = _attributes(record)
            if record.kind not in WELL:
                attributes["error.type"] = _error_type(record)
                span.set_status(trace.StatusCode.ERROR)

            span.set_attributes(attributes)

        span.end()


@lru_cache(maxsize=4096)
def _named(tool: str, transport: str) -> tuple[str, Attributes]:
    """The name of a call's span, and what it has from the beginning; nobody may change that."""
    told = {"mcp.method.name": METHOD, "gen_ai.operation.name": "execute_tool"}
    told["network.transport"] = transport
    if tool:
        told["gen_ai.tool.name"] = tool

    return f"{METHOD} {tool}" if tool else METHOD, told


def _context(parent: object, state: object) -> Context:
    """What a client's `_meta` names as the parent; nowhere, if that is no span (W3C, 3.2)."""
    found = TRACEPARENT.fullmatch(parent) if isinstance(parent, str) else None
    if found is None or (found[1] == "00" and found[5]):
        return NOWHERE

    entries = None
    if isinstance(state, str) and len(state) <= LONGEST_STATE:
        entries = trace.TraceState.from_header([state])

    flags = trace.TraceFlags(int(found[4], 16))
    span = trace.SpanContext(int(found[2], 16), int(found[3], 16), True, flags, entries)
    return trace.set_span_in_context(trace.NonRecordingSpan(span), NOWHERE)


def _traceparent(trace_id: int, span_id: int, flags: int) -> str:
    """A span as others name it (W3C Trace Context, section 3.2)."""
    whole, own = trace_id.to_bytes(16, "big").hex(), span_id.to_bytes(8, "big").hex()
    return f"00-{whole}-{own}-{flags:02x}"


def _attributes(record: CallRecord) -> dict[str, str]:
    found: dict[str, str] = {"bridge.outcome": record.kind}
    if record.upstream:
        found["bridge.upstream"] = record.upstream
        found["bridge.own_name"] = record.own_name

    if record.session:
        found["mcp.session.id"] = record.session

    if record.code is not None:
        found["rpc.response.status_code"] = str(record.code)

    return found


def _error_type(record: CallRecord) -> str:
    """Which error it was."""
    if record.kind == "cancelled":
        return record.kind

    return "tool_error" if record.code is None else str(record.code)
