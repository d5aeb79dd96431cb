"""What every model does, whatever is behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

import anyio
import pytest

from bridge.core.content import Content, FunctionCall, FunctionResponse, Part
from bridge.core.declaration import Declaration, ModelTool
from bridge.core.model import Model
from bridge.core.request import GenerateConfig, LLMRequest
from bridge.core.response import LLMResponse
from bridge.errors import ModelError
from tests.models.backends import Backend, ChatCompletions, PydanticAI, Scripted
from tests.models.conftest import Desk
from tests.waiting import eventually

SUNNY = {"say": "It is sunny in Tokyo."}
TOKYO = {"id": "call-tokyo", "name": "get_weather", "arguments": {"city": "Tokyo", "days": [1, 2]}}
OSLO = {"id": "call-oslo", "name": "get_weather", "arguments": {}}
HANG: dict[str, Any] = {"say": "It is", "then": "hang"}
WEATHER = Declaration("get_weather", "The weather of a city.", {"type": "object"})


@pytest.fixture(params=["scripted", "chat completions", "pydantic ai"])
async def backend(request: pytest.FixtureRequest, desk: Desk) -> AsyncIterator[Backend]:
    made: dict[str, Backend] = {
        "scripted": Scripted(),
        "chat completions": ChatCompletions(desk),
        "pydantic ai": PydanticAI(),
    }
    yield made[request.param]
    await made[request.param].aclose()


def question(*more: Content) -> LLMRequest:
    first = Content("user", (Part(text="How is the weather?"),))
    config = GenerateConfig(tools=[ModelTool([WEATHER])])
    return LLMRequest(contents=[first, *more], config=config)


def call_of(call: dict[str, Any]) -> FunctionCall:
    return FunctionCall(call["id"], call["name"], call["arguments"])


def asking(*calls: dict[str, Any]) -> Content:
    return Content("model", tuple(Part(function_call=call_of(call)) for call in calls))


def answering(*answers: FunctionResponse) -> Content:
    return Content("user", tuple(Part(function_response=answer) for answer in answers))


async def answers(model: Model, request: LLMRequest, *, stream: bool) -> list[LLMResponse]:
    return [answer async for answer in model.generate(request, stream=stream)]


async def whole(model: Model, request: LLMRequest, *, stream: bool) -> LLMResponse:
    """The one whole answer, which comes last."""
    *pieces, last = await answers(model, request, stream=stream)
    assert all(piece.partial for piece in pieces)
    assert not last.partial
    assert last.turn_complete
    return last


def texts(pieces: Sequence[LLMResponse], *, thought: bool) -> str:
    parts = [part for piece in pieces if piece.content for part in piece.content.parts]
    return "".join(part.text or "" for part in parts if part.thought == thought)


async def test_a_model_is_recognised_by_its_shape(desk: Desk) -> None:
    assert isinstance(desk.model(), Model)
    assert desk.model().name == "small"


async def test_a_text_is_one_whole_answer(backend: Backend) -> None:
    model = await backend.start([SUNNY])

    (answer,) = await answers(model, question(), stream=False)

    assert answer.content == Content("model", (Part(text="It is sunny in Tokyo."),))
    assert (answer.partial, answer.error_code, answer.finish_reason) == (False, "", "STOP")


async def test_a_thought_is_a_part_of_its_own(backend: Backend) -> None:
    model = await backend.start([{"think": "Hmm.", **SUNNY}])

    answer = await whole(model, question(), stream=False)

    thought, said = Part(text="Hmm.", thought=True), Part(text="It is sunny in Tokyo.")
    assert answer.content == Content("model", (thought, said))


@pytest.mark.parametrize("stream", [False, True])
async def test_a_call_keeps_its_id_its_name_and_its_arguments(
    backend: Backend, stream: bool
) -> None:
    model = await backend.start([{"calls": [TOKYO]}])

    answer = await whole(model, question(), stream=stream)

    assert answer.content == asking(TOKYO)
    assert answer.error_code == ""


@pytest.mark.parametrize("stream", [False, True])
async def test_two_calls_come_in_the_order_they_were_made(backend: Backend, stream: bool) -> None:
    model = await backend.start([{"calls": [TOKYO, OSLO]}])

    answer = await whole(model, question(), stream=stream)

    assert answer.content == asking(TOKYO, OSLO)


@pytest.mark.parametrize("stream", [False, True])
async def test_the_answer_to_a_call_reaches_the_model(backend: Backend, stream: bool) -> None:
    model = await backend.start([{"calls": [TOKYO]}, SUNNY])
    asked = await whole(model, question(), stream=stream)
    assert asked.content is not None
    result = FunctionResponse("call-tokyo", "get_weather", {"output": {"celsius": 22}})

    answer = await whole(model, question(asked.content, answering(result)), stream=stream)

    assert answer.content == Content("model", (Part(text="It is sunny in Tokyo."),))
    assert await backend.exchanges() == [([], []), ([call_of(TOKYO)], [result])]


async def test_the_answers_to_two_calls_reach_the_model_each_with_its_id(backend: Backend) -> None:
    model = await backend.start([SUNNY])
    tokyo = FunctionResponse("call-tokyo", "get_weather", {"celsius": 22})
    oslo = FunctionResponse("call-oslo", "get_weather", {"error": "no such city"})

    await whole(model, question(asking(TOKYO, OSLO), answering(tokyo, oslo)), stream=False)

    assert await backend.exchanges() == [([call_of(TOKYO), call_of(OSLO)], [tokyo, oslo])]


async def test_a_streamed_text_comes_in_pieces_and_then_whole(backend: Backend) -> None:
    model = await backend.start([SUNNY])

    *pieces, last = await answers(model, question(), stream=True)

    assert len(pieces) > 1
    assert all(piece.partial and not piece.turn_complete for piece in pieces)
    assert texts(pieces, thought=False) == "It is sunny in Tokyo."
    assert last.content == Content("model", (Part(text="It is sunny in Tokyo."),))
    assert (last.partial, last.turn_complete) == (False, True)


async def test_a_streamed_call_comes_whole(backend: Backend) -> None:
    model = await backend.start([{"calls": [TOKYO]}])

    *pieces, last = await answers(model, question(), stream=True)

    assert all(part.function_call is None for p in pieces if p.content for part in p.content.parts)
    assert last.content == asking(TOKYO)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_failure_of_the_provider_is_raised(backend: Backend, stream: bool) -> None:
    model = await backend.start([{"then": "fail"}, SUNNY])

    with pytest.raises(ModelError, match="this model fails"):
        await answers(model, question(), stream=stream)

    answer = await whole(model, question(), stream=False)
    assert answer.content == Content("model", (Part(text="It is sunny in Tokyo."),))


@pytest.mark.parametrize("stream", [False, True])
async def test_cancelling_a_request_is_felt_on_the_far_side(backend: Backend, stream: bool) -> None:
    model = await backend.start([HANG, SUNNY])

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: answers(model, question(), stream=stream))
        await eventually(backend.exchanges)
        assert not await backend.is_gone()
        tasks.cancel_scope.cancel()

    await eventually(backend.is_gone)
    answer = await whole(model, question(), stream=False)
    assert answer.content == Content("model", (Part(text="It is sunny in Tokyo."),))


async def test_a_stream_can_be_left_before_its_end(backend: Backend) -> None:
    model = await backend.start([HANG, SUNNY])
    if isinstance(backend, Scripted):
        model = await backend.start([SUNNY, SUNNY])
        backend.gone = True  # there is nobody to tell

    async with aclosing(model.generate(question(), stream=True)) as stream:
        first = await anext(stream)

    assert first.content == Content("model", (Part(text="It"),))
    await eventually(backend.is_gone)
    answer = await whole(model, question(), stream=False)
    assert answer.content == Content("model", (Part(text="It is sunny in Tokyo."),))
