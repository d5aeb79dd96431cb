"""One script, three models: what the contract of a model is tested against.

A step is as tests/servers/chat_completions.py takes it: `say`, `think`, `calls`, and `then` of
"hang" or "fail".
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import anyio
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import (
    AgentInfo,
    DeltaThinkingPart,
    DeltaToolCall,
    FunctionModel,
)

from bridge.core.content import Content, FunctionCall, FunctionResponse, Part
from bridge.core.model import Model
from bridge.core.request import LLMRequest
from bridge.core.wire import dumps, loads
from bridge.errors import ModelError
from bridge.models.openai_compatible import OpenAICompatible
from bridge.models.pydantic_ai import PydanticAIModel
from bridge.models.scripted import ScriptedModel
from tests.models.conftest import Desk

Step = dict[str, Any]
Exchange = tuple[list[FunctionCall], list[FunctionResponse]]


class Backend(Protocol):
    """A model and the far side of it."""

    async def start(self, steps: Sequence[Step]) -> Model: ...
    async def exchanges(self) -> list[Exchange]:
        """For each request, the calls and the answers in it, as the far side saw them."""
        ...

    async def is_gone(self) -> bool:
        """Whether the far side knows that the last request was given up."""
        ...

    async def aclose(self) -> None: ...


def texts(step: Step) -> Iterator[Part]:
    """The texts of a step, as parts."""
    if "think" in step:
        yield Part(text=step["think"], thought=True)

    if "say" in step:
        yield Part(text=step["say"])


def calls(step: Step) -> list[FunctionCall]:
    """The calls of a step."""
    return [FunctionCall(c["id"], c["name"], c["arguments"]) for c in step.get("calls", ())]


@dataclass
class Scripted:
    """The scripted model, which is its own far side."""

    model: ScriptedModel | None = None
    gone: bool = False

    async def start(self, steps: Sequence[Step]) -> Model:
        self.model = ScriptedModel([self._script(step) for step in steps])
        return self.model

    def _script(self, step: Step) -> Any:
        match step.get("then"):
            case "hang":
                return self._hang
            case "fail":
                return ModelError("this model fails")
            case _:
                return Content(
                    "model", (*texts(step), *(Part(function_call=call) for call in calls(step)))
                )

    async def _hang(self, request: LLMRequest) -> str:
        try:
            await anyio.sleep_forever()
        finally:
            self.gone = True

    async def exchanges(self) -> list[Exchange]:
        assert self.model is not None
        return [self._exchange(request) for request in self.model.requests]

    def _exchange(self, request: LLMRequest) -> Exchange:
        parts = [part for content in request.contents for part in content.parts]
        return (
            [part.function_call for part in parts if part.function_call],
            [part.function_response for part in parts if part.function_response],
        )

    async def is_gone(self) -> bool:
        return self.gone

    async def aclose(self) -> None:
        pass


@dataclass
class ChatCompletions:
    """The model over HTTP, and the provider's desk."""

    desk: Desk
    model: OpenAICompatible | None = None

    async def start(self, steps: Sequence[Step]) -> Model:
        failure = {"status": 400, "json": {"error": {"message": "this model fails"}}}
        await self.desk.script(*(failure if step.get("then") == "fail" else step for step in steps))
        self.model = self.desk.model()
        return self.model

    async def exchanges(self) -> list[Exchange]:
        return [self._exchange(body["messages"]) for body in await self.desk.bodies()]

    def _exchange(self, messages: list[dict[str, Any]]) -> Exchange:
        asked = [call for message in messages for call in message.get("tool_calls", ())]
        names = {call["id"]: call["function"]["name"] for call in asked}
        return (
            [
                FunctionCall(c["id"], c["function"]["name"], loads(c["function"]["arguments"]))
                for c in asked
            ],
            [
                FunctionResponse(m["tool_call_id"], names[m["tool_call_id"]], loads(m["content"]))
                for m in messages
                if m["role"] == "tool"
            ],
        )

    async def is_gone(self) -> bool:
        heard = await self.desk.heard()
        return bool(heard[-1]["gone"])

    async def aclose(self) -> None:
        if self.model is not None:
            await self.model.aclose()


@dataclass
class PydanticAI:
    """A model of Pydantic AI's that is a function of ours."""

    steps: list[Step] = field(default_factory=list)
    heard: list[list[ModelMessage]] = field(default_factory=list)
    gone: bool = False

    async def start(self, steps: Sequence[Step]) -> Model:
        self.steps = [*steps]
        return PydanticAIModel(FunctionModel(self._whole, stream_function=self._streamed))

    async def _whole(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        step = self._next(messages)
        if step.get("then") == "hang":
            try:
                await anyio.sleep_forever()
            finally:
                self.gone = True

        said = [
            ThinkingPart(part.text or "") if part.thought else TextPart(part.text or "")
            for part in texts(step)
        ]
        asked = [ToolCallPart(call.name, call.args, call.id) for call in calls(step)]
        return ModelResponse(parts=[*said, *asked], finish_reason="stop")

    async def _streamed(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        step = self._next(messages)
        try:
            for word in re.findall(r"\s*\S+", step.get("think", "")):
                yield {0: DeltaThinkingPart(content=word)}

            for word in re.findall(r"\s*\S+", step.get("say", "")):
                yield word

            for index, call in enumerate(calls(step), start=1):
                yield {index: DeltaToolCall(call.name, "", tool_call_id=call.id)}
                for letter in dumps(call.args).decode():
                    yield {index: DeltaToolCall(json_args=letter)}

            if step.get("then") == "hang":
                await anyio.sleep_forever()
        except BaseException:
            self.gone = True
            raise

    def _next(self, messages: list[ModelMessage]) -> Step:
        self.heard.append(messages)
        step = self.steps.pop(0)
        if step.get("then") == "fail":
            raise ModelHTTPError(400, "small", {"message": "this model fails"})

        return step

    async def exchanges(self) -> list[Exchange]:
        return [self._exchange(messages) for messages in self.heard]

    def _exchange(self, messages: list[ModelMessage]) -> Exchange:
        said = [p for m in messages if isinstance(m, ModelResponse) for p in m.parts]
        back = [p for m in messages if isinstance(m, ModelRequest) for p in m.parts]
        return (
            [
                FunctionCall(part.tool_call_id, part.tool_name, part.args_as_dict())
                for part in said
                if isinstance(part, ToolCallPart)
            ],
            [
                FunctionResponse(part.tool_call_id, part.tool_name, part.content)
                for part in back
                if isinstance(part, ToolReturnPart)
            ],
        )

    async def is_gone(self) -> bool:
        return self.gone

    async def aclose(self) -> None:
        pass
