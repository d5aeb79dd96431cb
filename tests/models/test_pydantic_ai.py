"""A model of Pydantic AI's: what reaches it, and what comes back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import anyio.lowlevel
import pytest
from pydantic_ai.messages import (
    BinaryContent,
    BinaryImage,
    FilePart,
    ModelMessage,
    ModelResponse,
    ModelResponsePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from bridge.core.content import Blob, Content, FunctionCall, FunctionResponse, Part
from bridge.core.content_json import content_from_json, content_to_json
from bridge.core.declaration import Declaration, ModelTool
from bridge.core.request import GenerateConfig, LLMRequest
from bridge.core.response import LLMResponse
from bridge.core.wire import dumps, loads
from bridge.errors import CapabilityError, ConfigError, ModelError
from bridge.models.pydantic_ai import PydanticAIModel
from tests.waiting import eventually

PNG, WAV = Blob("image/png", b"png"), Blob("audio/wav", b"wav")
SIGNED = {"provider_name": "acme", "provider_details": {"signature": "c2lnbmVk"}}


@dataclass
class Provider:
    """The far side: says one thing, and keeps what it was asked."""

    parts: Sequence[ModelResponsePart] = (TextPart("Hello"),)
    about: dict[str, Any] = field(default_factory=dict)
    messages: list[ModelMessage] = field(default_factory=list)
    info: AgentInfo | None = None

    def model(self, **options: Any) -> PydanticAIModel:
        settings = options.pop("settings", None)
        return PydanticAIModel(
            FunctionModel(self._answer, model_name="small", **options), settings=settings
        )

    def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.messages, self.info = messages, info
        return ModelResponse(parts=[*self.parts], **self.about)

    def asked(self) -> list[Any]:
        """The parts of every message it was sent."""
        return [part for message in self.messages for part in message.parts]


async def answer(model: PydanticAIModel, *contents: Content, **config: Any) -> LLMResponse:
    request = LLMRequest(contents=[*contents], config=GenerateConfig(**config))
    (found,) = [answer async for answer in model.generate(request)]
    return found


def user(*parts: Part | str) -> Content:
    return Content("user", tuple(Part(text=p) if isinstance(p, str) else p for p in parts))


async def test_instruction_tools_and_settings_reach_the_model() -> None:
    provider = Provider()
    schema = {"type": "object", "properties": {"n": {"$ref": "#/$defs/n"}}, "$defs": {"n": {}}}
    declared = [Declaration("count", "Counts.", schema), Declaration("now")]

    found = await answer(
        provider.model(settings=ModelSettings(temperature=0.5)),
        user("Hi"),
        system_instruction=user("Be brief.", "Be kind."),
        tools=[ModelTool(declared)],
    )

    assert found.content == Content("model", (Part(text="Hello"),))
    assert found.model_version == "small"
    assert provider.info is not None
    assert provider.info.instructions == "Be brief.\n\nBe kind."
    assert provider.info.model_settings == {"temperature": 0.5}
    tools = [
        (t.name, t.description, t.parameters_json_schema) for t in provider.info.function_tools
    ]
    assert tools == [
        ("count", "Counts.", {"type": "object", "properties": {"n": {}}}),
        ("now", "", {"type": "object", "properties": {}}),
    ]


@pytest.mark.parametrize(("name", "kept"), [("small", ["$top", "n"]), ("claude-small", ["n"])])
async def test_a_tool_is_offered_in_the_dialect_of_the_model(name: str, kept: list[str]) -> None:
    provider = Provider()
    schema = {"type": "object", "properties": {"$top": {}, "n": {}}}
    lost = {"type": "object", "properties": {"n": {"$ref": "#/$defs/lost"}}}
    declared = [Declaration("list", "", schema), Declaration("lost", "", lost)]
    model = PydanticAIModel(FunctionModel(provider._answer, model_name=name))

    await answer(model, user("Hi"), tools=[ModelTool(declared)])

    assert provider.info is not None
    (tool,) = provider.info.function_tools
    assert [*tool.parameters_json_schema["properties"]] == kept


async def test_settings_go_with_a_streamed_request_too() -> None:
    heard: list[AgentInfo] = []

    async def say(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        heard.append(info)
        yield "Hello"

    model = PydanticAIModel(
        FunctionModel(stream_function=say), settings=ModelSettings(temperature=0.5)
    )
    *_, found = [answer async for answer in model.generate(LLMRequest(), stream=True)]

    assert found.content == Content("model", (Part(text="Hello"),))
    assert [info.model_settings for info in heard] == [{"temperature": 0.5}]


async def test_media_go_with_the_answer_they_belong_to() -> None:
    provider = Provider()
    call = Part(function_call=FunctionCall("a", "radar", {"city": "Tokyo"}))
    response = Part(function_response=FunctionResponse("a", "radar", {"output": "ok"}))

    await answer(
        provider.model(),
        Content("model", (call,)),
        user(response, Part(inline_data=PNG), Part(inline_data=WAV), "Well?"),
    )

    asked, answered, prompted = provider.asked()
    assert asked == ToolCallPart("radar", {"city": "Tokyo"}, "a")
    assert (answered.tool_name, answered.tool_call_id) == ("radar", "a")
    sound = BinaryContent(b"wav", media_type="audio/wav")
    image = BinaryImage(b"png", media_type="image/png")
    assert answered.content == [{"output": "ok"}, image, sound]
    assert prompted.content == "Well?"


async def test_media_of_the_users_reach_the_model() -> None:
    provider = Provider()

    await answer(provider.model(), user("Look:", Part(inline_data=PNG)), user("Well?"))

    (prompted,) = provider.asked()
    image = BinaryImage(b"png", media_type="image/png")
    assert prompted.content == ["Look:", image, "Well?"]


async def test_a_result_of_nothing_stays_nothing() -> None:
    provider = Provider()
    call = Part(function_call=FunctionCall("a", "look", {}))
    nothing = Part(function_response=FunctionResponse("a", "look", None))

    await answer(provider.model(), Content("model", (call,)), user(nothing))

    assert [p.content for p in provider.asked() if isinstance(p, ToolReturnPart)] == [None]


async def test_what_the_provider_signed_goes_back_untouched() -> None:
    said = [
        ThinkingPart("Hm.", signature="sig", id="r1", provider_name="acme"),
        ThinkingPart("", signature="redacted", provider_name="acme"),
        ToolCallPart("look", {}, "a", **SIGNED),
        FilePart(BinaryImage(b"png", media_type="image/png"), **SIGNED),
        TextPart("Hello", **SIGNED),
    ]
    about = {"provider_name": "acme", "provider_url": "https://acme.example"}
    provider = Provider(said, about)

    found = await answer(provider.model(), user("Hi"))
    assert found.content is not None
    assert [(p.text, p.thought) for p in found.content.parts] == [
        ("Hm.", True),
        ("", True),
        (None, False),
        (None, False),
        ("Hello", False),
    ]
    stored = content_from_json(loads(dumps(content_to_json(found.content))))
    await answer(provider.model(), stored)

    response = provider.messages[0]
    assert isinstance(response, ModelResponse)
    assert response.parts == said
    assert (response.provider_name, response.provider_url) == ("acme", "https://acme.example")


@pytest.mark.parametrize("signature", [None, b"\xff", b"[1]", b'{"id":"x"}'])
async def test_what_another_adapter_signed_is_not_sent(signature: bytes | None) -> None:
    provider = Provider()
    thought = Part(text="Hm.", thought=True, thought_signature=signature)

    await answer(provider.model(), Content("model", (thought,)))

    assert provider.asked() == [ThinkingPart("Hm.")]


async def test_what_is_not_json_is_not_kept() -> None:
    details = {"provider_name": "acme", "provider_details": {"raw": object()}}
    provider = Provider([TextPart("Hello", **details)])

    found = await answer(provider.model())

    assert found.content == Content("model", (Part(text="Hello"),))


async def test_usage_and_the_reason_for_the_end_are_kept() -> None:
    usage = RequestUsage(input_tokens=3, output_tokens=2, details={"cached": 1})
    usage.cost = Decimal("0.010")
    provider = Provider(about={"usage": usage, "finish_reason": "length"})

    found = await answer(provider.model())

    assert found.finish_reason == "MAX_TOKENS"
    assert found.usage_metadata == {
        "input_tokens": 3,
        "output_tokens": 2,
        "details": {"cached": 1},
        "cost": "0.010",
    }


@pytest.mark.parametrize("args", [None, "", "{}", {}])
async def test_a_call_may_have_no_arguments(args: str | dict[str, Any] | None) -> None:
    found = await answer(Provider([ToolCallPart("now", args, "a")]).model())
    assert found.content == Content("model", (Part(function_call=FunctionCall("a", "now", {})),))


@pytest.mark.parametrize("args", ['{"n": ', "[1]"])
async def test_malformed_arguments_are_an_answer_with_an_error_code(args: str) -> None:
    provider = Provider([TextPart("Hm."), ToolCallPart("look", args), ToolCallPart("look", "{}")])

    found = await answer(provider.model())

    assert found.error_code == "MALFORMED_FUNCTION_CALL"
    assert 'the model called "look" with arguments that are not' in found.error_message
    assert found.content == Content("model", (Part(text="Hm."),))


async def test_a_filter_that_left_nothing_is_an_error() -> None:
    found = await answer(Provider((), {"finish_reason": "content_filter"}).model())
    assert (found.error_code, found.content) == ("SAFETY", None)


@pytest.mark.parametrize("state", ["incomplete", "suspended", "interrupted"])
async def test_an_answer_that_is_not_complete_is_raised(state: str) -> None:
    provider = Provider(about={"state": state})

    with pytest.raises(ModelError, match=f'^the answer of the model "small" is {state}$'):
        await answer(provider.model())


@pytest.mark.parametrize(("takes", "mode"), [(True, "native"), (False, "prompted")])
async def test_a_response_schema_reaches_the_model_one_way_or_the_other(
    takes: bool, mode: str
) -> None:
    provider = Provider()
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}

    await answer(
        provider.model(profile=ModelProfile(supports_json_schema_output=takes)),
        user("Hi"),
        system_instruction=user("Be brief."),
        response_schema=schema,
    )

    assert provider.info is not None
    parameters = provider.info.model_request_parameters
    assert parameters.output_mode == mode
    assert parameters.output_object is not None
    assert parameters.output_object.json_schema == schema
    assert provider.info.instructions is not None
    assert provider.info.instructions.startswith("Be brief.")
    assert ('"integer"' in provider.info.instructions) != takes


async def test_a_tool_of_the_providers_own_is_refused_before_anything_is_sent() -> None:
    provider = Provider()

    with pytest.raises(CapabilityError, match='the model "small" has no tool of its own named "go'):
        await answer(provider.model(), tools=[ModelTool(native={"google_search": {}})])

    assert provider.info is None


@pytest.mark.parametrize("name", ["no-such-model", "nobody:gpt-5", "openai:gpt-5"])
def test_a_model_that_cannot_be_had_is_named(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    with pytest.raises(ConfigError, match=f'the model "{name}" cannot be used: '):
        PydanticAIModel(name)


async def test_a_model_may_be_named() -> None:
    model = PydanticAIModel("test")

    found = await answer(model, user("Hi"))

    assert (model.name, found.finish_reason) == ("test", "")
    assert found.content == Content("model", (Part(text="success (no tool calls)"),))


async def test_the_test_model_calls_each_tool_and_then_answers() -> None:
    model = PydanticAIModel(TestModel(custom_output_text="done"))
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    tools = [ModelTool([Declaration("count", "", schema)])]

    called = await answer(model, user("Hi"), tools=tools)
    assert called.content is not None
    (part,) = called.content.parts
    assert part.function_call is not None
    assert (part.function_call.name, part.function_call.args) == ("count", {"n": 0})
    counted = FunctionResponse(part.function_call.id, "count", {"result": 1})
    found = await answer(
        model, user("Hi"), called.content, user(Part(function_response=counted)), tools=tools
    )

    assert found.content == Content("model", (Part(text="done"),))


@pytest.mark.parametrize("failure", [RuntimeError("no luck"), AssertionError()])
async def test_whatever_a_provider_raises_is_one_kind_of_error(failure: Exception) -> None:
    def fail(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        raise failure

    with pytest.raises(ModelError, match=str(failure) or "AssertionError") as caught:
        await answer(PydanticAIModel(FunctionModel(fail, model_name="small")))

    assert caught.value.__cause__ is failure


class Counting(FunctionModel):
    """A model that notes who is inside."""

    inside = 0

    async def __aenter__(self) -> Counting:
        await anyio.lowlevel.checkpoint()
        self.inside += 1
        return self

    async def __aexit__(self, *_: object) -> None:
        await anyio.lowlevel.checkpoint()
        self.inside -= 1


async def test_a_model_is_left_after_each_request_even_a_cancelled_one() -> None:
    async def hang(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        yield "Hello"
        await anyio.sleep_forever()

    counting = Counting(
        lambda messages, info: ModelResponse([TextPart("Hi")]), stream_function=hang
    )
    model = PydanticAIModel(counting)

    async def listen() -> None:
        async for _ in model.generate(LLMRequest(), stream=True):
            pass

    await answer(model)
    assert counting.inside == 0
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listen)
        await eventually(lambda: counting.inside)
        tasks.cancel_scope.cancel()

    assert counting.inside == 0
