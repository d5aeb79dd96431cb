"""One live, raw JSON-RPC conversation with an MCP server: the contract every transport keeps.

A channel is not aware of MCP: methods are strings, params and results are dicts, as they came.
Eras, sessions, retries and names live above it; bytes live below it. A channel is opened once and
closed once, by its owner; requests run in their callers' tasks, from any task.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

from bridge.core.caller import Caller
from bridge.core.content import Result
from bridge.core.rpc import RpcError

__all__ = [
    "NO_JSON",
    "NO_OPTIONS",
    "Channel",
    "ChannelBusy",
    "ChannelError",
    "HttpStatusError",
    "Limits",
    "Message",
    "Notify",
    "Options",
    "Params",
    "RequestTimeout",
    "RpcError",
    "SessionGone",
]

Message: TypeAlias = dict[str, Any]
"""One JSON-RPC message, as it is on the wire."""

Params: TypeAlias = dict[str, Any]
Notify: TypeAlias = Callable[[str, Params], None]
"""Takes an incoming notification: method and params. Must not block and must not raise."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one channel, in bytes and seconds."""

    message_bytes: int = 32 * 1024 * 1024
    stderr_lines: int = 200
    stderr_line_bytes: int = 4096
    close_grace: float = 2.0
    in_flight: int = 1024


NO_JSON: Final = "the answer is not JSON that can be read"
NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


class Options(NamedTuple):
    """What one request may carry besides its params.

    `timeout` bounds the whole request in seconds; progress does not extend it, and while a client
    is asked for the server, it stands still. `on_progress`
    takes the params of each `notifications/progress` of this request, in order, and must not
    block. `headers` ride on the request where the transport has headers. `caller` is who a
    server may ask, and tell things, while it works on this request.

    A tuple, for one is made for every call: a frozen dataclass takes five times as long.
    """

    timeout: float | None = None
    on_progress: Callable[[Params], None] | None = None
    headers: Mapping[str, str] = NO_HEADERS
    caller: Caller | None = None


NO_OPTIONS = Options()


class ChannelError(Exception):
    """The conversation itself failed. `sent` is False only if the server provably saw nothing."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


class ChannelBusy(ChannelError):
    """A bound of the channel is reached; it is as good as before, and nothing was sent."""

    def __init__(self, message: str) -> None:
        super().__init__(message, sent=False)


class RequestTimeout(ChannelError):
    """No answer came in time."""

    def __init__(self, method: str, seconds: float) -> None:
        super().__init__(f"{method} got no answer within {seconds:g} s", sent=True)


class HttpStatusError(ChannelError):
    """An HTTP answer that carries no JSON-RPC message: its status, and how its body began."""

    def __init__(self, status: int, beginning: str, *, www_authenticate: str = "") -> None:
        detail = f": {beginning}" if beginning else ""
        super().__init__(f"HTTP status {status}{detail}", sent=True)
        self.status = status
        self.beginning = beginning
        self.www_authenticate = www_authenticate


class SessionGone(ChannelError):
    """The server does not know our session (any more), so it did not run the request."""

    def __init__(self, message: str) -> None:
        super().__init__(message, sent=False)


class Channel(Protocol):
    """What `upstream.connection` needs of a transport.

    `protocol_version` is the revision that was negotiated, which who opened it sets; None before.
    """

    protocol_version: str | None

    @property
    def is_open(self) -> bool:
        """False as soon as no further request can be answered."""
        ...

    @property
    def closed_because(self) -> str:
        """Why the channel is closed, for a person; empty while it is open."""
        ...

    async def request(self, method: str, params: Params, options: Options = NO_OPTIONS) -> Result:
        """Send one request and return its result, as the server sent it.

        Cancelling the caller tells the server, as its era wants it, and does not wait for it.

        Raises:
            RpcError: The server answered with an error.
            ChannelError: No answer; `sent` tells whether the server may have acted.
        """
        ...

    async def notify(self, method: str, params: Params) -> None:
        """Send one notification.

        Raises:
            ChannelError: It could not be sent.
        """
        ...

    async def wait_closed(self) -> None:
        """Return when the channel is closed, by whichever side."""
        ...
