"""Server-sent events on their way to one client (WHATWG HTML, server-sent events).

A stream takes messages without blocking and is written by whoever has a response open for it. A
legacy stream keeps what it sent for a while, so that a client that lost its response gets the
rest with `Last-Event-ID` (MCP 2025-11-25, resumability).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

import anyio
from starlette.types import Send

from bridge.downstream.client import Message
from bridge.downstream.encoding import encoded
from bridge.telemetry import log

PING_SECONDS = 15.0
PING: Final = b": ping\n\n"
RETRY_MS: Final = 1000
MOST_WAITING: Final = 1000
"""Messages that a stream holds for a client that does not read."""

KEPT_EVENTS: Final = 256
KEPT_BYTES: Final = 4 * 1024 * 1024

HEADERS: Final = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
]


class EventStream:
    """One stream of events, from its first message to its last.

    `name` begins the ids of a stream that can be resumed; None for one that cannot. `primes`
    says whether a response begins with an event that holds nothing but its id.
    """

    def __init__(self, name: str | None = None, *, primes: bool = False) -> None:
        self.name = name
        self._primes = primes and name is not None
        self._waiting: deque[bytes] = deque()
        self._kept: deque[tuple[int, bytes]] = deque()
        self._kept_bytes = 0
        self._number = 0
        self._is_ended = False
        self._changed = anyio.Event()
        self._writer = 0

    @property
    def is_ended(self) -> bool:
        """Whether its last message was taken."""
        return self._is_ended

    def post(self, message: Message) -> None:
        """Take one message; a notification is dropped where the client does not read."""
        if self._is_ended:
            return

        if len(self._waiting) >= MOST_WAITING and "id" not in message:
            log.debug("dropped %s: its client does not read", message.get("method"))
            return

        self._put(encoded(message))

    def end(self, last: Message | None = None) -> None:
        """Take the last message, if there is one more; nothing is taken after it."""
        if not self._is_ended:
            if last is not None:
                self._put(encoded(last))

            self._is_ended = True
            self._changed.set()

    def replay(self, number: int) -> None:
        """Begin again after the event of this number, with what is still kept."""
        self._waiting = deque(frame for one, frame in self._kept if one > number)
        self._changed.set()

    def wake(self) -> None:
        """Have the writer look whether its client is still there."""
        self._changed.set()

    async def write(self, send: Send, is_gone: Callable[[], bool]) -> None:
        """Write it as the body of a response, until it ends or another response takes it over.

        The response itself must have begun. `is_gone` says whether its client has left.
        """
        self._writer += 1
        mine = self._writer
        self._changed.set()  # whoever wrote before stops now
        if self._primes:
            label = f"{self.name}_{self._number - len(self._waiting)}"
            await self._chunk(send, f"id: {label}\nretry: {RETRY_MS}\ndata: \n\n".encode())

        while self._writer == mine and not is_gone():
            if self._waiting:
                frames = b"".join(self._waiting)
                self._waiting.clear()
                await self._chunk(send, frames)
            elif self._is_ended:
                break
            else:
                await self._wait(send)

        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _wait(self, send: Send) -> None:
        self._changed = anyio.Event()
        with anyio.move_on_after(PING_SECONDS):
            await self._changed.wait()
            return

        await self._chunk(send, PING)

    async def _chunk(self, send: Send, data: bytes) -> None:
        await send({"type": "http.response.body", "body": data, "more_body": True})

    def _put(self, body: bytes) -> None:
        self._number += 1
        if self.name is None:
            frame = b"event: message\ndata: " + body + b"\n\n"
        else:
            label = f"{self.name}_{self._number}".encode()
            frame = b"event: message\nid: " + label + b"\ndata: " + body + b"\n\n"
            self._keep(frame)

        self._waiting.append(frame)
        self._changed.set()

    def _keep(self, frame: bytes) -> None:
        self._kept.append((self._number, frame))
        self._kept_bytes += len(frame)
        while len(self._kept) > KEPT_EVENTS or (
            self._kept_bytes > KEPT_BYTES and len(self._kept) > 1
        ):
            _, oldest = self._kept.popleft()
            self._kept_bytes -= len(oldest)


def event_id(text: str) -> tuple[str, int] | None:
    """The stream's name and the event's number of a `Last-Event-ID`; None if it is not ours."""
    name, _, number = text.rpartition("_")
    return (name, int(number)) if name and number.isascii() and number.isdecimal() else None
