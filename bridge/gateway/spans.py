"""Spans that cost little: OpenTelemetry's own take as long as the whole rest of a call.

What is sampled, how ids are made and where spans go is the SDK's; only the span between its
beginning and its end is ours. Loaded only where tracing is switched on.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import DEFAULT_ON, Decision, Sampler
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.util.types import AttributeValue

Attributes = Mapping[str, AttributeValue]
SAMPLED: Final = trace.TraceFlags(trace.TraceFlags.SAMPLED)
NOT_SAMPLED: Final = trace.TraceFlags(trace.TraceFlags.DEFAULT)
UNSET: Final = trace.Status()
MOST_EVENTS: Final = 128
"""Events that a tool may add to one span; further ones are dropped."""


class LeanTracer:
    """Begins spans and hands them to a processor when they end."""

    def __init__(
        self,
        resource: Resource,
        sampler: Sampler,
        processor: SpanProcessor,
        scope: InstrumentationScope,
    ) -> None:
        self.resource = resource
        self.processor = processor
        self.scope = scope
        self._sampler = sampler
        self._ids = RandomIdGenerator()

    def start_span(
        self, name: str, context: Context, kind: trace.SpanKind, attributes: Attributes
    ) -> trace.Span:
        """Begin a span below the one in `context`, if there is one."""
        parent = _parent(context) if context else None
        trace_id = self._ids.generate_trace_id() if parent is None else parent.trace_id
        if self._sampler is DEFAULT_ON and parent is None:  # takes all; to ask takes a while
            flags, state = SAMPLED, None
        else:
            verdict = self._sampler.should_sample(context, trace_id, name, kind, attributes)
            flags = SAMPLED if verdict.decision is Decision.RECORD_AND_SAMPLE else NOT_SAMPLED
            state, attributes = verdict.trace_state, verdict.attributes

        span_id = self._ids.generate_span_id()
        own = trace.SpanContext(trace_id, span_id, False, flags, state)
        if flags is NOT_SAMPLED:
            return trace.NonRecordingSpan(own)

        return LeanSpan(self, name, own, parent, kind, attributes)


def _parent(context: Context) -> trace.SpanContext | None:
    found: trace.SpanContext | None = trace.get_current_span(context).get_span_context()
    return found if found is not None and found.is_valid else None


class LeanSpan(trace.Span):
    """A span while it lasts."""

    _events: Sequence[Event] = ()
    _status = UNSET
    _ended = False

    def __init__(
        self,
        tracer: LeanTracer,
        name: str,
        own: trace.SpanContext,
        parent: trace.SpanContext | None,
        kind: trace.SpanKind,
        attributes: Attributes,
    ) -> None:
        self._tracer = tracer
        self._name = name
        self._own = own
        self._parent = parent
        self._kind = kind
        self._attributes = dict(attributes)
        self._begun = time.time_ns()

    def get_span_context(self) -> trace.SpanContext:
        """What names it."""
        return self._own

    def is_recording(self) -> bool:
        """Whether what is added to it is kept."""
        return not self._ended

    def set_attributes(self, attributes: Attributes) -> None:
        """Add attributes."""
        self._attributes.update(attributes)

    def set_attribute(self, key: str, value: AttributeValue) -> None:
        """Add one attribute."""
        self._attributes[key] = value

    def add_event(
        self, name: str, attributes: Attributes | None = None, timestamp: int | None = None
    ) -> None:
        """Add something that happened; `timestamp` is in nanoseconds since the epoch."""
        if len(self._events) < MOST_EVENTS:
            self._events = [*self._events, Event(name, attributes, timestamp)]

    def record_exception(
        self,
        exception: BaseException,
        attributes: Attributes | None = None,
        timestamp: int | None = None,
        escaped: bool = False,
    ) -> None:
        """Add an exception, by its type: its text may hold what nobody should read."""
        told = {"exception.type": type(exception).__qualname__, **(attributes or {})}
        self.add_event("exception", told, timestamp)

    def update_name(self, name: str) -> None:
        """Call it by another name."""
        self._name = name

    def set_status(
        self, status: trace.Status | trace.StatusCode, description: str | None = None
    ) -> None:
        """Say whether it went well."""
        if not isinstance(status, trace.Status):
            status = trace.Status(status, description)

        self._status = status

    def end(self, end_time: int | None = None) -> None:
        """Hand it to the processor; what comes later changes nothing."""
        if self._ended:
            return

        self._ended = True
        tracer = self._tracer
        tracer.processor.on_end(
            ReadableSpan(
                self._name,
                self._own,
                self._parent,
                tracer.resource,
                self._attributes,
                self._events,
                (),
                self._kind,
                None,
                self._status,
                self._begun,
                time.time_ns() if end_time is None else end_time,
                tracer.scope,
            )
        )
