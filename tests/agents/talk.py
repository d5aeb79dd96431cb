"""Conversations with an agent, and short ways to write down what was said in them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

from bridge.agents.runner import Message, Runner
from bridge.core.content import Content, FunctionCall, FunctionResponse, Part
from bridge.core.event import Event
from bridge.core.request import LLMRequest
from bridge.core.session import Session

CONFIRMATION = "adk_request_confirmation"


class Talk:
    """One session with an agent: `say` something, get the events that come of it."""

    def __init__(self, agent: Any, **options: Any) -> None:
        self.runner = Runner(agent, **options)

    async def say(self, message: Message = "Go on.", **options: Any) -> list[Event]:
        """Every event of one turn."""
        async with aclosing(self.runner.run(message, **options)) as events:
            return [event async for event in events]

    async def decide(self, **decisions: Any) -> list[Event]:
        """Answer the open questions about tools by name: True, False or a whole response."""
        named = {original(question)["name"]: question.id for question in await self.questions()}
        return await self.say(
            content(
                *(
                    answer(named[name], CONFIRMATION, decision_of(decision))
                    for name, decision in decisions.items()
                )
            )
        )

    async def questions(self) -> list[FunctionCall]:
        """Every question to a person that the session holds, oldest first."""
        session = await self.session()
        calls = [call for event in session.events for call in event.function_calls()]
        return [call for call in calls if call.name == CONFIRMATION]

    async def session(self) -> Session:
        """The session as it rests."""
        return await self.runner.session()


def decision_of(given: Any) -> dict[str, Any]:
    """A person's response: plain yes and no are the shortest."""
    return {"confirmed": given} if isinstance(given, bool) else given


def original(question: FunctionCall) -> dict[str, Any]:
    """The call that a question is about, as JSON."""
    found: dict[str, Any] = question.args["originalFunctionCall"]
    return found


def content(*parts: Part, role: str = "user") -> Content:
    return Content(role, parts)


def text(words: str, role: str = "user") -> Content:
    return content(Part(text=words), role=role)


def call(call_id: str, name: str, /, **args: Any) -> FunctionCall:
    return FunctionCall(call_id, name, args)


def asked(*calls: FunctionCall) -> Content:
    """What a model says that asks for calls."""
    return content(*(Part(function_call=each) for each in calls), role="model")


def answer(call_id: str, name: str, response: dict[str, Any] | None) -> Part:
    return Part(function_response=FunctionResponse(call_id, name, response))


def reply(question_id: str, decision: Any = True) -> Content:
    """A user's answer to one question."""
    return content(answer(question_id, CONFIRMATION, decision_of(decision)))


def brief(said: Event | Content | None) -> list[Any]:
    """The parts of an event or a content, each as a text or a tuple."""
    parts = () if said is None else said.parts
    return [_brief(part) for part in parts]


def briefs(said: Sequence[Event | Content]) -> list[list[Any]]:
    return [brief(each) for each in said]


def told(request: LLMRequest) -> list[list[Any]]:
    """The conversation in a request."""
    return briefs(request.contents)


def instruction(request: LLMRequest) -> str:
    """Everything the model is told before the conversation."""
    config = request.config
    if config is None or config.system_instruction is None:
        return ""

    return "\n".join(part.text or "" for part in config.system_instruction.parts)


def declared(request: LLMRequest) -> list[str]:
    """The names of the functions that the model reads of, in order."""
    config = request.config
    entries = [] if config is None else [entry for entry in config.tools if entry is not None]
    return [each.name for entry in entries for each in entry.function_declarations or ()]


def _brief(part: Part) -> Any:
    if part.function_call is not None:
        made = part.function_call
        return ("call", made.id, made.name, made.args)

    if part.function_response is not None:
        given = part.function_response
        return ("answer", given.id, given.name, given.response)

    return part.text if part.inline_data is None else part.inline_data
