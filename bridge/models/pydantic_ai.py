"""Any model that Pydantic AI has an adapter for, asked directly; needs the extra `models`.

Of Pydantic AI this uses its models and messages, and none of its agents or toolsets.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager

import anyio
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.exceptions import ModelHTTPError, UserError
from pydantic_ai.messages import (
    InstructionPart,
    ModelMessage,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
)
from pydantic_ai.models import Model as ProviderModel
from pydantic_ai.models import ModelRequestParameters, infer_model
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from bridge.core.dialects.dialect import Dialect
from bridge.core.request import LLMRequest
from bridge.core.response import LLMResponse
from bridge.errors import BridgeError, ConfigError, ModelError
from bridge.models.answers import excerpt, piece
from bridge.models.offered import declarations, system_text
from bridge.models.pydantic_ai_messages import to_answer, to_messages

CLOSE_SECONDS = 5.0


class PydanticAIModel:
    """A model of Pydantic AI's, or its name there, such as "openai:gpt-5".

    `settings` go with every request. The model is entered for each request and left after it, so
    it can be used in any event loop; who enters it around many requests keeps its connections.

    Raises:
        ConfigError: There is no such model, or its provider's package or key is missing.
    """

    def __init__(
        self, model: ProviderModel | str, *, settings: ModelSettings | None = None
    ) -> None:
        try:
            self._model = infer_model(model)
        except (UserError, ImportError, ValueError) as exc:
            raise ConfigError(f'the model "{model}" cannot be used: {exc}') from exc

        self._settings = settings

    @property
    def name(self) -> str:
        """The model's name, as the provider knows it."""
        return self._model.model_name

    async def generate(
        self, request: LLMRequest, *, stream: bool = False
    ) -> AsyncGenerator[LLMResponse]:
        """Ask once.

        Raises:
            CapabilityError: The request holds a provider's own tool; nothing was sent.
            ModelError: The provider failed, or its stream broke off.
        """
        asked = self._parameters(request)
        messages = to_messages(request.contents)
        with self._translated():
            async with self._entered():
                if not stream:
                    yield self._answer(await self._whole(messages, asked))
                    return

                async with model_request_stream(
                    self._model,
                    messages,
                    model_settings=self._settings,
                    model_request_parameters=asked,
                ) as events:
                    async for event in events:
                        for said in _pieces(event):
                            yield said

                    yield self._answer(events.get())

    @asynccontextmanager
    async def _entered(self) -> AsyncGenerator[None]:
        await self._model.__aenter__()
        try:
            yield
        finally:
            # Cut short, leaving would count as not left: connections stayed open for good.
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await self._model.__aexit__(None, None, None)

    async def _whole(
        self, messages: list[ModelMessage], asked: ModelRequestParameters
    ) -> ModelResponse:
        return await model_request(
            self._model,
            messages,
            model_settings=self._settings,
            model_request_parameters=asked,
        )

    def _parameters(self, request: LLMRequest) -> ModelRequestParameters:
        asked = ModelRequestParameters(
            function_tools=[
                ToolDefinition(
                    name=declaration.name,
                    description=declaration.description,
                    parameters_json_schema=parameters,
                )
                for declaration, parameters in declarations(
                    request, f'the model "{self.name}"', self._dialect()
                )
            ]
        )
        instruction = system_text(request)
        if instruction:
            asked.instruction_parts = [InstructionPart(content=instruction)]

        if request.config is not None and request.config.response_schema is not None:
            schema = request.config.response_schema
            asked.output_object = OutputObjectDefinition(json_schema=schema, name="answer")
            asked.output_mode = "native" if self._takes_schemas() else "prompted"

        return asked

    def _dialect(self) -> Dialect:
        """Pydantic AI fits JSON Schema to providers itself, but for the names Anthropic refuses."""
        is_claude = self._model.system == "anthropic" or "claude" in self.name
        return "anthropic" if is_claude else "openai"

    def _takes_schemas(self) -> bool:
        """Whether the provider holds the model to a schema, or can only be told of it."""
        try:
            return bool(self._model.profile.get("supports_json_schema_output"))
        except NotImplementedError:  # one that picks another model for each request
            return False

    def _answer(self, response: ModelResponse) -> LLMResponse:
        if response.state != "complete":
            raise ModelError(f'the answer of the model "{self.name}" is {response.state}')

        return to_answer(response)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except BridgeError:
            raise
        except Exception as exc:  # a provider's own library may raise anything
            status = exc.status_code if isinstance(exc, ModelHTTPError) else None
            reason = excerpt(str(exc)) or type(exc).__name__
            raise ModelError(f'the model "{self.name}" failed: {reason}', status=status) from exc


def _pieces(event: ModelResponseStreamEvent) -> Iterator[LLMResponse]:
    """The text in an event, if it has any."""
    match event:
        case PartStartEvent(part=TextPart(content=text)) if text:
            yield piece(text)
        case PartStartEvent(part=ThinkingPart(content=text)) if text:
            yield piece(text, thought=True)
        case PartDeltaEvent(delta=TextPartDelta(content_delta=text)) if text:
            yield piece(text)
        case PartDeltaEvent(delta=ThinkingPartDelta(content_delta=str(text))) if text:
            yield piece(text, thought=True)
        case _:
            pass  # calls are in the whole answer
