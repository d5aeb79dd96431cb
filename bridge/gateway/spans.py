"""Spans that cost little: OpenTelemetry's own take as long as the whole rest of a call.

What is sampled and where spans go is the SDK's; their names and the spans themselves are ours.
Loaded only where tracing is switched on.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Mapping
from typing import Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, SpanProcessor
from opentelemetry.sdk.trace.sampling import DEFAULT_ON, Decision, Sampler
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.util.types import AttributeValue

Attributes = Mapping[str, AttributeValue]
SAMPLED: Final = trace.TraceFlags(trace.TraceFlags.SAMPLED)
NOT_SAMPLED: Final = trace.TraceFlags(trace.TraceFlags.DEFAULT)
UNSET: Final = trace.Status()
MOST_ATTRIBUTES: Final = 128
MOST_EVENTS: Final = 128
"""Events that a tool may add to one span; further ones are dropped."""

CHANGING: Final = threading.Lock()
"""Held while any span is changed, which takes next to no time."""


class LeanTracer:
    """Begins spans and hands them to a processor when they end."""

    def __init__(
        self,
        resource: Resource,
        sampler: Sampler,
        processor: SpanProcessor,
        scope: InstrumentationScope,
    ) -> None:
        self._resource = resource
        self._processor = processor
        self._scope = scope
        self._sampler = sampler

    def start_span(
        self, name: str, context: Context, kind: trace.SpanKind, attributes: Attributes
    ) -> trace.Span:
        """Begin a span below the one in `context`, if there is one."""
        parent = _parent(context) if context else None
        # Zero names nothing (W3C Trace Context, section 3.2.2).
        trace_id = random.getrandbits(128) or 1 if parent is None else parent.trace_id
        if self._sampler is DEFAULT_ON and parent is None:  # takes all; to ask takes a while
            flags, state = SAMPLED, None
        else:
            given = dict(attributes)  # a sampler may be anybody's
            verdict = self._sampler.should_sample(context, trace_id, name, kind, given)
            flags = SAMPLED if verdict.decision is Decision.RECORD_AND_SAMPLE else NOT_SAMPLED
            state, attributes = verdict.trace_state, verdict.attributes

        own = trace.SpanContext(trace_id, random.getrandbits(64) or 1, False, flags, state)
        if flags is NOT_SAMPLED:
            return trace.NonRecordingSpan(own)

        return LeanSpan(
            self._processor, name, own, parent, self._resource, attributes, kind, self._scope
        )


def _parent(context: Context) -> trace.SpanContext | None:
    found: trace.SpanContext | None = trace.get_current_span(context).get_span_context()
    return found if found is not None and found.is_valid else None


class LeanSpan(ReadableSpan, trace.Span):
    """A span while it lasts and, once it has ended, what is exported.

    As the SDK's own, it keeps what it has in the private fields of `ReadableSpan`. Tools may
    add to it from threads of their own; what is added after its end changes nothing.
    """

    def __init__(
        self,
        processor: SpanProcessor,
        name: str,
        own: trace.SpanContext,
        parent: trace.SpanContext | None,
        resource: Resource,
        attributes: Attributes,
        kind: trace.SpanKind,
        scope: InstrumentationScope,
    ) -> None:
        """`processor` gets it when it ends."""
        super().__init__(
            name,
            own,
            parent,
            resource,
            attributes,
            kind=kind,
            status=UNSET,
            start_time=time.time_ns(),
            instrumentation_scope=scope,
        )
        self._processor = processor

    def get_span_context(self) -> trace.SpanContext:
        """What names it."""
        return self._context or trace.INVALID_SPAN_CONTEXT

    def is_recording(self) -> bool:
        """Whether what is added to it is kept."""
        return self._end_time is None

    def set_attributes(self, attributes: Attributes) -> None:
        """Add attributes; of too many the oldest go."""
        with CHANGING:
            if self._end_time is None:
                found = {**(self._attributes or {}), **attributes}
                if len(found) > MOST_ATTRIBUTES:
                    found = dict([*found.items()][-MOST_ATTRIBUTES:])

                self._attributes = found  # a new one: an exporter may be reading the old

    def set_attribute(self, key: str, value: AttributeValue) -> None:
        """Add one attribute."""
        self.set_attributes({key: value})

    def add_event(
        self, name: str, attributes: Attributes | None = None, timestamp: int | None = None
    ) -> None:
        """Add something that happened; `timestamp` is in nanoseconds since the epoch."""
        with CHANGING:
            if self._end_time is None and len(self._events) < MOST_EVENTS:
                self._events = (*self._events, Event(name, attributes, timestamp))

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
        with CHANGING:
            if self._end_time is None:
                self._name = name

    def set_status(
        self, status: trace.Status | trace.StatusCode, description: str | None = None
    ) -> None:
        """Say whether it went well."""
        if not isinstance(status, trace.Status):
            status = trace.Status(status, description)

        with CHANGING:
            if self._end_time is None:
                self._status = status

    def end(self, end_time: int | None = None) -> None:
        """Hand it to the processor, once."""
        with CHANGING:
            if self._end_time is not None:
                return

            self._end_time = time.time_ns() if end_time is None else end_time

        self._processor.on_end(self)
