"""From one request's method to whoever answers it, with what its era allows and wants."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Any, Final

from bridge.core.confirmation import json_hash
from bridge.core.content import Result
from bridge.core.context import ProgressSink
from bridge.core.rpc import METHOD_NOT_FOUND
from bridge.downstream import eras
from bridge.downstream.asker import Asker
from bridge.downstream.changes import Changes
from bridge.downstream.client import NOTHING, Client, Post
from bridge.downstream.confirm import digest
from bridge.downstream.handlers import Handlers, to_call
from bridge.downstream.jsonrpc import InvalidParams, JsonRpcError
from bridge.downstream.listen import Listening
from bridge.downstream.offering import Handler
from bridge.downstream.parking import PARKED_NO_MORE, Parking
from bridge.downstream.progress import PacedProgress
from bridge.downstream.sealed import is_ours, is_parked
from bridge.errors import InvalidArguments
from bridge.upstream.capabilities import LEVELS
from bridge.upstream.protocol import (
    MULTI_ROUND,
    PROGRESS,
    PROGRESS_TOKEN,
    RESERVED,
    SET_LEVEL,
    SUBSCRIBE,
    TASKS_SINCE,
    UNSUBSCRIBE,
)

LEGACY_ONLY: Final = frozenset(
    {"initialize", SET_LEVEL, "ping", SUBSCRIBE, UNSUBSCRIBE},
)


class Router:
    """Answers requests, one result each; knows the methods of both eras."""

    def __init__(self, handlers: Handlers, changes: Changes, confirm_wait: float) -> None:
        self._handlers = handlers
        self._confirm_wait = confirm_wait
        self.parking = Parking(handlers.confirmations.seals)
        self.listening = Listening(changes, handlers.resources)
        self._methods: Mapping[str, Handler] = handlers.methods

    async def result(
        self, client: Client, method: str, params: Any, request_id: str | int, post: Post | None
    ) -> Result:
        """The result of one request. `post` reaches its client while it runs, if anything does.

        Raises:
            JsonRpcError: It cannot be answered.
            RpcError: An MCP server answered with this error.
        """
        if not isinstance(params, dict):
            if params is not None:
                raise InvalidParams(f"the params of {method} must be an object")

            params = {}

        if not client.modern:
            if method in LEGACY_ONLY or not client.version:
                return await self._legacy(client, method, params, post)
        elif method == "server/discover":
            return await self._handlers.discovered()

        asker = self._asker(client, params, post)
        if client.modern and method == "subscriptions/listen":
            answer = await self.listening.listen(asker, params, request_id)
            return eras.for_client(answer, modern=True, stamp=self._handlers.stamp)

        return await self._shared(asker, method, params)

    async def leave(self, client: Client) -> None:
        """A legacy client's conversation is over: nothing is kept for it."""
        asker, resources = self._asker(client, {}, None), self._handlers.resources
        for uri in sorted(client.subscribed):
            if resources is not None:
                await resources.unsubscribe(asker, uri)

        client.subscribed.clear()
        await self._handlers.leave(asker)

    def tell(self, client: Client, method: str, params: dict[str, Any]) -> None:
        """Pass a legacy client's notification on to the servers that know this client."""
        if self.parking.tasks is not None:
            asker = self._asker(client, {}, None)
            self.parking.tasks.start_soon(self._handlers.told, asker, method, params)

    async def _legacy(
        self, client: Client, method: str, params: dict[str, Any], post: Post | None
    ) -> Result:
        """What only the legacy era has, and whatever comes before it was begun."""
        if method == "ping":
            return {}

        if method == "initialize":
            return await self._initialize(client, params)

        if not client.version:
            raise InvalidParams(f"{method} came before initialize")

        asker = self._asker(client, params, post)
        if method == SET_LEVEL and "logging" in self._handlers.capabilities():
            return self._set_level(client, params)

        if method in (SUBSCRIBE, UNSUBSCRIBE):
            return await self._subscribe(client, asker, method, params)

        return await self._shared(asker, method, params)

    def _shared(self, asker: Asker, method: str, params: dict[str, Any]) -> Awaitable[Result]:
        """What both eras have."""
        handler = self._methods.get(method)
        if handler is None:
            raise JsonRpcError(METHOD_NOT_FOUND, f'there is no method "{method}" here')

        on_progress = _progress(asker, params)
        if asker.modern and asker.capabilities and method in MULTI_ROUND:
            return self._multi_round(asker, method, params, handler, on_progress)

        return handler(asker, params, on_progress)

    async def _multi_round(
        self,
        asker: Asker,
        method: str,
        params: dict[str, Any],
        handler: Handler,
        on_progress: ProgressSink | None,
    ) -> Result:
        """A request of a modern client that can be asked, while a legacy server works on it."""
        state, responses = params.get("requestState"), params.get("inputResponses")
        request = ""
        if is_ours(state):
            request = _digest(method, params)
            question = self._handlers.confirmations.answered(asker, request, state)
            if question is None and is_parked(state):
                raise InvalidParams(PARKED_NO_MORE)

            if question is not None and question.parked is not None:
                answers = responses if isinstance(responses, dict) else NOTHING
                answer = await self.parking.resume(asker, question, answers, on_progress)
                return eras.for_client(answer, modern=True, stamp=self._handlers.stamp)

        if not self._handlers.may_ask(asker, method, params):
            return await handler(asker, params, on_progress)

        async def work(asker: Asker, on_progress: ProgressSink | None) -> Result:
            return await handler(asker, params, on_progress)

        request = request or _digest(method, params)
        answer = await self.parking.run(asker, request, work, on_progress)
        return eras.for_client(answer, modern=True, stamp=self._handlers.stamp)

    def _asker(self, client: Client, params: dict[str, Any], post: Post | None) -> Asker:
        meta = params.get("_meta")
        passed: Mapping[str, Any] = NOTHING
        if isinstance(meta, dict):
            passed = {
                key: value
                for key, value in meta.items()
                if not key.startswith(RESERVED) and key != PROGRESS_TOKEN
            }

        asks = None
        if post is not None and not client.modern:
            asks = partial(self._ask, client, post)

        return Asker(
            client.principal,
            client.session,
            client.modern,
            client.capabilities,
            client.log_level,
            passed,
            NOTHING,
            asks,
            post,
            params.get("task") if client.version == TASKS_SINCE else None,
        )

    async def _ask(self, client: Client, post: Post, method: str, params: dict[str, Any]) -> Result:
        return await client.ask(post, method, params, self._confirm_wait)

    async def _initialize(self, client: Client, params: dict[str, Any]) -> Result:
        requested, capabilities = params.get("protocolVersion"), params.get("capabilities")
        if not isinstance(requested, str):
            raise InvalidParams('initialize needs a "protocolVersion", a string')

        client.version = eras.negotiated(requested)
        client.capabilities = capabilities if isinstance(capabilities, dict) else NOTHING
        info = params.get("clientInfo")
        client.info = info if isinstance(info, dict) else NOTHING
        return await self._handlers.initialized(client.version)

    def _set_level(self, client: Client, params: dict[str, Any]) -> Result:
        level = params.get("level")
        if level not in LEVELS:
            raise InvalidParams(f"{level!r} is no log level: {', '.join(LEVELS)} are")

        client.log_level = level
        return {}

    async def _subscribe(
        self, client: Client, asker: Asker, method: str, params: dict[str, Any]
    ) -> Result:
        resources, uri = self._handlers.resources, params.get("uri")
        if resources is None:
            raise JsonRpcError(METHOD_NOT_FOUND, f'there is no method "{method}" here')

        if not isinstance(uri, str):
            raise InvalidParams(f'{method} needs a "uri", a string')

        if method == SUBSCRIBE:
            if uri not in client.subscribed:
                await resources.subscribe(asker, uri)
                client.subscribed.add(uri)
        elif uri in client.subscribed:
            client.subscribed.discard(uri)
            await resources.unsubscribe(asker, uri)

        return {}


def _progress(asker: Asker, params: dict[str, Any]) -> ProgressSink | None:
    """Where the progress of a request goes; None where its client did not ask for any."""
    meta = params.get("_meta")
    token = meta.get(PROGRESS_TOKEN) if isinstance(meta, dict) else None
    if asker.post is None or not isinstance(token, (str, int)) or isinstance(token, bool):
        return None

    post = asker.post

    async def send(progress: float, total: float | None, message: str | None) -> None:
        told: dict[str, Any] = {PROGRESS_TOKEN: token, "progress": progress}
        if total is not None:
            told["total"] = total

        if message is not None:
            told["message"] = message

        post({"jsonrpc": "2.0", "method": PROGRESS, "params": told})

    return PacedProgress(send)


def _digest(method: str, params: dict[str, Any]) -> str:
    """Name a request by what its client wants, which must be the same when it comes back."""
    try:
        if method == "tools/call":
            return digest(to_call(params))

        wanted = {
            key: value for key, value in params.items() if key in ("name", "uri", "arguments")
        }
        return json_hash([method, wanted])
    except (ValueError, RecursionError, InvalidArguments) as exc:
        raise InvalidParams(f"the params of {method} have no canonical JSON: {exc}") from exc
