"""Requests in the dialect of chat completions."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.core.content import Blob, Content, FunctionCall, FunctionResponse, Part
from bridge.core.declaration import Declaration, ModelTool
from bridge.core.request import GenerateConfig, LLMRequest
from bridge.errors import CapabilityError
from bridge.models.chat_request import to_body, to_messages

ALL = frozenset({"image", "audio", "file"})
PNG = Blob("image/png", b"\x89P")
PNG_ITEM = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVA="}}


def user(*parts: Part | str) -> Content:
    return Content("user", tuple(Part(text=p) if isinstance(p, str) else p for p in parts))


def body(request: LLMRequest, *, stream: bool = False, **options: Any) -> dict[str, Any]:
    return to_body(request, "small", "the model", stream=stream, media=ALL, options=options)


def messages(*contents: Content, media: frozenset[str] = ALL) -> list[dict[str, Any]]:
    return to_messages(LLMRequest(contents=[*contents]), media)


def test_a_plain_question_is_a_plain_body() -> None:
    assert body(LLMRequest(contents=[user("Hello", "there")])) == {
        "model": "small",
        "messages": [{"role": "user", "content": "Hello\n\nthere"}],
    }


def test_everything_a_request_holds_is_sent() -> None:
    schema = {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "$defs": {"n": {}}}
    written = {"type": "object", "properties": {"n": {}}}
    config = GenerateConfig(
        system_instruction=Content("user", (Part(text="Be brief."), Part(text="Be kind."))),
        tools=[None, ModelTool([Declaration("count", "Counts.", schema, {"type": "object"})])],
        response_schema={"type": "object", "required": ["answer"]},
    )
    request = LLMRequest(model="large", contents=[user("Hello")], config=config)

    assert body(request, stream=True, temperature=0, stream_options=None) == {
        "model": "large",
        "messages": [
            {"role": "system", "content": "Be brief.\n\nBe kind."},
            {"role": "user", "content": "Hello"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {"name": "count", "description": "Counts.", "parameters": written},
            }
        ],
        "response_format": {
            "type": "json_schema",
            "json_schema": {
                "name": "answer",
                "schema": {"type": "object", "required": ["answer"]},
            },
        },
        "stream": True,
        "temperature": 0,
    }


def test_usage_is_asked_for_where_an_answer_is_streamed() -> None:
    asked = body(LLMRequest(contents=[user("Hello")]), stream=True)
    assert (asked["stream"], asked["stream_options"]) == (True, {"include_usage": True})


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        (None, {"type": "object", "properties": {}}),
        ({}, {"type": "object", "properties": {}}),
        ({"type": "object"}, {"type": "object", "properties": {}}),
        (
            {"additionalProperties": {"type": "string"}},
            {"type": "object", "properties": {}, "additionalProperties": {"type": "string"}},
        ),
    ],
)
def test_parameters_are_always_an_object(schema: dict[str, Any] | None, sent: Any) -> None:
    config = GenerateConfig(tools=[ModelTool([Declaration("now", "", schema)])])

    tools = body(LLMRequest(config=config))["tools"]

    assert tools == [{"type": "function", "function": {"name": "now", "parameters": sent}}]


def test_a_tool_whose_schema_cannot_be_used_is_left_out_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    lost = {"type": "object", "properties": {"n": {"$ref": "#/$defs/lost"}}}
    tools = [Declaration("lost-in-chat", "", lost), Declaration("now")]
    config = GenerateConfig(tools=[ModelTool(tools)])

    offered = body(LLMRequest(config=config))["tools"]

    assert [tool["function"]["name"] for tool in offered] == ["now"]
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        (
            "WARNING",
            'the schema of tool "lost-in-chat" cannot be used as openai: at "/properties/n": '
            '"$ref": "#/$defs/lost" leads to no schema; it is left out of what the model is '
            "offered",
        )
    ]

    body(LLMRequest(config=config))
    assert len(caplog.records) == 1


def test_a_schema_that_is_not_json_costs_its_tool_alone(caplog: pytest.LogCaptureFixture) -> None:
    endless = {"type": "object", "maxProperties": float("inf")}
    tools = [Declaration("endless", "", endless)]

    offered = body(LLMRequest(config=GenerateConfig(tools=[ModelTool(tools)])))

    assert "tools" not in offered
    assert 'tool "endless" is left out: its schema is not JSON' in caplog.text


def test_a_tool_of_the_providers_own_is_refused_by_name() -> None:
    config = GenerateConfig(tools=[ModelTool(native={"google_search": {}, "maps": {}})])

    with pytest.raises(CapabilityError, match='named "google_search", "maps"; take'):
        body(LLMRequest(config=config))


def test_calls_and_answers_keep_their_ids() -> None:
    call = FunctionCall("id-1", "look", {"at": "naïve", "n": 2**70})
    said = messages(
        Content("model", (Part(text="Let me"), Part(text=" see."), Part(function_call=call))),
        user(Part(function_response=FunctionResponse("id-1", "look", {"output": [1, None]}))),
        Content("model", (Part(function_call=FunctionCall("id-2", "look", {})),)),
        user(Part(function_response=FunctionResponse("id-2", "look", None)), "And now?"),
    )

    arguments = '{"at":"naïve","n":1180591620717411303424}'
    assert said == [
        {
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [
                {
                    "id": "id-1",
                    "type": "function",
                    "function": {"name": "look", "arguments": arguments},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "id-1", "content": '{"output":[1,null]}'},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "id-2", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "id-2", "content": "null"},
        {"role": "user", "content": "And now?"},
    ]


def test_thoughts_are_not_sent_back() -> None:
    thought = Part(text="Hm.", thought=True)

    said = messages(Content("model", (thought,)), Content("model", (thought, Part(text="Yes."))))

    assert said == [{"role": "assistant", "content": "Yes."}]


def test_what_a_model_made_besides_text_is_named_to_it() -> None:
    made = Content(
        "model", (Part(inline_data=PNG), Part(code_execution_result={"outcome": "OUTCOME_OK"}))
    )

    (message,) = messages(made)

    shown = '[image/png, 2 bytes, not shown to this model]{"outcome":"OUTCOME_OK"}'
    assert message == {"role": "assistant", "content": shown}


@pytest.mark.parametrize(
    ("blob", "item"),
    [
        (PNG, PNG_ITEM),
        (
            Blob("audio/wav", b"wav"),
            {"type": "input_audio", "input_audio": {"data": "d2F2", "format": "wav"}},
        ),
        (
            Blob("audio/mpeg", b"mp3"),
            {"type": "input_audio", "input_audio": {"data": "bXAz", "format": "mp3"}},
        ),
        (
            Blob("application/pdf", b"pdf"),
            {
                "type": "file",
                "file": {
                    "filename": "file.pdf",
                    "file_data": "data:application/pdf;base64,cGRm",
                },
            },
        ),
        (Blob("text/csv; charset=utf-8", "a,ü".encode()), {"type": "text", "text": "a,ü"}),
    ],
)
def test_media_are_items_of_a_message(blob: Blob, item: dict[str, Any]) -> None:
    (message,) = messages(user("Look:", Part(inline_data=blob), Part(inline_data=PNG)))

    items = [{"type": "text", "text": "Look:"}, item, PNG_ITEM]
    assert message == {"role": "user", "content": items}


@pytest.mark.parametrize(
    "mime_type", ["image/png", "audio/wav", "application/pdf", "video/mp4", "text/plain"]
)
def test_media_that_a_model_does_not_take_are_named_to_it(mime_type: str) -> None:
    blob = Blob(mime_type, b"\xff\xfe")

    (message,) = messages(user("Look:", Part(inline_data=blob)), media=frozenset())

    shown = f"Look:\n\n[{mime_type}, 2 bytes, not shown to this model]"
    assert message == {"role": "user", "content": shown}


def test_sounds_and_images_are_not_sent_as_files() -> None:
    sound = Part(inline_data=Blob("audio/wav", b"wav"))

    (message,) = messages(user(sound), media=frozenset({"file"}))

    assert message["content"] == "[audio/wav, 3 bytes, not shown to this model]"


def test_media_of_answers_follow_them_and_name_the_calls() -> None:
    calls = [Part(function_call=FunctionCall(name, "radar", {})) for name in ("a", "b")]
    first, second = (
        Part(function_response=FunctionResponse(name, "radar", {"output": "ok"}))
        for name in ("a", "b")
    )

    said = messages(
        Content("model", tuple(calls)), user(first, Part(inline_data=PNG), second, "Well?")
    )

    assert said[1:] == [
        {"role": "tool", "tool_call_id": "a", "content": '{"output":"ok"}'},
        {"role": "tool", "tool_call_id": "b", "content": '{"output":"ok"}'},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": 'Media in the answer of "radar" to the call "a":'},
                PNG_ITEM,
                {"type": "text", "text": "Well?"},
            ],
        },
    ]


@pytest.mark.parametrize("signature", [b"\xff\x00", b"7", b'{"provider_name":"openai"}'])
def test_what_another_adapter_kept_with_a_call_is_not_sent(signature: bytes) -> None:
    call = FunctionCall("id-1", "look", {})

    said = messages(Content("model", (Part(function_call=call, thought_signature=signature),)))

    function = {"name": "look", "arguments": "{}"}
    assert said[0]["tool_calls"] == [{"id": "id-1", "type": "function", "function": function}]
