"""The scripted model."""

from __future__ import annotations

import pytest

from bridge.core.content import Content, FunctionCall, Part
from bridge.core.declaration import Declaration, ModelTool
from bridge.core.request import GenerateConfig, LLMRequest
from bridge.core.response import LLMResponse
from bridge.errors import ModelError
from bridge.models.scripted import Answer, ScriptedModel

CALL = FunctionCall("call-1", "look", {"at": ["here"]})
LOOK = Part(function_call=CALL)


async def answers(
    model: ScriptedModel, request: LLMRequest | None = None, *, stream: bool = False
) -> list[LLMResponse]:
    request = LLMRequest() if request is None else request
    return [answer async for answer in model.generate(request, stream=stream)]


def model_said(*parts: Part) -> LLMResponse:
    return LLMResponse(content=Content("model", parts), turn_complete=True, finish_reason="STOP")


def partial(text: str, *, thought: bool = False) -> LLMResponse:
    part = Part(text=text, thought=thought)
    return LLMResponse(content=Content("model", (part,)), partial=True)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("Hello", model_said(Part(text="Hello"))),
        (CALL, model_said(LOOK)),
        (LOOK, model_said(LOOK)),
        (["Hm.", CALL, LOOK], model_said(Part(text="Hm."), LOOK, LOOK)),
        ([], model_said()),
        (Content("model", (LOOK,)), model_said(LOOK)),
        (LLMResponse(error_code="BUSY"), LLMResponse(error_code="BUSY")),
    ],
)
async def test_an_answer_takes_many_shapes(script: Answer, expected: LLMResponse) -> None:
    assert await answers(ScriptedModel([script])) == [expected]


async def test_a_function_answers_from_the_request() -> None:
    async def later(request: LLMRequest) -> FunctionCall:
        return FunctionCall("call-2", request.model, {})

    model = ScriptedModel([lambda request: request.model.upper(), later])

    assert await answers(model, LLMRequest(model="abc")) == [model_said(Part(text="ABC"))]
    called = Part(function_call=FunctionCall("call-2", "abc", {}))
    assert await answers(model, LLMRequest(model="abc")) == [model_said(called)]


async def test_a_list_of_responses_is_given_as_it_is() -> None:
    script = [partial("Hel"), LLMResponse(interrupted=True)]
    model = ScriptedModel([script, script])

    assert await answers(model) == script
    assert await answers(model, stream=True) == script


async def test_a_list_of_both_kinds_is_refused() -> None:
    with pytest.raises(TypeError, match="not of both"):
        await answers(ScriptedModel([["Hello", LLMResponse()]]))


async def test_the_words_of_an_answer_are_streamed_before_it() -> None:
    thought = Part(text="Hm, so.", thought=True)
    model = ScriptedModel([[thought, "  Hello  there\n", LOOK]])

    *pieces, last = await answers(model, stream=True)

    thoughts = [partial("Hm,", thought=True), partial(" so.", thought=True)]
    assert pieces == [*thoughts, partial("  Hello"), partial("  there"), partial("\n")]
    assert last == model_said(thought, Part(text="  Hello  there\n"), LOOK)


async def test_an_exception_is_raised() -> None:
    with pytest.raises(ModelError, match="no such luck"):
        await answers(ScriptedModel([ModelError("no such luck")]))


async def test_running_out_of_answers_says_how_many_there_were() -> None:
    model = ScriptedModel(iter(["only"]), name="actor")
    await answers(model)

    with pytest.raises(ModelError, match='"actor" was asked 2 times and has only 1 answers'):
        await answers(model)


def test_one_text_is_not_a_list_of_answers() -> None:
    with pytest.raises(TypeError, match="give a list of answers"):
        ScriptedModel("Hello")


async def test_what_was_asked_is_kept_as_it_was() -> None:
    tool, schema = object(), {"type": "object"}
    request = LLMRequest(
        model="small",
        contents=[Content("model", (LOOK,))],
        config=GenerateConfig(tools=[ModelTool([Declaration("look", "", schema)])]),
        tools={"look": tool},
    )
    model = ScriptedModel(["Hello"])

    await answers(model, request)
    request.contents.append(Content("user", (Part(text="more"),)))
    CALL.args["at"].append("there")
    schema["type"] = "string"
    assert request.tools is not None
    request.tools.clear()

    declared = [ModelTool([Declaration("look", "", {"type": "object"})])]
    before = Part(function_call=FunctionCall("call-1", "look", {"at": ["here"]}))
    assert model.requests == [
        LLMRequest(
            "small",
            [Content("model", (before,))],
            GenerateConfig(tools=[*declared]),
            {"look": tool},
        )
    ]
    CALL.args["at"].remove("there")
