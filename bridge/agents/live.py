"""Models that hear and speak at any time: what bridge asks of one, and one in memory (§9)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from math import inf
from typing import Protocol, TypeVar, runtime_checkable

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from bridge.agents.events import MODEL
from bridge.core.content import Content, FunctionCall, Part
from bridge.core.request import LLMRequest
from bridge.core.response import LLMResponse
from bridge.errors import BridgeError

T = TypeVar("T")


class LiveConnection(Protocol):
    """One open conversation with a live model."""

    async def send(self, content: Content) -> None:
        """Tell the model something: what the user says, what tools answer."""
        ...

    def responses(self) -> AsyncIterator[LLMResponse]:
        """What the model says, as it says it; ends when the model hangs up."""
        ...


@runtime_checkable
class LiveModel(Protocol):
    """A model that one stays connected with.

    `connect` is given the whole request: instruction, tools, and the conversation so far.
    """

    @property
    def name(self) -> str: ...
    def connect(self, request: LLMRequest) -> AbstractAsyncContextManager[LiveConnection]: ...


class InMemoryLiveModel:
    """A live model whose mind is the program's own: it says what `say` is given.

    `requests` holds what it was connected with, `hear` gives what it is told, in order.
    """

    def __init__(self, name: str = "live") -> None:
        self.name = name
        self.requests: list[LLMRequest] = []
        self._mouth: MemoryObjectSendStream[LLMResponse] | None = None
        self._ear: MemoryObjectReceiveStream[Content] | None = None

    @asynccontextmanager
    async def connect(self, request: LLMRequest) -> AsyncIterator[LiveConnection]:
        """Open a conversation; one at a time.

        Raises:
            BridgeError: One is open already.
        """
        if self._mouth is not None:
            raise BridgeError(f'the live model "{self.name}" is in a conversation already')

        self.requests.append(request)
        mouth, spoken = anyio.create_memory_object_stream[LLMResponse](inf)
        told, ear = anyio.create_memory_object_stream[Content](inf)
        self._mouth, self._ear = mouth, ear
        try:
            with mouth, spoken, told, ear:
                yield _InMemoryConnection(told, spoken)
        finally:
            self._mouth, self._ear = None, None

    async def say(self, *said: LLMResponse | FunctionCall | str) -> None:
        """Speak: a response, or calls and texts, which are one."""
        for response in (each for each in said if isinstance(each, LLMResponse)):
            await _open(self._mouth).send(response)

        parts = tuple(_part(each) for each in said if not isinstance(each, LLMResponse))
        if parts:
            await _open(self._mouth).send(LLMResponse(content=Content(MODEL, parts)))

    async def hear(self) -> Content:
        """The next thing that the model is told; waits for it."""
        return await _open(self._ear).receive()

    def hang_up(self) -> None:
        """End the conversation from the model's side."""
        _open(self._mouth).close()


class _InMemoryConnection:
    def __init__(
        self,
        told: MemoryObjectSendStream[Content],
        spoken: MemoryObjectReceiveStream[LLMResponse],
    ) -> None:
        self._told = told
        self._spoken = spoken

    async def send(self, content: Content) -> None:
        await self._told.send(content)

    async def responses(self) -> AsyncIterator[LLMResponse]:
        async for response in self._spoken:
            yield response


def _open(end: T | None) -> T:
    """That end of the conversation. Raises BridgeError where none is open."""
    if end is None:
        raise BridgeError("the live model is in no conversation; connect first")

    return end


def _part(said: FunctionCall | str) -> Part:
    return Part(text=said) if isinstance(said, str) else Part(function_call=said)
