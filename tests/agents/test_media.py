"""Media beside an answer: put there if the answer stands, and never parted from it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from bridge.agents.answers import response_event
from bridge.agents.rearrange import merged_responses
from bridge.calls.call import Outcome
from bridge.core.actions import EventActions
from bridge.core.content import Blob, Part, Result
from bridge.core.context import local_context
from bridge.core.event import Event
from bridge.errors import ToolError
from tests.agents.talk import answer, brief, call, content
from tests.agents.tools import Probe

OLD, NEW, OTHER = (Blob("image/png", data) for data in (b"old", b"new", b"other"))
RAW: Result = {"content": []}


@dataclass
class Camera(Probe):
    """A tool whose server's answers come with a picture."""

    def media_beside(self, raw: Result) -> Sequence[Blob]:
        return (NEW,) if raw is RAW else ()


def picture(blob: Blob) -> Part:
    return Part(inline_data=blob)


@pytest.mark.parametrize(
    ("raw", "error", "media"),
    [(RAW, None, [NEW]), (None, None, []), (RAW, ToolError("no"), [])],
)
def test_media_are_shown_where_the_servers_answer_stands(
    raw: Result | None, error: Exception | None, media: list[Any]
) -> None:
    outcomes = [
        Outcome(call(key, "look"), {"ok": True}, raw, error, EventActions(), tool)
        for key, tool in (("a", Camera("look")), ("b", Probe("look")))
    ]

    assert brief(response_event(local_context(), outcomes)) == [
        ("answer", "a", "look", {"ok": True}),
        *media,
        ("answer", "b", "look", {"ok": True}),
    ]


def test_a_later_answer_brings_its_own_media_and_takes_the_old_ones_away() -> None:
    first = [answer("a", "look", {"n": 1}), picture(OLD), answer("b", "look", {}), picture(OTHER)]
    later = [answer("a", "look", {"n": 2}), picture(NEW), picture(NEW), Part(text="x")]

    merged = merged_responses([Event(content=content(*parts)) for parts in (first, later)])
    assert brief(merged) == [
        ("answer", "a", "look", {"n": 2}),
        *(NEW, NEW),
        ("answer", "b", "look", {}),
        *(OTHER, "x"),
    ]


def test_media_of_another_calls_answer_are_left_out_with_it() -> None:
    parts = [answer("a", "look", {}), picture(OLD), answer("b", "look", {}), picture(NEW)]

    merged = merged_responses([Event(content=content(*parts))], {"b"})
    assert brief(merged) == [("answer", "b", "look", {}), NEW]


def test_media_behind_what_was_said_are_of_no_answer() -> None:
    parts = [answer("a", "look", {}), Part(text="See:"), picture(OLD)]

    merged = merged_responses([Event(content=content(*parts))], {"b"})
    assert brief(merged) == ["See:", OLD]
