"""Events: what is final, and their JSON, which other runtimes of the protocol read, too."""

from __future__ import annotations

import dataclasses
import json
from contextlib import suppress
from copy import deepcopy
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.core.actions import EventActions
from bridge.core.confirmation import ToolConfirmation
from bridge.core.content import Blob, Content, FunctionCall, FunctionResponse, Part
from bridge.core.content_json import bytes_from_json, confirmation_from_json, part_from_json
from bridge.core.event import Event, NodeInfo, RequestInput, new_event
from bridge.core.identity import NEW_ID, NOW
from bridge.core.scope import Scope

CALL = FunctionCall("call-1", "get_weather", {"city": "Tokyo"})
ANSWER = FunctionResponse("call-1", "get_weather", {"condition": "sunny"})
THEN = datetime(2024, 12, 1, 8, 0, tzinfo=UTC)

FULL = Event(
    content=Content("model", (Part(text="hello"),)),
    partial=True,
    turn_complete=True,
    interrupted=True,
    error_code="429",
    error_message="rate limited",
    finish_reason="STOP",
    model_version="model-3",
    usage_metadata={"totalTokenCount": 3},
    custom_metadata={"trace": "t"},
    citation_metadata={"citations": []},
    grounding_metadata={},
    logprobs_result={"chosenCandidates": []},
    avg_logprobs=-0.25,
    input_transcription={"text": "in"},
    output_transcription={"text": "out"},
    session_resumption_handle="handle",
    id="evt-1",
    timestamp=THEN,
    invocation_id="inv-1",
    author="planner",
    branch="root.planner",
    isolation_scope="approval_subflow",
    actions=EventActions(
        state_delta={"stage": "drafted"},
        artifact_delta={"report.pdf": 2},
        requested_tool_confirmations={
            "call-1": ToolConfirmation("sure?", payload={"amount": 3}),
            "call-2": ToolConfirmation("sure?", confirmed=True, hash="ab12"),
        },
        skip_summarization=True,
        transfer_to_agent="writer",
        escalate=True,
    ),
    long_running_tool_ids=("tool-1", "tool-2"),
    routes=("reviewer", "writer"),
    requested_input=RequestInput(
        interrupt_id="approval-1",
        message="Approve?",
        response_schema={"type": "boolean"},
        payload={"doc": "contract.pdf"},
    ),
    output={"summary": "ok", "risk_items": 3},
    node_info=NodeInfo(path="wf/planner", message_as_output=True, output_for=("wf",)),
)

FULL_JSON = {
    "content": {"role": "model", "parts": [{"text": "hello"}]},
    "partial": True,
    "turnComplete": True,
    "interrupted": True,
    "errorCode": "429",
    "errorMessage": "rate limited",
    "finishReason": "STOP",
    "modelVersion": "model-3",
    "usageMetadata": {"totalTokenCount": 3},
    "customMetadata": {"trace": "t"},
    "citationMetadata": {"citations": []},
    "groundingMetadata": {},
    "logprobsResult": {"chosenCandidates": []},
    "avgLogprobs": -0.25,
    "inputTranscription": {"text": "in"},
    "outputTranscription": {"text": "out"},
    "sessionResumptionHandle": "handle",
    "id": "evt-1",
    "timestamp": "2024-12-01T08:00:00Z",
    "invocationId": "inv-1",
    "author": "planner",
    "branch": "root.planner",
    "isolationScope": "approval_subflow",
    "actions": {
        "stateDelta": {"stage": "drafted"},
        "artifactDelta": {"report.pdf": 2},
        "requestedToolConfirmations": {
            "call-1": {"hint": "sure?", "confirmed": False, "payload": {"amount": 3}},
            "call-2": {"hint": "sure?", "confirmed": True, "payload": None, "hash": "ab12"},
        },
        "skipSummarization": True,
        "transferToAgent": "writer",
        "escalate": True,
    },
    "longRunningToolIds": ["tool-1", "tool-2"],
    "routes": ["reviewer", "writer"],
    "requestedInput": {
        "interruptId": "approval-1",
        "message": "Approve?",
        "responseSchema": {"type": "boolean"},
        "payload": {"doc": "contract.pdf"},
    },
    "output": {"summary": "ok", "risk_items": 3},
    "nodeInfo": {"path": "wf/planner", "messageAsOutput": True, "outputFor": ["wf"]},
}


@pytest.mark.spec("14.8")
def test_every_field_has_its_key_and_comes_back() -> None:
    assert FULL.to_json() == FULL_JSON
    assert Event.from_json(deepcopy(FULL_JSON)) == FULL


def test_the_full_event_leaves_no_field_at_its_default() -> None:
    bare = Event(id="", timestamp=datetime(1, 1, 1, tzinfo=UTC))
    same = [
        f.name for f in dataclasses.fields(Event) if getattr(FULL, f.name) == getattr(bare, f.name)
    ]
    assert same == []


def test_what_is_empty_is_left_out() -> None:
    event = Event(id="e", timestamp=THEN, author="user")

    assert event.to_json() == {
        "id": "e",
        "timestamp": "2024-12-01T08:00:00Z",
        "invocationId": "",
        "author": "user",
        "actions": {"stateDelta": {}, "artifactDelta": {}},
    }


def test_deltas_that_are_absent_are_left_out_and_read_as_empty() -> None:
    absent = EventActions()
    absent.state_delta = None
    absent.artifact_delta = None
    found = Event(id="e", actions=absent).to_json()

    assert found["actions"] == {}
    assert Event.from_json(found).actions == EventActions()
    null = {"id": "e", "actions": {"stateDelta": None, "artifactDelta": None}}
    assert Event.from_json(null).actions == EventActions()


PARTS = {
    "text": (Part(text="hi"), {"text": "hi"}),
    "empty text": (Part(text=""), {"text": ""}),
    "nothing": (Part(), {}),
    "thought": (Part(text="hm", thought=True), {"text": "hm", "thought": True}),
    "call": (
        Part(function_call=CALL, thought_signature=b"\xfb\xff"),
        {
            "functionCall": {"id": "call-1", "name": "get_weather", "args": {"city": "Tokyo"}},
            "thoughtSignature": "+/8=",
        },
    ),
    "call without id": (
        Part(function_call=FunctionCall("", "now", {})),
        {"functionCall": {"name": "now", "args": {}}},
    ),
    "response": (
        Part(function_response=ANSWER),
        {
            "functionResponse": {
                "id": "call-1",
                "name": "get_weather",
                "response": {"condition": "sunny"},
            }
        },
    ),
    "no response": (
        Part(function_response=FunctionResponse("1", "f", None)),
        {"functionResponse": {"id": "1", "name": "f"}},
    ),
    "empty response": (
        Part(function_response=FunctionResponse("1", "f", {})),
        {"functionResponse": {"id": "1", "name": "f", "response": {}}},
    ),
    "bytes": (
        Part(inline_data=Blob("image/png", b"\x89PNG")),
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw=="}},
    ),
    "code result": (
        Part(code_execution_result={"outcome": "OUTCOME_OK", "output": "4"}),
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "4"}},
    ),
}


@pytest.mark.parametrize(("part", "found"), PARTS.values(), ids=PARTS)
def test_a_part_has_one_form(part: Part, found: dict[str, Any]) -> None:
    event = Event(id="e", timestamp=THEN, content=Content("model", (part,)))

    assert event.to_json()["content"] == {"role": "model", "parts": [found]}
    assert Event.from_json(event.to_json()) == event


def test_base64_is_read_in_either_alphabet_padded_or_not() -> None:
    assert [bytes_from_json(text) for text in ("+/8=", "-_8=", "-_8", "")] == [b"\xfb\xff"] * 3 + [
        b""
    ]


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("2024-12-01T08:00:00Z", THEN),
        ("2024-12-01T09:00:00+01:00", THEN),
        ("2024-12-01T08:00:00", THEN),
        ("2024-12-01T08:00:00.123456789Z", THEN + timedelta(microseconds=123456)),
        (1733040000, THEN),
        (1733040000.5, THEN + timedelta(seconds=0.5)),
        (1733040000.123, THEN + timedelta(milliseconds=123)),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
        (-0.5, datetime(1969, 12, 31, 23, 59, 59, 500000, tzinfo=UTC)),
        (None, datetime(1, 1, 1, tzinfo=UTC)),
    ],
)
def test_a_time_is_read_in_the_forms_that_runtimes_write(written: Any, moment: datetime) -> None:
    assert Event.from_json({"id": "e", "timestamp": written}).timestamp == moment


@pytest.mark.parametrize(
    "written",
    [
        "not-a-date",
        {"nested": 1},
        True,
        1e300,
        -1e300,
        1e19,
        2**63 - 1,
        1733040000000,
        float("nan"),
    ],
)
def test_a_time_that_is_none_is_refused(written: Any) -> None:
    with pytest.raises(ValueError, match="timestamp"):
        Event.from_json({"timestamp": written})


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a time zone"):
        Event(timestamp=datetime(2024, 1, 1))


def test_a_time_is_written_in_utc() -> None:
    moment = THEN.astimezone(timezone(timedelta(hours=9)))
    assert Event(timestamp=moment).to_json()["timestamp"] == "2024-12-01T08:00:00Z"


@pytest.mark.parametrize("found", [{}, {"path": "", "messageAsOutput": False, "outputFor": []}])
def test_a_node_that_says_nothing_is_no_node(found: dict[str, Any]) -> None:
    assert Event.from_json({"nodeInfo": found}).node_info is None
    assert "nodeInfo" not in Event(node_info=NodeInfo()).to_json()


@pytest.mark.parametrize(
    "found",
    [
        [],
        "event",
        {"content": "hi"},
        {"content": {"parts": {}}},
        {"content": {"parts": ["hi"]}},
        {"content": {"parts": [{"text": 3}]}},
        {"content": {"parts": [{"inlineData": {"data": 3}}]}},
        {"content": {"parts": [{"inlineData": {"data": "§"}}]}},
        {"content": {"parts": [{"functionCall": {"args": []}}]}},
        {"content": {"parts": [{"functionResponse": {"response": []}}]}},
        {"partial": "yes"},
        {"author": 3},
        {"output": 1, "avgLogprobs": "high"},
        {"usageMetadata": 3},
        {"longRunningToolIds": "tool-1"},
        {"longRunningToolIds": [1]},
        {"requestedInput": 1},
        {"nodeInfo": {"path": 1}},
        {"actions": []},
        {"actions": {"stateDelta": []}},
        {"actions": {"artifactDelta": {"a": True}}},
        {"actions": {"requestedToolConfirmations": {"1": {"confirmed": "true"}}}},
    ],
    ids=repr,
)
def test_what_is_no_event_is_refused_with_the_part_that_is_wrong(found: Any) -> None:
    with pytest.raises(ValueError, match="must be"):
        Event.from_json(found)


def test_a_confirmation_that_does_not_say_yes_says_no() -> None:
    assert confirmation_from_json({}) == ToolConfirmation()
    assert confirmation_from_json(None) == ToolConfirmation()
    assert confirmation_from_json({"confirmed": True}) == ToolConfirmation(confirmed=True)
    with pytest.raises(ValueError, match='"confirmed" must be of type bool, got int'):
        confirmation_from_json({"confirmed": 1})


texts = st.text(max_size=5)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
objects = st.dictionaries(texts, values, max_size=2)
parts = st.one_of(
    st.builds(Part, text=texts, thought=st.booleans()),
    st.builds(Part, function_call=st.builds(FunctionCall, texts, texts, objects)),
    st.builds(
        Part, function_response=st.builds(FunctionResponse, texts, texts, st.none() | objects)
    ),
    st.builds(Part, inline_data=st.builds(Blob, texts, st.binary(max_size=5))),
    st.builds(Part, thought_signature=st.none() | st.binary(max_size=5)),
    st.builds(Part, code_execution_result=objects),
)
confirmations = st.builds(ToolConfirmation, texts, st.booleans(), values, st.none() | texts)
made_actions = st.builds(
    EventActions,
    state_delta=objects,
    artifact_delta=st.dictionaries(texts, st.integers(), max_size=2),
    requested_tool_confirmations=st.dictionaries(texts, confirmations, max_size=2),
    skip_summarization=st.booleans(),
    transfer_to_agent=texts,
    escalate=st.booleans(),
)
nodes = st.builds(
    NodeInfo,
    path=texts,
    message_as_output=st.booleans(),
    output_for=st.lists(texts, max_size=2).map(tuple),
)
inputs = st.builds(
    RequestInput,
    interrupt_id=texts,
    message=texts,
    response_schema=st.none() | objects,
    payload=values,
)
events = st.builds(
    Event,
    content=st.none() | st.builds(Content, texts, st.lists(parts, max_size=3).map(tuple)),
    partial=st.booleans(),
    turn_complete=st.booleans(),
    interrupted=st.booleans(),
    error_code=texts,
    error_message=texts,
    finish_reason=texts,
    model_version=texts,
    usage_metadata=st.none() | objects,
    custom_metadata=st.none() | objects,
    avg_logprobs=st.none() | st.floats(allow_nan=False),
    input_transcription=st.none() | objects,
    id=texts,
    timestamp=st.datetimes(timezones=st.just(UTC)),
    invocation_id=texts,
    author=texts,
    branch=texts,
    isolation_scope=texts,
    actions=made_actions,
    long_running_tool_ids=st.lists(texts, max_size=2).map(tuple),
    routes=st.lists(texts, max_size=2).map(tuple),
    requested_input=st.none() | inputs,
    output=values,
    node_info=st.none() | nodes.filter(lambda node: node != NodeInfo()),
)


@given(events)
def test_every_event_comes_back_from_its_json(event: Event) -> None:
    written = json.dumps(event.to_json())
    assert Event.from_json(json.loads(written)) == event


@given(st.dictionaries(texts, values) | values)
def test_no_json_is_worse_than_refused(found: Any) -> None:
    for read in (Event.from_json, part_from_json):
        with suppress(ValueError):
            read(found)


@pytest.mark.spec("14.10")
def test_id_and_time_come_from_the_runs_own_makers() -> None:
    scope = Scope().with_value(NEW_ID, lambda: "fixed").with_value(NOW, lambda: THEN)

    assert new_event("e-1", scope) == Event(id="fixed", timestamp=THEN, invocation_id="e-1")


def test_a_new_event_has_an_id_a_time_and_empty_deltas() -> None:
    before = datetime.now(UTC)
    one, other = new_event("e-1"), new_event("e-1")

    assert one.id != other.id
    assert before <= one.timestamp <= datetime.now(UTC)
    assert one.actions == EventActions()
    assert one.actions is not other.actions


def spoken(*said: Part, **given: Any) -> Event:
    return Event(content=Content("model", said), **given)


@pytest.mark.parametrize(
    ("event", "final"),
    [
        (spoken(Part(text="hi")), True),
        (spoken(), True),
        (Event(), True),
        (spoken(Part(text="hi"), partial=True), False),
        (spoken(Part(function_call=CALL)), False),
        (spoken(Part(text="hi"), Part(function_response=ANSWER)), False),
        (spoken(Part(text="4"), Part(code_execution_result={})), False),
        (spoken(Part(code_execution_result={}), Part(text="4")), True),
        (spoken(Part(function_call=CALL), long_running_tool_ids=("call-1",)), True),
        (
            spoken(
                Part(function_response=ANSWER),
                partial=True,
                actions=EventActions(skip_summarization=True),
            ),
            True,
        ),
    ],
)
def test_an_event_is_final_when_nothing_is_left_to_do(event: Event, final: bool) -> None:
    assert event.is_final_response() is final


def test_calls_and_responses_are_found_in_order() -> None:
    other = FunctionCall("call-2", "f", {})
    event = spoken(
        Part(function_call=CALL),
        Part(text="and"),
        Part(function_call=other),
        Part(function_response=ANSWER),
    )

    assert event.function_calls() == [CALL, other]
    assert event.function_responses() == [ANSWER]
    assert Event().function_calls() == Event().function_responses() == []


def test_temporary_state_is_taken_out_of_a_copy() -> None:
    event = Event(actions=EventActions({"temp:a": 1, "b": 2}, {"f": 1}))
    plain = Event(actions=EventActions({"b": 2}))

    trimmed = event.without_temporary_state()

    assert trimmed == dataclasses.replace(event, actions=EventActions({"b": 2}, {"f": 1}))
    assert event.actions.state_delta == {"temp:a": 1, "b": 2}
    assert plain.without_temporary_state() is plain
