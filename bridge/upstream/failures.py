"""What a failed exchange with an upstream means: for the call, for the listing, for a person."""

from __future__ import annotations

from bridge.errors import OutcomeUnknown, Overloaded, ToolError, UpstreamError, UpstreamUnavailable
from bridge.upstream.channel import (
    ChannelBusy,
    ChannelError,
    HttpStatusError,
    RequestTimeout,
    RpcError,
)
from bridge.upstream.link import Link
from bridge.upstream.protocol import UNSUPPORTED_VERSION
from bridge.upstream.target import Target

UNKNOWN_TOOL = {-32601, -32602}
"""The codes with which servers refuse a tool that they do not have (MCP, tools, errors)."""


def did_not_run(exc: RpcError | ChannelError) -> bool:
    """Whether a new link may be tried: nothing was sent, or a server of the other era refused."""
    if isinstance(exc, RpcError):
        return exc.code == UNSUPPORTED_VERSION

    return not exc.sent and not isinstance(exc, ChannelBusy)


def is_doubtful(link: Link, method: str, exc: RpcError | ChannelError) -> bool:
    """Whether this failure is a sign that the server's tools may be others than were listed.

    It refused a tool that it had listed; or, over HTTP, where a link outlives the server's
    process, the exchange broke as it does when a server is restarted.
    """
    if isinstance(exc, RpcError):
        return method == "tools/call" and exc.code in UNKNOWN_TOOL

    if isinstance(exc, HttpStatusError):
        return exc.status >= 500

    return link.transport == "http" and not isinstance(exc, ChannelBusy | RequestTimeout)


def to_error(name: str, target: Target, exc: RpcError | ChannelError, what: str) -> ToolError:
    """The failure of `what` on the upstream `name`, as its caller hears it; without secrets."""
    where = f'upstream "{name}"'
    said = target.without_secrets(str(exc))
    if isinstance(exc, RpcError):
        return UpstreamError(f"{where}: {said}", exc.error, is_protocol_error=True)

    if isinstance(exc, ChannelBusy):
        return Overloaded(f"{where}: {said}")

    refused = isinstance(exc, HttpStatusError) and 400 <= exc.status < 500
    if refused or not exc.sent:
        return UpstreamUnavailable(f"{where} is not available: {said}")

    return OutcomeUnknown(f"{where}: {said}; outcome unknown: {what} may have run")


def describe(exc: BaseException) -> str:
    """What went wrong, in one line; a group of errors by its first."""
    while isinstance(exc, BaseExceptionGroup):
        exc = exc.exceptions[0]

    return str(exc) or type(exc).__name__
