"""Questions to a person: how they are put, and how calls and decisions are read from history."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bridge.agents.llm_agent import Agent
from bridge.agents.questions import (
    Question,
    Reply,
    approved_hash,
    decision,
    original_call,
    question_event,
    questions_in,
    replies_in,
)
from bridge.core.actions import EventActions
from bridge.core.confirmation import ToolConfirmation
from bridge.core.content import FunctionCall, Part
from bridge.core.context import Context, InvocationContext
from bridge.core.event import Event
from bridge.core.session import Session
from bridge.errors import BridgeError
from tests.agents.talk import CONFIRMATION, answer, call, content

SURE = ToolConfirmation("Are you sure?")


def context() -> Context:
    return Context(InvocationContext(Session("s"), "inv_1", Agent("agent_1"), branch="main"))


def asking(*ids: str) -> list[Part]:
    return [Part(function_call=call(call_id, "pay", amount=1)) for call_id in ids]


def question(original: Any) -> FunctionCall:
    return call("q", CONFIRMATION, originalFunctionCall=original)


@pytest.mark.spec("7.1")
def test_a_question_is_put_for_the_call_that_waits() -> None:
    event = question_event(context(), asking("call_1"), {"call_1": SURE})

    assert event is not None
    assert event.content is not None
    assert (event.invocation_id, event.author, event.branch) == ("inv_1", "agent_1", "main")
    assert event.content.role == "model"
    (made,) = event.function_calls()
    assert made.id.startswith("adk-")
    assert made == FunctionCall(
        made.id,
        "adk_request_confirmation",
        {
            "originalFunctionCall": {"id": "call_1", "name": "pay", "args": {"amount": 1}},
            "toolConfirmation": {"hint": "Are you sure?", "confirmed": False, "payload": None},
        },
    )
    assert event.long_running_tool_ids == (made.id,)
    assert event.actions == EventActions()


@pytest.mark.spec("7.1")
@pytest.mark.parametrize("asked", [{}, {"call_2": SURE}])
def test_no_question_is_put_where_no_call_waits(asked: dict[str, ToolConfirmation]) -> None:
    assert question_event(context(), [*asking("call_1"), Part(text="Hm.")], asked) is None


@pytest.mark.spec("7.2")
@pytest.mark.spec("system-29")
def test_questions_come_in_the_order_of_the_calls_with_ids_of_their_own() -> None:
    ids = ["call_c", "call_a", "call_d", "call_b"]
    event = question_event(context(), asking(*ids), dict.fromkeys(sorted(ids), SURE))

    assert event is not None
    questions = event.function_calls()
    assert [original_call(each).id for each in questions] == ids
    assert event.long_running_tool_ids == tuple(each.id for each in questions)
    assert len({each.id for each in questions} - set(ids)) == 4


@pytest.mark.spec("7.3")
@pytest.mark.parametrize("signature", [b"signed", None])
def test_a_question_keeps_the_signature_of_the_call(signature: bytes | None) -> None:
    parts = [replace(part, thought_signature=signature) for part in asking("a")]
    event = question_event(context(), parts, {"a": SURE})

    assert event is not None
    assert event.parts[0].thought_signature == signature


@pytest.mark.spec("7.15")
@pytest.mark.parametrize(
    "original",
    [
        {"id": "1", "name": "weather_lookup", "args": {"city": "Tokyo"}},
        {"ID": "1", "Name": "weather_lookup", "Args": {"city": "Tokyo"}},
        call("1", "weather_lookup", city="Tokyo"),
    ],
)
def test_the_original_call_is_read_however_it_is_written(original: Any) -> None:
    assert original_call(question(original)) == call("1", "weather_lookup", city="Tokyo")


@pytest.mark.spec("7.15")
def test_an_original_call_may_be_a_bare_name() -> None:
    assert original_call(question({"ID": "", "Name": "weather_lookup"})) == call(
        "", "weather_lookup"
    )


@pytest.mark.spec("7.15")
@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (None, "no confirmation call"),
        (call("q", CONFIRMATION), 'call "q" lacks its "originalFunctionCall"'),
        (question("weather"), '"originalFunctionCall" of call "q" is a str, not a call'),
        (question(None), "is a NoneType, not a call"),
        (question({"ID": 11, "Name": "weather_lookup"}), "cannot be read"),
        (question({"id": "1", "name": "w", "args": []}), "cannot be read"),
    ],
)
def test_what_is_no_original_call_is_refused(given: Any, problem: str) -> None:
    with pytest.raises(BridgeError, match=problem):
        original_call(given)


@pytest.mark.parametrize(
    ("payload", "wanted"),
    [
        ({"arguments": {}, "hash": "h", "tool": "t", "upstream": "u"}, "h"),
        ({"hash": "h"}, None),
        ({"arguments": {}, "hash": 1, "tool": "t", "upstream": "u"}, None),
        (None, None),
        ("text", None),
    ],
)
def test_only_the_gates_own_payload_names_a_hash(payload: Any, wanted: str | None) -> None:
    made = call("q", CONFIRMATION, toolConfirmation={"hint": "", "payload": payload})

    assert approved_hash(made) == wanted
    assert approved_hash(call("q", CONFIRMATION, toolConfirmation="odd")) is None


def replied(*responses: Any, name: str = CONFIRMATION) -> dict[str, Reply]:
    parts = (answer(f"q{n}", name, response) for n, response in enumerate(responses))
    return replies_in(Event(id="e", author="user", content=content(*parts)))


@pytest.mark.spec("7.16")
@pytest.mark.spec("system-30")
@pytest.mark.parametrize(
    ("response", "confirmed"),
    [
        ({"confirmed": True}, True),
        ({"confirmed": False}, False),
        ({}, False),
        (None, False),
        ({"hint": "x"}, False),
        ({"response": '{"confirmed": true}'}, True),
        ({"response": '{"confirmed": false}'}, False),
        ({"response": "{}"}, False),
        ({"response": "null"}, False),
        ({"response": "no", "confirmed": True}, True),
    ],
)
def test_a_decision_is_plain_or_wrapped_and_silence_is_no(response: Any, confirmed: bool) -> None:
    assert replied(response)["q0"].confirmation.confirmed is confirmed


def test_what_is_no_decision_is_not_read() -> None:
    assert replied({"confirmed": "odd"}, name="another") == {}


def test_of_two_decisions_on_one_question_the_first_counts() -> None:
    event = Event(
        author="user",
        content=content(
            answer("q", CONFIRMATION, {"confirmed": False}),
            answer("q", CONFIRMATION, {"confirmed": True}),
        ),
    )
    assert replies_in(event)["q"].confirmation.confirmed is False


@pytest.mark.parametrize(
    ("response", "problem"),
    [
        ({"response": 3}, 'its "response" is not a JSON text'),
        ({"response": "{"}, 'its "response" is not JSON'),
        ({"response": "[]"}, "cannot be read"),
        ({"response": "3"}, "cannot be read"),
        ({"confirmed": "yes"}, "cannot be read"),
        ({"confirmed": True, "arguments": []}, 'its "arguments" are a list'),
    ],
)
def test_a_decision_that_cannot_be_read_is_an_error_that_says_where(
    response: Any, problem: str
) -> None:
    with pytest.raises(BridgeError, match=problem) as caught:
        replied(response)

    assert 'the decision "q0" in event "e"' in str(caught.value)


def test_a_decision_may_carry_a_payload_a_hash_and_edited_arguments() -> None:
    given = {"confirmed": True, "payload": {"a": 1}, "hash": "h", "arguments": {"amount": 2}}

    assert replied(given)["q0"] == Reply(ToolConfirmation("", True, {"a": 1}, "h"), {"amount": 2})


def test_a_question_that_was_put_is_read_back() -> None:
    asked = ToolConfirmation("Sure?", payload={"price": 3})
    event = question_event(context(), asking("a"), {"a": asked})

    assert event is not None
    (made,) = event.function_calls()
    stored = Event.from_json(event.to_json())
    assert questions_in(stored) == [
        Question(made.id, call("a", "pay", amount=1), "Sure?", {"price": 3})
    ]


@pytest.mark.parametrize(
    "odd",
    [
        call("q", "another", originalFunctionCall={"name": "pay"}),
        call("q", CONFIRMATION),
        question("pay"),
        call("q", CONFIRMATION, originalFunctionCall={"name": "pay"}, toolConfirmation=[]),
    ],
)
def test_what_is_no_question_is_not_read(odd: FunctionCall) -> None:
    assert questions_in(Event(content=content(Part(function_call=odd)))) == []


def test_a_decision_is_read_as_it_is_made() -> None:
    said = decision("q", True, arguments={"amount": 2}, payload="sure")
    plain = decision("q", False)

    assert replies_in(Event(author="user", content=said)) == {
        "q": Reply(ToolConfirmation("", True, "sure"), {"amount": 2})
    }
    assert replies_in(Event(author="user", content=plain)) == {
        "q": Reply(ToolConfirmation("", False))
    }
