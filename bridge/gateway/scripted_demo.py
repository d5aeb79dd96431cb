"""A model that is none: a script that walks through the demo, so that a chat runs offline.

It reads a few English words in what was said, calls the demo's tools, and puts their answers into
sentences. A tool's name with its arguments behind it calls any tool.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bridge.config.agent import SCRIPTED
from bridge.core.content import Args, Content, FunctionCall, FunctionResponse
from bridge.core.request import LLMRequest
from bridge.core.wire import loads
from bridge.models.answers import excerpt
from bridge.models.scripted import Answer, ScriptedModel

SIGN = "(scripted)"
WALK = (
    "What is the weather in Tokyo?",
    "Buy a report on Tokyo.",
    "What is the weather in Lima? Buy a report on Lima, too.",
    "Is a storm coming in London?",
    "What is the forecast for Berlin?",
)
"""What to say, in this order, to see everything that a chat can do."""

_CITY = re.compile(r"\b(?:in|on|for|of|about)\s+([A-Z]\w+(?:\s[A-Z]\w+)*)")
_LOWER_CITY = re.compile(r"\b(?:in|on|for|of|about)\s+(\w+)")
_SUBJECTS = {
    "get_weather": re.compile(r"\b(weather|temperature|warm|cold)\b", re.IGNORECASE),
    "forecast": re.compile(r"\b(forecast|tomorrow)\b", re.IGNORECASE),
    "radar": re.compile(r"\b(radar|rain)\b", re.IGNORECASE),
    "storm_alert": re.compile(r"\bstorm\b", re.IGNORECASE),
    "buy_report": re.compile(r"\b(buy|report)\b", re.IGNORECASE),
}


def scripted_demo() -> ScriptedModel:
    """A model that answers from the conversation, by rule; it says that it does."""
    return ScriptedModel(itertools.repeat(_answer), name=SCRIPTED)


def suggestions(tools: Mapping[str, Any]) -> Sequence[str]:
    """What to say to see everything, where the demo's tools are on offer; else nothing."""
    own_names = {getattr(tool, "own_name", name) for name, tool in tools.items()}
    return WALK if own_names >= _SUBJECTS.keys() else ()


def _answer(request: LLMRequest) -> Answer:
    last = request.contents[-1] if request.contents else Content("user")
    answers = [part.function_response for part in last.parts if part.function_response]
    if answers:
        return f"{SIGN} {' '.join(_sentence(answer) for answer in answers)}"

    said = " ".join(part.text for part in last.parts if part.text)
    tools = request.tools or {}
    name, _, arguments = said.strip().partition(" ")
    if name in tools:
        return _named(name, arguments)

    calls = list(_calls(said, tools))
    return calls or f"{SIGN} {_advice(tools)}"


def _named(name: str, arguments: str) -> Answer:
    """A call that was written out."""
    try:
        args = loads(arguments or "{}")
    except ValueError as exc:
        return f"{SIGN} What stands behind {name} is not JSON: {exc}"

    if not isinstance(args, dict):
        return f'{SIGN} Behind {name} belongs a JSON object, like {{"city": "Tokyo"}}.'

    return FunctionCall("", name, args)


def _calls(said: str, tools: Mapping[str, Any]) -> Iterator[FunctionCall]:
    """The demo's tools that are spoken of, as far as they are on offer."""
    match = _CITY.search(said) or _LOWER_CITY.search(said)
    args: Args = {"city": match[1] if match else "Tokyo"}
    offered = {getattr(tool, "own_name", name): name for name, tool in tools.items()}
    for own_name, subject in _SUBJECTS.items():
        if own_name in offered and subject.search(said):
            yield FunctionCall("", offered[own_name], dict(args))


def _advice(tools: Mapping[str, Any]) -> str:
    beginning = "I am a script, no model: I know a few words about the demo's tools."
    if suggestions(tools):
        return f"{beginning} Try: {' / '.join(WALK)}"

    some = ", ".join(sorted(tools)[:3]) + (", …" if len(tools) > 3 else "")
    return (
        f"{beginning} They are not on offer here. Name a tool and its arguments to call it, like "
        f'some_tool {{"key": "value"}}; on offer: {some or "nothing"}. '
        "For a conversation, name a model under agent.model in the configuration."
    )


def _sentence(answer: FunctionResponse) -> str:
    """One answer of a tool in words; a failure is told as one."""
    response = answer.response
    if not response:
        return f"{answer.name} gave no answer."

    if "error" in response:
        return f"{answer.name} gave nothing: {_ended(str(response['error']))}"

    match response.get("output", response.get("result", response)):
        case {"city": city, "temperature": degrees, "condition": condition, "units": units}:
            sign = "°C" if units == "metric" else "°F"
            return f"In {city} it is {degrees} {sign}, {condition}."
        case {"receipt": receipt, "city": city, "price": price, "currency": currency}:
            return f"The report on {city} is bought for {price} {currency}, receipt {receipt}."
        case {"city": city, "days": [{"low": low, "high": high}, *_]}:
            return f"Tomorrow in {city} it will be {low} to {high} degrees."
        case str() as text:
            return f"{answer.name} says: {_ended(excerpt(text))}"
        case other:
            return f"{answer.name} says: {excerpt(json.dumps(other, ensure_ascii=False))}"


def _ended(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."
