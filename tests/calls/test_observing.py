"""Those who look on are told of calls, and can harm none."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pytest

from bridge.calls.observing import CallRecord, Observers, Span

RECORD = CallRecord(1.0, 0.5, "local", "", "add", "local", "add", {"a": 1}, "ok")
META = {"example.com/trace": "t"}


class Kept:
    """An observer with a memory."""

    def __init__(self) -> None:
        self.records: list[CallRecord] = []

    def called(self, record: CallRecord) -> None:
        self.records.append(record)


class Broken:
    """An observer that fails each time."""

    def called(self, record: CallRecord) -> None:
        raise RuntimeError("the disk of the observer is gone")


class KeptSpan:
    """A span that remembers what it ended with."""

    def __init__(self, meta: Mapping[str, Any], ended: list[CallRecord], fails: bool) -> None:
        self.meta = meta
        self._ended = ended
        self._fails = fails

    def end(self, record: CallRecord) -> None:
        if self._fails:
            raise RuntimeError("the span cannot end")

        self._ended.append(record)


class KeptTracer:
    """A tracer that fails where it is told to."""

    def __init__(self, fails: str = "") -> None:
        self.fails = fails
        self.begun: list[tuple[str, Mapping[str, Any]]] = []
        self.ended: list[CallRecord] = []

    def begin(self, tool: str, meta: Mapping[str, Any]) -> Span:
        if self.fails == "begin":
            raise RuntimeError("no span can begin")

        self.begun.append((tool, meta))
        return KeptSpan({**meta, "mark": 1}, self.ended, self.fails == "end")


def test_everybody_is_told_of_a_call_in_their_order() -> None:
    first, second = Kept(), Kept()

    Observers([first, second]).end(RECORD, None)

    assert (first.records, second.records) == ([RECORD], [RECORD])


def test_nobody_is_false_and_anybody_is_true() -> None:
    assert not Observers()
    assert Observers([Kept()])
    assert Observers(tracer=KeptTracer())


def test_a_span_begins_with_the_clients_meta_and_ends_with_the_record() -> None:
    tracer = KeptTracer()
    observers = Observers(tracer=tracer)

    span = observers.begin("add", META)
    assert span is not None
    observers.end(RECORD, span)

    assert span.meta == {**META, "mark": 1}
    assert (tracer.begun, tracer.ended) == ([("add", META)], [RECORD])


def test_without_a_tracer_no_span_begins() -> None:
    assert Observers([Kept()]).begin("add", META) is None


def test_an_observer_that_fails_is_told_of_once_and_keeps_nothing_from_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kept = Kept()
    observers = Observers([Broken(), kept])

    with caplog.at_level(logging.ERROR, "bridge"):
        observers.end(RECORD, None)
        observers.end(RECORD, None)

    assert kept.records == [RECORD, RECORD]
    [said] = caplog.records
    assert said.getMessage() == "Broken failed to observe a call; it is not told of again"
    assert said.exc_info is not None


@pytest.mark.parametrize("where", ["begin", "end"])
def test_a_tracer_that_fails_is_told_of_once_and_harms_nothing(
    where: str, caplog: pytest.LogCaptureFixture
) -> None:
    kept = Kept()
    observers = Observers([kept], KeptTracer(where))

    with caplog.at_level(logging.ERROR, "bridge"):
        for _ in range(2):
            observers.end(RECORD, observers.begin("add", META))

    assert kept.records == [RECORD, RECORD]
    [said] = caplog.records
    assert said.getMessage() == "KeptTracer failed to observe a call; it is not told of again"


def test_the_arguments_of_a_call_are_not_in_the_repr_of_its_record() -> None:
    assert "'a': 1" not in repr(RECORD)
    assert RECORD.arguments == {"a": 1}
