"""Any model behind a chat-completions API: OpenAI's own, or a server that speaks its dialect."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection, Mapping
from contextlib import aclosing
from typing import Any

import anyio
import httpx

from bridge.core.request import LLMRequest
from bridge.core.response import LLMResponse
from bridge.core.wire import dumps
from bridge.models.chat_answer import Reply, read_object, to_answer
from bridge.models.chat_request import AUDIO, IMAGE, MEDIA, to_body
from bridge.models.endpoint import Endpoint
from bridge.models.event_source import BadAnswer, event_data, is_event_stream

DONE = "[DONE]"
END_SECONDS = 0.5  # how long a stream may go on after it said that it is done


class OpenAICompatible:
    """A model of Ollama, vLLM, OpenAI or the like: `base_url` ends before `/chat/completions`.

    * `media`: what the model takes besides text, of "image", "audio" and "file"; other media are
      only named to it.
    * `options`: fields of every request, such as `{"temperature": 0}`; they win over ours, and
      one of None leaves the field out.
    * `timeout`: for how many seconds the provider may be silent.
    * `retries`: how often a request is repeated after status 429, 5xx or no answer at all.

    Use it in any task and any event loop; `aclose` closes the connections of the one it runs in.

    Raises:
        ConfigError: `base_url`, `api_key` or a header cannot be used.
        ValueError: `media` has a name that is not listed here.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        api_key: str | None = None,
        headers: Mapping[str, str] | None = None,
        media: Collection[str] = (IMAGE, AUDIO),
        options: Mapping[str, Any] | None = None,
        timeout: float = 300.0,
        retries: int = 2,
    ) -> None:
        unknown = sorted(set(media) - MEDIA)
        if unknown:
            raise ValueError(f"media has {unknown[0]!r}; use {', '.join(sorted(MEDIA))}")

        key = {} if not api_key else {"Authorization": f"Bearer {api_key}"}
        self._endpoint = Endpoint(
            base_url, "chat/completions", key | dict(headers or {}), timeout, retries
        )
        self._model = model
        self._media = frozenset(media)
        self._options = dict(options or {})

    @property
    def name(self) -> str:
        """The model's name, as the provider knows it."""
        return self._model

    async def generate(
        self, request: LLMRequest, *, stream: bool = False
    ) -> AsyncGenerator[LLMResponse]:
        """Ask once. A request that names a model asks that one.

        Raises:
            CapabilityError: The request holds a provider's own tool; nothing was sent.
            ModelError: The provider failed, or its stream broke off.
        """
        backend = f'the chat-completions model "{self._model}"'
        body = to_body(
            request, self._model, backend, stream=stream, media=self._media, options=self._options
        )
        async with self._endpoint.post(dumps(body)) as response:
            if is_event_stream(response):
                async with aclosing(_streamed(response)) as answers:
                    async for answer in answers:
                        if stream or not answer.partial:
                            yield answer
            else:
                yield to_answer(read_object(await response.aread()))

    async def aclose(self) -> None:
        """Close this event loop's connections; a later request makes new ones."""
        await self._endpoint.aclose()


async def _streamed(response: httpx.Response) -> AsyncGenerator[LLMResponse]:
    reply = Reply()
    is_done = False
    async with aclosing(event_data(response)) as events:
        async for data in events:
            if data.strip() == DONE:
                is_done = True
                with anyio.move_on_after(END_SECONDS):  # a body read to its end frees a connection
                    await anext(events, None)

                break

            for said in reply.read(read_object(data)):
                yield said

    if not is_done and not reply.is_finished:
        raise BadAnswer("the stream ended before the answer did")

    yield reply.answer()
