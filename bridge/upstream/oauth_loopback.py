"""Where a person's browser is sent after a login: a port of this machine, for one answer.

It is a native app's loopback redirect (RFC 8252, section 7.3). Only the answer that brings the
state of our question is taken (RFC 6749, section 10.12); anything else is refused and forgotten.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from urllib.parse import parse_qs, urlsplit

import anyio
from anyio.abc import SocketAttribute, SocketStream

from bridge.upstream.channel import ChannelError
from bridge.upstream.wording import excerpt, reason

HOST = "127.0.0.1"
PATH = "/callback"
HEAD_BYTES = 16 * 1024
HEAD_SECONDS = 10.0
MOST_AT_ONCE = 16
MOST_PARAMETERS = 64

_TAKEN = "200 OK", "bridge has the answer. You can close this page.\n"
_REFUSED = "400 Bad Request", "This is not the answer that bridge waits for.\n"
_ABSENT = "404 Not Found", "There is nothing here.\n"


class LoginFailed(ChannelError):
    """A person was asked to log in, and nothing came of it; the server ran nothing."""

    def __init__(self, message: str) -> None:
        super().__init__(message, sent=False)


class Loopback:
    """The address, and the answer that came there."""

    def __init__(self, port: int) -> None:
        self.url = f"http://{HOST}:{port}{PATH}"
        self._port = port
        self._state: str | None = None
        self._answer: Mapping[str, str] = {}
        self._came = anyio.Event()
        self._turns = anyio.CapacityLimiter(MOST_AT_ONCE)

    def expect(self, authorization_url: str) -> None:
        """Wait for the answer to this question, which holds the state."""
        self._state = _single(urlsplit(authorization_url).query).get("state")

    async def answer(self) -> Mapping[str, str]:
        """The parameters that came back, once they have.

        Raises:
            LoginFailed: It was an error; only its code is told (RFC 9207, section 2.4).
        """
        await self._came.wait()
        if "error" in self._answer:
            raise LoginFailed(f"the login was refused: {excerpt(self._answer['error'])}")

        return self._answer

    async def serve(self, stream: SocketStream) -> None:
        """Answer one request of a browser's."""
        async with self._turns, stream:
            with anyio.move_on_after(HEAD_SECONDS):
                try:
                    status, text = self._taken(await _request_line(stream))
                    await stream.send(_page(status, text))
                except (OSError, anyio.BrokenResourceError, anyio.EndOfStream):
                    return

    def _taken(self, line: str) -> tuple[str, str]:
        verb, _, rest = line.partition(" ")
        target = urlsplit(rest.partition(" ")[0])
        if verb != "GET" or target.path != PATH:
            return _ABSENT

        given = _single(target.query)
        state = given.get("state", "")
        is_ours = self._state is not None and secrets.compare_digest(
            state.encode(), self._state.encode()
        )
        if not is_ours or self._came.is_set():
            return _REFUSED

        self._answer = given
        self._came.set()
        return _TAKEN


@asynccontextmanager
async def open_loopback(port: int) -> AsyncIterator[Loopback]:
    """Listen on a port of 127.0.0.1, any free one for 0, until the block ends.

    Raises:
        ChannelError: The port is taken.
    """
    try:
        listener = await anyio.create_tcp_listener(local_host=HOST, local_port=port)
    except OSError as exc:
        raise ChannelError(f"cannot listen on {HOST}:{port}: {reason(exc)}", sent=False) from exc

    failure: Exception | None = None
    async with listener:
        loopback = Loopback(listener.extra(SocketAttribute.local_port))
        async with anyio.create_task_group() as beside:
            beside.start_soon(listener.serve, loopback.serve)
            try:
                yield loopback
            except Exception as exc:
                failure = exc  # raised below, outside the task group, so that it stays itself

            beside.cancel_scope.cancel()

    if failure is not None:
        raise failure


def is_free(port: int) -> bool:
    """Whether nobody listens on this port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False

    return True


async def _request_line(stream: SocketStream) -> str:
    head = b""
    while b"\r\n\r\n" not in head and len(head) < HEAD_BYTES:
        head += await stream.receive()

    return head.partition(b"\r\n")[0].decode("ascii", "replace")


def _single(query: str) -> dict[str, str]:
    """The parameters of a query; one that comes twice is not taken at all."""
    try:
        found = parse_qs(query, keep_blank_values=True, max_num_fields=MOST_PARAMETERS)
    except ValueError:
        return {}

    return {name: values[0] for name, values in found.items() if len(values) == 1}


def _page(status: str, text: str) -> bytes:
    body = text.encode()
    head = (
        f"HTTP/1.1 {status}\r\n"
        "Content-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\n"
        "Cache-Control: no-store\r\n"
        "Referrer-Policy: no-referrer\r\n"
        "Connection: close\r\n\r\n"
    )
    return head.encode() + body
