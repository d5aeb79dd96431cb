"""A conversation in which everything travels on one pair of streams: stdio, and HTTP+SSE."""

from __future__ import annotations

from typing import Any

import anyio
from anyio.abc import TaskGroup

from bridge.core.rpc import INVALID_REQUEST
from bridge.downstream.client import Client, Message, Post
from bridge.downstream.front import Front, error_response, is_id
from bridge.downstream.modern import envelope
from bridge.upstream.protocol import PROTOCOL_VERSION_KEY


class Duplex:
    """One client's messages, as they come; each request runs in a task of its own.

    A client may speak either era, and says with each request which.
    """

    def __init__(self, front: Front, client: Client, post: Post, tasks: TaskGroup) -> None:
        """`client` is the legacy side of it; `post` sends a message to the other end."""
        self._front = front
        self._client = client
        self._post = post
        self._tasks = tasks
        self._open = 0
        self._settled = anyio.Event()
        client.push = post
        front.open(client)

    def take(self, message: Any) -> None:
        """Take one message, parsed; what is none is answered with an error."""
        if not isinstance(message, dict) or not _has_form(message):
            text = "this is not one JSON-RPC message"
            request_id = message.get("id") if isinstance(message, dict) else None
            self._post(error_response(request_id, INVALID_REQUEST, text))
        elif "id" not in message or "method" not in message:
            self._front.receive(self._client, message)
        else:
            self._open += 1
            self._tasks.start_soon(self._respond, message)

    async def settled(self) -> None:
        """Return when every request has its answer."""
        while self._open:
            self._settled = anyio.Event()
            await self._settled.wait()

    async def aclose(self) -> None:
        """The client is gone."""
        await self._front.closed(self._client)

    async def _respond(self, message: Message) -> None:
        try:
            client = self._speaker(message)
            if isinstance(client, Client):
                answer = await self._front.respond(client, message, self._post)
            else:
                answer = client

            if answer is not None:
                self._post(answer)
        finally:
            self._open -= 1
            self._settled.set()

    def _speaker(self, message: Message) -> Client | Message:
        """Who speaks in this request: the legacy client, or a modern one, or the error for it."""
        params = message.get("params")
        meta = params.get("_meta") if isinstance(params, dict) else None
        is_modern = isinstance(meta, dict) and PROTOCOL_VERSION_KEY in meta
        if not is_modern and message["method"] != "server/discover":
            return self._client

        client = envelope(message)
        if isinstance(client, Client):
            client.principal, client.session = self._client.principal, self._client.session
            client.running = self._client.running

        return client


def _has_form(message: Message) -> bool:
    """Whether this is a request, a notification or an answer."""
    if message.get("jsonrpc") != "2.0":
        return False

    if "method" in message:
        return isinstance(message["method"], str) and ("id" not in message or is_id(message["id"]))

    return "result" in message or "error" in message
