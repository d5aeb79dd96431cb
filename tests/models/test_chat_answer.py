"""Answers in the dialect of chat completions, and the ways in which servers differ."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.core.content import Content, FunctionCall, Part
from bridge.core.request import LLMRequest
from bridge.core.response import LLMResponse
from bridge.models.chat_answer import Reply, read_object, said, to_answer
from bridge.models.chat_request import to_messages
from bridge.models.event_source import BadAnswer


def whole(message: dict[str, Any], finish: str | None = "stop", **more: Any) -> LLMResponse:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return to_answer({"choices": [choice], **more})


def merged(*deltas: dict[str, Any], finish: str = "tool_calls") -> LLMResponse:
    """The whole answer that a stream of such deltas makes."""
    reply = Reply()
    for delta in deltas:
        reply.read({"choices": [{"index": 0, "delta": delta}]})

    reply.read({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    return reply.answer()


def calls(answer: LLMResponse) -> list[FunctionCall | None]:
    return [part.function_call for part in answer.content.parts] if answer.content else []


def tool_call(arguments: Any, name: str = "look", **more: Any) -> dict[str, Any]:
    return {"tool_calls": [{**more, "function": {"name": name, "arguments": arguments}}]}


def test_an_answer_keeps_what_the_provider_reports_of_it() -> None:
    usage = {"prompt_tokens": 3, "details": {"cached": 1}}

    answer = whole({"content": "Hello"}, "length", model="small-2025", usage=usage)

    assert answer == LLMResponse(
        content=Content("model", (Part(text="Hello"),)),
        turn_complete=True,
        finish_reason="MAX_TOKENS",
        model_version="small-2025",
        usage_metadata=usage,
    )


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("stop", "STOP"),
        ("tool_calls", "STOP"),
        ("length", "MAX_TOKENS"),
        ("content_filter", "SAFETY"),
        ("eos", "EOS"),
        (None, ""),
    ],
)
def test_the_reason_for_the_end_is_in_the_words_of_the_protocol(
    word: str | None, reason: str
) -> None:
    assert whole({"content": "Hello"}, word).finish_reason == reason


@pytest.mark.parametrize("key", ["reasoning_content", "reasoning"])
def test_reasoning_is_a_thought(key: str) -> None:
    answer = whole({key: "Hm.", "content": "Hello"})

    thought = Part(text="Hm.", thought=True)
    assert answer.content == Content("model", (thought, Part(text="Hello")))


def test_content_may_be_a_list_of_parts() -> None:
    parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "Hel"}]

    answer = whole({"content": [*parts, {"type": "text", "text": "lo"}]})

    assert answer.content == Content("model", (Part(text="Hello"),))


def test_a_refusal_is_an_answer_that_says_so() -> None:
    answer = whole({"content": None, "refusal": "I will not."})

    assert answer == LLMResponse(
        content=Content("model", (Part(text="I will not."),)),
        turn_complete=True,
        error_code="REFUSAL",
        error_message="I will not.",
        finish_reason="STOP",
    )


def test_an_answer_that_says_nothing_as_it_should_is_empty() -> None:
    answer = whole({"content": ""})

    assert answer == LLMResponse(content=Content("model"), turn_complete=True, finish_reason="STOP")


@pytest.mark.parametrize(
    ("word", "code", "text"),
    [
        ("length", "MAX_TOKENS", "token limit"),
        ("content_filter", "SAFETY", "content filter"),
        ("odd", "ODD", "'ODD'"),
    ],
)
def test_an_answer_that_was_stopped_before_it_said_anything_is_an_error(
    word: str, code: str, text: str
) -> None:
    answer = whole({"content": None, "reasoning": "Hm."}, word)

    assert (answer.error_code, answer.finish_reason) == (code, code)
    assert text in answer.error_message
    assert answer.content == Content("model", (Part(text="Hm.", thought=True),))


def test_what_a_filter_cut_short_is_kept() -> None:
    answer = whole({"content": "Hel"}, "content_filter")

    assert (answer.error_code, answer.finish_reason) == ("", "SAFETY")
    assert answer.content == Content("model", (Part(text="Hel"),))


@pytest.mark.parametrize(
    ("arguments", "args"),
    [('{"n": 1}', {"n": 1}), ({"n": 1}, {"n": 1}), ("", {}), (None, {}), ("{}", {})],
)
def test_arguments_come_as_text_as_an_object_or_not_at_all(
    arguments: Any, args: dict[str, Any]
) -> None:
    answer = whole(tool_call(arguments, id="a"))
    assert calls(answer) == [FunctionCall("a", "look", args)]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [('{"n": ', "not JSON: {"), ("[1]", "not a JSON object: [1]"), ([1], "not a JSON object")],
)
def test_malformed_arguments_are_an_answer_that_says_so(arguments: Any, fault: str) -> None:
    message = {"content": "Let me see.", **tool_call(arguments, id="a")}
    message["tool_calls"].append({"id": "b", "function": {"name": "look", "arguments": "{}"}})

    answer = whole(message, "tool_calls")

    assert answer.error_code == "MALFORMED_FUNCTION_CALL"
    assert 'the model called "look" with arguments that are' in answer.error_message
    assert fault in answer.error_message
    assert answer.content == Content("model", (Part(text="Let me see."),))


def test_arguments_cut_off_at_the_token_limit_are_named_as_such() -> None:
    answer = whole(tool_call('{"n": '), "length")

    assert (answer.error_code, answer.content) == ("MALFORMED_FUNCTION_CALL", None)
    assert answer.error_message.endswith("; the answer was cut off at the token limit")


def test_long_malformed_arguments_are_not_shown_whole() -> None:
    answer = whole(tool_call("x" * 10_000))
    assert len(answer.error_message) < 600


def test_a_call_without_a_name_is_malformed() -> None:
    answer = whole({"tool_calls": [{"id": "a", "type": "custom", "custom": {"name": "x"}}]})

    assert answer.error_code == "MALFORMED_FUNCTION_CALL"
    assert "names no function" in answer.error_message


def test_whole_calls_without_ids_stay_apart() -> None:
    message = tool_call('{"n": 1}')
    message["tool_calls"] += tool_call('{"n": 2}')["tool_calls"]

    expected = [FunctionCall("", "look", {"n": 1}), FunctionCall("", "look", {"n": 2})]
    assert calls(whole(message)) == expected


def test_deltas_are_merged_by_their_index() -> None:
    answer = merged(
        tool_call("", id="a", index=0),
        tool_call("", "sing", id="b", index=1),
        {"tool_calls": [{"index": 0, "function": {"arguments": '{"n":'}}]},
        {"tool_calls": [{"index": 1, "function": {"arguments": "{"}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": " 1}"}}]},
        {"tool_calls": [{"index": 1, "function": {"arguments": "}"}}]},
    )

    assert calls(answer) == [FunctionCall("a", "look", {"n": 1}), FunctionCall("b", "sing", {})]


def test_a_name_that_each_delta_repeats_is_one_name() -> None:
    answer = merged(tool_call('{"n":', id="a", index=0), tool_call(" 1}", id="a", index=0))
    assert calls(answer) == [FunctionCall("a", "look", {"n": 1})]


def test_a_new_id_at_a_known_index_begins_a_call() -> None:
    answer = merged(
        tool_call('{"n": 1}', id="a", index=0),
        tool_call('{"n": 2}', id="b", index=0),
    )

    assert calls(answer) == [
        FunctionCall("a", "look", {"n": 1}),
        FunctionCall("b", "look", {"n": 2}),
    ]


def test_without_an_index_an_id_or_a_name_begins_a_call() -> None:
    answer = merged(
        tool_call('{"n":', id="a"),
        {"tool_calls": [{"function": {"arguments": " 1}"}}]},
        tool_call('{"n":', id="b"),
        {"tool_calls": [{"id": "b", "function": {"arguments": " 2}"}}]},
        tool_call('{"n": 3}'),
        tool_call('{"n": 4}'),
    )

    expected = [("a", 1), ("b", 2), ("", 3), ("", 4)]
    assert calls(answer) == [FunctionCall(i, "look", {"n": n}) for i, n in expected]


def test_what_any_chunk_reports_is_kept() -> None:
    reply = Reply()
    reply.read({"model": "small-2025", "usage": {"total_tokens": 3}, "choices": []})
    reply.read({"choices": [{"delta": {"content": "Hi"}, "finish_reason": "stop"}]})
    reply.read({"usage": None, "choices": [{"delta": {}}]})

    answer = reply.answer()

    assert (answer.model_version, answer.finish_reason) == ("small-2025", "STOP")
    assert answer.usage_metadata == {"total_tokens": 3}


def test_what_a_provider_wants_back_with_a_call_goes_back_with_it() -> None:
    extra = {"google": {"thought_signature": "c2lnbmVk"}}
    answer = whole(tool_call("{}", id="a", extra_content=extra))
    assert answer.content is not None

    sent = to_messages(LLMRequest(contents=[answer.content]), frozenset())

    assert sent[0]["tool_calls"] == [
        {
            "id": "a",
            "type": "function",
            "function": {"name": "look", "arguments": "{}"},
            "extra_content": extra,
        }
    ]


@pytest.mark.parametrize("body", [{}, {"choices": []}, {"choices": "none"}, {"choices": [1]}])
def test_a_body_without_choices_is_no_answer(body: dict[str, Any]) -> None:
    with pytest.raises(BadAnswer, match="no choices"):
        to_answer(body)


@pytest.mark.parametrize(
    "choice",
    [
        {},
        {"message": None},
        {"message": {"content": 7, "tool_calls": {"no": "list"}, "reasoning": []}},
        {"message": {"tool_calls": [None, 7]}, "finish_reason": 3},
    ],
)
def test_odd_bodies_are_empty_answers(choice: dict[str, Any]) -> None:
    answer = to_answer({"choices": [choice], "usage": [], "model": None})
    assert answer == LLMResponse(content=Content("model"), turn_complete=True)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (b"<html>", "is not JSON: <html>"),
        ("[1]", "is not a JSON object: [1]"),
        ('{"error": {"message": "overloaded"}}', "reports an error: overloaded"),
    ],
)
def test_what_is_no_answer_is_said_to_be_none(text: bytes | str, fault: str) -> None:
    with pytest.raises(BadAnswer, match=fault.replace("[", r"\[")):
        read_object(text)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"error": {"message": "no such model", "type": "x"}}', "no such model"),
        (b'{"error": "no such model"}', "no such model"),
        (b'{"object": "error", "message": "no such model"}', "no such model"),
        (b'{"detail": [{"msg": "bad"}]}', "[{'msg': 'bad'}]"),
        (b'{"error": {}}', "{'error': {}}"),
        (b"gateway down", "gateway down"),
        (b"", ""),
    ],
)
def test_an_error_is_read_wherever_the_provider_put_it(body: bytes, text: str) -> None:
    assert said(body) == text
