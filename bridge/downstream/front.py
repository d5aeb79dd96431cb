"""What every front does, whatever carries its messages: answers, and an orderly end."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import anyio

from bridge.core.ending import Ending
from bridge.core.rpc import INTERNAL_ERROR, INVALID_REQUEST, RpcError
from bridge.downstream import eras
from bridge.downstream.changes import Changes
from bridge.downstream.client import Client, Message, Post
from bridge.downstream.handlers import Handlers
from bridge.downstream.results import failure
from bridge.downstream.router import Router
from bridge.telemetry import log
from bridge.upstream.protocol import (
    CANCELLED,
    INITIALIZED,
    MULTI_ROUND,
    RESOURCE_UPDATED,
    TOOLS_CHANGED,
)

LISTEN = "subscriptions/listen"
ROOTS_CHANGED = "notifications/roots/list_changed"


class Front:
    """One server's conversations.

    `confirm_wait` is how long a client may take to answer a request of ours, in seconds;
    `most_calls` is how many calls run at once before further ones are refused.
    """

    def __init__(
        self, handlers: Handlers, *, confirm_wait: float = 300.0, most_calls: int = 1024
    ) -> None:
        self.handlers = handlers
        self._most_calls = most_calls
        self._changes = Changes()
        self._router = Router(handlers, self._changes, confirm_wait)
        self._running: set[Ending] = set()
        self._calls = 0
        self._idle: anyio.Event | None = None
        self._closing = False
        self._clients: dict[Client, Callable[[], object] | None] = {}

    @property
    def calls(self) -> int:
        """How many calls run."""
        return self._calls

    async def run(self) -> None:
        """Tell of changes, and let calls wait for people, until cancelled. Run this in one task."""
        tools_changed = partial(self._changes.take, TOOLS_CHANGED, {})
        self.handlers.on_change.append(tools_changed)
        for offering in self.handlers.more:
            offering.on_news.append(self._changes.take)

        try:
            async with anyio.create_task_group() as tasks:
                self._router.parking.tasks = tasks
                await self._changes.relay()
        finally:
            self._router.parking.tasks = None
            self.handlers.on_change.remove(tools_changed)
            for offering in self.handlers.more:
                offering.on_news.remove(self._changes.take)

    async def respond(self, client: Client, request: Message, post: Post | None) -> Message | None:
        """The JSON-RPC response to one request; None where its client has cancelled it.

        `post` reaches the client while the request runs, on the stream that will have the answer.
        """
        request_id, method = request.get("id"), request.get("method")
        if not isinstance(method, str) or request_id is None or not is_id(request_id):
            return error_response(request_id, INVALID_REQUEST, "this is no JSON-RPC 2.0 request")

        is_call = method in MULTI_ROUND
        if is_call and self._calls >= self._most_calls:
            text = "too many calls are running here; nothing ran, try later"
            return self._refused(client, request, text)

        running = Ending()
        if method != LISTEN:  # it only waits, and there may be thousands
            self._running.add(running)

        self._calls += is_call
        client.running[request_id] = running
        try:
            with running:
                return await self._answered(client, request_id, method, request.get("params"), post)
        finally:
            self._calls -= is_call
            self._running.discard(running)
            client.running.pop(request_id, None)
            if self._idle is not None and not self._running:
                self._idle.set()

        if self._closing:
            return self._refused(
                client, request, "this server is closing; whether the call ran is not known"
            )

        return None

    def open(self, client: Client) -> None:
        """A legacy client's conversation begins; `closed` ends it."""
        self._clients[client] = None

    def receive(self, client: Client, message: Message) -> None:
        """Take what a client says that is no request: notifications, and answers to ours."""
        method, params = message.get("method"), message.get("params")
        if method is None:
            client.answer(message)
        elif method == CANCELLED and isinstance(params, dict):
            client.cancel(params.get("requestId"))
        elif method == ROOTS_CHANGED and client.version:
            self._router.tell(client, method, params if isinstance(params, dict) else {})
        elif method == INITIALIZED and client.version:
            self._follow(client)

    async def closed(self, client: Client) -> None:
        """A conversation is over: nothing of it runs on."""
        client.close()
        unfollow = self._clients.pop(client, None)
        if unfollow is not None:
            unfollow()

        await self._router.leave(client)

    def wind_down(self) -> None:
        """End what only waits: listening, with its result, and calls that wait for people."""
        self._closing = True
        self._router.listening.close()
        self._router.parking.close()
        for client in list(self._clients):
            client.close_questions("this server is closing")

    async def end_calls(self) -> None:
        """Cancel every request that is running, and return when their clients have been told."""
        self._closing = True
        for running in self._running:
            running.cancel()

        await self.wait_idle()

    async def wait_idle(self) -> None:
        """Return when no request is running."""
        while self._running:
            if self._idle is None or self._idle.is_set():
                self._idle = anyio.Event()

            await self._idle.wait()

    async def _answered(
        self, client: Client, request_id: str | int, method: str, params: Any, post: Post | None
    ) -> Message:
        try:
            result = await self._router.result(client, method, params, request_id, post)
        except RpcError as exc:
            error = exc.error
        except Exception:  # ours; the client must not read an exception's own text
            log.exception("%s failed", method)
            error = {"code": INTERNAL_ERROR, "message": "internal error; the log says more"}
        else:
            return {"jsonrpc": "2.0", "id": request_id, "result": result}

        error = eras.error_for(error, modern=client.modern)
        return {"jsonrpc": "2.0", "id": request_id, "error": error}

    def _refused(self, client: Client, request: Message, text: str) -> Message:
        """The answer to a request that was not, or not wholly, served."""
        if request["method"] != "tools/call":
            return error_response(request["id"], -32000, text)

        stamp = self.handlers.stamp
        result = eras.for_client(failure(text), modern=client.modern, stamp=stamp)
        return {"jsonrpc": "2.0", "id": request["id"], "result": result}

    def _follow(self, client: Client) -> None:
        """Tell a legacy client of changes until its conversation is over."""
        push = client.push
        if push is None or self._clients.get(client) is not None:
            return

        def tell(method: str, params: dict[str, Any]) -> None:
            if method != RESOURCE_UPDATED or params.get("uri") in client.subscribed:
                push({"jsonrpc": "2.0", "method": method, "params": params})

        self._clients[client] = self._changes.follow(tell)


def is_id(value: object) -> bool:
    """Whether this may name a request (JSON-RPC 2.0, section 4; MCP allows no null)."""
    return type(value) is int or isinstance(value, str)


def error_response(request_id: object, code: int, message: str, data: Any = None) -> Message:
    """A JSON-RPC error of ours."""
    error = {"code": code, "message": message}
    if data is not None:
        error["data"] = data

    return {"jsonrpc": "2.0", "id": request_id if is_id(request_id) else None, "error": error}
