"""Streamable HTTP, in both eras: one POST a message, one GET for what nobody asked for.

An answer is one JSON body, unless something has to reach the client before it: then, and only
then, the response becomes a stream of events (MCP, transports, Streamable HTTP).
"""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from typing import Final

import anyio
from starlette.types import Receive, Scope, Send

from bridge.downstream.asker import PRINCIPAL
from bridge.downstream.client import Client, Message
from bridge.downstream.front import Front
from bridge.downstream.guard import HEADERS, TWICE, Bounds, Refused
from bridge.downstream.handlers import Handlers
from bridge.downstream.leaving import Leaving
from bridge.downstream.legacy_tasks import RESULT
from bridge.downstream.modern import STATUS, admitted, unsupported
from bridge.downstream.neighbours import ALONE, Neighbours
from bridge.downstream.pages import NO_PAGES, Load, Page, beside
from bridge.downstream.posted import is_answer, is_call, message_of, unreadable
from bridge.downstream.reply import Reply, in_two
from bridge.downstream.sessions import Session, Sessions
from bridge.downstream.spread import AT_HOME, Spread, is_at_home
from bridge.downstream.streams import HEADERS as STREAM_HEADERS
from bridge.downstream.streams import EventStream, event_id
from bridge.downstream.web import Address, not_here, open_door, serve_app
from bridge.errors import ConfigError
from bridge.upstream.protocol import HANDSHAKE_VERSIONS

METHODS = ("GET", "POST", "DELETE")
VERSION = "mcp-protocol-version"
SESSION = "mcp-session-id"
ALLOW: Final = {"Allow": ", ".join(METHODS)}
ALLOW_POST: Final = {"Allow": "POST"}


async def serve_http(
    handlers: Handlers,
    host: str = "127.0.0.1",
    port: int = 8808,
    path: str = "/mcp",
    token: str | None = None,
    allowed_hosts: Iterable[str] = (),
    allowed_origins: Iterable[str] = (),
    on_ready: Callable[[str], None] = lambda endpoint: None,
    *,
    confirm_wait: float = 300.0,
    bounds: Bounds | None = None,
    neighbours: Neighbours = ALONE,
    listening: socket.socket | None = None,
    pages: Mapping[str, Page] = NO_PAGES,
) -> None:
    """Serve over Streamable HTTP until cancelled; see `Address` for the parameters.

    `confirm_wait` is how long a client may take to answer a request of ours. Where several
    processes serve one address, `neighbours` are the others, and `listening` is this one's
    socket, which listens already and is closed here.

    Raises:
        ConfigError: The address cannot be used, or other machines could call without a token.
    """
    if not path.startswith("/"):
        raise ConfigError(f'the path "{path}" must begin with "/"')

    bounds = bounds or Bounds()
    front = Front(handlers, confirm_wait=confirm_wait, most_calls=bounds.calls)
    endpoint = Endpoint(path, front, bounds, neighbours)
    address = Address(host, port, path, token, allowed_hosts, allowed_origins)
    door = await open_door(address, listening)
    with door.socket:
        await serve_app(front, beside(endpoint, pages, endpoint.load), door, on_ready, bounds)


class Endpoint:
    """The one URL of a Streamable HTTP server, as an ASGI app behind the guard."""

    def __init__(
        self, path: str, front: Front, bounds: Bounds, neighbours: Neighbours = ALONE
    ) -> None:
        self._path = path
        self._elsewhere = not_here(path)
        self._front = front
        self.sessions = Sessions(front, bounds.sessions, bounds.session_seconds, neighbours.mark)
        self._spread = Spread(front, self.sessions, neighbours)

    def load(self) -> Load:
        """What goes on here now."""
        return Load(self._front.calls, len(self.sessions))

    async def run(self) -> None:
        """Keep the sessions in order, until cancelled. Run this in one task."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._spread.run, self)
            tasks.start_soon(self.sessions.run)

    def end_streams(self) -> None:
        """End every response that is no answer to a request."""
        self.sessions.end_streams()

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        """Answer one HTTP request.

        Raises:
            Refused: It cannot be answered; the exception holds what is.
        """
        if scope["path"] != self._path:
            return self._elsewhere(scope, receive, send)

        headers: dict[str, str] = scope[HEADERS]
        is_modern = headers.get(VERSION, HANDSHAKE_VERSIONS[0]) not in HANDSHAKE_VERSIONS
        if scope["method"] == "POST":
            serve = self._modern_post if is_modern else self._legacy_post
            return serve(message_of(scope, headers), scope, receive, send)

        return self._no_post(is_modern, scope, receive, send)

    async def _no_post(self, is_modern: bool, scope: Scope, receive: Receive, send: Send) -> None:
        headers = scope[HEADERS]
        if scope["method"] not in METHODS:
            raise Refused(405, "method not allowed", ALLOW)

        if is_modern:
            raise Refused(405, "this protocol version has nothing but POST", ALLOW_POST)

        session = self._known(scope, headers) or await self._copied(scope, headers)
        if scope["method"] == "GET":
            owner = self._spread.stream_owner(session, headers)
            if not await self._spread.elsewhere(owner, scope, receive, send):
                await self._get(session, headers, receive, send)
        elif not await self._spread.elsewhere(self._spread.home(session), scope, receive, send):
            await self.sessions.end(session)
            await in_two(send, 200, (), b"")

    async def _modern_post(
        self, message: Message | None, scope: Scope, receive: Receive, send: Send
    ) -> None:
        if await self._spread.resumed(message, scope, receive, send):
            return

        headers = scope[HEADERS]
        reply = Reply(scope, send, accepts_stream=_accepts_stream(headers), new_stream=EventStream)
        if message is None or not is_call(message):
            await reply.finish(unreadable(scope), 400)
        elif "id" not in message:
            error = unsupported(headers[VERSION])
            await (in_two(send, 202, (), b"") if error is None else reply.finish(error, 400))
        else:
            verdict = admitted(self._front.handlers, message, headers, scope.get(TWICE, ()))
            if isinstance(verdict, Client):
                verdict.principal = scope[PRINCIPAL]
                reply.watch(receive, verdict)
                answer = await self._front.respond(verdict, message, reply.post)
            else:
                answer = verdict

            error = answer.get("error") if answer is not None else None
            await reply.finish(answer, 200 if error is None else STATUS.get(error["code"], 200))

    async def _legacy_post(
        self, message: Message | None, scope: Scope, receive: Receive, send: Send
    ) -> None:
        headers = scope[HEADERS]
        if message is None or not (is_call(message) or is_answer(message)):
            await Reply(scope, send).finish(unreadable(scope), 400)
            return

        is_first = message.get("method") == "initialize" and SESSION not in headers
        session = self._added(scope) if is_first else self._known(scope, headers)
        session = session or await self._copied(scope, headers)
        if "id" not in message or "method" not in message:
            await self._spread.take(session, message)
            await in_two(send, 202, (), b"")
            return

        if is_at_home(message):
            home = self._spread.home(session)
            if await self._spread.elsewhere(home, scope, receive, send):
                return

        reply = _reply(session, scope, send)
        leaving = _watched(session.client, message, receive)
        session.open_requests += 1
        try:
            answer = await self._front.respond(session.client, message, reply.post)
        finally:
            session.open_requests -= 1
            if leaving is not None:
                leaving.end()

        if is_first and (answer is None or "error" in answer):
            await self.sessions.end(session)
        elif message["method"] in AT_HOME:
            await self._spread.changed(session)

        await reply.finish(answer, 200)

    async def _get(
        self, session: Session, headers: dict[str, str], receive: Receive, send: Send
    ) -> None:
        """What a session says unasked, or the rest of a response that was cut off."""
        if not _accepts_stream(headers):
            raise Refused(406, "a GET here is for a client that accepts text/event-stream")

        stream, last = session.unasked, headers.get("last-event-id")
        if last is not None:
            found = event_id(last)
            resumed = session.found(found[0]) if found is not None else None
            if found is None or resumed is None:
                raise Refused(404, "what came after this event is kept no more")

            stream = resumed
            stream.replay(found[1])

        leaving = Leaving(receive, stream.wake)
        leaving.watch()
        session.open_requests += 1
        try:
            await send({"type": "http.response.start", "status": 200, "headers": STREAM_HEADERS})
            await stream.write(send, lambda: leaving.is_gone)
        finally:
            session.open_requests -= 1
            leaving.end()

    def _added(self, scope: Scope) -> Session:
        if self.sessions.is_full:
            raise Refused(503, "too many sessions are open here", {"Retry-After": "60"})

        return self.sessions.add(scope[PRINCIPAL])

    def _known(self, scope: Scope, headers: dict[str, str]) -> Session | None:
        """The session that a request names, if it is known here.

        Raises:
            Refused: 400 it names none.
        """
        name = headers.get(SESSION)
        if name is None or SESSION in scope.get(TWICE, ()):
            raise Refused(400, "a legacy client begins with initialize and names its session")

        return self.sessions.get(name, scope[PRINCIPAL])

    async def _copied(self, scope: Scope, headers: dict[str, str]) -> Session:
        """The session that a request names and that is not known here.

        Raises:
            Refused: 404 there is none of that name for this principal.
        """
        session = await self._spread.copied(headers[SESSION], scope[PRINCIPAL])
        if session is None:
            raise Refused(404, "there is no such session (any more): begin with initialize")

        return session


def _reply(session: Session, scope: Scope, send: Send) -> Reply:
    """The response to a request of this session's."""
    return Reply(
        scope,
        send,
        accepts_stream=_accepts_stream(scope[HEADERS]),
        new_stream=session.stream,
        extra=[(SESSION.encode(), session.name.encode())],
        later=session.push,
    )


def _watched(client: Client, message: Message, receive: Receive) -> Leaving | None:
    """End a wait for a task's result when nobody reads it: it can be asked for again.

    Whatever else a legacy client asked for runs on when it leaves, as its era has it.
    """
    if message["method"] != RESULT:
        return None

    leaving = Leaving(receive, partial(client.cancel, message["id"]))
    leaving.watch()
    return leaving


def _accepts_stream(headers: dict[str, str]) -> bool:
    accept = headers.get("accept", "*/*")
    return "text/event-stream" in accept or "*/*" in accept or "text/*" in accept
