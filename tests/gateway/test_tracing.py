"""A span for each call, kept by OpenTelemetry's own exporter in memory."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, DEFAULT_ON, Sampler
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from bridge.calls.observing import CallRecord, Observers
from bridge.config.load import from_mapping
from bridge.core.content import Args, Result
from bridge.core.context import ToolContext, local_context
from bridge.downstream.observed import ObservedHandlers
from bridge.errors import ConfigError
from bridge.gateway.assembly import assemble
from bridge.gateway.observing import observing
from bridge.gateway.offerings import to_handlers
from bridge.gateway.spans import LeanTracer
from bridge.gateway.tracing import Tracing
from tests.downstream.fronts import connected, serving, wire
from tests.downstream.offer import Shelf, servers_tool, text
from tests.processes import started, unused_port
from tests.servers.odd_wire import read_journal
from tests.waiting import eventually

ROOT = Path(__file__).resolve().parent.parent.parent
Odd = Callable[..., list[str]]
TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
CLIENTS = {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "rojo=1,congo=t61"}
RECORD = CallRecord(0, 0.02, "local", "", "now", "weather", "get", {"city": "Oslo"}, "ok")
ALL = {
    "mcp.method.name": "tools/call",
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "now",
    "network.transport": "tcp",
    "bridge.outcome": "ok",
    "bridge.upstream": "weather",
    "bridge.own_name": "get",
}


lean_or_not = pytest.mark.parametrize("lean", [True, False], ids=["ours", "the SDK's"])


class Spans:
    """Tracing that keeps what it has seen."""

    def __init__(self, *, lean: bool = True, sampler: Sampler = DEFAULT_ON) -> None:
        self._exporter = InMemorySpanExporter()
        processor = SimpleSpanProcessor(self._exporter)
        provider = TracerProvider(shutdown_on_exit=False, sampler=sampler)
        provider.add_span_processor(processor)
        ours = LeanTracer(provider.resource, sampler, processor, InstrumentationScope("bridge"))
        self.tracing = Tracing(ours if lean else provider.get_tracer("bridge"), "tcp")

    def ended(self, tool: str = "now", meta: Any = (), record: CallRecord = RECORD) -> ReadableSpan:
        """The span of a call that ended like this."""
        self.tracing.begin(tool, dict(meta)).end(record)
        return self.only

    @property
    def only(self) -> ReadableSpan:
        """The one span."""
        [span] = self._exporter.get_finished_spans()
        return span


def named(span: ReadableSpan) -> str:
    """A span as others name it (W3C Trace Context, section 3.2)."""
    own = span.get_span_context()
    assert own is not None
    return f"00-{own.trace_id:032x}-{own.span_id:016x}-01"


@lean_or_not
def test_a_span_says_what_was_called_in_the_words_of_the_conventions(lean: bool) -> None:
    span = Spans(lean=lean).ended()

    assert (span.name, span.kind) == ("tools/call now", trace.SpanKind.SERVER)
    assert dict(span.attributes or {}) == ALL
    assert (span.parent, span.status.status_code) == (None, trace.StatusCode.UNSET)


def test_no_argument_is_in_a_span() -> None:
    assert "Oslo" not in Spans().ended().to_json()


def test_a_call_of_no_tool_has_no_tool_in_its_name() -> None:
    record = RECORD._replace(tool="made up", upstream="", own_name="", kind="error", code=-32602)

    span = Spans().ended("", record=record)

    assert span.name == "tools/call"
    assert dict(span.attributes or {}) == {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "network.transport": "tcp",
        "bridge.outcome": "error",
        "error.type": "-32602",
        "rpc.response.status_code": "-32602",
    }


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("ok", None),
        ("asked", None),
        ("tool_error", "tool_error"),
        ("refused", "tool_error"),
        ("unavailable", "tool_error"),
        ("unknown", "tool_error"),
        ("cancelled", "cancelled"),
    ],
)
def test_how_a_call_ended_is_the_status_of_its_span(kind: Any, error: str | None) -> None:
    span = Spans().ended(record=RECORD._replace(kind=kind, session="mark"))

    told = dict(span.attributes or {})
    assert (told["bridge.outcome"], told.get("error.type")) == (kind, error)
    assert told["mcp.session.id"] == "mark"
    failed = span.status.status_code is trace.StatusCode.ERROR
    assert failed is (error is not None)


@lean_or_not
def test_the_clients_span_is_the_parent(lean: bool) -> None:
    span = Spans(lean=lean).ended(meta=CLIENTS)

    assert span.parent is not None
    assert (f"{span.parent.trace_id:032x}", f"{span.parent.span_id:016x}") == (TRACE, PARENT)
    assert span.parent.is_remote


def test_a_parent_is_read_as_opentelemetry_reads_it() -> None:
    parts = (
        ("00", "01", "fe", "ff", "0", "0x", "FF"),
        (TRACE, "0" * 32, TRACE[1:], TRACE.upper()),
        (PARENT, "0" * 16, f"{PARENT}0"),
        ("00", "01", "03", "1", "01-", "01-more", "01more"),
    )
    for written in itertools.product(*parts):
        meta = {"traceparent": "-".join(written), "tracestate": "a=1,b=2"}
        context = TraceContextTextMapPropagator().extract(meta, Context())
        expected = trace.get_current_span(context).get_span_context()

        span = Spans(sampler=ALWAYS_ON).ended(meta=meta)

        assert span.parent == (expected if expected.is_valid else None), meta


@pytest.mark.parametrize(
    "broken",
    [
        "",
        "00-x-y-01",
        7,
        None,
        ["00"],
        f"00-{TRACE}-{'0' * 16}-01",
        "x" * 10_000,
        f"00-{TRACE}-{PARENT}-01\n",
    ],
)
def test_a_parent_that_is_none_begins_a_trace_of_its_own(broken: Any) -> None:
    span = Spans().ended(meta={"traceparent": broken, "tracestate": ["x"]})

    assert span.parent is None


@lean_or_not
def test_upstream_goes_our_span_in_the_place_of_the_clients_and_nothing_else_changes(
    lean: bool,
) -> None:
    spans, baggage = Spans(lean=lean), {"baggage": "userId=alice", "example.com/x": [1]}
    meta = {**CLIENTS, **baggage}

    begun = spans.tracing.begin("now", meta)
    sent = begun.meta
    begun.end(RECORD)

    expected = {"traceparent": named(spans.only), "tracestate": CLIENTS["tracestate"], **baggage}
    assert sent == expected
    assert meta == {**CLIENTS, **baggage}


def test_the_state_of_a_trace_that_is_not_continued_goes_nowhere() -> None:
    begun = Spans().tracing.begin("now", {"traceparent": "no", "tracestate": "rojo=1"})
    begun.end(RECORD)

    assert begun.meta.keys() == {"traceparent"}


@lean_or_not
def test_a_call_that_is_not_sampled_is_passed_on_as_such(lean: bool) -> None:
    spans = Spans(lean=lean, sampler=ALWAYS_OFF)

    begun = spans.tracing.begin("now", CLIENTS)
    recording = trace.get_current_span().is_recording()
    begun.end(RECORD)

    assert not recording
    assert begun.meta["traceparent"].startswith(f"00-{TRACE}-")
    assert begun.meta["traceparent"].endswith("-00")
    with pytest.raises(ValueError, match="not enough values"):
        _ = spans.only


def test_a_lean_span_says_the_same_as_one_of_the_sdks() -> None:
    def told(lean: bool) -> dict[str, Any]:
        record = RECORD._replace(kind="error", code=-32602, session="mark")
        span = json.loads(Spans(lean=lean).ended(meta=CLIENTS, record=record).to_json())
        mine = ("context", "start_time", "end_time")
        return {key: value for key, value in span.items() if key not in mine}

    assert told(lean=True) == told(lean=False)


def test_what_a_tool_adds_to_the_span_of_its_call_is_kept() -> None:
    spans = Spans()

    begun = spans.tracing.begin("now", {})
    span = trace.get_current_span()
    span.set_attribute("mine", 1)
    span.add_event("seen", {"how": "well"})
    span.record_exception(ValueError("secret"))
    span.update_name("other")
    recording = span.is_recording()
    begun.end(RECORD)
    span.end()

    ended = spans.only
    assert (ended.name, recording, span.is_recording()) == ("other", True, False)
    assert dict(ended.attributes or {}) == {**ALL, "mine": 1}
    events = [(one.name, dict(one.attributes or {})) for one in ended.events]
    assert events == [
        ("seen", {"how": "well"}),
        ("exception", {"exception.type": "ValueError"}),
    ]
    assert ended.start_time is not None and ended.end_time is not None
    assert ended.start_time <= ended.end_time


def test_what_is_added_after_the_end_changes_nothing() -> None:
    spans = Spans()
    begun = spans.tracing.begin("now", {})
    span = trace.get_current_span()
    begun.end(RECORD)
    told = spans.only.to_json()

    span.set_attribute("late", 1)
    span.set_attributes({"later": 2})
    span.add_event("late")
    span.record_exception(ValueError("late"))
    span.update_name("late")
    span.set_status(trace.StatusCode.ERROR)
    span.end()

    assert spans.only.to_json() == told


def test_what_a_tool_adds_stays_with_its_call() -> None:
    first, second = Spans(), Spans()
    begun = first.tracing.begin("now", {})
    trace.get_current_span().set_attribute("mine", 1)
    begun.end(RECORD._replace(kind="error", code=-32602))

    assert dict(second.ended().attributes or {}) == ALL


def test_a_span_is_bounded_and_ends_with_what_became_of_its_call() -> None:
    spans = Spans()
    begun = spans.tracing.begin("now", {})
    for number in range(1000):
        trace.get_current_span().set_attribute(f"mine{number}", number)
        trace.get_current_span().add_event(f"event{number}")

    begun.end(RECORD)

    span = spans.only
    attributes = dict(span.attributes or {})
    assert (len(attributes), len(span.events)) == (128, 128)
    assert (attributes["bridge.outcome"], attributes["mine999"]) == ("ok", 999)


async def test_spans_of_a_tool_that_runs_here_belong_under_the_calls() -> None:
    spans, inner = Spans(), []

    async def traced(ctx: ToolContext, args: Args) -> Result:
        inner.append(trace.get_current_span().get_span_context())
        return text("done")

    catalog = await Shelf(servers_tool("traced", traced)).offered()
    handlers = ObservedHandlers(Observers(tracer=spans.tracing), catalog)
    async with serving(handlers) as url, connected("http", url, "2026-07-28") as client:
        await client.call_tool("traced", {})

    assert inner == [spans.only.get_span_context()]
    assert not trace.get_current_span().get_span_context().is_valid


@asynccontextmanager
async def gateway(upstream: list[str], spans: Spans) -> AsyncIterator[str]:
    """A gateway over one upstream, whose calls are traced."""
    one = {"command": upstream, "connect_timeout": "60s"}
    assembly = assemble(from_mapping({"upstreams": {"odd": one}}))

    async def settle() -> None:
        if not assembly.catalog.tools:
            await assembly.catalog.refresh(local_context())

    handlers = to_handlers(assembly, settle, Observers(tracer=spans.tracing))
    try:
        async with serving(handlers) as url:
            yield url
    finally:
        await assembly.aclose()


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_a_trace_goes_through_from_client_to_server(
    mode: str, era: str, tmp_path: Path, odd_server: Odd
) -> None:
    spans, journal = Spans(), tmp_path / "journal"
    command = odd_server("noise", "--era", era, "--journal", str(journal))

    async with gateway(command, spans) as url, connected("http", url, mode) as client:
        await client.call_tool("odd__echo", {"text": "x"}, meta=dict(CLIENTS))

    span = spans.only
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == PARENT
    [sent] = read_journal(journal, "tools/call")
    told = {key: sent["params"]["_meta"].get(key) for key in CLIENTS}
    assert told == {"traceparent": named(span), "tracestate": CLIENTS["tracestate"]}


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_what_of_a_clients_meta_belongs_to_its_hop_stays_there(
    mode: str, era: str, tmp_path: Path, odd_server: Odd
) -> None:
    journal, reserved = tmp_path / "journal", "io.modelcontextprotocol/"
    command = odd_server("noise", "--era", era, "--journal", str(journal))
    passed = {"baggage": "userId=alice", "example.com/x": [1]}
    kept = {"progressToken": "mine", f"{reserved}mine": 1, f"{reserved}logLevel": "debug"}

    async with gateway(command, Spans()) as url, connected("http", url, mode) as client:
        await client.call_tool("odd__echo", {"text": "x"}, meta={**passed, **kept})

    [sent] = read_journal(journal, "tools/call")
    meta = sent["params"]["_meta"]
    assert {key: meta.pop(key) for key in passed} == passed
    assert meta.pop("traceparent") and meta.pop("progressToken", None) != "mine"
    assert f"{reserved}mine" not in meta
    assert era == "modern" or not meta


# --- as it is configured ---------------------------------------------------------------------


TRACED = {"tools": ["tests.gateway.functions:add"], "serve": {"tracing": True}}


@pytest.mark.parametrize(
    ("environ", "service"), [({}, "bridge"), ({"OTEL_SERVICE_NAME": "theirs"}, "theirs")]
)
async def test_a_gateway_sends_its_spans_before_it_ends(
    environ: dict[str, str], service: str, tmp_path: Path
) -> None:
    env = {"OTEL_TRACES_EXPORTER": "console", **environ}
    config, port = tmp_path / "bridge.yaml", unused_port()
    config.write_text(json.dumps(TRACED), "utf-8")
    argv = [sys.executable, "-m", "bridge", "serve", str(config), "--port", str(port)]

    async with started(argv, env, port=port, cwd=ROOT) as server:
        inner = wire("http", f"http://127.0.0.1:{port}/mcp")
        async with Client(inner, mode="2026-07-28") as client:
            await client.call_tool("add", {"a": 1, "b": 2})

        server.process.terminate()
        await eventually(lambda: server.process.poll() is not None)
        said = server.output()

    assert '"name": "tools/call add"' in said
    assert f'"service.name": "{service}"' in said


async def test_an_exporter_that_is_not_installed_is_a_config_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "nowhere")

    with pytest.raises(ConfigError) as refused:
        async with observing(assemble(from_mapping(TRACED)), "http"):
            pass

    assert str(refused.value) == (
        'serve.tracing: there is no exporter "nowhere": pip install "mcp-agent-bridge[otel]", or '
        "name another in OTEL_TRACES_EXPORTER"
    )


async def test_without_its_package_a_config_error_names_the_extra(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "bridge.gateway.tracing")
    monkeypatch.setitem(sys.modules, "opentelemetry", None)

    with pytest.raises(ConfigError) as refused:
        async with observing(assemble(from_mapping(TRACED)), "http"):
            pass

    assert str(refused.value) == 'serve.tracing needs more: pip install "mcp-agent-bridge[otel]"'
