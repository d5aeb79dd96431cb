"""The response to one POST: a JSON body, or a stream as soon as something has to come before it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from starlette.types import Receive, Scope, Send

from bridge.downstream.client import Client, Message, Post
from bridge.downstream.encoding import encoded
from bridge.downstream.guard import CONTENT_LENGTH
from bridge.downstream.leaving import Leaving
from bridge.downstream.streams import HEADERS, EventStream

WATCH_AFTER = 0.05
"""Seconds after which it is watched whether the client is still there.

Most calls are done by then, and watching costs a task.
"""

WHOLE = "bridge.response.whole"
"""An extension of ASGI and its one message: a whole response of `status`, `headers` and `body`.

The headers are a tuple; the one with the length is the server's to add.
"""

LONGEST_WHOLE = 65536
"""Bytes of a body that are copied, so as to go out in one piece with the head."""

JSON = (b"content-type", b"application/json")

Headers = Sequence[tuple[bytes, bytes]]


class Reply:
    """One response, not begun until it must be."""

    __slots__ = (
        "_accepts_stream",
        "_client",
        "_extra",
        "_is_finished",
        "_later",
        "_leaving",
        "_new_stream",
        "_send",
        "_sends_whole",
        "_stream",
        "_writer",
    )

    def __init__(
        self,
        scope: Scope,
        send: Send,
        *,
        accepts_stream: bool = False,
        new_stream: Callable[[], EventStream] = EventStream,
        extra: Headers = (),
        later: Post | None = None,
    ) -> None:
        """`later` takes what comes when the response is over; without it, that is dropped."""
        self._send = send
        self._sends_whole = WHOLE in scope.get("extensions", ())
        self._accepts_stream = accepts_stream
        self._new_stream = new_stream
        self._extra = extra
        self._later = later
        self._is_finished = False
        self._stream: EventStream | None = None
        self._writer: asyncio.Task[None] | None = None
        self._leaving: Leaving | None = None
        self._client: Client | None = None

    def post(self, message: Message) -> None:
        """Send something before the answer; dropped where the client accepts no stream."""
        if self._is_finished:
            if self._later is not None:
                self._later(message)

            return

        if not self._accepts_stream:
            return

        if self._stream is None:
            self._stream = self._new_stream()
            self._writer = asyncio.get_running_loop().create_task(self._write(self._stream))

        self._stream.post(message)

    def watch(self, receive: Receive, client: Client) -> None:
        """Cancel what runs for this client when it leaves: so the modern era has it."""
        self._client = client
        self._leaving = Leaving(receive, self._left)
        self._leaving.watch_after(WATCH_AFTER)

    async def finish(self, answer: Message | None, status: int) -> None:
        """Send the answer and end the response; None for a request that its client cancelled."""
        self._is_finished = True
        if self._leaving is not None:
            self._leaving.end()

        if self._stream is not None and self._writer is not None:
            self._stream.end(answer)
            await self._writer
        elif answer is None:
            await self._whole(b"", 202)
        else:
            await self._whole(encoded(answer), status)

        # It and its watch know each other. Such rings stay until the collector looks for them, and
        # by then they would be thousands.
        self._leaving = None

    def _whole(self, body: bytes, status: int) -> Awaitable[None]:
        headers = (JSON, *self._extra)
        if self._sends_whole:
            return self._send({"type": WHOLE, "status": status, "headers": headers, "body": body})

        return in_two(self._send, status, headers, body)

    async def _write(self, stream: EventStream) -> None:
        headers = [*HEADERS, *self._extra]
        await self._send({"type": "http.response.start", "status": 200, "headers": headers})
        await stream.write(self._send, self._is_gone)

    def _is_gone(self) -> bool:
        return self._leaving is not None and self._leaving.is_gone

    def _left(self) -> None:
        if self._stream is not None:
            self._stream.wake()

        if self._client is not None:
            self._client.close()


async def in_two(send: Send, status: int, headers: Headers, body: bytes) -> None:
    """Send a whole response as every server takes it: the head with the length, and the body."""
    headers = [*headers, (CONTENT_LENGTH, b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
