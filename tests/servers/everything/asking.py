"""How a tool or prompt asks the client something, whichever era the client speaks.

A handler that needs to know more returns `Ask`. In the modern era that goes out as an
`input_required` result and the client calls again with the answers; in the legacy era each question
is a request to the client, in the middle of the call. The handler sees no difference.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types import (
    INVALID_REQUEST,
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    CallToolRequestParams,
    CreateMessageRequest,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitResult,
    GetPromptRequestParams,
    InputRequiredResult,
    ListRootsRequest,
    ListRootsResult,
    SamplingMessage,
    TextContent,
)
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from tests.servers.everything.world import World

Question: TypeAlias = ElicitRequest | CreateMessageRequest | ListRootsRequest
Answer: TypeAlias = ElicitResult | CreateMessageResult | ListRootsResult

R = TypeVar("R")
A = TypeVar("A", ElicitResult, CreateMessageResult, ListRootsResult)

KINDS: Mapping[str, tuple[str, type[Answer]]] = {
    "elicitation/create": ("elicitation", ElicitResult),
    "sampling/createMessage": ("sampling", CreateMessageResult),
    "roots/list": ("roots", ListRootsResult),
}
"""What a client must have declared to be asked, and what it answers."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Questions by key. With a `state`, answers count only together with it."""

    questions: Mapping[str, Question]
    state: str | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One `tools/call` or `prompts/get`, with what the client has answered so far."""

    world: World
    ctx: ServerRequestContext[Any, Any]
    arguments: Mapping[str, Any]
    answers: Mapping[str, Any] = field(default_factory=dict)
    state: str | None = None

    @classmethod
    def of(
        cls,
        world: World,
        ctx: ServerRequestContext[Any, Any],
        params: CallToolRequestParams | GetPromptRequestParams,
    ) -> Call:
        """The call as it came in."""
        answers = params.input_responses or {}
        return cls(world, ctx, params.arguments or {}, answers, params.request_state)

    def answer(self, key: str, kind: type[A]) -> A | None:
        """The answer to a question, or None if it is missing or answers something else."""
        found = self.answers.get(key)
        return found if isinstance(found, kind) else None

    @property
    def is_modern(self) -> bool:
        """Whether the client speaks the modern era."""
        return is_modern(self.ctx)

    def can_be_asked(self, question: Question) -> bool:
        """Whether the client has declared what it takes."""
        declared = self.ctx.session.client_capabilities
        return getattr(declared, KINDS[question.method][0], None) is not None


def is_modern(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Whether the request came in the modern era."""
    return ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


async def settle(
    call: Call, handler: Callable[[Call], Awaitable[R | Ask]]
) -> R | InputRequiredResult:
    """Run a handler until it has its result, or until the client has to call again.

    Raises:
        MCPError: The client did not declare what it would be asked for.
    """
    while isinstance(outcome := await handler(call), Ask):
        for question in outcome.questions.values():
            _refuse_unless_declared(call, question)

        if call.is_modern:
            return InputRequiredResult(
                input_requests=dict(outcome.questions), request_state=outcome.state
            )

        answers = {key: await _ask(call, q) for key, q in outcome.questions.items()}
        call = replace(call, answers=answers, state=outcome.state)

    return outcome


def form(message: str, properties: dict[str, Any], *required: str) -> ElicitRequest:
    """A question to the person: a form."""
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = [*required]

    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def sample(prompt: str, max_tokens: int = 100) -> CreateMessageRequest:
    """A question to the client's model."""
    message = SamplingMessage(role="user", content=TextContent(text=prompt))
    return CreateMessageRequest(
        params=CreateMessageRequestParams(messages=[message], max_tokens=max_tokens)
    )


def roots() -> ListRootsRequest:
    """The question for the client's roots."""
    return ListRootsRequest()


def _refuse_unless_declared(call: Call, question: Question) -> None:
    if call.can_be_asked(question):
        return

    needed = KINDS[question.method][0]
    if call.is_modern:
        raise MCPError(
            MISSING_REQUIRED_CLIENT_CAPABILITY,
            f"this needs a client that declares {needed}",
            {"requiredCapabilities": {needed: {}}},
        )

    raise MCPError(INVALID_REQUEST, f"the client does not support {needed}")


async def _ask(call: Call, question: Question) -> Answer:
    related = ServerMessageMetadata(related_request_id=call.ctx.request_id)
    kind = KINDS[question.method][1]
    return await call.ctx.session.send_request(question, kind, metadata=related)
