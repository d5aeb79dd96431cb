"""The script that stands in for a model: what it calls, what it says, and that it is a script."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from bridge.core.content import Content, FunctionCall, FunctionResponse, Part
from bridge.core.request import LLMRequest
from bridge.gateway.scripted_demo import WALK, scripted_demo, suggestions


@dataclass(frozen=True, slots=True)
class Offered:
    """A tool that is offered under another name than its own."""

    own_name: str


SCRIPT = "(scripted) I am a script, no model: I know a few words about the demo's tools."
DEMO = {
    f"w__{name}": Offered(name)
    for name in ("get_weather", "forecast", "radar", "storm_alert", "buy_report")
}


async def answer(*parts: Part, tools: dict[str, Any] | None = None) -> list[Any]:
    request = LLMRequest(contents=[Content("user", parts)], tools=DEMO if tools is None else tools)
    [response] = [one async for one in scripted_demo().generate(request)]
    assert response.content is not None
    return [part.function_call or part.text for part in response.content.parts]


async def to(text: str, **options: Any) -> list[Any]:
    return await answer(Part(text=text), **options)


async def told(response: dict[str, Any] | None) -> str:
    [text] = await answer(Part(function_response=FunctionResponse("c", "w__tool", response)))
    assert isinstance(text, str)
    return text


def call(name: str, **args: Any) -> FunctionCall:
    return FunctionCall("", name, args)


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("What is the weather in New York?", [call("w__get_weather", city="New York")]),
        ("weather in tokyo please", [call("w__get_weather", city="tokyo")]),
        ("How is the weather?", [call("w__get_weather", city="Tokyo")]),
        ("Buy a report on Lima.", [call("w__buy_report", city="Lima")]),
        ("Is a storm coming in London?", [call("w__storm_alert", city="London")]),
        ("The forecast for Berlin", [call("w__forecast", city="Berlin")]),
        (
            WALK[2],
            [call("w__get_weather", city="Lima"), call("w__buy_report", city="Lima")],
        ),
        ('w__forecast {"city": "Lima", "days": 1}', [call("w__forecast", city="Lima", days=1)]),
        ("w__radar", [call("w__radar")]),
    ],
)
async def test_words_and_names_become_calls(text: str, calls: list[FunctionCall]) -> None:
    assert await to(text) == calls


@pytest.mark.parametrize(
    ("text", "beginning"),
    [
        ("Hello", f"{SCRIPT} Try: {WALK[0]} / {WALK[1]} / "),
        ("w__radar {bad", "(scripted) What stands behind w__radar is not JSON: "),
        ("w__radar [1]", "(scripted) Behind w__radar belongs a JSON object, "),
    ],
)
async def test_everything_else_is_answered_by_what_to_say(text: str, beginning: str) -> None:
    [said] = await to(text)

    assert said.startswith(beginning)


async def test_without_the_demo_it_says_how_to_get_a_conversation() -> None:
    tools = {name: object() for name in ("a", "b", "c", "d")}

    [said] = await to("What is the weather?", tools=tools)

    assert "; on offer: a, b, c, …. For" in said
    assert "name a model under agent.model" in said
    assert suggestions(tools) == ()
    assert suggestions(DEMO) == WALK


@pytest.mark.parametrize(
    ("response", "sentence"),
    [
        (None, "w__tool gave no answer."),
        ({"error": "not today"}, "w__tool gave nothing: not today."),
        (
            {"output": {"receipt": "R-1", "city": "Lima", "price": 4.5, "currency": "EUR"}},
            "The report on Lima is bought for 4.5 EUR, receipt R-1.",
        ),
        (
            {"output": {"city": "Lima", "days": [{"low": 1, "high": 2}]}},
            "Tomorrow in Lima it will be 1 to 2 degrees.",
        ),
        ({"output": {"city": "Lima", "days": []}}, 'w__tool says: {"city": "Lima", "days": []}'),
        ({"result": "done"}, "w__tool says: done."),
        ({"output": "Rain!"}, "w__tool says: Rain!"),
    ],
)
async def test_answers_of_tools_become_sentences(
    response: dict[str, Any] | None, sentence: str
) -> None:
    assert await told(response) == f"(scripted) {sentence}"
